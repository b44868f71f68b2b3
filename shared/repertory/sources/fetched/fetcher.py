"""The port of a fetcher: it copies content from elsewhere into a new folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of some content. Times are Unix seconds, 0 for never.

    Attributes:
        revision: What was fetched: a commit, or the digest of a file.
        validators: What a server sent to recognise it again, such as an ``etag``.
        checked_at: When it was last found to be current.
        tried_at: When the last attempt ended.
        error: Why that failed; empty if it did not.
        notes: What was left out of the content, and why.
    """

    revision: str = ""
    validators: dict[str, str] = {}
    checked_at: float = 0.0
    tried_at: float = 0.0
    error: str = ""
    notes: tuple[str, ...] = ()


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """The MCP servers that a plugin or a folder declares.

    Attributes:
        name: The name of the plugin, which names its configuration's file.
        root: Its folder; programs may lie there.
        servers: The servers by name, as an MCP configuration has them.
    """

    name: str
    root: Path
    servers: dict[str, Any]


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a fetch.

    Attributes:
        revision, validators, notes: See ``State``.
        declared: The MCP servers in it, which await trust.
    """

    revision: str
    validators: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    declared: tuple[Declared, ...] = ()


class Fetcher(Protocol):
    """Fetches the content of one source. Adapters inherit from this class.

    Attributes:
        location: Where from, for people, without secrets.
        cancelled: Whether a fetch that runs is to end soon, with a SourceError.
    """

    location: str
    cancelled: bool = False

    def key(self) -> Mapping[str, Any]:
        """Return plain JSON values that determine the content: sources with one key share it."""
        ...

    def fetch(self, into: Path, last: State, *, may_ask: bool) -> Fetched | None:
        """Fetch the content.

        Args:
            into: A new, empty folder. Only regular files may be put there; it is thrown away if
                this raises or is interrupted.
            last: What is there; its revision is empty if nothing is.
            may_ask: Whether the user sits at the terminal and may be asked for a password.

        Returns:
            What was fetched; None if ``last`` is still current.

        Raises:
            SourceError: It cannot be fetched now, or is not what was expected. The message has no
                secrets.
        """
        ...
