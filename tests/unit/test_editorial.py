"""Policies in a search: their effects, their limits, and the notes in reasons."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.policy import Policy
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.snapshot import unpack
from repertory.search.answer import Hit
from repertory.search.editorial import boosted as boosted_odds
from repertory.search.keyword_arm import MAX_NAMED
from repertory.search.query import Query
from repertory.search.semantic_arm import MAX_BY_MEANING
from tests.support.builders import skill, tool
from tests.support.keyword_search import content, keyword_engine, pack, row_of

DEPLOY = "Deploy the service to production with a rolling update"
OTHERS = [
    skill("release-notes", "Write release notes from merged pull requests"),
    skill("smoke-test", "Check that the deployed service answers"),
    skill("read-file", "Read the contents of a file from disk"),
    skill("send-mail", "Send a message to a recipient"),
]


def search(text: str, items: Sequence[Item], **options: object) -> list[Hit]:
    """The hits of a keyword search in a catalogue of these items and the others."""
    query = msgspec.convert({"text": text, "limit": 10, **options}, Query)
    return keyword_engine([*OTHERS, *items]).search(query).hits


def confidence(hits: list[Hit], name: str) -> float:
    """The confidence of an item in the hits, or 0."""
    return next((hit.confidence for hit in hits if hit.name == name), 0.0)


def test_a_pinned_item_is_first_even_if_nothing_else_finds_it() -> None:
    """The query must have all words of the phrase, in any order and form. The reason quotes it."""
    item = skill("deploy", "Rolling update", pin=("ship it to production",), is_vouched=True)
    hits = search("how do we get the service shipped into Production?", [item])
    assert hits[0].name == "deploy"
    assert hits[0].confidence > 0.97
    assert hits[0].evidence.policy == ("Pinned for “ship it to production”",)
    assert hits[0].reason.startswith("Pinned for “ship it to production”; ")
    assert "deploy" not in {hit.name for hit in search("ship it", [item])}


def test_the_longest_phrase_that_a_query_contains_is_quoted() -> None:
    """The order of an item's pins does not matter; a part of a phrase is no match."""
    phrases = ("ship it", "ship it to production", "ship zebras")
    for pin in (phrases, phrases[::-1]):
        item = skill("deploy", "Rolling update", pin=pin, is_vouched=True)
        (first, *_) = search("ship this to production today", [item])
        assert first.evidence.policy == ("Pinned for “ship it to production”",)
    item = skill("deploy", "Rolling update", pin=("apples and zebras",), is_vouched=True)
    assert search("apples", [item]) == []


def test_a_pin_respects_the_filter() -> None:
    """A pin adds no item that the filter excludes."""
    item = skill("deploy", "Rolling update", pin=("ship it",), is_vouched=True)
    assert search("ship it", [item], where={"kinds": ["tool"]}) == []


def test_the_number_of_pinned_candidates_is_bounded() -> None:
    """A pattern may pin every item. Items that the query finds are still first.

    Pins by authors take no places of configured ones, nor do items that a filter excludes.
    """
    crowd = [skill(f"item-{at}", "Rolling update", pin=("ship it today",)) for at in range(300)]
    named = skill("zeppelin", "Ship it by air", pin=("ship it today",))
    configured = skill("zoo", "Of animals", pin=("ship",), is_vouched=True)
    allowed = tool("zoo__tool", "Of animals", policy=Policy(pin=("ship",)))
    items = [*crowd, named, configured, allowed]
    found = search("ship today", items, limit=600)
    assert [hit.name for hit in found[:2]] == ["zoo", "zeppelin"]
    assert len(found) <= MAX_NAMED + MAX_BY_MEANING
    tools = search("ship today", items, where={"kinds": ["tool"]})
    assert [hit.id for hit in tools] == [allowed.id]


def test_a_configured_pin_for_the_whole_query_beats_a_typed_name() -> None:
    """A pin by the item's author does not."""
    named = skill("ship", "Move freight by sea")
    pinned = skill("deploy", "Rolling update", pin=("ship",), is_vouched=True)
    suggested = skill("takeover", "Rolling update", pin=("ship",))
    assert [hit.name for hit in search("ship", [named, pinned, suggested])] == [
        "deploy",
        "ship",
        "takeover",
    ]


