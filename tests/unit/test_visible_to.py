"""``visible_to`` of a source: how it is read, what it follows, and who learns what."""

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
from repertory.index.vectors import Searched, State, VectorAnswer, VectorQuery
from repertory.indexing.scan import ScanResult
from repertory.search import visible_subsets as subsets_module
from repertory.search.known_sources import BUILDING, KnownSources
from repertory.search.visible_subsets import KEEP_S, MAX_SUBSETS, Subsets, VisibleCollection
from repertory.settings import load
from repertory.sources.configured import Catalogue, build_catalogue, withheld_sources
from repertory.sources.registry import build
from repertory.sources.source import Scan
from repertory.stats import Building, WatchStatus, report_watch
from tests.support.builders import Folder, skill, write
from tests.support.keyword_search import keyword_engine
from tests.support.scans import latest_scans
from tests.support.visibility import known, state

NOBODY: frozenset[str] = frozenset()
OWN, OTHERS = f"repertory_{2 * '12345678'}_words-r1_g1", f"repertory_{2 * '87654321'}_words-r1_g1"


@pytest.mark.parametrize("name", ["team-a", "Ops", "a.b@c_d", "équipe", "x" * 64])
def test_a_group_has_a_name_like_a_keys(name: str) -> None:
    """Letters, digits and four signs."""
    assert checked([name, name]) == (name,)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a\n", "x" * 65, 1, None, "a,b"])
def test_another_name_is_refused(name: object) -> None:
    """The message has the name."""
    with pytest.raises(UsageError, match="A group cannot be named"):
        checked([name])


def test_groups_are_bounded() -> None:
    """As many as anyone needs."""
    with pytest.raises(UsageError, match="is the limit"):
        checked([f"g{number}" for number in range(MAX_GROUPS + 1)])


def test_a_source_without_a_list_is_for_everyone() -> None:
    """One with a list is for callers who share a group with it."""
    assert may_see(NOBODY, ())
    assert not may_see(NOBODY, ["a"])
    assert may_see(frozenset({"b", "c"}), ["a", "b"])
    assert not may_see(frozenset({"c"}), ["a", "b"])


@pytest.mark.parametrize("value", [[], "team-a", None, {"a": 1}, ["a b"], [""], [["a"]], True])
def test_an_invalid_list_is_refused(value: object, tmp_path: Path) -> None:
    """It would hide nothing, or everything, by mistake."""
    entry = {"type": "skills", "path": "skills", "name": "team", "visible_to": value}
    with pytest.raises(ConfigurationError, match="`visible_to` of the source 'team'"):
        build(entry, tmp_path)


def test_the_list_is_of_every_type_and_not_of_the_identity(tmp_path: Path) -> None:
    """It changes a source, and neither its collection nor its vectors."""
    entry = {"type": "skills", "path": "skills", "name": "team"}
    (one,) = build(entry, tmp_path)
    (other,) = build({**entry, "visible_to": ["b", "a"]}, tmp_path)
    assert (one.visible_to, other.visible_to) == ((), ("a", "b"))
    assert one != other
    assert one.identity() == other.identity()


def test_each_server_of_a_configuration_has_the_list(tmp_path: Path) -> None:
    """If a server is configured twice, one entry is enough to hide it."""
    write(tmp_path / "mcp.json", '{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}')
    entry = {"type": "mcp", "config": "mcp.json", "trusted": True}
    restricted = {**entry, "visible_to": ["team-a"]}
    for entries in ([restricted], [entry, restricted], [restricted, entry]):
        sources = build_catalogue(entries, tmp_path).sources
        assert {one.name: one.visible_to for one in sources} == dict.fromkeys("ab", ("team-a",))


