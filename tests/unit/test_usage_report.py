"""The usage report: laws of its clusters and lists, and its advice."""

from collections import Counter
from itertools import product

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from repertory.catalogue.item import Item
from repertory.index.keywords.document import Entry, entry
from repertory.usage.clusters import clusters
from repertory.usage.events import Event, LostEvents, Search, Use
from repertory.usage.labels import unanswered
from repertory.usage.outcomes import outcomes
from repertory.usage.report import MAX_LISTED, report
from repertory.usage.similar_items import similar
from repertory.usage.wire import Insights
from repertory.watch_status import SourceState
from tests.support.builders import skill, tool
from tests.support.laws import laws
from tests.support.usage import NOW, search

WORDS = ("deploy", "cluster", "invoice", "photo", "rotate", "keys")


def use(item: str, ago: float, caller: str = "key:ci") -> Use:
    """A use of an item, ``ago`` seconds before ``NOW``."""
    return Use(at=NOW - ago, caller=caller, item=item)


queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
searches = st.builds(
    lambda query, hits, ago, caller, ms: search(query, *hits, ago=ago, caller=caller, ms=ms),
    queries,
    st.lists(st.sampled_from("abc"), unique=True, max_size=3),
    st.floats(0, 5_000),
    st.sampled_from(["key:ci", "key:anna"]),
    st.floats(0, 2_000),
)
uses = st.builds(
    use,
    st.sampled_from("abcd"),
    st.floats(0, 5_000),
    st.sampled_from(["key:ci", "key:anna"]),
)
histories = st.lists(searches | uses, max_size=30)


def reported(
    events: list[Event], *items: Item, sources: tuple[SourceState, ...] = (), mode: str = "plain"
) -> Insights:
    """The usage report for a catalogue of these items."""
    return report(events, list(map(entry, items)), sources, recording=mode, now=NOW)


def source(name: str, **fields: object) -> SourceState:
    """A source that was just read."""
    fresh = SourceState(
        name=name, type="skills", location="", items=1, stale=0, error="", seen=NOW - 60
    )
    return replace(fresh, **fields)


CATALOGUE = [tool(f"s__{name}", f"The tool {name}", id=name) for name in "abcd"]


@laws
@given(histories)
def test_each_search_is_counted_once(events: list[Event]) -> None:
    """Each search is without results, used, unused, or too recent; clusters have no overlap."""
    found = reported(events, *CATALOGUE)
    all_ = outcomes(events)
    assert found.searches == len(all_) == sum(isinstance(one, Search) for one in events)
    assert sum(one.searches for one in found.unanswered) == found.without_results
    assert sum(one.searches for one in found.unused) == found.without_use
    used = sum(bool(one.used) for one in all_)
    new = sum(bool(one.search.hits) and NOW - one.search.at <= 600 for one in all_ if not one.used)
    assert found.without_results + found.without_use + used + new == found.searches
    lists = msgspec.to_builtins(found)
    for name, total in found.totals.items():
        assert len(lists[name]) == min(total, MAX_LISTED)


@laws
@given(st.lists(searches | uses, max_size=30, unique_by=lambda one: one.at), st.data())
def test_the_order_of_events_does_not_matter(events: list[Event], data: st.DataObject) -> None:
    """Several processes write events, so their order is arbitrary."""
    shuffled = data.draw(st.permutations(events))
    assert reported(shuffled, *CATALOGUE) == reported(events, *CATALOGUE)


@laws
@given(histories)
def test_items_are_listed_correctly_as_never_found_or_never_used(events: list[Event]) -> None:
    """A found item is not "never found", a used one not "never used", and none is both."""
    found = reported(events, *CATALOGUE)
    hit = {item for one in events if isinstance(one, Search) for item in one.hits}
    used = {one.item for one in events if isinstance(one, Use)}
    never_found = {item for one in found.never_found for item in one.items}
    never_used = {item for one in found.never_used for item in one.items}
    missed = {*"abcd"} - hit if found.searches else set()
    # If a whole server was never found, only its first items are listed.
    assert never_found == (missed if missed < {*"abcd"} else {*"abc"})
    assert not never_used & (used | never_found)
    often = Counter(item for one in events if isinstance(one, Search) for item in one.hits)
    assert never_used == {item for item, count in often.items() if count >= 3} - used


