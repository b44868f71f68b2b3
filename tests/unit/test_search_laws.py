"""The laws of a search, on generated catalogues and queries, with the keyword arm and with both.

The second arm counts words instead of running a model, so the laws hold for any vectors.
"""

import string
from collections.abc import Callable, Iterable, Sequence

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from repertory.catalogue.item import Item, Kind
from repertory.index.keywords.document import BODY, fields
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.tokens import wholes
from repertory.index.keywords.tokens import words as words_of
from repertory.search.answer import Hit
from repertory.search.confidence import MEANINGFUL_SHARE
from repertory.search.engine import SearchEngine
from repertory.search.query import Query
from tests.support.builders import skill, tool
from tests.support.hybrid_search import hybrid_engine
from tests.support.keyword_search import keyword_engine

MAX_DROP = 0.05  # by which added items may lower a confidence
DEFAULT = 0.35  # the threshold

Engine = Callable[[Iterable[Item]], SearchEngine]
BOTH_ARMS = pytest.mark.parametrize("engine", [keyword_engine, hybrid_engine])
few = settings(max_examples=25, deadline=None)

VERBS = ["create", "read", "list", "delete", "send", "run", "search", "update"]
THINGS = ["issue", "note", "file", "message", "cluster", "invoice", "git", "shell", "command"]
RARE = ["zorblax", "quuxly", "k8s", "gpt-4o", "vrendig", "LaTeX"]
FILLERS = ["the", "of", "all", "with", "for", "in", "new", "every"]
words = st.sampled_from([*VERBS, *THINGS, *RARE, *FILLERS])
phrases = st.lists(words, min_size=1, max_size=6).map(" ".join)
queries = phrases | st.tuples(phrases, phrases).map(", then ".join)


@st.composite
def items(draw: st.DrawFn, server: str = "") -> Item:
    """A tool or a skill of the words above."""
    name = f"{draw(st.sampled_from(VERBS))}_{draw(st.sampled_from(THINGS))}"
    if draw(st.booleans()):
        name += f"_{draw(st.sampled_from(THINGS))}"
    server = server or draw(st.sampled_from(["alpha", "beta", "shell"]))
    description = draw(phrases)
    if draw(st.booleans()):
        schema: dict[str, object] = {"properties": {draw(st.sampled_from(THINGS)): {}}}
        return tool(f"{server}__{name}", description, input_schema=schema)
    return Item(
        id=f"{server}/{name}",
        kind=Kind.SKILL,
        name=name,
        source=server,
        description=description,
        body=f"# {draw(phrases)}\n{draw(phrases)}\n",
        tags=(draw(words),),
    )


identifiers = st.lists(st.sampled_from([*VERBS, *THINGS]), min_size=1, max_size=4)
catalogues = st.lists(items(), min_size=1, max_size=10, unique_by=lambda item: item.id)


def copied(item: Item, number: int) -> Item:
    """The same item of another source."""
    return msgspec.structs.replace(item, id=f"copy{number}/{item.id}", source=f"copy{number}")


def search(engine: SearchEngine, text: str, limit: int = 10, threshold: float = 0.35) -> list[Hit]:
    """The hits of a search."""
    return engine.search(Query(text=text, limit=limit, threshold=threshold)).hits


def names(hits: Sequence[Hit]) -> list[str]:
    """The names of hits."""
    return [hit.name for hit in hits]


def first_confidences(engine: SearchEngine, text: str, of: Sequence[Item]) -> list[float]:
    """The confidences of some items, also of those that are not shown."""
    assert engine.keywords
    rows = [engine.keywords.row_of[item.id] for item in of]
    task = engine.rank(Query(text=text), also=rows)
    return [task.merged.confidence[row] for row in rows]


# 1. Limit


