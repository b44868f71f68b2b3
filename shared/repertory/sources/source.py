"""The port for sources, the places that items come from."""

import json
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from repertory.catalogue.item import Item

if TYPE_CHECKING:
    from repertory.sources.mcp.server import ServerConfig
    from repertory.sources.openapi.api import Api

    Callee = ServerConfig | Api  # it runs a tool


WITHHELD = "is in quarantine and agents do not see it"  # part of the problem of such an item


class Severity(StrEnum):
    """How bad a problem is: a warning keeps the item, an error leaves it out."""

    WARNING = "warning"
    ERROR = "error"


class Trust(StrEnum):
    """How new and changed items of a source are treated."""

    TRUSTED = "trusted"  # all are approved
    REVIEW = "review"  # suspicious ones wait for approval, the others are marked
    QUARANTINE = "quarantine"  # all of them wait for approval


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A defect of one file, item or setting, worded so that its author can fix it.

    Attributes:
        severity: ``error`` if the item was left out, ``warning`` if it was loaded.
        message: One sentence that says what is wrong and what to do.
        path: The file, or the server, at fault.
        line: The line in the file, from 1; None if unknown.
        item: The id of the item; empty if the problem does not concern a single item.
        sources: The names of the sources that it concerns; empty for the whole catalogue.
    """

    severity: Severity
    message: str
    path: str = ""
    line: int | None = None
    item: str = ""
    sources: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}" if place else self.message

    @property
    def is_withheld(self) -> bool:
        """Whether it says that its item is in quarantine."""
        return bool(self.item) and WITHHELD in self.message


def warning(path: str, message: str, line: int | None = None, item: str = "") -> Problem:
    """Make a problem of an item that was loaded."""
    return Problem(severity=Severity.WARNING, message=message, path=path, line=line, item=item)


def error(path: str, message: str, line: int | None = None, item: str = "") -> Problem:
    """Make a problem of an item that was left out."""
    return Problem(severity=Severity.ERROR, message=message, path=path, line=line, item=item)


class PassedOver(msgspec.Struct, frozen=True, order=True):
    """A file or folder that might have items but was deliberately not read.

    Attributes:
        path: The file or folder.
        reason: The reason, as a clause with "it" as its subject.
    """

    path: str
    reason: str


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one scan of a source.

    Attributes:
        items: Every item that could be read, in a deterministic order, ids unique.
        problems: All errors and warnings.
        unread: The ids of items that exist but could not be read this time. The index keeps them,
            because a failure is never a deletion.
        unread_under: Id prefixes of items whose names could not be read, such as those in a folder
            that cannot be listed. The index keeps these items as well.
        passed_over: The files and folders that were deliberately not read, by path.
        unchanged: The ids of items of files that were not read again. The index keeps them, too.
        postponed: The paths of changed files that there was no time to read.
        withheld: The ids of items in quarantine, which are not among ``items``.
        stale: Why the items may be old, because content could not be fetched; empty otherwise.
    """

    items: list[Item]
    problems: list[Problem] = []
    unread: frozenset[str] = frozenset()
    unread_under: tuple[str, ...] = ()
    passed_over: list[PassedOver] = []
    unchanged: frozenset[str] = frozenset()
    postponed: frozenset[str] = frozenset()
    withheld: frozenset[str] = frozenset()
    stale: str = ""

    def keeps(self, item_id: str) -> bool:
        """Whether the index keeps an item that is not among ``items``."""
        return (
            item_id in self.unchanged
            or item_id in self.unread
            or item_id.startswith(self.unread_under)
        )


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The changes in a source since its last scan or change.

    Attributes:
        items: The new and changed items.
        gone: The ids of removed items. Unread ones are not removed.
        summary: The scan of the whole source as it is now, but without its items.
    """

    items: list[Item]
    gone: frozenset[str]
    summary: Scan


class WatchedFolder(msgspec.Struct, frozen=True):
    """A folder, or a single file, that a source reads.

    Attributes:
        path: The absolute path. It may be missing or be a link.
        concerns: Whether a change of a file with a given name can change the scan. Not used
            if ``path`` is a file.
        is_closed: Whether the folder at a path could not be listed by the last scan.
    """

    path: Path
    concerns: Callable[[str], bool] = lambda _name: True
    is_closed: Callable[[str], bool] = lambda _path: False


class Source(Protocol):
    """A configured place that items come from. Adapters inherit from this class.

    A source never executes anything from an item, and limits how much it reads. It reports a broken
    item as a problem and continues with the rest. Two sources are equal if they have the same type,
    name and configuration; a reloaded configuration then keeps the earlier one and its caches.

    There are three ways to find changes: the watch service watches the source's ``folder``, the
    source calls back from ``watch``, or otherwise each reconciliation scans it.

    Attributes:
        type: The type as written in a configuration (``skills``, ``mcp``, …).
        name: The name, unique in its catalogue. Item ids start with it.
        location: Where it reads from, for people: a path, a command, or a URL without secrets.
        folder: The folder or file that it reads; None if it reads no files.
        file: The single file that it reads, watched or not; empty otherwise.
        needs_trust: Whether a file other than the catalogue's own configuration defines the source,
            so that the user must trust that file first. If several such files define a source with
            the same name, the first counts. The source is kept while its file is unreadable.
        is_trusted: Whether the source may run or be read.
        asks_server: Whether a scan starts or calls a server, which a search never does.
        fetches: Whether ``refresh`` fetches content from elsewhere, which a search never does.
        origin: The file that defines it, if ``needs_trust``; for built-in skills, the folder of
            their configuration.
        fault: Why its definition is invalid, with the file; empty if valid. A scan raises it.
        trust: How its new and changed items are treated.
        visible_to: The groups whose callers may see its items; empty for everyone.
        within: The folder that it is confined to, even if links are put there later; empty if it
            may read anywhere.
        disk: The folder in which it may store the texts of items instead of in memory.
        on_pause: Called regularly during a scan of many files, on its thread.
    """

    type: str
    name: str
    location: str
    folder: WatchedFolder | None = None
    file: str = ""
    needs_trust: bool = False
    is_trusted: bool = True
    asks_server: bool = False
    fetches: bool = False
    origin: str = ""
    fault: str = ""
    trust: Trust = Trust.TRUSTED
    visible_to: tuple[str, ...] = ()
    within: str = ""
    disk: Path | None = None
    on_pause: Callable[[], None] | None = None

    @property
    def place(self) -> str:
        """The folder or file that it reads, else that defines it; empty if unknown."""
        return str(self.folder.path) if self.folder else self.origin

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and (
            (self.name, self.trust, self.visible_to, self.within, self.configuration())
            == (other.name, other.trust, other.visible_to, other.within, other.configuration())
        )

    def __hash__(self) -> int:
        return hash(self.name)

    def configuration(self) -> object:
        """Return a value that is equal for sources with the same configuration.

        It may contain secrets and must not be shown.
        """
        return self.identity()

    def identity(self) -> Mapping[str, Any]:
        """Return plain JSON values that identify this source, without secrets.

        They include ``type`` and ``name`` and are part of the configuration hash. Sources with the
        same identity have the same items.
        """
        ...

    def identity_as_json(self) -> bytes:
        """The identity as JSON; a path in it need not be valid Unicode."""
        try:
            return msgspec.json.encode(self.identity(), order="deterministic")
        except UnicodeEncodeError:
            return json.dumps(self.identity(), sort_keys=True).encode()

    def scan(self) -> Scan:
        """Read the source once and return every item it offers now.

        An empty source is an empty scan, not an error.

        Raises:
            SourceError: The source as a whole cannot be read (a missing root, a server that does
                not answer, missing trust). Its items are then kept and marked stale.
        """
        ...

    def rescan(self, paths: Sequence[str]) -> Change | None:  # noqa: ARG002 - the default cannot
        """Read only changed files and folders.

        The result is that of a scan, if nothing else has changed. It never runs in parallel to a
        scan or itself, but ``on_pause`` may call it during a scan, whose result then includes the
        changes.

        Args:
            paths: The absolute paths. They may be missing.

        Returns:
            The changes since the last scan or change; None if a scan is needed.
        """
        return None

    def refresh(self, *, may_ask: bool = False) -> None:  # noqa: ARG002 - the default fetches none
        """Fetch content from elsewhere for the next scan. This may take minutes.

        After a failure, the old content is kept, and the next scan reports the failure.

        Args:
            may_ask: Whether the user may be asked for a password at the terminal.

        Raises:
            SourceError: It cannot be fetched.
        """
        return

    def cancel(self) -> None:
        """Make pending requests and fetches end soon, with a failure that is not remembered."""
        return

    def is_away(self) -> bool:
        """Whether the source is temporarily unavailable, such as a folder on an unmounted disk.

        A discovered source then stays in the catalogue.
        """
        return False

    def watch(
        self,
        changed: Callable[[], None],  # noqa: ARG002 - the default reports nothing
        interval: float,  # noqa: ARG002 - as above
    ) -> Callable[[], None] | None:
        """Start reporting changes, for a source without a folder.

        Args:
            changed: Called on any thread when the first scan can run without waiting, and then
                after each change.
            interval: The maximum time in seconds between two checks, if the source must poll.

        Returns:
            A function that ends the watch and waits until everything it started has stopped; None
            if this source cannot report changes.
        """
        return None

    def to_call(self, tool: str) -> "Callee | None":  # noqa: ARG002 - the default calls none
        """Return the server or API that runs a tool; None if the source has no callable tools.

        Raises:
            CallsOffError: The server is not trusted, or the configuration excludes the tool.
            CallError: The server's configuration is invalid or unreadable.
        """
        return None
