"""The port of a source: a place that items come from."""

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

    Callee = ServerConfig | Api  # what runs a tool


WITHHELD = "is in quarantine and agents do not see it"  # in the problem of such an item


class Severity(StrEnum):
    """How bad a problem is: a warning keeps the item, an error leaves it out."""

    WARNING = "warning"
    ERROR = "error"


class Trust(StrEnum):
    """What happens to new and changed items of a source."""

    TRUSTED = "trusted"  # they are approved
    REVIEW = "review"  # suspicious ones wait for approval, the others are marked
    QUARANTINE = "quarantine"  # all of them wait for approval


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A defect of one file, item or setting, worded so that its author can fix it.

    Attributes:
        severity: ``error`` if the item was left out, ``warning`` if it was loaded.
        message: One sentence: what is wrong and what to do.
        path: The file, or the server, at fault.
        line: The line in the file, from 1; None if unknown.
        item: The id of the item; empty if the problem concerns no single item.
        sources: The names of the sources that it is about; empty if that is the whole catalogue.
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
        """Whether it says that its item waits for a review, and is not indexed."""
        return bool(self.item) and WITHHELD in self.message


def warning(path: str, message: str, line: int | None = None, item: str = "") -> Problem:
    """Build a problem of an item that was loaded."""
    return Problem(severity=Severity.WARNING, message=message, path=path, line=line, item=item)


def error(path: str, message: str, line: int | None = None, item: str = "") -> Problem:
    """Build a problem of an item that was left out."""
    return Problem(severity=Severity.ERROR, message=message, path=path, line=line, item=item)


class PassedOver(msgspec.Struct, frozen=True, order=True):
    """A file or folder that could hold items and was not read, although nothing is wrong with it.

    Attributes:
        path: The file or folder.
        reason: Why, as a clause with "it" as its subject.
    """

    path: str
    reason: str


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one scan of a source.

    Attributes:
        items: Every item that could be read, in a deterministic order, ids unique.
        problems: All errors and warnings.
        unread: The ids of items that exist but could not be read this time. The index keeps them:
            a failure is never a deletion.
        unread_under: Id prefixes of items whose names could not be read (a folder that cannot be
            listed, a broken file of several items). The index keeps these items as well.
        passed_over: What the source could have read and did not, by path.
        unchanged: The ids of items of files that were not read again. The index keeps them, too.
        postponed: The paths of changed files that there was no time to read.
        withheld: The ids of items in quarantine, which are not among ``items``.
        stale: Why the items may be old: what lies elsewhere could not be fetched. Empty otherwise.
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
    """What has changed in a source since its last scan or change.

    Attributes:
        items: The new and changed items.
        gone: The ids of items that are not offered any more, unless they are unread.
        summary: The scan of the whole source as it is now, but without its items.
    """

    items: list[Item]
    gone: frozenset[str]
    summary: Scan


class WatchedFolder(msgspec.Struct, frozen=True):
    """A folder, or a single file, that a source reads.

    Attributes:
        path: The absolute path. It may be missing, or be a link.
        concerns: Whether a change of a file with a given name can change the scan. Not used
            if ``path`` is a file.
        is_closed: Whether the folder at a path could not be listed by the last scan.
    """

    path: Path
    concerns: Callable[[str], bool]
    is_closed: Callable[[str], bool] = lambda _path: False


class Source(Protocol):
    """A configured place that items come from. Adapters inherit from this class.

    A source never executes anything of an item and bounds what it reads. It reports one broken item
    as a problem and continues with the rest. Two sources are equal if they have the same type,
    name and configuration; a reloaded configuration then keeps the earlier one and its caches.

    A source reports changes in one of three ways: it has a ``folder``, which the watch service
    watches; its ``watch`` calls back; or neither, and each reconciliation scans it.

    Attributes:
        type: The type as written in a configuration (``skills``, ``mcp``, …).
        name: The name, unique in its catalogue. Item ids start with it.
        location: Where it reads from, for people: a path, a command, a URL without its secrets.
        folder: The folder or file it reads; None if it reads no files.
        file: The one file that it reads, watched or not; empty if it reads folders, or no file.
        needs_trust: Whether a file other than the catalogue's own configuration defines the source,
            so that the user must trust that file first. Several such files may define a source of
            one name, and the first counts. The source stays unchanged while its file is unreadable.
        is_trusted: Whether the source may run or be read.
        asks_server: Whether a scan starts or calls a server, which a search never does.
        fetches: Whether ``refresh`` fetches content from elsewhere, which a search never does.
        origin: The file that defines it, if ``needs_trust``; of skills that a configuration has
            itself, its folder.
        fault: Why its definition is invalid, with the file; empty if it is valid. A scan raises it.
        trust: What happens to its new and changed items.
        visible_to: The groups whose callers may see its items; empty for everyone.
        within: The folder that nothing it reads may lie outside of, whatever links are put there;
            empty if it may read anywhere.
        disk: The folder in which it may keep the texts of items, instead of in memory.
        on_pause: Called regularly while a scan of many files runs, on its thread.
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
        """The folder or file that it reads or is defined by; empty if that is unknown."""
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
        """Return plain JSON values that distinguish this source, without secrets.

        ``type`` and ``name`` are among them. They go into the configuration hash. Two sources with
        one identity offer the same items.
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
        """Read only what some changed files and folders mean.

        It gives what a scan would give now, if nothing else has changed. It never runs beside a
        scan or itself, but ``on_pause`` may call it; the result of that scan has them, too.

        Args:
            paths: The absolute paths. They may be missing.

        Returns:
            What has changed since the last scan or the last change; None if only a scan can tell.
        """
        return None

    def refresh(self, *, may_ask: bool = False) -> None:  # noqa: ARG002 - the default fetches none
        """Fetch what lies elsewhere, for the next scan. It may take minutes.

        A failure keeps what was fetched before; the next scan names it.

        Args:
            may_ask: Whether the user may be asked for a password at the terminal.

        Raises:
            SourceError: It cannot be fetched.
        """
        return

    def cancel(self) -> None:
        """Let what waits for others end soon, with a failure that is not remembered."""
        return

    def is_away(self) -> bool:
        """Whether the source is temporarily unavailable, such as a folder on an unmounted disk.

        A source that was found, not configured, then stays in the catalogue.
        """
        return False

    def watch(
        self,
        changed: Callable[[], None],  # noqa: ARG002 - the default reports nothing
        interval: float,  # noqa: ARG002 - as above
    ) -> Callable[[], None] | None:
        """Start to report changes, for a source without a folder.

        Args:
            changed: Called on any thread when the first scan can run without waiting, and then
                after each change.
            interval: The longest time in seconds between two checks, if the source has to poll.

        Returns:
            A function that ends the watch and waits until everything it started has stopped; None
            if this source cannot report changes.
        """
        return None

    def to_call(self, tool: str) -> "Callee | None":  # noqa: ARG002 - the default calls none
        """Return the server or API that runs the tool of a name; None if no tools can be called.

        Raises:
            CallsOffError: The server is not trusted, or the configuration excludes the tool.
            CallError: The server's configuration is invalid or unreadable.
        """
        return None