@BOTH_ARMS
@few
@given(catalogue=catalogues, copies=st.integers(0, 3), text=queries, limit=st.integers(1, 6))
@example(
    catalogue=[tool("term__run_command", "Run a command"), tool("sh__shell", "A shell")],
    copies=1,
    text="commit all my changes to git",
    limit=1,
)
def test_a_larger_limit_only_adds_hits(
    engine: Engine, catalogue: list[Item], copies: int, text: str, limit: int
) -> None:
    """The first hits are the same, with the same confidences, whether direct or inferred."""
    searched = engine([*catalogue, *(copied(catalogue[0], at) for at in range(copies))])
    for threshold in (0.0, DEFAULT):
        all_of_them = search(searched, text, 100, threshold)
        for smaller in (limit, limit + 1, 20):
            assert search(searched, text, smaller, threshold) == all_of_them[:smaller]


# 2. Crowding


@BOTH_ARMS
@few
@given(
    catalogue=st.lists(items(), min_size=1, max_size=4, unique_by=lambda item: item.id),
    crowd=st.lists(items(server="crowd"), max_size=20),
    copies=st.integers(0, 20),
    text=queries,
)
@example(
    catalogue=[skill(f"gke-{word}", f"Kubernetes {word} on GKE") for word in ("scale", "cost")],
    crowd=[tool(f"crowd__k{at}", f"Kubernetes of kind {at}") for at in range(40)],
    copies=0,
    text="kubernetes",
)
@example(
    catalogue=[skill("notes", "Writes a note of zorblax")],
    crowd=[skill(f"zorblax-notes-{at}", "Writes notes of zorblax") for at in range(40)],
    copies=5,
    text="zorblax notes",
)
@example(
    catalogue=[skill("calendar-of-the-whole-week", "Meetings")],
    crowd=[skill(f"calenders{at}", "Other") for at in range(40)],
    copies=5,
    text="calen",
)
@example(
    catalogue=[skill("issue", "Opens an issue")],
    crowd=[skill("türen", "Die Türen öffnen")],
    copies=0,
    text="öffnen issue",
)
def test_more_items_lower_no_confidence_and_empty_no_answer(
    engine: Engine, catalogue: list[Item], crowd: list[Item], copies: int, text: str
) -> None:
    """Whether they are siblings, copies, or have the words of the query."""
    before, alone = engine(catalogue), search(engine(catalogue), text)
    added = [*crowd, *(copied(catalogue[at % len(catalogue)], at) for at in range(copies))]
    crowded = engine([*added, *catalogue])
    was = first_confidences(before, text, catalogue)
    now = first_confidences(crowded, text, catalogue)
    for item, one, other in zip(catalogue, was, now, strict=True):
        assert other >= one - MAX_DROP, item.id
    assert not alone or search(crowded, text)


# 3. Spelling


def spellings(parts: Sequence[str]) -> list[str]:
    """An identifier of some words in every usual way of writing."""
    camel = parts[0] + "".join(map(str.title, parts[1:]))
    joined = [
        "_".join(parts),
        "-".join(parts),
        " ".join(parts),
        camel,
        camel[:1].upper() + camel[1:],
    ]
    return [*joined, *(one.upper() for one in joined[:3]), "-".join(map(str.title, parts))]


@BOTH_ARMS
@few
@given(
    catalogue=catalogues, parts=st.lists(st.sampled_from([*VERBS, *THINGS]), min_size=1, max_size=4)
)
def test_an_identifier_finds_the_same_items_in_any_spelling(
    engine: Engine, catalogue: list[Item], parts: list[str]
) -> None:
    """In snake case, kebab case, camel case, upper case or as separate words."""
    searched = engine(catalogue)
    expected = {hit.id for hit in search(searched, " ".join(parts))}
    for text in spellings(parts):
        assert {hit.id for hit in search(searched, text)} == expected, text


