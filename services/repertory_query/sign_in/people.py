"""The people who may use a server without a key, through a provider or a trusted proxy."""

from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection

from repertory.errors import ConfigurationError
from repertory.values import Values
from repertory_query.sign_in.person import Person, Roles
from repertory_query.sign_in.proxy import TrustedProxy

if TYPE_CHECKING:
    from repertory_query.sign_in.openid import OpenId


class People:
    """The people who may use a server, and their scopes.

    Args:
        values: The settings.

    Attributes:
        roles: The scopes of groups.
        openid: The sign-in at a provider, if any.

    Raises:
        ConfigurationError: A setting is missing or invalid.
    """

    def __init__(self, values: Values) -> None:
        self.roles = Roles(values)
        self.openid = _openid(values) if values.oidc_issuer else None
        self._proxy = TrustedProxy(values) if values.proxy_addresses else None

    def behind_proxy(self, request: HTTPConnection) -> Person | None:
        """The person whom a trusted proxy names; see ``TrustedProxy.person``."""
        return self._proxy.person(request) if self._proxy else None


def people_of(values: Values) -> People | None:
    """The people who may use a server with these settings; None if only keys are accepted.

    Raises:
        ConfigurationError: A setting is missing or invalid.
    """
    if values.oidc_issuer or values.proxy_addresses:
        return People(values)
    if values.oidc_client_id or values.oidc_client_secret or values.oidc_client_secret_file:
        raise ConfigurationError("oidc.issuer is missing; set it to the URL of the provider.")
    return None


def _openid(values: Values) -> "OpenId":
    try:
        from repertory_query.sign_in.openid import OpenId  # noqa: PLC0415 - slow, and optional
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"oidc.issuer needs the package {error.name}; pip install 'repertory[team]' has it."
        ) from error
    return OpenId(values)