def test_a_configured_pin_for_a_part_of_the_query_ranks_below_a_typed_name() -> None:
    """Of two items pinned for the same phrase, the one that fits better is first."""
    named = skill("ship-freight", "Move goods")
    pinned = skill("deploy", "Rolling update", pin=("ship",), is_vouched=True)
    hits = search("ship freight", [named, pinned])
    assert [hit.name for hit in hits] == ["ship-freight", "deploy"]
    assert hits[1].confidence > 0.975
    sailing = skill("sailing", "By sea and with care", pin=("ship",), is_vouched=True)
    hits = search("ship it by sea with care", [pinned, sailing])
    assert [hit.name for hit in hits] == ["sailing", "deploy"]
    assert 0.975 < hits[1].confidence < hits[0].confidence < 0.98


def test_an_authors_pin_must_be_half_of_the_query() -> None:
    """Otherwise a skill that pins a common word would be first for many queries."""
    item = skill("takeover", "Do anything", pin=("file",))
    assert confidence(search("file", [item]), "takeover") >= 0.85
    assert confidence(search("file zorblax", [item]), "takeover") >= 0.85
    assert confidence(search("file zorblax quuxly", [item]), "takeover") == 0.0
    assert confidence(search("read a file from the disk", [item]), "takeover") == 0.0


def test_a_boost_changes_order_and_confidence_and_is_noted() -> None:
    """A positive boost raises an item, a negative one lowers it."""
    plain, copy = skill("deploy-a", DEPLOY), skill("deploy-b", DEPLOY)
    query = "deploy the service with a rolling update"
    before = search(query, [plain, copy])
    raised = skill("deploy-b", DEPLOY, boost=0.5)
    hits = search(query, [plain, raised])
    assert [hit.name for hit in hits[:2]] == ["deploy-b", "deploy-a"]
    assert confidence(hits, "deploy-b") > confidence(before, "deploy-b")
    assert confidence(hits, "deploy-a") == confidence(before, "deploy-a")
    assert hits[0].evidence.policy == ("Raised by its policy (+0.5)",)
    lowered = search(query, [skill("deploy-a", DEPLOY, boost=-0.5), copy], threshold=0.0)
    assert [hit.name for hit in lowered[:2]] == ["deploy-b", "deploy-a"]
    assert lowered[1].reason.startswith("Lowered by its policy (-0.5); ")


@pytest.mark.parametrize("text", ["deploy", "deploy the service to production"])
def test_a_boost_never_reaches_a_typed_name(text: str) -> None:
    """A boost cannot exceed the highest confidence of items whose name was not typed."""
    boosted = skill("release", f"{DEPLOY}, deploy production", boost=1.0)
    assert confidence(search(text, [boosted]), "release") <= 0.97
    assert boosted_odds(0.98, 1.0) == 0.98
    assert boosted_odds(0.9, 1.0) == 0.97
    assert boosted_odds(0.0, 1.0) < 1e-3
    assert 0.9 < boosted_odds(1.0, -1.0) <= 1.0


@pytest.mark.parametrize("typed", ["deployments", "deploymentz"])
def test_a_typed_name_is_neither_raised_nor_lowered(typed: str) -> None:
    """A boost does not apply to a query for the item's name, even if it is misspelt."""
    plain, lowered = (skill("deployments", DEPLOY, boost=boost) for boost in (0.0, -1.0))
    before, after = (search(typed, [item]) for item in (plain, lowered))
    assert confidence(before, "deployments") == confidence(after, "deployments") > 0.9


def test_a_successor_with_more_confidence_keeps_it() -> None:
    """A deprecated item with less confidence neither lowers it nor adds a note."""
    old = skill("old", "Restart the service in place", deprecated_by="deploy")
    new = skill("deploy", DEPLOY)
    alone, both = search("deploy service", [new]), search("deploy service", [old, new])
    assert confidence(both, "deploy") == confidence(alone, "deploy")
    assert both[0].evidence.policy == ()


ALIASED = skill(
    "deploy",
    DEPLOY,
    aliases=(
        "shipIt now",
        "go-live",
    ),
)


@pytest.mark.parametrize(
    "typed", ["shipit now", "SHIP_IT_NOW", "ship-it-now", "golive", "please run shipItNow for me"]
)
def test_an_alias_is_found_like_a_name(typed: str) -> None:
    """Case and separators do not matter, nor other words of a sentence. The reason names it."""
    first = search(typed, [ALIASED])[0]
    assert first.name == "deploy"
    assert first.confidence >= 0.98
    assert first.reason.startswith("Exact alias match (")


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("shipt now", "Fuzzy alias match (shipt now → shipIt now)"),
        ("go liev", "Fuzzy alias match (go liev → go-live)"),
        ("shipitn", "Alias begins with “shipitn”"),
    ],
)
def test_an_alias_is_found_misspelt_and_by_a_prefix(typed: str, reason: str) -> None:
    """The tolerance is the same as for a name."""
    first = search(typed, [ALIASED])[0]
    assert (first.name, first.reason) == ("deploy", reason)


