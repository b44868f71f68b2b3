"""A typed name is found in every spelling, ranks first, and is shown at any threshold."""

# ruff: noqa: RUF001 - these tests are about letters of other scripts

import string
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.names import compact_name, folded, split_name
from repertory.catalogue.policy import Policy
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.names import (
    ALSO,
    BEGUN,
    EXACT,
    MAX_COMPLETIONS,
    ONE_EDIT,
    ONE_MORE,
    UNPREFIXED,
)
from repertory.search.answer import Hit
from repertory.search.engine import SearchEngine
from repertory.search.keyword_arm import MAX_NAMED
from repertory.search.query import Query
from repertory.search.semantic_arm import MAX_BY_MEANING
from repertory.search.similar_names import is_other
from tests.support.builders import tool
from tests.support.keyword_search import keyword_engine, row_of

# Of the known words, some differ from others by one letter.
KNOWN = ("fire", "hire", "move", "remove", "list", "last", "load", "lead", "mail", "code", "table")
WORD = st.text(string.ascii_lowercase, min_size=3, max_size=8) | st.sampled_from(KNOWN)
EDITS = ("drop", "add", "replace", "swap")


@st.composite
def names(draw: st.DrawFn) -> str:
    """A name of two to six words, in one of several styles."""
    words = draw(st.lists(WORD, min_size=2, max_size=6))
    join = draw(st.sampled_from(["_", "-", " ", "."]))
    if draw(st.booleans()):
        return words[0] + "".join(word.title() for word in words[1:])
    return join.join(words)


CATALOGUES = st.lists(names(), min_size=1, max_size=12, unique_by=compact_name)


def skill(name: str, number: int = 0, description: str = "") -> Item:
    """A skill with that name and an unrelated id."""
    return Item(
        id=f"s/{number}", kind=Kind.SKILL, name=name, source="s", description=description or "x"
    )


def engine_of(names: list[str]) -> SearchEngine:
    """An engine with items of these names, and decoys whose descriptions repeat the names."""
    items = [skill(name, number) for number, name in enumerate(names)]
    stuffed = " ".join(f"{name} {split_name(name)}" for name in names)
    decoys = [skill(f"zq{n}", 1000 + n, f"{stuffed} {stuffed}") for n in range(3)]
    return keyword_engine(items + decoys)


def hits(engine: SearchEngine, text: str) -> list[Hit]:
    """The hits of a search at a threshold that only exact or nearly exact names reach."""
    return engine.search(Query(text=text, limit=5, threshold=1.0)).hits


def edited(name: str, kind: str, place: int, letter: str) -> str:
    """A name with one edit."""
    if kind == "drop":
        return name[:place] + name[place + 1 :]
    if kind == "add":
        return name[:place] + letter + name[place:]
    if kind == "replace":
        return name[:place] + letter + name[place + 1 :]
    return name[:place] + name[place : place + 2][::-1] + name[place + 2 :]


@settings(max_examples=30)
@given(CATALOGUES, st.data())
def test_case_and_separators_do_not_matter(catalogue: list[str], data: st.DataObject) -> None:
    """A name in upper case, with other separators, or in camel case is the same name."""
    name = data.draw(st.sampled_from(catalogue))
    words = split_name(name).split()
    camel = words[0] + "".join(word.title() for word in words[1:])
    engine = engine_of(catalogue)
    joined = [separator.join(words) for separator in ("_", "-", " ", ".", "/", "")]
    for typed in (name, name.upper(), camel, *joined):
        first = hits(engine, typed)[0]
        assert (first.name, first.reason) == (name, "Exact name match")