@BOTH_ARMS
@few
@given(
    catalogue=catalogues,
    parts=st.lists(st.sampled_from([*THINGS, "k8s"]), min_size=2, max_size=6),
)
def test_separators_beside_words_with_digits_change_nothing(
    engine: Engine, catalogue: list[Item], parts: list[str]
) -> None:
    """``deploy-k8s-cluster`` is three words, and so is ``deploy_k8s_cluster``."""
    searched = engine(catalogue)
    found = [[hit.id for hit in search(searched, joined.join(parts))] for joined in " _-"]
    assert found[1:] == found[:1] * 2


@BOTH_ARMS
@few
@given(catalogue=catalogues, text=phrases)
def test_the_case_of_a_query_changes_nothing(
    engine: Engine, catalogue: list[Item], text: str
) -> None:
    """The items, their order and their confidences are the same."""
    searched = engine(catalogue)
    expected = [(hit.id, hit.confidence) for hit in search(searched, text.lower())]
    for other in (text, text.upper(), text.title()):
        found = [(hit.id, hit.confidence) for hit in search(searched, other)]
        assert (
            found == pytest.approx(expected)
            if not found
            else [one for one, _ in found] == [one for one, _ in expected]
        ), other


PROSE = [
    skill("paper", "Writes papers in LaTeX"),
    skill("site", "Builds pages with JavaScript"),
    skill("cells", "Loads AnnData files of single cells"),
    skill("pods", "Debugs k8s pods"),
    skill("models", "Compares gpt-4o with others"),
    skill("bread", "Bakes bread at home"),
]


@BOTH_ARMS
@pytest.mark.parametrize(
    ("typed", "name"),
    [
        *((one, "paper") for one in ("LaTeX", "latex", "LATEX", "Latex")),
        *((one, "site") for one in ("JavaScript", "javascript", "JAVASCRIPT", "java script")),
        *((one, "cells") for one in ("AnnData", "anndata", "ANNDATA", "annData", "ann data")),
        *((one, "pods") for one in ("k8s", "K8s", "K8S")),
        *((one, "models") for one in ("gpt-4o", "GPT-4o", "GPT-4O", "gpt4o", "GPT4o")),
    ],
)
def test_a_product_is_found_in_any_spelling(engine: Engine, typed: str, name: str) -> None:
    """Camel case is one word as well as several, in items and in queries."""
    assert names(search(engine(PROSE), typed)) == [name]
    lower = [skill(item.name, item.description.lower()) for item in PROSE]
    assert names(search(engine(lower), typed)) == [name]


# 4. Exact words


letters = st.text(string.ascii_lowercase, min_size=2, max_size=5)


@st.composite
def invented(draw: st.DrawFn) -> str:
    """A word that no text has: with a digit, a dot or a hyphen, or plain."""
    word = f"z{draw(letters)}q"
    form = draw(st.sampled_from(["{0}", "{0}8{1}", "{0}-{1}", "{0}-4{1}", "{0}.js", "{0}2"]))
    return str(form).format(word, draw(letters))


def placed(word: str, field: str, number: int) -> Item:
    """An item that has a word in one field."""
    name, made = f"item{number}", skill(f"item{number}", "Does it well")
    if field == "name":
        return skill(f"{word}_{name}", "Does it well")
    if field == "description":
        return skill(name, f"Does it well with {word} and more")
    if field == "tag":
        return msgspec.structs.replace(made, tags=(word,))
    if field == "heading":
        return skill(name, "Does it well", f"# How {word} works\nText.\n")
    return tool(f"s__{name}", "Does it well", input_schema={"properties": {word: {}}})


FIELDS = ["name", "description", "tag", "parameter", "heading"]
TIERS = {"name": 0, "description": 1, "tag": 1, "parameter": 2, "heading": 2}


