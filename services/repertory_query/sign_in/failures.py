"""Why a person cannot sign in; each message is one sentence for users."""


class TokenError(Exception):
    """A token or a sign-in is not valid here."""


class ProviderError(Exception):
    """The provider is away, or does not answer as it should."""
