"""The gate between scans and index: it withholds the items that a person must see first."""

from collections.abc import Iterator, Mapping

import msgspec

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.suspicions import INVISIBLE
from repertory.errors import StoreError
from repertory.review.judgement import Judgement, State, fits, judge
from repertory.review.store import Known, ReviewStore, content_hash
from repertory.sources.source import Problem, Scan, Source, warning
from repertory.text import UNFIT

HIDING = "+hidden"  # in the digest of an item with text that its source removed
MAX_SHOWN = 3  # findings of one warning
REVIEWED = frozenset({Kind.SKILL, Kind.TOOL})


class Gate:
    """Lets scans pass without the items in quarantine. Not thread-safe.

    Args:
        store: What was approved.
        records: Whether it stores what it judges.
    """

    def __init__(self, store: ReviewStore, *, records: bool = True) -> None:
        self._store = store
        self._records = records
        self._known: dict[str, dict[str, Known]] = {}
        self._same: dict[tuple[str, str], tuple[str, str]] = {}  # content hashes, by metadata hash
        self._version = 0

    def has_news(self) -> bool:
        """Whether a person decided something since the last call; the store is read again then."""
        try:
            version = self._store.version()
        except StoreError:
            return False  # the scans report it
        if version == self._version:
            return False
        self._version = version
        self._known.clear()
        return True

    def quarantined(self, source: str) -> int:
        """How many items of a source are in quarantine."""
        known = self._known.get(source, {}).values()
        return sum(one.judgement.state is State.QUARANTINED for one in known)

    def admit(self, source: Source, scan: Scan, *, is_whole: bool = True) -> Scan:
        """The scan without the items in quarantine, which are problems instead.

        Args:
            source: The source.
            scan: Its scan.
            is_whole: Whether the scan has every item of the source. What waits and is gone is then
                forgotten.

        Raises:
            StoreError: What was approved cannot be read or written.
        """
        known = self._of(source.name)
        judged = self._judged(source, scan, known)
        gone = self._gone(known, scan) if is_whole else []
        if (judged or gone) and self._records:
            self._store.record(source.name, judged, gone)
        known |= {item.id: Known(digest, judgement) for item, digest, judgement in judged}
        for item_id in gone:
            del known[item_id]
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
        self, source: Source, scan: Scan, known: Mapping[str, Known]
    ) -> list[tuple[Item, str, Judgement]]:
        """What is new or has changed, each with its digest and the judgement about it."""
        judged = []
        hidden = {one.item or one.path for one in scan.problems if UNFIT in one.message}
        is_first = bool(scan.items) and not self._store.is_known(source.name)
        for item in scan.items:
            if item.kind not in REVIEWED:
                continue
            is_hiding = item.id in hidden or item.path in hidden
            digest, one = self._digest(source.name, item), known.get(item.id)
            digest += HIDING if is_hiding else ""
            if one is not None and one.hash == digest and fits(one.judgement, source.trust):
                continue
            before = self._store.approved(source.name, item.id) if one else None
            if before is not None and content_hash(before) == digest:
                judgement = Judgement(State.APPROVED)  # it is again what was approved
            else:
                judgement = judge(
                    item,
                    before,
                    source.trust,
                    is_first=is_first,
                    is_vouched_for=source.needs_trust,
                    more=[INVISIBLE] if is_hiding else [],
                )
            judged.append((item, digest, judgement))
        return judged

    @staticmethod
    def _gone(known: Mapping[str, Known], scan: Scan) -> list[str]:
        """What waits for a person, and is offered no more; a suddenly empty source keeps it."""
        offered = {item.id for item in scan.items}
        waits = [
            item_id for item_id, one in known.items() if one.judgement.state is not State.APPROVED
        ]
        return [item_id for item_id in waits if item_id not in offered] if offered else []

    def _of(self, source: str) -> dict[str, Known]:
        if source not in self._known:
            self._known[source] = self._store.known(source)
        return self._known[source]

    def _digest(self, source: str, item: Item) -> str:
        """The digest of an item's content; most items are the same as at the last scan."""
        metadata, digest = self._same.get((source, item.id), ("", ""))
        if metadata != item.metadata_hash():
            digest = content_hash(item)
            self._same[source, item.id] = item.metadata_hash(), digest
        return digest


def _problems(item: Item, judgement: Judgement) -> Iterator[Problem]:
    """What the author and the users of an item should know."""
    review = "`repertory trust review` shows it"
    findings = judgement.findings[:MAX_SHOWN]
    if judgement.state is State.QUARANTINED:
        # Without the passages: agents may read this.
        found = "".join(f" {one.message}" for one in findings)
        text = f"{item.id} is in quarantine and agents do not see it; {review}.{found}"
    elif judgement.state is State.CHANGED:
        text = f"{item.id} has changed since it was approved; {review}."
    elif judgement.state is State.NEW:
        text = f"{item.id} is new since its source was approved; {review}."
    elif findings:
        found = "".join(f" {one.message} “{one.passage}”" for one in findings)
        text = f"{item.id} is suspicious.{found}"
    else:
        return
    yield warning(item.path, text, item=item.id)