@BOTH_ARMS
@few
@given(word=invented(), placing=st.lists(st.sampled_from(FIELDS), min_size=1, max_size=20))
@example(word="k8s", placing=FIELDS)
@example(word="gpt-4o", placing=FIELDS)
@example(word="zyx8quon", placing=FIELDS * 4)
@example(word="vaex", placing=["description"])
def test_a_word_returns_all_items_that_have_it(
    engine: Engine, word: str, placing: list[str]
) -> None:
    """Of up to twenty: names first, then descriptions and tags, then the rest."""
    holding = [placed(word, field, number) for number, field in enumerate(placing)]
    found = [hit.id for hit in search(engine([*holding, *PROSE]), word, limit=25)]
    assert {item.id for item in holding} <= {*found}
    tier = {item.id: TIERS[field] for item, field in zip(holding, placing, strict=True)}
    places = [tier[one] for one in found if one in tier]
    assert places == sorted(places)


@BOTH_ARMS
def test_similar_skills_are_each_found_by_a_word_of_their_own(engine: Engine) -> None:
    """Twenty-five skills differ in one invented word; each of these finds its skill first."""
    own = [f"zyx{at}quon" for at in range(25)]
    saved = engine(
        skill(f"skill-{at}", f"Saved one after the other, about {word}", f"Use {word}.")
        for at, word in enumerate(own)
    )
    for at, word in enumerate(own):
        assert names(search(saved, word))[:1] == [f"skill-{at}"]
        assert names(search(saved, f"how do I use {word}?"))[:1] == [f"skill-{at}"]


@BOTH_ARMS
def test_a_word_of_many_bodies_is_found(engine: Engine) -> None:
    """Twenty items have an invented word in their bodies alone."""
    crowd = [skill(f"item{at}", f"Does job {at}", f"Then zorblax it {at}.") for at in range(20)]
    assert len(search(engine([*crowd, *PROSE]), "zorblax", limit=25)) == 20


@BOTH_ARMS
@few
@given(catalogue=catalogues, text=phrases)
def test_an_answer_is_empty_only_if_no_item_covers_half_of_the_query(
    engine: Engine, catalogue: list[Item], text: str
) -> None:
    """By the rarity of the words; bodies do not count."""
    text = text.lower()
    asked = {term.stem: term.rarity for term in KeywordIndex.empty().match(text).terms}
    total = sum(asked.values())
    covers = False
    for item in catalogue:
        has = {
            term
            for field, held in fields(item)
            if field is not BODY
            for _, term in words_of(held) + wholes(held)
        }
        share = sum(asked[term] for term in asked.keys() & has)
        covers |= total > 0 and share > (MEANINGFUL_SHARE + 0.02) * total
    assert not covers or search(engine(catalogue), text)


# 5. Names


@BOTH_ARMS
def test_names_that_contain_the_typed_words_come_before_longer_ones(engine: Engine) -> None:
    """A server that repeats its name in those of its tools does not lose to one that does not."""
    tools = [
        tool("gitlab__create_issue", "Create an issue in a project"),
        tool("gitlab__create_issue_link", "Link two issues"),
        tool("gitlab__create_issue_note", "Add a note to an issue"),
        tool("gitlab__create_issue_emoji_reaction", "Add an emoji reaction to an issue"),
        tool("linear__linear_create_issue", "Create a new issue in Linear"),
        *PROSE,
    ]
    found = names(search(engine(tools), "create issue"))
    assert found[:2] == ["create_issue", "linear_create_issue"]
    assert {"create_issue_link", "create_issue_note"} <= {*found[2:]}


@BOTH_ARMS
def test_a_matched_name_hides_no_other_item(engine: Engine) -> None:
    """``read file`` shows the tool of that name and the one that does the same."""
    tools = [
        tool("files__read_file", "Read the contents of a file"),
        tool("filesystem__read", "Read a file from the file system"),
        *PROSE,
    ]
    assert names(search(engine(tools), "read file"))[:2] == ["read_file", "read"]


@BOTH_ARMS
@few
@given(catalogue=catalogues, data=st.data())
def test_the_item_whose_name_was_typed_comes_first(
    engine: Engine, catalogue: list[Item], data: st.DataObject
) -> None:
    """Whatever other items say about it, in any spelling."""
    named = data.draw(st.sampled_from(catalogue))
    typed = data.draw(st.sampled_from(spellings(named.name.split("_"))))
    assert search(engine(catalogue), typed)[0].name == named.name


