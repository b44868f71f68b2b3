"""The latest scans decide which indexed items to keep and which items are still offered."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn, cast
from unittest.mock import Mock

import msgspec
import pytest
from typing_extensions import override

from repertory.catalogue.item import Item
from repertory.errors import SourceError, StoreError
from repertory.index.vectors import State
from repertory.indexing import latest_scans
from repertory.indexing.latest_scans import QUICK_S, SHARE, LatestScans
from repertory.indexing.scan import ChangeResult, ScanResult, scan_source
from repertory.review.gate import Gate
from repertory.sources.configured import Catalogue
from repertory.sources.registry import build
from repertory.sources.source import Scan, Source, Trust, warning
from repertory.watch_status import SourceState
from tests.support.builders import Folder, skill, write


class Withholding:
    """A gate that withholds items named b and records its calls."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str], bool, list[str]]] = []
        self.error = ""

    def admit(
        self, source: Source, scan: Scan, *, is_whole: bool, offered: Collection[str]
    ) -> Scan:
        """The scan without the items named b; each of them becomes a problem."""
        if self.error:
            raise StoreError(self.error)
        items = [item.id for item in scan.items]
        self.asked.append((source.name, items, is_whole, sorted(offered)))
        withheld = {item.id for item in scan.items if item.name == "b"}
        return msgspec.structs.replace(
            scan,
            items=[item for item in scan.items if item.id not in withheld],
            problems=[*scan.problems, *(warning("", "It waits.", item=one) for one in withheld)],
            withheld=frozenset(withheld),
        )

    def quarantined(self, source: str) -> int:
        """As many items as the source's name has characters."""
        return len(source)


def test_the_examination_of_items_stops_when_the_process_ends() -> None:
    """A process that ends does not examine thousands of items first."""
    gate, seen = Mock(), []
    gate.examine = lambda _, items: seen.extend(items)
    folder = Folder("team", "a", "b", "c")
    LatestScans({}, gate).examine(scan_source(folder), lambda: len(seen) > 1)
    assert [item.name for item in seen] == ["a", "b"]


def gated(gate: Withholding, *sources: Source) -> LatestScans:
    """The latest scans of some sources with a gate."""
    scans = LatestScans({}, cast("Gate", gate))
    scans.adopt(Catalogue(sources))
    for source in sources:
        scans.add(scan_source(source))
    return scans


def first(scans: LatestScans, indexed: int, *emptied: str) -> SourceState:
    """The state of the first source if `indexed` of its items are in the index."""
    name = scans.catalogue.sources[0].name
    return scans.status(Counter({name: indexed}), frozenset(emptied))[0]


def state(item: str) -> State:
    """The state of an indexed item."""
    source = item.partition("/")[0]
    return State(item=item, source=source, content_hash="", metadata_hash="", revision=1)


def test_indexed_items_of_an_unread_source_are_kept() -> None:
    """They are kept before the first scan and after a failed one, unless the source is unknown."""
    folder, scans = Folder("team", "a"), LatestScans({})
    scans.adopt(Catalogue((folder,)))
    assert scans.keeps(state("team/b"))
    assert not scans.keeps(state("other/b"))
    scans.add(scan_source(folder))
    assert not scans.keeps(state("team/b"))
    folder.is_unreadable = True
    scans.add(scan_source(folder))
    assert scans.keeps(state("team/b"))
    assert not scans.keeps(state("other/b"))


def test_only_the_scanned_version_of_an_item_may_be_offered() -> None:
    """While a source cannot be read, any version of its other items may be offered."""
    folder, scans = Folder("team", "a"), LatestScans({})
    scans.adopt(Catalogue((folder,)))
    scans.add(scan_source(folder))
    offered = folder.items["a"].metadata_hash()
    assert scans.may_offer("team/a", offered)
    assert not scans.may_offer("team/a", "another")
    assert not scans.may_offer("team/a", "")
    assert not scans.may_offer("team/b", "any")
    assert scans.may_offer("team/b", "")
    folder.is_unreadable = True
    scans.add(scan_source(folder))
    assert scans.may_offer("team/a", offered)
    assert scans.may_offer("team/b", "any")


def test_a_scan_of_a_removed_source_is_ignored() -> None:
    """A scan may end after its source was removed from the catalogue."""
    folder, scans = Folder("team", "a"), LatestScans({})
    scans.adopt(Catalogue(()))
    scans.add(scan_source(folder))
    assert not scans.items
    assert not scans.keeps(state("team/a"))
    scans.adopt(Catalogue((folder,)))
    assert not scans.is_complete
    assert scans.keeps(state("team/a"))