def test_the_words_of_an_alias_count_like_the_words_of_a_name() -> None:
    """A longer query finds them, too."""
    assert search("when do we go live with the app", [ALIASED])[0].name == "deploy"


def test_an_alias_that_is_another_items_name_ranks_second() -> None:
    """The item that has this name is first."""
    thief = skill("evil", "Read the contents of a file from disk", aliases=("read_file",), boost=1)
    hits = search("read_file", [thief])
    assert [hit.name for hit in hits[:2]] == ["read-file", "evil"]
    assert hits[1].confidence < 0.98 <= hits[0].confidence


def test_a_deprecated_item_ranks_below_its_successor() -> None:
    """The successor gets the old item's confidence, even if it has no word of the query."""
    old = skill("deploy", DEPLOY, deprecated_by="team/fly")
    query = "rolling update of the production service"
    before = confidence(search(query, [skill("deploy", DEPLOY)]), "deploy")
    hits = search(query, [old, skill("fly", "Take off")], threshold=0.1)
    assert [hit.name for hit in hits[:2]] == ["fly", "deploy"]
    assert hits[0].confidence >= before > hits[1].confidence
    assert hits[0].evidence.policy == ("Instead of deploy, which is deprecated",)
    assert hits[1].reason.startswith("Deprecated, use team/fly; ")


def test_the_typed_name_of_a_deprecated_item_is_first_with_the_notice() -> None:
    """Its successor is second, or first if it has the same name."""
    old = skill("deploy", DEPLOY, deprecated_by="fly")
    hits = search("deploy", [old, skill("fly", "Take off")])
    assert [hit.name for hit in hits[:2]] == ["deploy", "fly"]
    assert hits[0].reason == "Deprecated, use fly; exact name match"
    assert hits[1].confidence <= 0.97 < hits[0].confidence
    same = msgspec.structs.replace(skill("deploy", "Take off"), id="new/deploy", source="new")
    old = skill("deploy", DEPLOY, deprecated_by="new/deploy")
    hits = search("deploy", [old, same], threshold=0.0)
    values = {hit.id: hit.confidence for hit in hits}
    assert hits[0].id == "new/deploy"
    assert values["new/deploy"] > 0.97 > values["team/deploy"]


def successor(*others: Item, by: str = "fly") -> str:
    """The id of the item that replaces a deprecated skill `deploy`, or nothing."""
    items = [skill("deploy", DEPLOY, deprecated_by=by), *others]
    index = KeywordIndex.empty().updated((), items)
    row = index.policies.successors.get(row_of(index, "team/deploy"))
    return "" if row is None else index.entry(row).id


def test_a_successor_is_looked_up_by_id_then_by_name() -> None:
    """Among several with this name, the same kind wins, then the same source."""
    near, far = skill("fly"), msgspec.structs.replace(skill("fly"), id="a/fly", source="a")
    other = tool("a__fly", source="team")
    assert successor(other, far, near) == "team/fly"
    assert successor(other, far) == "a/fly"
    assert successor(other) == "a__fly"
    assert successor(skill("a-fly"), other, by="a__fly") == "a__fly"
    same = msgspec.structs.replace(skill("deploy"), id="z/deploy", source="z")
    assert successor(same, by="deploy") == "z/deploy"
    assert successor(by="deploy") == ""


def test_a_successor_may_have_a_policy() -> None:
    """It is the final successor unless it is deprecated itself."""
    assert successor(skill("fly", boost=0.5)) == "team/fly"


def test_the_deprecation_is_the_first_of_several_notes() -> None:
    """It says which item to use instead."""
    old = skill("deploy", DEPLOY, deprecated_by="fly", boost=0.5)
    hits = search("rolling update of the production service", [old], threshold=0.0)
    assert hits[0].evidence.policy == ("Deprecated, use fly", "Raised by its policy (+0.5)")


