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
        fetched_at: When it was fetched.
        checked_at: When it was last found to be current.
        tried_at: When the last attempt ended.
        error: Why that failed; empty if it did not.
        notes: What was left out of the content, and why.
    """

    revision: str = ""
    validators: dict[str, str] = {}
    fetched_at: float = 0.0
    checked_at: float = 0.0
    tried_at: float = 0.0
    error: str = ""
    notes: tuple[str, ...] = ()


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a fetch; see ``State``."""

    revision: str
    validators: dict[str, str] = {}
    notes: tuple[str, ...] = ()


class Fetcher(Protocol):
    """Fetches the content of one source. Adapters inherit from this class.

    Attributes:
        location: Where from, for people, without secrets.
    """

    location: str

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
