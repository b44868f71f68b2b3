"""The errors of a sign-in; each message is one sentence for users."""


class TokenError(Exception):
    """A token or a sign-in is not valid here."""


class ProviderError(Exception):
    """The provider is unavailable, or its answer is invalid."""