@laws
@given(histories)
def test_hashed_queries_are_not_shown(events: list[Event]) -> None:
    """Queries that were recorded as text before are hidden too; the rest of the report is equal."""
    plain, hashed = reported(events, *CATALOGUE), reported(events, *CATALOGUE, mode="hashed")
    for name in ("unanswered", "unused", "slow"):
        assert [replace(one, queries=[]) for one in getattr(plain, name)] == getattr(hashed, name)
    assert plain.totals == hashed.totals


@laws
@example(
    [
        *["deploy cluster invoice"] * 4,
        *["cluster invoice photo"] * 3,
        *["invoice photo"] * 2,  # nearer to the last one than the cluster of the first
        "photo invoice cluster",
    ]
)
@given(st.lists(queries, max_size=12))
def test_queries_with_the_same_words_are_one_cluster(asked: list[str]) -> None:
    """The order of words does not matter. A cluster's queries share words with its first one."""
    found = clusters(outcomes([search(text, ago=n) for n, text in enumerate(asked)]))
    where = {
        one.search.query: number for number, group in enumerate(found) for one in group.outcomes
    }
    for one in asked:
        for other in asked:
            if {*one.split()} == {*other.split()}:
                assert where[one] == where[other]
    for group in found:
        leader = {*group.queries[0].split()}
        for words in ({*query.split()} for query in group.queries):
            assert len(leader & words) >= len(leader | words) / 2
    sizes = [len(group.outcomes) for group in found]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == len(asked)


def test_queries_with_half_of_their_words_in_common_are_one_cluster() -> None:
    """With fewer common words they are two clusters."""
    for other, number in (("cluster invoice photo", 1), ("cluster invoice photo keys", 2)):
        asked = [search("deploy cluster invoice", ago=1), search(other)]
        assert len(clusters(outcomes(asked))) == number


def test_a_common_word_counts_like_any_other() -> None:
    """A query joins the cluster with two of its three words, although many share one of them."""
    names = ["".join(letters) for letters in product("bdfgkmpz", repeat=3)]
    asked = [f"deploy {name}" for name in names for _ in range(3)]
    asked += ["deploy cluster", "deploy cluster", "deploy cluster now"]
    found = clusters(outcomes([search(text, ago=n) for n, text in enumerate(asked)]))
    assert len(found) == len(names) + 1
    assert ["deploy cluster", "deploy cluster now"] in [one.queries for one in found]


def test_a_use_belongs_to_the_previous_search_of_the_same_caller() -> None:
    """It must happen after the search and within ten minutes."""
    for ago, caller, is_used in (
        (3_500, "key:ci", True),
        (3_001, "key:ci", True),
        (2_900, "key:ci", False),
        (3_700, "key:ci", False),
        (3_500, "key:anna", False),
    ):
        [found] = outcomes([search("deploy", "a"), use("a", ago, caller)])
        assert found.used == (["a"] if is_used else []), (ago, caller)


def test_a_query_typed_letter_by_letter_is_counted_once() -> None:
    """The last text counts, unless a result of an earlier text was used."""
    typed = replace(search("deploy", "a", ago=99), continues=True)
    [found] = outcomes([search("dep", ago=100), typed])
    assert found.search is typed
    assert len(outcomes([search("dep", "b", ago=100), use("b", 99.5), typed])) == 2
    assert len(outcomes([search("dep", ago=100, caller="key:anna"), typed])) == 2


def test_the_advice_for_searches() -> None:
    """It is an alias or a pin if callers then used an item twice, otherwise a new skill."""
    events: list[Event] = [
        search("ship it to the cluster", ago=2_000),
        search("deploy", "a", ago=1_990),
        use("a", 1_980),
        search("ship it to the cluster", ago=1_700, caller="key:anna"),
        use("a", 1_690, "key:anna"),
        search("reboot", ago=1_600),
        use("d", 1_590),
        search("translate a poem", ago=1_500),
        search("photo smaller", "b", ago=1_200),
        use("c", 1_190),
        search("photo smaller", "b", ago=1_100),
        use("c", 1_090),
        search("invoice", "b", "d", ago=900),
        search("gone", ago=800),
        use("removed", 790),
    ]
    found = reported(events, *CATALOGUE)
    by_query = {one.queries[0]: one for one in (*found.unanswered, *found.unused)}
    alias, pin = by_query["ship it to the cluster"], by_query["photo smaller"]
    assert (alias.items, alias.field, "alias" in alias.advice) == (["a"], "aliases", True)
    assert (pin.items, pin.field, "Pin c" in pin.advice) == (["c"], "pin", True)
    once = by_query["reboot"]
    assert (once.items, once.field) == (["d"], "")
    assert once.advice.startswith("A caller used d soon afterwards. If it is")
    assert by_query["translate a poem"].advice.startswith("Write a skill")
    assert by_query["gone"].advice.startswith("Write a skill")
    assert (by_query["invoice"].items, by_query["invoice"].field) == (["b", "d"], "")
    assert "deploy" not in by_query