# 6. Inference


@BOTH_ARMS
@few
@given(catalogue=catalogues, text=queries | st.sampled_from(["commit my changes to git"]))
def test_inferred_hits_come_last_and_hide_nothing(
    engine: Engine, catalogue: list[Item], text: str
) -> None:
    """They have no more confidence than any direct hit, and no place that one could have."""
    searched = engine([*catalogue, tool("term__run_command", "Run any command")])
    hits = search(searched, text)
    direct = [hit for hit in hits if not hit.evidence.capability]
    assert hits[: len(direct)] == direct
    for hit in hits[len(direct) :]:
        assert all(hit.confidence <= other.confidence for other in direct)
    for limit in range(1, len(direct) + 1):
        assert search(searched, text, limit) == direct[:limit]


@BOTH_ARMS
@pytest.mark.parametrize(
    "text", ["kubernetes", "docker", "pytest", "Terraform", "run a shell command", "find files"]
)
def test_a_tool_that_waits_for_a_terminal_state_is_no_shell(engine: Engine, text: str) -> None:
    """Only names and parameters show that a tool runs commands."""
    tools = [
        tool("crawler__crawl", "Start a crawl and poll until it reaches a terminal state"),
        tool("ci__wait_for_job", "Wait for a job to reach a terminal status"),
    ]
    assert search(engine(tools), text) == []
    shell = tool("Shell__run", "Run any shell command")
    inferred = [hit for hit in search(engine([*tools, shell]), text) if hit.evidence.capability]
    assert {hit.id for hit in inferred} <= {shell.id}


# 7. Actions


@BOTH_ARMS
@pytest.mark.parametrize(
    ("text", "expected", "not_first"),
    [
        ("write a note", "create_note", "forget_note"),
        ("add a new note", "create_note", "forget_note"),
        ("remove a note", "forget_note", "create_note"),
        ("show me my notes", "get_note", "forget_note"),
        ("change a note", "update_note", "forget_note"),
    ],
)
def test_the_verb_of_a_request_decides_between_tools_of_one_thing(
    engine: Engine, text: str, expected: str, not_first: str
) -> None:
    """The verbs of names and requests fall into classes of actions."""
    actions = ("create", "get", "list", "update", "forget")
    tools = [tool(f"notes__{verb}_note", "For a note") for verb in actions]
    found = names(search(engine([*tools, *PROSE]), text))
    assert found[0] == expected
    assert not_first not in found or found.index(not_first) > 0


@BOTH_ARMS
def test_the_harmless_one_of_equals_comes_first(engine: Engine) -> None:
    """By the tags that come from the annotations of tools."""
    tools = [
        tool("a__note", "The note of a customer order", tags=("destructive",), server="s"),
        tool("b__note", "Of a customer, the order note", server="s"),
        tool("c__note", "An order of the note, customer", tags=("read-only",), server="s"),
    ]
    assert [hit.id for hit in search(engine(tools), "note")] == ["c__note", "b__note", "a__note"]


# 8. Duplicates


@BOTH_ARMS
@few
@given(catalogue=catalogues, copies=st.integers(1, 5), text=queries)
def test_copies_of_an_item_are_one_hit_that_names_the_others(
    engine: Engine, catalogue: list[Item], copies: int, text: str
) -> None:
    """No item is shown twice, and none of the copies is lost."""
    first = msgspec.structs.replace(catalogue[0], description="Handles all the issues of one team")
    same = [first, *(copied(first, at) for at in range(copies))]
    hits = search(engine([*same, *catalogue[1:]]), text, limit=50, threshold=0.0)
    shown = [one for hit in hits for one in (hit.id, *hit.duplicates)]
    assert len(shown) == len({*shown})
    ids = {item.id for item in same}
    groups = [{hit.id, *hit.duplicates} for hit in hits if hit.id in ids]
    assert groups in ([], [ids])
