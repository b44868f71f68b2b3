"""The callable API of a document: where requests may go, and how they are authenticated."""

from typing import Any

import msgspec

from repertory.errors import CallsOffError
from repertory.sources.openapi.servers import origin
from repertory.text import cut, one_line


class Api(msgspec.Struct, frozen=True, kw_only=True):
    """An API that may be called, with unresolved variables.

    Attributes:
        name: The name of its source.
        origin: The only scheme, host and port that requests may go to; empty if not confirmed.
        auth: The secret of each security scheme, by its name in the document.
        headers: Headers of every request.
        call_timeout: Seconds for one call; None if not configured.
        workspace: The folder that the configuration belongs to.
    """

    name: str
    origin: str = ""
    auth: dict[str, str] = {}
    headers: dict[str, str] = {}
    call_timeout: float | None = None
    workspace: str = ""

    def __repr__(self) -> str:
        """Omit secrets and headers."""
        return f"Api({self.name!r}, {self.origin!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Show the same as ``repr``."""
        return [("name", self.name), ("origin", self.origin)]

    def check(self, url: str) -> None:
        """Reject a URL with another origin.

        Raises:
            CallsOffError: The origin differs; the message says how to allow it.
        """
        if self.origin and origin(url) == self.origin:
            return
        where = cut(one_line(url), 200) or "no server"
        raise CallsOffError(
            f"The document of the API {self.name} names {where}, and calls may go to "
            f"{self.origin or 'no server'} only; set `server` of its source to allow another one."
        )