def test_a_list_of_groups_outlives_a_file_of_servers_that_cannot_be_read(tmp_path: Path) -> None:
    """What would stand in for its servers would be visible to all: the last sources stay."""
    entry = {"type": "mcp", "config": "mcp.json"}
    (tmp_path / "mcp.json").write_text('{"mcpServers": {')
    last = {"vault": {"type": "mcp", "name": "vault"}}
    assert [one.name for one in build_catalogue([entry], tmp_path, known=last).sources] == ["vault"]
    for hidden in (entry, {"type": "skills", "path": "/srv", "name": "team"}):
        restricted = {**hidden, "visible_to": ["team-a"]}
        with pytest.raises(ConfigurationError, match=r"mcp\.json"):
            build_catalogue([restricted, entry], tmp_path, known=last)


def test_a_list_of_groups_outlives_a_found_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A repository may be beside what was found, and declare servers itself."""
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
def test_an_invalid_hidden_source_is_no_problem_that_all_may_read(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    """What is wrong with a configuration is for administrators."""
    entry = {"type": "skills", "path": "/srv", "name": "vault", "visible_to": ["team-a"]}
    with pytest.raises(ConfigurationError):
        build_catalogue([{**entry, **wrong}], tmp_path, found=True)


def test_a_source_that_waits_for_trust_keeps_its_list(tmp_path: Path) -> None:
    """Its items stay in the index meanwhile."""
    entry = {"type": "skills", "path": "/srv", "name": "team", "visible_to": ["team-a"]}
    (source,) = withheld_sources([(entry, "It waits.")], tmp_path, {}, [])
    assert source.visible_to == ("team-a",)


def test_nobody_else_sees_a_server_whose_file_waits_for_trust(tmp_path: Path) -> None:
    """Its file is not read then, and others wait, too, of which it may be."""
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


def folder(name: str, *visible_to: str) -> Folder:
    """A source that some groups may see."""
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
        (("a",), (), "second"),  # a hidden item takes no place of a visible one
        (("a",), ("a", "b"), "second"),
        (("a", "b"), ("a",), "first"),
    ],
)
def test_of_two_items_with_one_id_the_one_for_more_callers_stays(
    first: tuple[str, ...], second: tuple[str, ...], winner: str
) -> None:
    """The problem is about both sources, so only who sees both learns of it."""
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
    """Whether a source is restricted is unknown."""
    with pytest.raises(StoreError, match="not known yet"):
        KnownSources().visible(NOBODY)


def test_a_caller_learns_of_visible_sources_alone() -> None:
    """Their order and state, and what is said beside an answer."""
    sources = known(
        state("vault", "a", error="It is locked.", quarantined=2),
        state("open", error="It is away."),
        state("stale", stale=3),
        building=Building(collection="", done=1, total=9),
    )
    seen = sources.only(sources.visible(NOBODY))
    assert seen.names == ("open", "stale")
    assert seen.stale == ("open", "stale")
    *others, kept = (one.rpartition(": ")[2] for one in seen.every_notice(1))
    assert others == [BUILDING, "It is away. This index has none of its items."]
    assert kept.startswith("Some items of stale are kept as they were last read")
    assert sources.only(sources.visible(frozenset({"a"}))) == sources
    assert "vault" in str(sources.every_notice(1))


def test_until_a_configuration_is_searched_its_lists_hide_and_show_nothing_new() -> None:
    """A name may be that of another source in the collection that is still searched."""
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


def test_a_process_that_starts_meanwhile_learns_of_the_lists_before() -> None:
    """Else a name that is used again would show what only few may see."""
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


def test_a_report_about_another_collection_says_not_who_could_see_this_one() -> None:
    """Such a report comes back with an old Redis: its names may mean other sources."""
    report = WatchStatus(
        configuration="2",
        collection=f"repertory_{16 * '1'}_model_g1",
        sources=[state("x"), state("vault", "a")],
        former={"x": (), "vault": ("a",)},
    )
    with pytest.raises(StoreError, match="not known yet"):
        KnownSources().after(report, 16 * "3").visible(NOBODY)


def test_nothing_is_visible_while_nobody_knows_who_could_see_what_is_searched() -> None:
    """All reports were lost, and the configuration changed meanwhile."""
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
def test_a_watch_that_starts_again_takes_no_new_list_for_an_old_one(
    collection: str, former: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    """The last report has that of the next index alone, if the one before had lost the old one."""
    parts = Parts(load({"data_dir": str(tmp_path / "data")}, tmp_path, {}), tmp_path)
    report = WatchStatus(configuration=2 * "12345678", collection=collection, sources=[state("x")])
    report_watch(parts.coordination.status, report)
    assert parts.coordinator(Mock()).status().former == former


def test_a_subset_follows_the_index_while_it_is_searched() -> None:
    """It is made again before the next search; one that no caller searches is not."""
    items = [skill("bread"), replace(skill("gold"), id="vault/gold", source="vault")]
    sources = known(state("team"), state("vault", "a"))
    before = Subsets(keyword_engine(items), sources)
    first = before.of(NOBODY)
    assert before.of(frozenset({"b"})) is first  # it is made for what is seen, not for a group
    assert before.of(frozenset({"a"})) is not first
    after = Subsets(keyword_engine(items[:1]), sources)
    after.prepare(before)
    assert len(after._subsets) == 2
    for groups in list(before._asked):
        before._asked[groups] = -KEEP_S
    idle = Subsets(keyword_engine(items), sources)
    idle.prepare(before)
    assert not idle._subsets


def test_nothing_is_prepared_for_callers_who_could_not_be_answered() -> None:
    """Another engine replaces the one before, although there still is no report."""
    before, after = (Subsets(keyword_engine([skill("bread")]), KnownSources()) for _ in range(2))
    with pytest.raises(StoreError, match="It is not known yet"):
        before.of(NOBODY)
    after.prepare(before)
    assert not after._subsets


class Moved(Searched):
    """Points whose records say that an item has moved to a hidden source."""

    name = "moved"

    @override
    def records(self, keys: Sequence[int]) -> dict[str, dict[str, Any]]:
        return {"a": {"source": "vault"}, "b": {"source": "team"}, "c": {}}

    @override
    def states(self, items: Sequence[str] | None = None) -> Iterator[State]:
        return iter(())

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        records = {"a": '{"source": "vault"}', "b": '{"source": "team"}', "c": "?", "d": "{}"}
        return [VectorAnswer(matches=[], scores={}, records=records) for _ in queries]


def test_records_that_come_along_are_of_visible_sources() -> None:
    """The index may be older than the store; what cannot be read is hidden."""
    index = KeywordIndex.empty().updated((), [replace(skill("b"), id="b")])
    seen = VisibleCollection(Moved(), index, frozenset({"team"}), is_filtered=True)
    (answer,) = seen.query([VectorQuery(vector=np.ones(4, np.float32), limit=1)])
    assert {*answer.records} == {*seen.records([item_key("b")])} == {"b"}


def test_subsets_are_bounded() -> None:
    """Those searched last are kept."""
    names = [f"s{number}" for number in range(MAX_SUBSETS + 2)]
    subsets = Subsets(keyword_engine([skill("bread")]), known(*(state(one, one) for one in names)))
    for name in names:
        subsets.of(frozenset({name}))
    assert len(subsets._subsets) == MAX_SUBSETS
    assert frozenset({names[-1]}) in subsets._subsets


def test_many_sets_of_groups_do_not_make_the_server_forget_those_that_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is visible is looked up again only for those that asked least lately."""
    monkeypatch.setattr(subsets_module, "MAX_CALLERS", 3)
    subsets = Subsets(keyword_engine([skill("bread")]), known(state("team")))
    often = frozenset({"often"})
    for number in range(9):
        subsets.of(often)
        subsets.of(frozenset({f"rare{number}"}))
    assert often in subsets._visible
    assert often in subsets._asked
    assert len(subsets._visible) == len(subsets._asked) == 3