@settings(max_examples=40)
@given(CATALOGUES, st.data())
def test_one_edit_anywhere_finds_the_name(catalogue: list[str], data: st.DataObject) -> None:
    """The name ranks first unless another name is as close to the query.

    If the edit makes another word, such as ``hire`` of ``fire``, it is found with less confidence.
    """
    name = data.draw(st.sampled_from(catalogue))
    kind = data.draw(st.sampled_from(EDITS))
    place = data.draw(st.integers(0, len(name) - 1))
    typed = edited(name, kind, place, data.draw(st.sampled_from(string.ascii_lowercase)))
    engine = engine_of(catalogue)
    if is_other(typed, name):
        assert name in {hit.name for hit in engine.search(Query(text=typed, limit=15)).hits}
        return
    found = [hit.name for hit in hits(engine, typed)]
    assert name in found

    def distance(other: str) -> int:
        return OSA.distance(compact_name(typed), compact_name(other))

    assert found[0] == name or distance(found[0]) <= distance(name)


@settings(max_examples=40)
@given(CATALOGUES, st.data())
def test_a_prefix_finds_every_name_that_begins_with_it(
    catalogue: list[str], data: st.DataObject
) -> None:
    """This holds at the default threshold, although other items contain the query."""
    name = data.draw(st.sampled_from(catalogue))
    typed = name[: data.draw(st.integers(3, len(name)))]
    key = compact_name(typed)
    begun = {other for other in catalogue if len(key) >= 3 and compact_name(other).startswith(key)}
    assert begun <= {
        hit.name for hit in engine_of(catalogue).search(Query(text=typed, limit=15)).hits
    }