def test_a_deprecated_item_without_its_successor_is_lowered() -> None:
    """A cycle counts as missing, too; in a chain the last item is the successor."""
    query = "rolling update of the production service"
    before = confidence(search(query, [skill("deploy", DEPLOY)]), "deploy")
    other = skill("dodge", "Rolling")  # the second row of the index
    lost = search(query, [skill("deploy", DEPLOY, deprecated_by="gone"), other], threshold=0.1)
    assert 0 < confidence(lost, "deploy") < before
    kept = search(query, [skill("deploy", DEPLOY), other], threshold=0.1)
    assert confidence(lost, "dodge") == confidence(kept, "dodge") > 0.1
    circle = [
        skill("deploy", DEPLOY, deprecated_by="fly"),
        skill("fly", "Take off", deprecated_by="deploy"),
    ]
    assert 0 < confidence(search(query, circle, threshold=0.1), "deploy") < before
    chain = [
        skill("deploy", DEPLOY, deprecated_by="fly"),
        skill("fly", "Take off", deprecated_by="land"),
        skill("land", "Come down"),
    ]
    assert [hit.name for hit in search(query, chain, threshold=0.1)[:2]] == ["land", "deploy"]


UNFIT = [
    skill(
        "git-commit",
        "Create well-formed git commits with conventional messages",
        when_not_to_use="Not for pushing to a remote or opening pull requests on GitHub.",
    ),
    skill(
        "pdf-text",
        "Extract text and tables from PDF files",
        when_not_to_use="The PDF is a scanned image; use an OCR skill.",
    ),
    skill(
        "deep-research",
        "Research a topic thoroughly in many sources and write a report with citations",
        when_not_to_use="Quick factual questions, or looking something up in this codebase.",
    ),
]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("open a pull request of my git commits on github", "git-commit"),
        ("push my commits to the remote", "git-commit"),
        ("extract text from a scanned image", "pdf-text"),
        ("a quick factual question about sources", "deep-research"),
    ],
)
def test_a_query_about_an_items_warning_lowers_it(query: str, name: str) -> None:
    """Much of the query is in the author's warning, which the reason quotes."""
    hits = search(query, UNFIT, threshold=0.0)
    trusting = [msgspec.structs.replace(item, policy=None) for item in UNFIT]
    assert confidence(hits, name) < confidence(search(query, trusting, threshold=0.0), name)
    warned = next(hit for hit in hits if hit.name == name)
    assert warned.reason.startswith("When not to use it: “")


@pytest.mark.parametrize(
    "query",
    [
        "commit my changes with a conventional message",
        "create a git commit before the pull",
        "get the tables out of a pdf file",
        "write a report with citations on this question",
    ],
)
def test_a_query_about_an_items_purpose_does_not_lower_it(query: str) -> None:
    """The query may contain single words of the warning."""
    first = search(query, UNFIT)[0]
    assert first.evidence.policy == ()


def test_a_query_of_stop_words_matches_no_warning() -> None:
    """Stop words alone say nothing about an item."""
    item = skill("how-to-deploy", DEPLOY, when_not_to_use="Not for tests.")
    (hit,) = search("how", [item])
    assert (hit.name, hit.evidence.policy) == ("how-to-deploy", ())


POLICIES = st.builds(
    Policy,
    pin=st.sampled_from([(), ("alpha beta",), ("gamma",)]),
    boost=st.floats(-1, 1),
    aliases=st.sampled_from([(), ("epsilon",), ("alpha", "delta beta")]),
    deprecated_by=st.sampled_from(["", "team/0", "beta gamma", "unknown"]),
    when_not_to_use=st.sampled_from(["", "Not for delta."]),
    is_vouched=st.booleans(),
)
NAMED = st.tuples(
    st.sampled_from(["alpha beta", "beta gamma", "gamma_delta", "epsilon"]), st.none() | POLICIES
)


@settings(max_examples=40)
@given(st.lists(NAMED, max_size=6), st.sampled_from(["alpha", "beta gamma", "delta for alpha"]))
def test_confidences_are_sorted_whatever_the_policies(
    named: list[tuple[str, Policy | None]], query: str
) -> None:
    """They are between 0 and 1, and an updated index equals one that is built at once."""
    items = [
        Item(id=f"team/{at}", kind=Kind.SKILL, name=name, source="team", policy=policy)
        for at, (name, policy) in enumerate(named)
    ]
    values = [hit.confidence for hit in search(query, items, threshold=0.0)]
    assert values == sorted(values, reverse=True)
    assert all(0.0 <= value <= 1.0 for value in values)
    index = KeywordIndex.empty()
    for item in items:
        index = index.updated((), [msgspec.structs.replace(item, policy=None)])
        index = index.updated((), [item])
    packed = pack(index, 1)
    assert pack(unpack(*packed).keywords, 1) == packed
    if items:
        assert content(index) == content(KeywordIndex.empty().updated((), items))