def test_degraded_searches_do_not_count_as_searches_without_results() -> None:
    """They found nothing because an arm was unavailable, but they can be listed as slow."""
    found = reported([replace(search("deploy", ms=900), is_degraded=True)], *CATALOGUE)
    assert (found.without_results, found.unanswered) == (0, [])
    assert [one.ms for one in found.slow] == [900]


def test_a_query_that_other_searches_answered_needs_no_new_skill() -> None:
    """A filter or a threshold excluded the items; weak hits and deleted items do not count."""
    events = [search("deploy"), search("deploy", "z", "b", ago=5), search("photo")]
    by_query = {one.queries[0]: one for one in reported([*events], *CATALOGUE).unanswered}
    assert by_query["deploy"].items == ["b"]
    assert by_query["deploy"].advice.startswith("The same query found b with other filters")
    weak = [events[0], replace(events[1], confidence=0.2), events[2]]
    for history, items in ((events, CATALOGUE[2:]), (weak, CATALOGUE)):
        found = reported([*history], *items).unanswered
        assert {one.advice for one in found} == {by_query["photo"].advice}


def test_slow_searches_and_durations_are_reported() -> None:
    """Slow searches are listed with the slowest first; quantiles are measured durations."""
    events: list[Event] = [search("deploy", "a", ms=ms) for ms in (*range(1, 20), 900)]
    events += [search("invoice", "b", ms=1_500), LostEvents(at=NOW, count=3)]
    found = reported(events, *CATALOGUE)
    assert [one.ms for one in found.slow] == [1_500, 900]
    assert (found.median_ms, found.slow_ms) == (11, 900)
    assert found.lost == 3
    empty = reported([])
    assert (empty.since, empty.median_ms, empty.slow_ms, empty.never_found) == (0, 0, 0, [])


def test_items_that_are_hard_to_distinguish_are_listed() -> None:
    """They are copies, items with similar descriptions or names, and shadowed skills."""
    text = "Rotate the API keys of a service without downtime and revoke the old ones"
    found = reported(
        [search("keys", "team/rotation")],
        skill("rotation", text),
        skill("key-change", f"{text} today"),
        replace(skill("rotation", text), id="other/rotation", source="other"),
        replace(skill("review", "Review a change"), id="other/review", source="other"),
        skill("review", "Review a pull request"),
        tool("mail__send_mail", "Send"),
        tool("post__send_mails", "Post"),
        sources=(source("other"), source("team")),
    )
    advice = {tuple(one.items): one.advice for one in found.alike}
    assert "keep one" in advice["team/rotation", "other/rotation"]
    assert "nearly the same" in advice["team/rotation", "team/key-change"]
    assert "one letter" in advice["post__send_mails",]
    assert {tuple(one.items) for one in found.shadowed} == {
        ("team/review", "other/review"),
        ("team/rotation", "other/rotation"),
    }


def test_copies_of_a_tool_are_listed_once() -> None:
    """That their names are equal is not reported again."""
    text = "Move a message to the archive folder of its mailbox"
    found = reported([], tool("mail__archive", text), tool("post__archive", text))
    assert [one.items for one in found.alike] == [["mail__archive", "post__archive"]]


@laws
@given(st.lists(st.sets(st.sampled_from(list("bcdfghjklmnp")), min_size=5), max_size=8))
@example([{*"bcdfghjklm"}, {*"dfghjklm"}])  # the first's two rarest terms are not in the second
def test_all_similar_descriptions_are_found(described: list[set[str]]) -> None:
    """The pairs equal those of comparing every description with every other."""
    entries: list[Entry] = [
        entry(replace(skill("same " * number, text), id=f"team/skill-{number}"))
        for number, letters in enumerate(described, start=1)
        for text in [" ".join(f"{letter}{letter}a" for letter in letters)]
    ]
    expected = {
        (f"team/skill-{n}", f"team/skill-{m}")
        for m, other in enumerate(described, start=1)
        for n, one in enumerate(described[: m - 1], start=1)
        if len(one & other) >= 0.8 * len(one | other)
    }
    assert {*similar(entries)} == expected