class Names:
    """A name index that identifies items by position instead of by row."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._index = KeywordIndex.empty().updated((), items)
        self._place = {row_of(self._index, item.id): at for at, item in enumerate(items)}

    def close(self, typed: str) -> dict[int, float]:
        """The result of ``NameIndex.close`` by position."""
        return {self._place[row]: like for row, like in self._index.names.close(typed).items()}


def names_of(names: list[str]) -> Names:
    """A name index of skills with these names."""
    return Names([skill(name, number) for number, name in enumerate(names)])


def test_a_longer_prefix_of_a_name_counts_more() -> None:
    """A prefix counts by its share of the name, regardless of other names."""
    few = names_of(["calendar_events", "other"])
    assert few.close("cal") == {0: BEGUN * 3 / 14}
    assert few.close("calendar_ev") == {0: BEGUN * 10 / 14}
    assert few.close("ca") == {}
    many = names_of(["calendar_events", *(f"calendar_{word}" for word in ("one", "two", "week"))])
    assert many.close("calendar_ev") == {0: BEGUN * 10 / 14}


def test_the_shortest_names_are_completed() -> None:
    """A prefix of many names finds a fixed number of them."""
    long_first = names_of([f"port_{'x' * number}" for number in range(MAX_COMPLETIONS + 5, 0, -1)])
    assert {*long_first.close("port")} == {*range(5, MAX_COMPLETIONS + 5)}


def test_two_letters_of_another_script_are_completed() -> None:
    """They identify a name better than two ASCII letters."""
    index = names_of(["файл_прочитать", "fa"])
    assert [*index.close("фа")] == [0]
    assert index.close("ф") == {}


def test_a_name_may_be_typed_without_the_words_of_its_server() -> None:
    """Servers repeat their name in the names of their tools; the whole name counts more."""
    items = [
        tool("linear__linear_create_issue"),
        tool("gitlab__create_issue"),
        tool("other__linear_create_issue"),
    ]
    assert Names(items).close("create issue") == {0: UNPREFIXED, 1: EXACT}
    assert Names(items).close("linear create issue") == {0: EXACT, 2: EXACT}
    assert Names([tool("linear__linear")]).close("") == {}


def test_an_alias_that_is_another_items_name_counts_less() -> None:
    """The item with that name ranks first; an alias without a namesake is an exact match."""
    items = [
        Item(id="s/1", kind=Kind.SKILL, name="deploy", source="s"),
        Item(
            id="s/2",
            kind=Kind.SKILL,
            name="fly",
            source="s",
            policy=Policy(aliases=("deploy", "take_off", "fly")),
        ),
    ]
    index = Names(items)
    assert index.close("deploy") == {0: EXACT, 1: ALSO}
    assert index.close("take off") == {1: EXACT}
    assert index.close("fly") == {1: EXACT}
    assert index.close("s/2") == {1: EXACT}


def test_a_word_that_occurs_in_names_is_not_treated_as_a_misspelt_name() -> None:
    """A name with the whole word ranks before names that begin with it or differ by one letter."""
    engine = engine_of(["open_port", "porters_five_forces", "pork"])
    found = [hit.name for hit in engine.search(Query(text="port", limit=10)).hits]
    assert found[0] == "open_port"
    assert {"porters_five_forces", "pork"} <= set(found)


def test_an_item_with_a_common_word_ranks_before_a_similar_name() -> None:
    """A name that differs by one letter from the word comes after it."""
    engine = keyword_engine([skill("mail", 1, "Send letters"), skill("genoa", 2, "The front sail")])
    found = [hit.name for hit in engine.search(Query(text="sail", limit=10, threshold=0.0)).hits]
    assert found == ["genoa", "mail"]


@pytest.mark.parametrize("typed", ["form 1041", "form-1041", "form1042", "v3"])
def test_a_different_number_is_not_a_misspelling(typed: str) -> None:
    """This applies to numbers in names with and without separators."""
    index = names_of(["form-1040", "v2"])
    assert index.close(typed) == {}
    assert index.close("forn 1040") == {0: ONE_EDIT}


@pytest.mark.parametrize("typed", ["search_c", "search-c", "search c", "SEARCH_C "])
def test_a_letter_that_begins_a_new_word_is_not_an_edit(typed: str) -> None:
    """The user is typing the next word of a longer name."""
    index = names_of(["search", "search_code"])
    assert index.close(typed) == {1: BEGUN * 7 / 10}
    assert index.close("searchc") == {0: ONE_EDIT, 1: BEGUN * 7 / 10}


@pytest.mark.parametrize(("typed", "name"), [("plan", "plane"), ("jir", "jira"), ("sta", "star")])
def test_a_name_without_its_last_letter_is_found_first(typed: str, name: str) -> None:
    """It ranks before longer names, whether or not the typed text is a word."""
    engine = keyword_engine([skill(name, 1), skill(f"{name}tarium", 2)])
    found = engine.search(Query(text=typed, limit=2, threshold=0.0)).hits
    assert [hit.name for hit in found] == [name, f"{name}tarium"]
    assert found[0].confidence >= 0.66


def test_names_that_begin_with_a_word_rank_after_names_that_have_it() -> None:
    """A whole word is stronger evidence than a prefix; both are shown."""
    having = {f"{word}_port" for word in ("open", "close", "scan", "list", "map", "forward", "air")}
    engine = engine_of([*having, "porters_five_forces"])
    found = [hit.name for hit in engine.search(Query(text="port", limit=11)).hits]
    assert {*found[:7]} == having
    assert "porters_five_forces" in found[7:]


def test_an_exact_spelling_counts_more_than_an_equivalent_one() -> None:
    """Equivalent spellings differ in case and separators."""
    index = names_of(["git_commit", "git-commit"])
    assert index.close("git-commit") == {0: ALSO, 1: EXACT}
    assert index.close("GIT COMMIT") == {0: EXACT, 1: EXACT}


def test_an_id_counts_as_a_name() -> None:
    """An id that a result shows finds its item, with any separators."""
    assert names_of(["code-review"]).close("S 0") == {0: EXACT}
    index = Names([tool("s__one-two-three-four-five", name="other")])
    assert index.close("s one two three four five") == {0: EXACT}


def test_the_shortest_name_of_an_item_counts_if_several_have_a_prefix() -> None:
    """A longer alias with the same prefix does not lower the similarity."""
    policy = Policy(aliases=("calendar_events",))
    index = Names([tool("s__calxyz", policy=policy)])
    assert index.close("cal") == {0: BEGUN * 3 / 6}


def test_a_name_of_three_characters_does_not_count_within_a_sentence() -> None:
    """``i-o`` must be the whole query; four characters are enough within a sentence."""
    engine = engine_of(["i-o", "i-os"])
    assert hits(engine, "i-o")[0].name == "i-o"
    assert hits(engine, "how is i-o done in a browser") == []
    assert [hit.name for hit in hits(engine, "how is i-os done in a browser")] == ["i-os"]


def test_the_typed_one_of_two_spellings_ranks_first() -> None:
    """Both items are shown."""
    described = {"git_commit": "Commits", "git-commit": "Saves changes"}
    engine = keyword_engine(
        skill(name, number, text) for number, (name, text) in enumerate(described.items())
    )
    for typed, other in (("git-commit", "git_commit"), ("git_commit", "git-commit")):
        assert [hit.name for hit in hits(engine, f" {typed} ")] == [typed, other]


def test_an_alias_is_compared_with_a_misspelt_query_like_a_name() -> None:
    """An alias that is two edits away is part of the evidence."""
    alias = Policy(aliases=("resize-images",))
    items = [tool("a__shrink", "x", policy=alias), tool("b__other", "x")]
    first = keyword_engine(items).search(Query(text="resise imagess", threshold=0.0)).hits[0]
    assert (first.name, first.reason) == (
        "shrink",
        "Fuzzy alias match (resise imagess → resize-images)",
    )
    assert first.evidence.name > 0.8


@pytest.mark.parametrize(
    ("name", "typed", "is_compared"),
    [
        ("resizeimages", "resiseimagess", True),
        ("resize-all-my-images", "resise all my imagess", True),
        ("resize-all-my-big-images", "resise all my big imagess", False),
    ],
)
def test_a_query_of_few_words_is_compared_with_names(
    name: str, typed: str, is_compared: bool
) -> None:
    """A name may be two edits away; a query of more words is a sentence."""
    engine = keyword_engine([skill(name), skill("other", 1)])
    task = engine.rank(Query(text=typed, threshold=0.0), also=[0])
    similarity = float(task.texts[0].candidates.similarity[0])
    assert similarity > 0.8 if is_compared else similarity == 0.0


def test_a_product_in_a_sentence_is_not_a_typed_name() -> None:
    """`GitHub` in a sentence is a word; `read_file` and `readFile` are names."""
    engine = engine_of(["github", "read_file"])
    assert hits(engine, "show me the stars of a GitHub repository please") == []
    for word in ("read_file", "readFile", "(read-file)"):
        assert [hit.name for hit in hits(engine, f"use {word} on it")] == ["read_file"]
        assert [hit.name for hit in hits(engine, f"use {word}")] == ["read_file"]
    assert hits(engine_of(["git-hub"]), "show me the stars of github please") == []


def test_a_hyphenated_word_in_a_sentence_is_not_a_name_of_one_word() -> None:
    """`e-mail` in a sentence is a word; it finds the skill `email` only as the whole query."""
    engine = engine_of(["email", "setup", "pull-request"])
    assert hits(engine, "which e-mail and set-up do they use in Japan") == []
    assert hits(engine, "e-mail")[0].name == "email"
    assert hits(engine, "open a pull-request for them")[0].name == "pull-request"


@pytest.mark.parametrize("typed", ["awl", "ps", "car"])
def test_three_letters_are_found_with_low_confidence(typed: str) -> None:
    """One edit makes them another word, and too many words begin with them."""
    engine = keyword_engine(map(skill, ["awk", "ls", "carousel_images"], range(3)))
    (hit,) = engine.search(Query(text=typed)).hits
    assert 0.35 <= hit.confidence < 0.9


@pytest.mark.parametrize("name", ["🚀", "++", "(╯°□°)╯"])
def test_a_name_without_letters_is_found(name: str) -> None:
    """Its symbols are the name."""
    assert hits(engine_of([name, "plus", "rocket"]), name)[0].name == name


def test_the_cost_of_a_name_does_not_grow_with_its_number_of_items() -> None:
    """Thousands of documents may be called `README`; the number of scored ones is bounded."""
    engine = keyword_engine(
        skill("README", number, f"Of project {number}") for number in range(1_000)
    )
    assert len(engine.search(Query(text="readme", limit=600)).hits) == MAX_NAMED
    found = engine.rank(Query(text="readme", limit=10)).merged.order
    assert len(found) < MAX_NAMED + MAX_BY_MEANING


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("straßenkarte_öffnen", "STRASSENKARTE OFFNEN"),
        ("créer-étiquette", "creer etiquette"),
        ("ışık_aç", "IŞIK AÇ"),
        ("İstanbul_haritası", "istanbul haritasi"),
        ("подъём_файла", "подъем-файла"),
        ("αναζήτηση_αρχείων", "ΑΝΑΖΗΤΗΣΗ ΑΡΧΕΙΩΝ"),
        ("مِلَفّات", "ملفات"),
        ("ファイル検索", "ﾌｧｲﾙ 検索"),
        ("fullwidth", "ｆｕｌｌｗｉｄｔｈ"),
    ],
)
def test_accents_case_and_width_do_not_matter(name: str, typed: str) -> None:
    """This applies to names in any script."""
    assert names_of([name]).close(typed) == {0: EXACT}


def test_vowel_signs_are_letters() -> None:
    """Marks other than accents distinguish words."""
    assert compact_name("दिल") != compact_name("दल")
    assert split_name("हिन्दी_खोज") == "हिन्दी खोज"
    assert folded("ค้นหา") == "ค้นหา"


WORDS = st.lists(st.sampled_from(["C++", "c#", "F#", "My", "style", "17", "g++"]), min_size=1)


@given(WORDS, st.sampled_from(["_", "-", " ", "/", "."]), st.sampled_from(["_", "-", " ", ": "]))
def test_compact_names_do_not_depend_on_separators_and_are_stable(
    words: list[str], one: str, other: str
) -> None:
    """This includes names of programming languages with a sign, such as C++."""
    key = compact_name(one.join(words))
    assert key == compact_name(other.join(words).upper()) == compact_name(key)


def test_programming_languages_with_a_sign_are_not_misspellings_of_each_other() -> None:
    """C# is different from C, F# and C++."""
    names = ["C", "F#", "C++", "C++ style"]
    engine = keyword_engine(skill(name, number) for number, name in enumerate(names))

    def sure(text: str) -> list[str]:
        return [hit.name for hit in hits(engine, text) if hit.confidence > 0.9]

    assert sure("C#") == []
    assert sure("C++") == ["C++"]
    assert sure("C++_style") == ["C++ style"]


