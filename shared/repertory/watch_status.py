"""What the watch reports on the status board: the state of the index and of its sources."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from repertory.coordination.status import WATCH, StatusBoard
from repertory.sources.source import Problem

LATE_S = 30.0  # how long a change waits before searches report it
SILENCE_S = 60.0  # after which a process counts as stopped; each one reports every few seconds


class SourceState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A source as it was last scanned."""

    name: str
    type: str
    location: str
    items: Annotated[int, msgspec.Meta(description="The number of its items in the index.")]
    stale: Annotated[int, msgspec.Meta(description="Items kept although they are unreadable now.")]
    error: Annotated[
        str, msgspec.Meta(description="Why the last scan failed; empty if it did not.")
    ]
    awaits_trust: Annotated[
        bool, msgspec.Meta(description="Whether it runs only after the user trusts it.")
    ] = False
    awaits_sign_in: Annotated[
        bool, msgspec.Meta(description="Whether its server asks for a sign-in, by OAuth.")
    ] = False
    awaits_input: Annotated[
        bool, msgspec.Meta(description="Whether its server needs a value from its user.")
    ] = False
    is_starting: Annotated[
        bool, msgspec.Meta(description="Whether its first scan is still running.")
    ] = False
    quarantined: Annotated[
        int, msgspec.Meta(description="Its items that await approval, and are not indexed.")
    ] = 0
    visible_to: Annotated[
        tuple[str, ...],
        msgspec.Meta(description="The groups that may see its items; empty for everyone."),
    ] = ()
    seen: Annotated[
        float,
        msgspec.Meta(description="The time of its last full scan, in Unix seconds; 0 for never."),
    ]

    @property
    def awaits_user(self) -> bool:
        """Whether its user has to sign in or give a value; its error says how."""
        return self.awaits_sign_in or self.awaits_input

    @property
    def is_failing(self) -> bool:
        """Whether it cannot be read; a source that awaits trust or its user has not failed."""
        return bool(self.error) and not (self.awaits_trust or self.awaits_user)

    @property
    def state(self) -> str:
        """Its state in one to three words."""
        waiting = {
            "trust": self.awaits_trust,
            "sign-in": self.awaits_sign_in,
            "input": self.awaits_input,
        }
        if what := next((what for what, waits in waiting.items() if waits), ""):
            return f"waiting for {what}"
        if self.error:
            return "failing"
        if self.is_starting:
            return "starting"
        if self.stale:
            return "stale"
        return "fresh" if self.seen else "not read yet"  # such as a server that was never asked


class Building(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A collection that is being built; progress counts items.

    It is built beside the active one. A first index is the active one itself.
    """

    collection: str
    done: int
    total: int


class UnusedIndex(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The index of an unused configuration or model; ``since`` is in Unix seconds."""

    collection: str
    points: Annotated[int, msgspec.Meta(description="The number of its vectors.")]
    since: float


# The upper bounds of the histogram of save durations, in seconds.
SAVE_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class SaveTimes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The durations of saves since the watch started, from the job to its announcement.

    Attributes:
        waiting: The age of the oldest pending save, in seconds; 0 without one.
        seconds: The total duration of all saves.
        durations: The number of items by duration: up to 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60 and
            300 seconds, and longer. Each item counts once.
    """

    waiting: float = 0.0
    seconds: float = 0.0
    durations: tuple[int, ...] = (0,) * (len(SAVE_BOUNDS) + 1)


class WatchStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The report of the process that scans the sources, on the status board.

    Attributes:
        at: When it reported, in Unix seconds.
        configuration: The hash of the active configuration; empty while unknown.
        collection: The active collection.
        error: Why it cannot proceed; empty if it can.
        configuration_error: What is wrong with the configuration files; empty if they are valid.
        sources: The state of every source, in the catalogue's order.
        former: Who may see the sources of the searched collection, by name, while that is of
            another configuration, in which a name may mean another source.
        building: The collection that is being built, if any.
        pending: How many items are pending or wait to be sent.
        saves: The durations of saves.
        is_late: Whether a large change, a changed configuration, or saves during an outage of a
            store have waited too long to be searchable.
        has_failed: Whether an item could not be indexed.
        unused: The indexes that are currently unused, and are removed after a while.
        problems: The first problems found in sources and items, per set of callers who see them.
        errors, warnings: How many problems there are, including unlisted ones.
        unlisted: How many problems of items are not listed.
        watching: The sources whose folders report changes.
        polling: The sources that are polled instead, each with the reason.
        notices: Notices about settings that have no effect until the user trusts the configuration.
    """

    at: float = 0.0
    configuration: str = ""
    collection: str = ""
    error: str = ""
    configuration_error: str = ""
    sources: list[SourceState] = []
    former: dict[str, tuple[str, ...]] = {}
    building: Building | None = None
    pending: int = 0
    saves: SaveTimes = SaveTimes()
    is_late: bool = False
    has_failed: bool = False
    unused: list[UnusedIndex] = []
    problems: list[Problem] = []
    errors: int = 0
    warnings: int = 0
    unlisted: int = 0
    watching: list[str] = []
    polling: dict[str, str] = {}
    notices: list[str] = []

    @classmethod
    def read(cls, reports: Mapping[str, Mapping[str, Any]]) -> "WatchStatus | None":
        """The watch's report on a status board; None if missing or from another release."""
        try:
            return msgspec.convert(reports[WATCH], cls)
        except (KeyError, msgspec.ValidationError):
            return None

    def inherited(self) -> "WatchStatus":
        """The report for a process that takes over and has not scanned any source yet."""
        sources = [msgspec.structs.replace(one, is_starting=not one.error) for one in self.sources]
        return msgspec.structs.replace(
            self, sources=sources, saves=SaveTimes(), is_late=False, has_failed=False
        )

    @property
    def searched(self) -> dict[str, tuple[str, ...]]:
        """Who may see the sources of the searched collection, by name, as far as known.

        If the collection is of another configuration and ``former`` is empty, these are the sources
        of the next configuration.
        """
        return self.former or {one.name: one.visible_to for one in self.sources}

    @property
    def first_items(self) -> int:
        """How many items a first index will have while it is built and already searched; else 0."""
        one = self.building
        is_first = one and one.done < one.total and self.collection in ("", one.collection)
        return one.total if one and is_first else 0


def watch_status(board: StatusBoard) -> WatchStatus | None:
    """The watch's last report; see ``WatchStatus.read``.

    Raises:
        StoreError: The board is unavailable.
    """
    return WatchStatus.read(board.reports())


def report_watch(board: StatusBoard, status: WatchStatus) -> None:
    """Report as the watch.

    Raises:
        StoreError: The board is unavailable.
    """
    board.report(WATCH, msgspec.to_builtins(status))