def test_similar_items_with_distinct_names_are_not_listed() -> None:
    """Each name must have its own word for the difference; numbers do not count."""
    text = "Get the best practices for applications of Spring Boot"
    for one, other, is_similar in (
        (skill("java-boot", text), skill("kotlin-boot", f"{text} and Kotlin"), False),
        (skill("boot", text), skill("boot-2", f"{text} today"), True),
        (skill("boot", text), skill("practices", f"{text} today"), True),
        (skill("java-boot", text), skill("kotlin-boot", text), True),
    ):
        assert bool(similar([entry(one), entry(other)])) is is_similar, (one.name, other.name)


def test_items_that_no_search_found_are_listed() -> None:
    """A server without found items is one finding; after few searches, the advice is cautious."""
    unused = [tool(f"mail__{name}", "Mail", id=f"mail__{name}") for name in "abcd"]
    found = reported([search("deploy", "a")], *CATALOGUE, *unused)
    whole, *single = found.never_found
    assert (whole.items, whole.found) == (["mail__a", "mail__b", "mail__c"], 0)
    assert (
        "the 4 items of mail. If this does not change with more searches: remove it" in whole.advice
    )
    assert [one.items for one in single] == [["b"], ["c"], ["d"]]
    assert {one.advice.partition(":")[0] for one in single} == {
        "If this does not change with more searches"
    }
    often = [search("deploy", "a", ago=ago) for ago in range(20)]
    whole, *single = reported([*often], *CATALOGUE, *unused).never_found
    assert "the 4 items of mail. Remove it, if" in whole.advice
    assert all(one.advice.startswith("Say in its description") for one in single)
    small = [*unused[:3], *(tool(f"chat__{name}", "Chat", id=f"chat__{name}") for name in "ab")]
    whole, *single = reported([*often], *small).never_found
    assert "the 3 items of mail" in whole.advice
    assert [one.items for one in single] == [["chat__a"], ["chat__b"]]


def test_a_long_list_is_cut() -> None:
    """Its full length is in the totals."""
    skills = [skill(f"name{number}") for number in range(MAX_LISTED + 10)]
    found = reported([search("deploy", skills[0].id)], *skills)
    assert (len(found.never_found), found.totals["neverFound"]) == (MAX_LISTED, MAX_LISTED + 9)


def test_a_long_query_is_not_suggested_as_an_alias_or_pin() -> None:
    """With more than four words, the advice names the item that callers used, but no field."""
    short, long = "ship red wine by train", "ship red wine by train today"
    for query, hits, field in (
        *((short, (), "aliases"), (short, ("b",), "pin")),
        *((long, (), ""), (long, ("b",), "")),
    ):
        asked: list[Event] = [
            event
            for ago in (2_000, 1_000)
            for event in (search(query, *hits, ago=ago), use("a", ago - 10))
        ]
        found = reported(asked, *CATALOGUE)
        (one,) = (*found.unanswered, *found.unused)
        assert (one.items, one.field) == (["a"], field)
        assert one.advice.startswith("Callers used a soon afterwards") is (field == "")


def test_sources_that_are_not_up_to_date_are_listed() -> None:
    """The advice says what to do. A source that waits for trust or was never read is not listed."""
    found = reported(
        [],
        sources=(
            source("fresh"),
            source("broken", error="The folder is unreadable."),
            source("kept", stale=2),
            source("old", seen=NOW - 30 * 86_400),
            source("my vault", error="It asks for a sign-in.", awaits_sign_in=True),
            source("new", error="Trust it.", awaits_trust=True, seen=0),
            source("never asked", seen=0),
        ),
    )
    advice = {one.source: one.advice for one in found.stale}
    assert [*advice] == ["broken", "kept", "old", "my vault"]
    assert "The folder is unreadable." in advice["broken"]
    assert "repertory login 'my vault'" in advice["my vault"]
    assert "30 days ago" in advice["old"]


def test_unanswered_queries_for_a_labelled_set() -> None:
    """The most frequent come first, with items used soon afterwards.

    Hashed queries, and searches of which an arm was unavailable, are left out.
    """
    events: list[Event] = [
        search("ship it", ago=900),
        *(search("translate a poem", ago=ago) for ago in (800, 700)),
        replace(search("secret words", ago=650), query=""),
        replace(search("degraded", ago=640), is_degraded=True),
        search("deploy", "a", ago=600),
        use("a", 890),
    ]
    found = unanswered(events, {*"abcd"})
    assert [(one.query, one.searches, one.used) for one in found] == [
        ("translate a poem", 2, []),
        ("ship it", 1, ["a"]),
    ]
