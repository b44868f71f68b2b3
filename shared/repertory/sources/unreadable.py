"""A source whose defining file is unreadable: its indexed items are kept."""

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from repertory.errors import CallError, SourceError
from repertory.sources.source import Scan, Source


class Unreadable(Source):
    """Stands for a source of the last run, with its identity, while its file is unreadable.

    A half-saved file does not change the configuration hash.
    """

    needs_trust = True

    def __init__(self, name: str, identity: Mapping[str, Any], error: str) -> None:
        self.type = str(identity.get("type", ""))
        self.name = name
        self.location = ""
        self._identity = identity
        self._error = error

    def __eq__(self, other: object) -> bool:
        """Whether another stands for the same source, for the same reason."""
        return isinstance(other, Unreadable) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.name)

    @override
    def identity(self) -> Mapping[str, Any]:
        return self._identity

    @override
    def scan(self) -> Scan:
        raise SourceError(self._error)

    @override
    def to_call(self, tool: str) -> None:
        raise CallError(self._error)
