"""A server whose configuration cannot be read now: what was indexed of it is kept."""

from collections.abc import Mapping
from typing import Any

from repertory.errors import SourceError
from repertory.sources.source import Scan


class Unreadable:
    """Stands for an MCP server of the last run, with the identity that it had then.

    A configuration that is half saved does not change what the catalogue is.
    """

    type = "mcp"
    location = ""

    def __init__(self, name: str, identity: Mapping[str, Any], error: str) -> None:
        self.name = name
        self._identity = identity
        self._error = error

    def __eq__(self, other: object) -> bool:
        """Whether another stands for the same server, for the same reason."""
        return isinstance(other, Unreadable) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.name)

    def identity(self) -> Mapping[str, Any]:
        """What told the server from others when it was last read."""
        return self._identity

    def scan(self) -> Scan:
        """There is nothing to look at.

        Raises:
            SourceError: Always; the message says what is wrong with the configuration.
        """
        raise SourceError(self._error)