@pytest.mark.parametrize("typed", ["mcp__kube__drain_node", "MCP__kube__drain_node"])
def test_a_tool_is_found_by_its_name_in_an_agent_host(typed: str) -> None:
    """Hosts write the names of MCP tools with a prefix."""
    drain = tool("kube__drain_node", "Move all pods away", server="kube")
    index = KeywordIndex.empty().updated((), [drain, tool("kube__uncordon_node", server="kube")])
    assert _close(index, typed) == {drain.id: EXACT}


def test_a_name_may_contain_the_prefix_of_an_agent_host() -> None:
    """Such a name does not hide the tool whose name in a host is the same."""
    name = "mcp__kube__drain_node"
    listed = tool("listed", "Move all pods away", name=name, server="")
    index = KeywordIndex.empty().updated((), [listed, tool("x__kube_drain_nodes")])
    assert [index.entry(row).id for row in index.names.exact(name)] == [listed.id]
    assert _close(index, name)[listed.id] == EXACT
    both = index.updated((), [tool("kube__drain_node", server="kube"), tool("kube-drain-node")])
    assert _close(both, name) == {
        "listed": EXACT,
        "kube__drain_node": EXACT,
        "kube-drain-node": ALSO,
        "x__kube_drain_nodes": ONE_MORE,
    }


def test_only_the_words_of_short_names_are_cached() -> None:
    """A long-running process would otherwise hold thousands of long queries."""
    name, query = "create_issue", "create issue " * 100
    assert split_name(name) is split_name(name)
    assert split_name(query) is not split_name(query)


def _close(index: KeywordIndex, typed: str) -> dict[str, float]:
    """The items whose names are similar to a typed one, with their similarity."""
    return {index.entry(row).id: like for row, like in index.names.close(typed).items()}
