"""The known sources: their order, their state, and who may see their items."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from repertory.errors import StoreError
from repertory.groups import may_see
from repertory.indexing.collection_names import configuration_of
from repertory.notices import (
    FAILED,
    HAS_RIVAL,
    INVALID_CONFIGURATION,
    LATE,
    NOTHING_OFFERED,
    SILENT,
    about_configuration,
    about_first_index,
    about_sources,
)
from repertory.watch_status import LATE_S, SourceState, WatchStatus

UNKNOWN = (
    "It is not known yet which sources you may see: the watch service has not reported, or is "
    "building the index of another configuration. Check that it runs."
)
BUILDING = "The first index is being built, so items are missing."

Audience = frozenset[tuple[str, ...]]  # lists of groups; a caller needs one group of each list


class KnownSources(msgspec.Struct, frozen=True, kw_only=True):
    """The sources as the watch service last reported them.

    Attributes:
        states: Their states, highest precedence first, without numbers that change all the time.
        audiences: Who may see each source, by name.
        first_items: The number of items of a first index while it is built, else 0.
        notices: Notices about the configuration.
        invalid: What is wrong with a configuration file; empty if all are valid.
        is_reported: Whether a report says who may see the items of the searched collection.
        is_silent: Whether the watch service has not reported for a while.
        is_part: Whether this is the view of a caller who may not see all sources.
    """

    states: tuple[SourceState, ...] = ()
    audiences: Mapping[str, Audience] = {}
    first_items: int = 0
    notices: tuple[str, ...] = ()
    invalid: str = ""
    is_reported: bool = False
    is_silent: bool = False
    is_part: bool = False

    def after(self, watch: WatchStatus, configuration: str) -> "KnownSources":
        """The known sources after a report.

        Until the collection of the reported configuration is searched, a name may stand for another
        source in the searched one. So a caller then needs a group of the new list and one of the
        former list. The report has both lists, for processes that have just started. If the former
        lists are missing, as after the loss of all reports, and any source is restricted, only
        administrators see anything until the switch.

        Args:
            watch: The report.
            configuration: The configuration of the searched collection.
        """
        is_same = watch.configuration == configuration
        before = {} if is_same else self.audiences
        # A report from a restored old Redis may be about another collection.
        is_about = not is_same and configuration_of(watch.collection) == configuration
        former = watch.former if is_about else {}
        is_restricted = any(one.visible_to for one in watch.sources)
        is_known = is_same or not (configuration and is_restricted) or bool(before or former)
        refused = [watch.error] if watch.error in {HAS_RIVAL, NOTHING_OFFERED} else []
        late = [LATE] if watch.is_late or watch.saves.waiting >= LATE_S else []
        failed = [FAILED] if watch.has_failed else []
        return KnownSources(
            states=tuple(
                replace(one, location="", items=0, seen=0.0, stale=int(bool(one.stale)))
                for one in watch.sources
            ),
            audiences={
                one.name: before.get(one.name, frozenset())
                | {one.visible_to, former.get(one.name, one.visible_to)}
                for one in watch.sources
                if is_known
            },
            first_items=watch.first_items,
            notices=(*late, *failed, *watch.notices, *refused),
            invalid=watch.configuration_error,
            is_reported=is_known,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, highest precedence first."""
        return tuple(one.name for one in self.states)

    @property
    def stale(self) -> tuple[str, ...]:
        """The names of the sources that failed or kept old items."""
        return tuple(one.name for one in self.states if one.is_failing or one.stale)

    def missing(self, searched: int) -> int:
        """How many items of a first index are not searchable yet; 0 for later indexes."""
        return max(self.first_items - searched, 0)

    def every_notice(self, searched: int) -> tuple[str, ...]:
        """The notices of every answer.

        Args:
            searched: The number of all searchable items, which may be newer than the report.
        """
        first = []
        if missing := self.missing(searched):
            # The numbers would reveal hidden items.
            first = [BUILDING if self.is_part else about_first_index(missing, self.first_items)]
        silent = [SILENT] if self.is_silent else []
        invalid = about_configuration(self.invalid, self.states)
        return *first, *silent, *self.notices, *invalid, *about_sources(self.states)

    def visible(self, groups: frozenset[str]) -> frozenset[str]:
        """The names of the sources that a caller with some groups may see.

        Raises:
            StoreError: The sources are not known yet.
        """
        if not self.is_reported:
            raise StoreError(UNKNOWN)
        return frozenset(
            name
            for name, audience in self.audiences.items()
            if all(may_see(groups, one) for one in audience)
        )

    def only(self, names: frozenset[str]) -> "KnownSources":
        """The view of a caller who may see only some of the sources.

        An error of the configuration may name any source, so every such caller sees a plain one.
        """
        invalid = INVALID_CONFIGURATION if self.invalid else ""
        if names.issuperset(self.audiences):
            return replace(self, invalid=invalid)
        return replace(
            self,
            invalid=invalid,
            states=tuple(one for one in self.states if one.name in names),
            audiences={name: one for name, one in self.audiences.items() if name in names},
            is_part=True,
        )