def test_the_status_describes_a_source() -> None:
    """It states whether the source was read, how many items are stale, and who may see it."""
    folder, scans = Folder("team", "a", "b"), LatestScans({})
    folder.visible_to = ("ops",)
    scans.adopt(Catalogue((folder,)))
    assert first(scans, 0).is_starting
    scans.add(scan_source(folder))
    state = first(scans, 3)
    assert (state.items, state.stale, state.error, state.is_starting) == (3, 0, "", False)
    assert state.visible_to == ("ops",)
    assert (state.awaits_sign_in, state.awaits_input) == (False, False)
    assert state.quarantined == 0
    assert first(scans, 3, "team").stale == 1
    assert first(scans, 2, "team").stale == 0
    assert "suddenly empty" in first(scans, 2, "team").error
    folder.is_unreadable = True
    scans.add(scan_source(folder))
    state = first(scans, 3)
    assert state.stale == 3
    assert "unreadable" in state.error


@pytest.mark.parametrize(
    ("kept", "stale"),
    [
        (Scan(items=[], unread=frozenset({"team/b"})), 2),
        (Scan(items=[], unread_under=("team/folder/",)), 2),
        (Scan(items=[], unchanged=frozenset({"team/b"})), 0),
    ],
    ids=["unread", "unread_under", "unchanged"],
)
def test_a_scan_that_read_only_some_items_is_not_exhaustive(kept: Scan, stale: int) -> None:
    """A new index keeps the other items. They are stale unless their files are unchanged."""
    folder, scans = Folder("team"), LatestScans({})
    scans.adopt(Catalogue((folder,)))
    whole = Scan(items=[skill("a")])
    for scan, is_exhaustive in (
        (whole, True),
        (msgspec.structs.replace(kept, items=whole.items), False),
    ):
        scans.add(ScanResult(source=folder, scan=scan, error="", at=1.0))
        assert scans.is_exhaustive is is_exhaustive
    assert first(scans, 3).stale == stale


def test_a_gate_judges_changed_items() -> None:
    """Unchanged items stay admitted; a withheld item is a problem of its source."""
    folder, gate = Folder("team", "a", "b"), Withholding()
    folder.problems = (warning("", "Its name is odd.", item="team/a"), warning("", "Too many."))
    scans = gated(gate, folder)
    assert scans.items.keys() == {"team/a"}
    assert first(scans, 1).quarantined == len("team")
    folder.write("c")
    scans.add(scan_source(folder))
    assert gate.asked == [
        ("team", ["team/a", "team/b"], True, ["team/a", "team/b"]),
        ("team", ["team/c"], True, ["team/a", "team/b", "team/c"]),
    ]
    assert scans.items.keys() == {"team/a", "team/c"}
    found = {problem.message: problem for problem in scans.problems}
    assert found.keys() == {"Its name is odd.", "Too many.", "It waits."}
    assert all(problem.sources == ("team",) for problem in found.values())


def test_admitted_scans_contain_the_items_that_passed_the_gate() -> None:
    """They follow the catalogue's order. A failed source has no scan; unread ones are left out."""
    away = Folder("away", "a")
    away.is_unreadable = True
    scans = LatestScans({}, cast("Gate", Withholding()))
    team = Folder("team", "a", "b", "c")
    scans.adopt(Catalogue((away, team, Folder("unread", "a"))))
    for source in (team, away):
        scans.add(scan_source(source))
    first, second = scans.admitted
    assert (first.source, first.scan, first.error) == (away, None, away.why)
    assert second.scan is not None
    assert [item.id for item in second.scan.items] == ["team/a", "team/c"]


def test_a_source_whose_items_all_wait_for_review_is_not_empty() -> None:
    """It is listed among the sources that offer items."""
    scans = gated(Withholding(), Folder("team", "b"), Folder("other"))
    assert not scans.items
    assert scans.offering == {"team"}


def test_unreadable_approvals_withhold_untrusted_items() -> None:
    """The source states the reason. Once the approvals can be read, all its items are judged."""
    for trust, offered in ((Trust.TRUSTED, {"team/a", "team/b"}), (Trust.REVIEW, set[str]())):
        folder, gate = Folder("team", "a", "b"), Withholding()
        folder.trust = trust
        gate.error = "The approvals are locked."
        scans = gated(gate, folder)
        assert scans.items.keys() == offered
        assert first(scans, 0).error == ("" if offered else gate.error)
        assert [one.message for one in scans.problems] == ([gate.error] if offered else [])
        gate.error = ""
        scans.add(scan_source(folder))
        assert gate.asked == [("team", ["team/a", "team/b"], True, ["team/a", "team/b"])]
        assert scans.items.keys() == {"team/a"}
        assert first(scans, 0).error == ""
        assert [one.message for one in scans.problems] == ["It waits."]


