"""``visible_to`` of a source: validation, effects, and what callers can learn."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from msgspec.structs import replace
from typing_extensions import override

from repertory.catalogue.item import item_key
from repertory.compose import Parts
from repertory.errors import ConfigurationError, StoreError, UsageError
from repertory.groups import MAX_GROUPS, checked, may_see
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Filter, Searched, State, VectorAnswer, VectorQuery
from repertory.indexing.scan import ScanResult
from repertory.live_search import visible_subsets as subsets_module
from repertory.live_search.known_sources import BUILDING, KnownSources
from repertory.live_search.visible_subsets import (
    KEEP_S,
    MAX_SUBSETS,
    NOTHING,
    Subsets,
    VisibleCollection,
)
from repertory.notices import INVALID_CONFIGURATION
from repertory.settings import load
from repertory.sources.configured import Catalogue, build_catalogue, withheld_sources
from repertory.sources.registry import build
from repertory.sources.source import Scan
from repertory.watch_status import Building, WatchStatus, report_watch
from tests.support.builders import Folder, skill, write
from tests.support.keyword_search import keyword_engine
from tests.support.scans import latest_scans
from tests.support.visibility import known, state

NOBODY: frozenset[str] = frozenset()
OWN, OTHERS = f"repertory_{2 * '12345678'}_words-r1_g1", f"repertory_{2 * '87654321'}_words-r1_g1"


@pytest.mark.parametrize("name", ["team-a", "Ops", "a.b@c_d", "équipe", "x" * 64])
def test_valid_names_of_groups_are_accepted(name: str) -> None:
    """Letters of any script, digits, and the signs ``-._@`` are allowed; duplicates are removed."""
    assert checked([name, name]) == (name,)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a\n", "x" * 65, 1, None, "a,b"])
def test_an_invalid_name_of_a_group_is_refused(name: object) -> None:
    """Empty and long names, spaces, other signs, and values that are not text are invalid."""
    with pytest.raises(UsageError, match="A group cannot be named"):
        checked([name])


def test_the_number_of_groups_is_limited() -> None:
    """A list with more than ``MAX_GROUPS`` groups is refused."""
    with pytest.raises(UsageError, match="is the limit"):
        checked([f"g{number}" for number in range(MAX_GROUPS + 1)])


def test_a_source_without_a_list_of_groups_is_visible_to_everyone() -> None:
    """A source with a list is visible to callers who are in at least one of its groups."""
    assert may_see(NOBODY, ())
    assert not may_see(NOBODY, ["a"])
    assert may_see(frozenset({"b", "c"}), ["a", "b"])
    assert not may_see(frozenset({"c"}), ["a", "b"])


@pytest.mark.parametrize("value", [[], "team-a", None, {"a": 1}, ["a b"], [""], [["a"]], True])
def test_an_invalid_list_of_groups_is_refused(value: object, tmp_path: Path) -> None:
    """It could hide nothing or everything by mistake."""
    entry = {"type": "skills", "path": "skills", "name": "team", "visible_to": value}
    with pytest.raises(ConfigurationError, match="`visible_to` of the source 'team'"):
        build(entry, tmp_path)


def test_the_list_of_groups_is_not_part_of_the_identity(tmp_path: Path) -> None:
    """It makes sources unequal, but keeps the collection and its vectors."""
    entry = {"type": "skills", "path": "skills", "name": "team"}
    (one,) = build(entry, tmp_path)
    (other,) = build({**entry, "visible_to": ["b", "a"]}, tmp_path)
    assert (one.visible_to, other.visible_to) == ((), ("a", "b"))
    assert one != other
    assert one.identity() == other.identity()


def test_each_server_of_a_configuration_has_the_list_of_groups(tmp_path: Path) -> None:
    """If a server is configured twice, one entry is enough to hide it."""
    write(tmp_path / "mcp.json", '{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}')
    entry = {"type": "mcp", "config": "mcp.json", "trusted": True}
    restricted = {**entry, "visible_to": ["team-a"]}
    for entries in ([restricted], [entry, restricted], [restricted, entry]):
        sources = build_catalogue(entries, tmp_path).sources
        assert {one.name: one.visible_to for one in sources} == dict.fromkeys("ab", ("team-a",))


def test_an_unreadable_file_of_servers_does_not_make_hidden_sources_visible(tmp_path: Path) -> None:
    """Its last servers would lose their lists, so with a hidden source the build fails instead."""
    entry = {"type": "mcp", "config": "mcp.json"}
    (tmp_path / "mcp.json").write_text('{"mcpServers": {')
    last = {"vault": {"type": "mcp", "name": "vault"}}
    assert [one.name for one in build_catalogue([entry], tmp_path, known=last).sources] == ["vault"]
    for hidden in (entry, {"type": "skills", "path": "/srv", "name": "team"}):
        restricted = {**hidden, "visible_to": ["team-a"]}
        with pytest.raises(ConfigurationError, match=r"mcp\.json"):
            build_catalogue([restricted, entry], tmp_path, known=last)


def test_an_unreadable_discovered_file_does_not_make_hidden_sources_visible(tmp_path: Path) -> None:
    """The same applies to discovered files, because other entries may declare the servers too."""
    entry = {"type": "mcp", "config": "mcp.json", "trusted": False}
    (tmp_path / "mcp.json").write_text('{"mcpServers": {')
    last = {"vault": {"type": "mcp", "name": "vault"}}
    found = build_catalogue([entry], tmp_path, found=True, known=last)
    assert [one.name for one in found.sources] == ["vault"]
    for hidden in (entry, {"type": "skills", "path": "/srv", "name": "team"}):
        restricted = {**hidden, "visible_to": ["team-a"]}
        with pytest.raises(ConfigurationError, match=r"mcp\.json"):
            build_catalogue([restricted, entry], tmp_path, found=True, known=last)


@pytest.mark.parametrize("wrong", [{"visible_to": "team-a"}, {"visible_to": []}, {"odd": 1}])
def test_an_invalid_hidden_source_is_not_reported_to_all_callers(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    """It is an error for administrators instead of a problem in the catalogue."""
    entry = {"type": "skills", "path": "/srv", "name": "vault", "visible_to": ["team-a"]}
    with pytest.raises(ConfigurationError):
        build_catalogue([{**entry, **wrong}], tmp_path, found=True)


def test_a_source_that_waits_for_trust_keeps_its_list_of_groups(tmp_path: Path) -> None:
    """Its items stay in the index while it waits."""
    entry = {"type": "skills", "path": "/srv", "name": "team", "visible_to": ["team-a"]}
    (source,) = withheld_sources([(entry, "It waits.")], tmp_path, {}, [])
    assert source.visible_to == ("team-a",)


def test_a_server_whose_file_waits_for_trust_is_not_shown_to_others(tmp_path: Path) -> None:
    """Any waiting file may define the server, so the entry with ``visible_to`` gets it."""
    write(tmp_path / "mcp.json", '{"mcpServers": {"vault": {"command": "a"}}}')
    entry = {"type": "mcp", "config": "mcp.json", "trusted": True}
    restricted = {**entry, "visible_to": ["team-a"]}
    open_one, hidden = build_catalogue([entry], tmp_path), build_catalogue([restricted], tmp_path)
    assert [*open_one.known] == ["vault"]
    assert not hidden.known
    waiting = [({**one, "config": f"{at}.json"}, "") for at, one in enumerate((entry, restricted))]
    for last, expected in ((open_one, ("team-a",)), (hidden, None)):
        found = withheld_sources(waiting, tmp_path, last.known, [])
        assert {one.name: one.visible_to for one in found}.get("vault") == expected


def test_a_server_that_waits_for_trust_is_known_to_the_next_run(tmp_path: Path) -> None:
    """Otherwise its items would be removed if its file waits for two runs."""
    known_last = {"vault": {"type": "mcp", "name": "vault"}}
    waiting = [({"type": "mcp", "config": "mcp.json"}, "It waits.")]
    found = withheld_sources(waiting, tmp_path, known_last, [])
    assert Catalogue(tuple(found)).known == known_last


def folder(name: str, *visible_to: str) -> Folder:
    """A source that is visible to some groups, or to everyone."""
    source = Folder(name, "x")
    source.visible_to = visible_to
    return source


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        ((), (), "first"),
        (("a",), ("a",), "first"),
        (("a",), ("b",), "first"),
        ((), ("a",), "first"),
        (("a",), (), "second"),  # a hidden item does not displace a visible one
        (("a",), ("a", "b"), "second"),
        (("a", "b"), ("a",), "first"),
    ],
)
def test_of_two_items_with_one_id_the_more_visible_one_is_kept(
    first: tuple[str, ...], second: tuple[str, ...], winner: str
) -> None:
    """The problem names both sources, so only callers who see both learn of it."""
    sources = folder("first", *first), folder("second", *second)
    scanned = [
        ScanResult(
            source=source,
            scan=Scan(items=[replace(skill("x"), source=source.name)]),
            error="",
            at=1.0,
        )
        for source in sources
    ]
    scans = latest_scans(Catalogue(sources), scanned)
    assert scans.items["team/x"].source == winner
    assert [{*one.sources} for one in scans.problems] == [{"first", "second"}]


def test_nothing_is_visible_before_a_report() -> None:
    """Until the watch service reports, it is unknown which sources are restricted."""
    with pytest.raises(StoreError, match="not known yet"):
        KnownSources().visible(NOBODY)


def test_a_caller_learns_only_of_visible_sources() -> None:
    """Names, states and notices of hidden sources are left out."""
    sources = known(
        state("vault", "a", error="It is locked.", quarantined=2),
        state("open", error="It is away."),
        state("stale", stale=3),
        building=Building(collection="", done=1, total=9),
        configuration_error="The source vault has no path.",
    )
    seen = sources.only(sources.visible(NOBODY))
    assert seen.names == ("open", "stale")
    assert seen.stale == ("open", "stale")
    *others, kept = (one.rpartition(": ")[2] for one in seen.every_notice(1))
    away = "It is away. This index has none of its items."
    assert others == [BUILDING, INVALID_CONFIGURATION, away]
    assert kept.startswith("Some items of stale are kept as they were last read")
    everything = sources.only(sources.visible(frozenset({"a"})))
    assert everything == replace(sources, invalid=INVALID_CONFIGURATION)
    assert "vault" in str(sources.every_notice(1))


def test_lists_of_a_new_configuration_reveal_nothing_of_the_searched_index() -> None:
    """In the index still searched, a name may mean another source: old and new lists both apply."""
    before = KnownSources().after(
        WatchStatus(configuration="1", sources=[state("x", "a"), state("y"), state("gone")]), "1"
    )
    report = WatchStatus(
        configuration="2", sources=[state("x"), state("y", "b"), state("new"), state("z", "a")]
    )
    between = before.after(report, "1")
    assert between.visible(NOBODY) == {"new"}
    assert between.visible(frozenset({"a"})) == {"x", "new", "z"}
    assert between.after(report, "1") == between
    assert between.after(report, "2").visible(NOBODY) == {"x", "new"}


def test_a_process_that_starts_during_a_build_learns_the_former_lists() -> None:
    """Otherwise a reused name would reveal items of a restricted source."""
    old = 16 * "1"
    report = WatchStatus(
        configuration="2",
        collection=f"repertory_{old}_model_g1",
        sources=[state("x"), state("y", "b"), state("new")],
        former={"x": ("a",), "y": (), "gone": ()},
    )
    between = KnownSources().after(report, old)
    assert between.visible(NOBODY) == {"new"}
    assert between.visible(frozenset({"a"})) == {"x", "new"}
    early = KnownSources().after(WatchStatus(configuration="2", sources=report.sources), old)
    assert early.after(report, old) == between.after(report, old) == between
    assert KnownSources().after(report, "2").visible(NOBODY) == {"x", "new"}


def test_a_report_about_another_collection_does_not_make_this_one_visible() -> None:
    """A restored Redis may contain such a report, whose names may mean other sources."""
    report = WatchStatus(
        configuration="2",
        collection=f"repertory_{16 * '1'}_model_g1",
        sources=[state("x"), state("vault", "a")],
        former={"x": (), "vault": ("a",)},
    )
    with pytest.raises(StoreError, match="not known yet"):
        KnownSources().after(report, 16 * "3").visible(NOBODY)


def test_nothing_is_visible_while_the_lists_of_the_searched_index_are_unknown() -> None:
    """All reports were lost, and the configuration has changed since."""
    report = WatchStatus(configuration="2", sources=[state("x"), state("vault", "ops")])
    lost = KnownSources().after(report, "1")
    for _ in range(2):
        with pytest.raises(StoreError, match="not known yet"):
            lost.visible(NOBODY)
        lost = lost.after(report, "1")
    assert lost.names == ("x", "vault")  # for administrators
    assert lost.after(report, "2").visible(NOBODY) == {"x"}
    assert KnownSources().after(report, "").visible(NOBODY) == {"x"}  # nothing is searched
    open_to_all = replace(report, sources=[state("x")])  # a team that restricts nothing
    assert KnownSources().after(open_to_all, "1").visible(NOBODY) == {"x"}


@pytest.mark.parametrize(("collection", "former"), [(OTHERS, {}), (OWN, {"x": ()}), ("", {})])
def test_a_restarted_watch_service_takes_former_lists_only_from_a_matching_report(
    collection: str, former: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    """Only a report about the searched index says who could see its sources."""
    parts = Parts(load({"data_dir": str(tmp_path / "data")}, tmp_path, {}), tmp_path)
    report = WatchStatus(configuration=2 * "12345678", collection=collection, sources=[state("x")])
    report_watch(parts.coordination.status, report)
    assert parts.coordinator(Mock()).status().former == former


def test_a_hidden_source_without_items_and_items_of_an_unknown_source_are_hidden() -> None:
    """Otherwise callers could search all files of the project, which may be those of the source."""
    empty = Subsets(keyword_engine([skill("bread")]), known(state("team"), state("vault", "a")))
    assert empty.of(NOBODY).hides
    assert not empty.of(frozenset({"a"})).hides
    items = [skill("bread"), replace(skill("gold"), id="vault/gold", source="vault")]
    assert Subsets(keyword_engine(items), known(state("team"))).of(NOBODY).hides


def test_a_subset_is_rebuilt_with_the_index_while_it_is_in_use() -> None:
    """It is prepared before the next search, unless no caller has used it lately."""
    items = [skill("bread"), replace(skill("gold"), id="vault/gold", source="vault")]
    sources = known(state("team"), state("vault", "a"))
    before = Subsets(keyword_engine(items), sources)
    first = before.of(NOBODY)
    assert before.of(frozenset({"b"})) is first  # callers who see the same sources share a subset
    assert before.of(frozenset({"a"})) is not first
    after = Subsets(keyword_engine(items[:1]), sources)
    after.prepare(before)
    assert len(after._subsets) == 2
    for groups in list(before._asked):
        before._asked[groups] = -KEEP_S
    idle = Subsets(keyword_engine(items), sources)
    idle.prepare(before)
    assert not idle._subsets


def test_no_subset_is_prepared_for_callers_who_got_an_error() -> None:
    """A new engine replaces the previous one while there still is no report."""
    before, after = (Subsets(keyword_engine([skill("bread")]), KnownSources()) for _ in range(2))
    with pytest.raises(StoreError, match="It is not known yet"):
        before.of(NOBODY)
    after.prepare(before)
    assert not after._subsets


class Moved(Searched):
    """Points whose records say that an item has moved to a hidden source.

    Attributes:
        asked: The keys of the records that were read.
        sources: The sources in the filter of each query.
    """

    name = "moved"

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.sources: list[tuple[str, ...]] = []

    @override
    def records(self, keys: Sequence[int]) -> dict[str, dict[str, Any]]:
        self.asked += keys
        return {"a": {"source": "vault"}, "b": {"source": "team"}, "c": {}}

    @override
    def states(self, items: Sequence[str] | None = None) -> Iterator[State]:
        for item, source in (("a", "vault"), ("b", "team")):
            yield State(item=item, source=source, content_hash="", metadata_hash="", revision=1)

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        self.sources += [one.where.sources if one.where else () for one in queries]
        records = {"a": '{"source": "vault"}', "b": '{"source": "team"}', "c": "?", "d": "{}"}
        return [VectorAnswer(matches=[], scores={}, records=records) for _ in queries]


def test_records_from_a_search_are_limited_to_visible_sources() -> None:
    """The index may be older than the store; records that cannot be read are hidden too."""
    index = KeywordIndex.empty().updated((), [replace(skill("b"), id="b")])
    moved = Moved()
    seen = VisibleCollection(moved, index, frozenset({"team"}), is_filtered=True)
    (answer,) = seen.query([VectorQuery(vector=np.ones(4, np.float32), limit=1)])
    assert {*answer.records} == {*seen.records([item_key("a"), item_key("b")])} == {"b"}
    assert moved.asked == [item_key("b")]  # the time to read others could reveal them
    assert [one.item for one in seen.states()] == ["b"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [((), ("team",)), (("vault", "team"), ("team",)), (("vault",), NOTHING)],
)
def test_a_query_is_limited_to_visible_sources(
    wanted: tuple[str, ...], found: tuple[str, ...]
) -> None:
    """A filter of hidden sources only, or a caller who may see none, matches nothing."""
    for visible, expected in ((frozenset({"team"}), found), (NOBODY, NOTHING)):
        moved = Moved()
        seen = VisibleCollection(moved, KeywordIndex.empty(), visible, is_filtered=True)
        where = Filter(sources=wanted)
        seen.query([VectorQuery(vector=np.ones(4, np.float32), limit=1, where=where)])
        assert moved.sources == [expected]


def test_the_number_of_subsets_is_limited() -> None:
    """The most recently used subsets are kept."""
    names = [f"s{number}" for number in range(MAX_SUBSETS + 2)]
    subsets = Subsets(keyword_engine([skill("bread")]), known(*(state(one, one) for one in names)))
    for name in names:
        subsets.of(frozenset({name}))
    assert len(subsets._subsets) == MAX_SUBSETS
    assert frozenset({names[-1]}) in subsets._subsets


def test_frequent_callers_stay_cached_among_many_sets_of_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the least recently used sets of groups are dropped."""
    monkeypatch.setattr(subsets_module, "MAX_CALLERS", 3)
    subsets = Subsets(keyword_engine([skill("bread")]), known(state("team")))
    often = frozenset({"often"})
    for number in range(9):
        subsets.of(often)
        subsets.of(frozenset({f"rare{number}"}))
    assert often in subsets._visible
    assert often in subsets._asked
    assert len(subsets._visible) == len(subsets._asked) == 3
