"""Credentials of requests: configured secrets, placed as the OpenAPI document declares."""

import base64
import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

from repertory.errors import CallError, CallsOffError, SourceError
from repertory.sources.mcp.variables import MIN_SECRET_LENGTH, filled
from repertory.sources.openapi.api import Api
from repertory.sources.openapi.operation import Operation, Scheme

MASK = "***"


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of a request that authenticate it. Never stored or logged.

    ``secrets`` are the strings that are masked in messages and results.
    """

    headers: dict[str, str] = {}
    query: list[tuple[str, str]] = []
    cookies: list[tuple[str, str]] = []
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Omit all values, which may be secret."""
        return "Credentials(…)"

    def redact(self, text: str) -> str:
        """Mask every secret in a text."""
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        return text

    def redact_all(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Mask every secret in the texts and names of a JSON value."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self.redact(str(key)): self.redact_all(one) for key, one in value.items()}
        return [self.redact_all(one) for one in value] if isinstance(value, list) else value


def credentials_for(api: Api, operation: Operation, environment: Mapping[str, str]) -> Credentials:
    """The credentials of an operation, for its first alternative that is configured.

    Args:
        api: The API, with its secrets as unresolved variables.
        operation: The operation.
        environment: Values for the variables.

    Raises:
        CallsOffError: No alternative is configured.
        CallError: A variable has no value, or a value cannot be sent.
    """
    used: set[str] = set()

    def fill(text: str) -> str:
        try:
            return filled(text, f"The API {api.name}", api.workspace, environment, used)
        except SourceError as error:
            raise CallError(str(error)) from error

    headers: dict[str, str] = {}
    found = Credentials(headers=headers, query=[], cookies=[])
    chosen = _chosen(api, operation, fill)
    for scheme in chosen:
        _place(scheme, fill(api.auth[scheme.name]), found, used)
    given = {name.lower() for name in headers}
    headers |= {name: fill(one) for name, one in api.headers.items() if name.lower() not in given}
    for name in api.auth.keys() - {scheme.name for scheme in chosen}:
        with contextlib.suppress(CallError):  # not sent, but masked in results
            fill(api.auth[name])
    for name, value in headers.items():
        if not value.isprintable() or not value.isascii():
            raise CallError(
                f"The value of the header {name} for the API {api.name} has characters that cannot "
                "be sent; check the variables of its configuration."
            )
    return msgspec.structs.replace(found, secrets=_masked(used))


def _place(scheme: Scheme, value: str, found: Credentials, used: set[str]) -> None:
    """Add a secret to the part of the request that its scheme names."""
    match scheme.place:
        case "basic":
            encoded = base64.b64encode(value.encode()).decode()
            user, _, password = value.partition(":")
            used.discard(user)  # the user name is not secret, so it is not masked
            used |= {encoded, password}
            found.headers["Authorization"] = f"Basic {encoded}"
        case "bearer":
            found.headers["Authorization"] = f"Bearer {value}"
        case "header":
            found.headers[scheme.key] = value
        case "query":
            found.query.append((scheme.key, value))
        case "cookie":
            found.cookies.append((scheme.key, value))


def _chosen(api: Api, operation: Operation, fill: Callable[[str], str]) -> tuple[Scheme, ...]:
    """The first alternative whose secrets are configured and have values.

    Empty if the operation needs no secret, or if configured headers satisfy an alternative.
    """
    missing: CallError | None = None
    for schemes in operation.security:
        if schemes and all(scheme.name in api.auth for scheme in schemes):
            try:
                for scheme in schemes:
                    fill(api.auth[scheme.name])
            except CallError as error:
                missing = missing or error
            else:
                return schemes
    if not operation.security or () in operation.security:
        return ()
    headers = {name.lower() for name in api.headers}
    for schemes in operation.security:
        if all(_header_of(scheme) in headers for scheme in schemes):
            return ()
    if missing is not None:
        raise missing
    names = " or ".join(
        " with ".join(scheme.name for scheme in schemes) for schemes in operation.security[:5]
    )
    raise CallsOffError(
        f"The API {api.name} needs a secret for {names}; set `auth` of its source, such as "
        f'auth = {{{operation.security[0][0].name} = "${{NAME}}"}}, and the variable NAME.'
    )


def _header_of(scheme: Scheme) -> str:
    """The header that a scheme sets, in lower case; empty if it sets no header."""
    if scheme.place in ("basic", "bearer"):
        return "authorization"
    return scheme.key.lower() if scheme.place == "header" else ""


def _masked(used: set[str]) -> tuple[str, ...]:
    """Secrets in every encoding in which a response or message may repeat them, longest first."""
    found: set[str] = set()
    for secret in used:
        if len(secret) >= MIN_SECRET_LENGTH:
            found |= {secret, quote(secret, safe=""), quote_plus(secret), quote(secret)}
            found |= {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    return tuple(sorted(found, key=len, reverse=True))
