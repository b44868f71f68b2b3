"""The gate between scans and index: it withholds the items that a person must see first."""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from repertory.catalogue.item import Item, Kind
from repertory.errors import StoreError
from repertory.review.judgement import Judgement, State, fits, judge
from repertory.review.store import KnownItem, ReviewStore
from repertory.review.suspicions import INVISIBLE, Finding, suspicions
from repertory.review.versions import approval_digest
from repertory.sources.source import WITHHELD, Problem, Scan, Source, Trust, warning
from repertory.text import UNFIT

HIDING = "+hidden"  # suffix of the digest if the source removed invisible text from the item
MAX_SHOWN = 3  # findings in one warning
MAX_ABSENT = 10_000  # removed items that are remembered for a trusted source
CHANGED, NEW = "has changed since it was approved", "is new since its source was approved"
SUSPICIOUS = "is suspicious"
REVIEWED = frozenset({Kind.SKILL, Kind.TOOL})


class ExaminedItem(NamedTuple):
    """An item with the findings of the rules."""

    item: Item
    suspicions: list[Finding]


class Gate:
    """Removes the items in quarantine from scans. Only ``examine`` is thread-safe.

    Args:
        store: The store of approvals.
        records: Whether to store the judgements.
    """

    def __init__(self, store: ReviewStore, *, records: bool = True) -> None:
        self._store = store
        self._records = records
        self._known: dict[str, dict[str, KnownItem]] = {}
        self._waiting: dict[str, dict[str, State]] = {}  # unapproved items, by source and id
        self._examined: dict[str, dict[str, ExaminedItem]] = {}  # by source and item
        self._version = 0

    def examine(self, source: Source, items: Iterable[Item]) -> None:
        """Look for suspicions in new items before ``admit`` is called, on any thread.

        A hundred thousand items take more than a minute, and nothing else should wait for them.
        """
        with contextlib.suppress(StoreError):  # ``admit`` raises it
            known = self._known.get(source.name) or self._store.known(source.name)
            self._examined[source.name] = {
                item.id: ExaminedItem(item, suspicions(item.whole()))
                for item in items
                if item.kind in REVIEWED and item.id not in known
            }

    def has_news(self) -> bool:
        """Whether a person made a decision since the last call. If so, reread the store later."""
        try:
            version = self._store.version()
        except StoreError:
            return False  # scans report the error
        if version == self._version:
            return False
        self._version = version
        self._known.clear()
        return True

    def quarantined(self, source: str) -> int:
        """How many items of a source are in quarantine."""
        return Counter(self._waiting.get(source, {}).values())[State.QUARANTINED]

    def admit(
        self,
        source: Source,
        scan: Scan,
        *,
        is_whole: bool = True,
        offered: Collection[str] | None = None,
    ) -> Scan:
        """The scan without the items in quarantine, which are reported as problems instead.

        Args:
            source: The source.
            scan: Its scan, or only the items that may have changed.
            is_whole: Whether every item of the source was read. If so, waiting items that no longer
                exist are forgotten. For a trusted source, so are all removed items once there are
                more than ``MAX_ABSENT``.
            offered: The ids of all its items, if the scan is partial.

        Raises:
            StoreError: The store of approvals cannot be read or written.
        """
        known = self._of(source.name)
        if not known and self._inherit(source, scan):
            known = self._of(source.name)
        judged = self._judged(source, scan, known)
        if offered is None:
            offered = {item.id for item in scan.items}
        gone = [item for item in self._waiting[source.name] if item not in offered]
        if source.trust is Trust.TRUSTED and len(known) > len(offered) + MAX_ABSENT:
            gone = [item for item in known if item not in offered]
        if not (is_whole and offered):  # a suddenly empty source keeps its waiting items
            gone = []
        restored: Mapping[str, KnownItem] = {}
        if (judged or gone) and self._records:
            whole = ((item.whole(), digest, judgement) for item, digest, judgement in judged)
            restored = self._store.record(source.name, whole, gone)
        known |= {item.id: KnownItem(digest, judgement) for item, digest, judgement in judged}
        for item, _, judgement in judged:
            self._note(source.name, item.id, judgement)
        self._forget(source.name, gone, restored)
        withheld, problems = set(), dict.fromkeys(scan.problems)
        for item in scan.items:
            if item.kind not in REVIEWED:
                continue
            judgement = known[item.id].judgement
            if judgement.state is State.QUARANTINED:
                withheld.add(item.id)
            problems |= dict.fromkeys(_problems(item, judgement))
        return msgspec.structs.replace(
            scan,
            items=[item for item in scan.items if item.id not in withheld],
            problems=list(problems),
            withheld=frozenset(withheld),
        )

    def _judged(
        self, source: Source, scan: Scan, known: Mapping[str, KnownItem]
    ) -> list[tuple[Item, str, Judgement]]:
        """The new and the changed items, each with its digest and judgement."""
        judged = []
        hidden = {one.item or one.path for one in scan.problems if UNFIT in one.message}
        is_first = bool(scan.items) and not self._store.is_known(source.name)
        examined = self._examined.get(source.name, {})
        for item in scan.items:
            if item.kind not in REVIEWED:
                continue
            is_hiding = item.id in hidden or item.path in hidden
            digest, one = approval_digest(item.whole()), known.get(item.id)
            digest += HIDING if is_hiding else ""
            if one is not None and one.hash == digest and fits(one.judgement, source.trust):
                continue
            before = self._store.approved(source.name, item.id) if one else None
            if before is not None and approval_digest(before) == digest:
                judgement = Judgement(State.APPROVED)  # back to the approved version
            else:
                ahead = examined.pop(item.id, None)
                judgement = judge(
                    item.whole(),
                    before,
                    source.trust,
                    is_first=is_first,
                    is_vouched_for=source.needs_trust,
                    more=[INVISIBLE] if is_hiding else [],
                    own=ahead.suspicions if ahead and ahead.item is item else None,
                )
            judged.append((item, digest, judgement))
        return judged

    def _inherit(self, source: Source, scan: Scan) -> bool:
        """Copy the approvals of a source that is unknown here; return whether any were copied."""
        places = {item.path for item in scan.items if item.kind in REVIEWED} - {""}
        if not (self._records and places and source.trust is Trust.REVIEW):
            return False
        if not self._store.inherit(source.name, places):
            return False
        del self._known[source.name]
        return True

    def _of(self, source: str) -> dict[str, KnownItem]:
        if source not in self._known:
            known = self._store.known(source)
            self._known[source], self._waiting[source] = known, {}
            for item_id, one in known.items():
                self._note(source, item_id, one.judgement)
        return self._known[source]

    def _forget(self, source: str, gone: Iterable[str], restored: Mapping[str, KnownItem]) -> None:
        """Stop waiting for items that no longer exist.

        Their approved versions stay known, because they may come back with another text.
        """
        for item_id in gone:
            if item_id in restored:
                self._known[source][item_id] = restored[item_id]
            elif self._records:
                del self._known[source][item_id]
            self._waiting[source].pop(item_id, None)

    def _note(self, source: str, item_id: str, judgement: Judgement) -> None:
        """Note whether an item waits for a person."""
        if judgement.state is State.APPROVED:
            self._waiting[source].pop(item_id, None)
        else:
            self._waiting[source][item_id] = judgement.state


def is_judgement(problem: Problem) -> bool:
    """Whether a problem comes from the gate."""
    said = tuple(f"{problem.item} {one}" for one in (WITHHELD, CHANGED, NEW, SUSPICIOUS))
    return bool(problem.item) and problem.message.startswith(said)


def _problems(item: Item, judgement: Judgement) -> Iterator[Problem]:
    """The warning about an item for its author and its users, if any."""
    review = "`repertory trust review` shows it"
    findings = judgement.findings[:MAX_SHOWN]
    if judgement.state is State.QUARANTINED:
        # Without the passages: agents may read this.
        found = "".join(f" {one.message}" for one in findings)
        text = f"{item.id} {WITHHELD}; {review}.{found}"
    elif judgement.state is State.CHANGED:
        text = f"{item.id} {CHANGED}; {review}."
    elif judgement.state is State.NEW:
        text = f"{item.id} {NEW}; {review}."
    elif findings:
        found = "".join(
            f" {one.message} “{one.passage}”" if one.passage else f" {one.message}"
            for one in findings
        )
        text = f"{item.id} {SUSPICIOUS}.{found}"
    else:
        return
    yield warning(item.path, text, item=item.id)
