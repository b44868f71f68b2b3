"""The port for fetchers, which copy content from elsewhere into a new folder."""

from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any, Protocol

import msgspec


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The state of fetched content. Times are Unix seconds, 0 for never.

    Attributes:
        revision: The fetched revision: a commit, or the digest of a file.
        validators: Values for conditional requests, such as an ``etag``.
        checked_at: When it was last found to be current.
        tried_at: When the last attempt ended.
        error: Why the last attempt failed; empty if it succeeded.
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
        root: Its folder, which may contain programs.
        servers: The servers by name, as in an MCP configuration.
    """

    name: str
    root: Path
    servers: dict[str, dict[str, Any]]


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
        location: The origin of the content, for people, without secrets.
        cancelled: Set if a running fetch should end soon, with a SourceError.
    """

    location: str
    cancelled: Event

    def key(self) -> Mapping[str, Any]:
        """Return the JSON values that determine the content. Sources with the same key share it."""
        ...

    def fetch(self, into: Path, last: State, *, may_ask: bool) -> Fetched | None:
        """Fetch the content.

        Args:
            into: A new, empty folder, for regular files only. It is deleted if this raises or is
                interrupted.
            last: The state of the current content; its revision is empty if there is no content.
            may_ask: Whether the user is at the terminal and may be asked for a password.

        Returns:
            The result; None if ``last`` is still current.

        Raises:
            SourceError: The content cannot be fetched now, or is unexpected. The message has no
                secrets.
        """
        ...
