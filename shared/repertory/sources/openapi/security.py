"""The security schemes of a document that calls support."""

import re
from collections.abc import Mapping
from typing import Any

from repertory.sources.openapi.document import BrokenError, Document
from repertory.sources.openapi.operation import Scheme

MAX_ALTERNATIVES = 20
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
# Headers that frame a request or choose its server; a document must not set them.
FRAMING = frozenset(
    (
        *("host", "content-length", "transfer-encoding", "connection", "upgrade", "expect", "te"),
        *("trailer", "keep-alive", "proxy-authorization", "proxy-connection", "cookie"),
        *("content-type", "content-encoding", "accept-encoding"),
    )
)


class Security:
    """The security schemes of a document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        components = document.root.get("components")
        schemes = components.get("securitySchemes") if isinstance(components, Mapping) else None
        self._schemes: Mapping[str, Any] = schemes if isinstance(schemes, Mapping) else {}
        self._known: dict[str, Scheme | str] = {}

    def alternatives(
        self, operation: Mapping[str, Any]
    ) -> tuple[tuple[tuple[Scheme, ...], ...], list[str]]:
        """The alternatives of an operation, and the defects of those that are left out.

        Without a usable alternative, the operation must not be called. It then gets one that needs
        a scheme that no configuration can have.
        """
        wanted = operation.get("security", self._document.root.get("security", []))
        if not isinstance(wanted, list) or not wanted:
            return (), []
        found, wrong = [], []
        for one in wanted[:MAX_ALTERNATIVES]:
            schemes = [self._scheme(name) for name in (one if isinstance(one, Mapping) else ())]
            if faults := [scheme for scheme in schemes if isinstance(scheme, str)]:
                wrong += faults
            else:
                found.append(tuple(scheme for scheme in schemes if isinstance(scheme, Scheme)))
        named = (name for one in wanted if isinstance(one, Mapping) for name in one)
        unusable = Scheme(name=next(named, "?"), place="bearer")
        return tuple(found) or ((unusable,),), wrong if not found else []

    def schemes(self) -> list[Scheme]:
        """All schemes that calls support."""
        found = map(self._scheme, self._schemes)
        return [one for one in found if isinstance(one, Scheme)]

    def _scheme(self, name: str) -> Scheme | str:
        if name not in self._known:
            try:
                raw = self._document.resolved(self._schemes.get(name), f"security scheme {name!r}")
                self._known[name] = _scheme(name, raw)
            except BrokenError as error:
                self._known[name] = str(error)
        return self._known[name]


def _scheme(name: str, raw: Mapping[str, Any]) -> Scheme:
    kind, place, key = raw.get("type"), raw.get("in"), raw.get("name")
    way = str(raw.get("scheme", "")).lower()
    if kind in ("oauth2", "openIdConnect") or (kind == "http" and way == "bearer"):
        return Scheme(name=name, place="bearer")
    if kind == "http" and way == "basic":
        return Scheme(name=name, place="basic")
    if kind == "apiKey" and isinstance(key, str) and _is_key(place, key):
        return Scheme(name=name, place=place, key=key)  # type: ignore[arg-type]  # checked above
    what = f"{kind} {way}".strip() if kind != "apiKey" else f"apiKey in {place}"
    raise BrokenError(f"its security scheme {name!r} ({what}) is not supported")


def _is_key(place: object, key: str) -> bool:
    if place == "query":
        return 0 < len(key) <= 200
    is_name = HEADER_NAME.fullmatch(key) is not None
    return is_name and (place == "cookie" or (place == "header" and key.lower() not in FRAMING))