def test_problems_that_take_long_to_collect_are_collected_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slow collections take only a share of the time; quickly collected problems are current."""
    clock, spent, cost = 100.0, 0.0, 0.0

    def thread_time() -> float:
        nonlocal spent
        spent += cost
        return spent

    times = SimpleNamespace(monotonic=lambda: clock, thread_time=thread_time)
    monkeypatch.setattr(latest_scans, "time", times)
    folder, scans = Folder("team", "a"), LatestScans({})
    scans.adopt(Catalogue((folder,)))

    def after(message: str) -> list[str]:
        folder.problems = (warning("", message),)
        scans.add(scan_source(folder))
        return [problem.message for problem in scans.problems]

    cost = QUICK_S / 2
    assert after("One.") == ["One."]
    assert after("Two.") == ["Two."]
    cost = 1.0
    assert after("Three.") == ["Three."]
    clock += 1.0 / SHARE - 0.1
    assert after("Four.") == ["Three."]
    clock += 0.2
    assert after("Five.") == ["Five."]


@pytest.mark.parametrize("fault", [SourceError("The disk is away."), PermissionError("a link")])
def test_a_change_after_a_failed_scan_deletes_nothing(tmp_path: Path, fault: Exception) -> None:
    """After a failure a whole scan is needed, and a change that arrives before it is ignored."""
    for name in ("a", "b"):
        write(tmp_path / f"skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: D.\n---\n")
    [source] = build({"type": "skills", "name": "s", "path": "skills"}, tmp_path)
    scans = LatestScans({})
    scans.adopt(Catalogue((source,)))
    scans.add(scan_source(source))
    change = source.rescan([str(tmp_path / "skills/a/SKILL.md")])
    assert change
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "_scan", Mock(side_effect=fault))
        with pytest.raises(type(fault)):
            source.scan()
    assert source.rescan([str(tmp_path / "skills/a/SKILL.md")]) is None
    scans.add(ScanResult(source=source, scan=None, error="It failed.", at=2.0))
    assert scans.add(ChangeResult(source=source, change=change, at=3.0)) == set()
    scans.add(scan_source(source))
    assert {*scans.items} == {"s/a", "s/b"}


def test_an_unexpected_error_of_one_source_is_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors of a fetch or a scan are reported for that source; other sources are read."""
    write(tmp_path / "docs/a.md", "# A\n")
    [good] = build({"type": "documents", "name": "g", "path": "docs"}, tmp_path)
    [bad] = build({"type": "documents", "name": "b", "path": "docs"}, tmp_path)
    for method in ("refresh", "scan"):
        monkeypatch.setattr(bad, method, Mock(side_effect=ValueError("Invalid IPv6 URL")))
        [first, second] = [scan_source(one, refresh=True) for one in (bad, good)]
        assert first.scan is None
        assert "b could not be read because of a fault" in first.error
        assert second.scan is not None
        assert [item.id for item in second.scan.items] == ["g/a.md"]
        monkeypatch.undo()


class Unlisted(dict[str, Item]):
    """Items that can be looked up but not listed."""

    @override
    def keys(self) -> NoReturn:
        raise AssertionError

    @override
    def __iter__(self) -> NoReturn:
        raise AssertionError


def test_the_sources_that_offer_items_are_known_without_listing_the_items() -> None:
    """Each report and each save needs them, even with a million items."""
    folder, scans = Folder("team"), LatestScans({})
    folder.items = {"team/a": skill("team/a")}
    scans.adopt(Catalogue((folder,)))
    scans.add(scan_source(folder))
    latest = scans._latest["team"]  # no public attribute holds the items of one source
    latest.passed = Unlisted(latest.passed)
    assert scans.offering == {"team"}
    assert [one.name for one in scans.status(Counter(), frozenset())] == ["team"]


def test_a_newly_trusted_source_is_starting() -> None:
    """Its earlier error, that it waits for trust, is removed, and its indexed items are kept."""
    before, after = Folder("team"), Folder("team")
    before.is_trusted = False
    before.is_unreadable, before.why = True, "It was found but not run."
    scans = LatestScans({})
    scans.adopt(Catalogue((before,)))
    scans.add(scan_source(before))
    assert (first(scans, 2).state, first(scans, 2).error) == ("waiting for trust", before.why)
    scans.adopt(Catalogue((after,)))
    assert (first(scans, 2).state, first(scans, 2).error) == ("starting", "")
    assert scans.keeps(
        State(item="team/a", source="team", content_hash="", metadata_hash="", revision=0)
    )


def test_problems_of_items_come_before_problems_of_files() -> None:
    """A report has only the first problems, and a scan finds problems of files again."""
    folder = Folder("team", "a", "b")
    folder.problems = tuple(warning(f"{at}.md", "It is odd.") for at in range(3))
    scans = gated(Withholding(), folder)
    assert [one.message for one in scans.problems] == ["It waits.", *["It is odd."] * 3]
    again = LatestScans({}, None, scans.problems)
    again.adopt(Catalogue((folder,)))
    again.add(
        ScanResult(
            source=folder, scan=Scan(items=[], unchanged=frozenset({"team/b"})), error="", at=0.0
        )
    )
    assert [one.message for one in again.problems] == ["It waits."]
