"""A typed name is found in every spelling, is first, and is shown at any threshold."""

# ruff: noqa: RUF001 - letters of other scripts are what these tests are of

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.names import compact_name, folded, split_name
from repertory.index.keywords.document import entry
from repertory.index.keywords.names import EXACT, FEW, FEW_BEGUN, ONE_EDIT, NameIndex
from repertory.search.answer import Hit
from repertory.search.engine import SearchEngine
from repertory.search.query import Query
from tests.support.keyword_search import keyword_engine

WORD = st.text(alphabet=string.ascii_lowercase, min_size=3, max_size=8)
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
    """A skill of that name with an unrelated id."""
    return Item(
        id=f"s/{number}", kind=Kind.SKILL, name=name, source="s", description=description or "x"
    )


def engine_of(names: list[str]) -> SearchEngine:
    """An engine on items of these names, and on others that are stuffed with them."""
    items = [skill(name, number) for number, name in enumerate(names)]
    stuffed = " ".join(f"{name} {split_name(name)}" for name in names)
    decoys = [skill(f"zq{n}", 1000 + n, f"{stuffed} {stuffed}") for n in range(3)]
    return keyword_engine(items + decoys)


def hits(engine: SearchEngine, text: str) -> list[Hit]:
    """The hits of a search at a threshold that only names reach."""
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


def is_word(typed: str, catalogue: list[str]) -> bool:
    """Whether the query is one word of some name, and so perhaps that word."""
    return any(split_name(typed) in split_name(name).split() for name in catalogue)


@settings(max_examples=30, deadline=None)
@given(CATALOGUES, st.data())
def test_case_and_separators_do_not_matter(catalogue: list[str], data: st.DataObject) -> None:
    """Upper case, any separators, camel case or no separator: it is the same name."""
    name = data.draw(st.sampled_from(catalogue))
    words = split_name(name).split()
    camel = words[0] + "".join(word.title() for word in words[1:])
    engine = engine_of(catalogue)
    joined = [separator.join(words) for separator in ("_", "-", " ", ".", "/", "")]
    for typed in (name, name.upper(), camel, *joined):
        first = hits(engine, typed)[0]
        assert (first.name, first.reason) == (name, "Exact name match")


@settings(max_examples=40, deadline=None)
@given(CATALOGUES, st.data())
def test_one_edit_anywhere_finds_the_name(catalogue: list[str], data: st.DataObject) -> None:
    """It is first, unless another name is as close to the query."""
    name = data.draw(st.sampled_from(catalogue))
    kind = data.draw(st.sampled_from(EDITS))
    place = data.draw(st.integers(0, len(name) - 1))
    typed = edited(name, kind, place, data.draw(st.sampled_from(string.ascii_lowercase)))
    first = hits(engine_of(catalogue), typed)[0].name

    def distance(other: str) -> int:
        return OSA.distance(compact_name(typed), compact_name(other))

    assert first == name or distance(first) <= distance(name) or is_word(typed, catalogue)


@settings(max_examples=40, deadline=None)
@given(CATALOGUES, st.data())
def test_a_beginning_that_few_share_finds_each_of_them(
    catalogue: list[str], data: st.DataObject
) -> None:
    """All are among the first five, however many other items contain the query."""
    name = data.draw(st.sampled_from(catalogue))
    typed = name[: data.draw(st.integers(4, len(name)))]
    key = compact_name(typed)
    begun = {other for other in catalogue if compact_name(other).startswith(key)}
    if len(key) >= 4 and len(begun) <= FEW and not is_word(typed, catalogue):
        assert begun <= {hit.name for hit in hits(engine_of(catalogue), typed)}


def names_of(names: list[str]) -> NameIndex:
    """An index of skills of these names."""
    return NameIndex([entry(skill(name, number)) for number, name in enumerate(names)])


def test_more_of_a_name_counts_more_and_many_that_begin_so_count_less() -> None:
    """A prefix that many names share is weak evidence for each of them."""
    few = names_of(["calendar_events", "other"])
    assert FEW_BEGUN < few.close("cale")[0] < few.close("calendar_ev")[0] < ONE_EDIT
    many = names_of([f"calendar_{word}" for word in ("one", "two", "day", "hour", "week", "year")])
    assert 0 < many.close("calendar")[0] < FEW_BEGUN


def test_a_word_of_names_is_not_taken_for_another_name() -> None:
    """A prefix of a name, or a word one letter from it, may be a word of other names."""
    engine = engine_of(["open_port", "porters_five_forces", "pork"])
    found = [hit.name for hit in engine.search(Query(text="port", limit=10)).hits]
    assert found[0] == "open_port"
    assert {"porters_five_forces", "pork"} <= set(found)


def test_names_with_a_prefix_rank_after_few_with_the_word() -> None:
    """They are still among the first five, as most users mean neither of the two."""
    having = [f"{word}_port" for word in ("open", "close", "scan", "list", "map", "forward", "air")]
    found = [
        hit.name
        for hit in engine_of([*having, "porters_five_forces"]).search(Query(text="port")).hits
    ]
    assert found[2] == "porters_five_forces"
    assert {*found[:2]} < {*having}


def test_a_name_as_it_is_written_leads_one_of_the_same_letters() -> None:
    """An exact spelling beats one that differs in case and separators."""
    index = names_of(["git_commit", "git-commit"])
    assert index.close("git-commit") == {0: ONE_EDIT, 1: EXACT}
    assert index.close("GIT COMMIT") == {0: EXACT, 1: EXACT}


def test_an_id_is_a_name_too() -> None:
    """The id that a result shows finds the item."""
    assert names_of(["code-review"]).close("S 0") == {0: EXACT}


def test_a_product_in_a_sentence_is_not_a_typed_name() -> None:
    """`GitHub` in a sentence is a word; `read_file` and `readFile` are names."""
    engine = engine_of(["github", "read_file"])
    assert hits(engine, "show me the stars of a GitHub repository please") == []
    for word in ("read_file", "readFile", "(read-file)"):
        assert [hit.name for hit in hits(engine, f"use {word} on it")] == ["read_file"]


def test_a_hyphenated_word_in_a_sentence_is_no_name_of_one_word() -> None:
    """`e-mail` in a sentence is a word; the skill `email` is found by its name alone."""
    engine = engine_of(["email", "setup", "pull-request"])
    assert hits(engine, "which e-mail and set-up do they use in Japan") == []
    assert hits(engine, "e-mail")[0].name == "email"
    assert hits(engine, "open a pull-request for them")[0].name == "pull-request"


@pytest.mark.parametrize("typed", ["awl", "ps", "car"])
def test_three_letters_are_found_with_low_confidence(typed: str) -> None:
    """One edit makes them another word, and too many words start with them."""
    engine = keyword_engine(map(skill, ["awk", "ls", "carousel_images"], range(3)))
    (hit,) = engine.search(Query(text=typed)).hits
    assert 0.35 <= hit.confidence < 0.9


@pytest.mark.parametrize("name", ["🚀", "++", "(╯°□°)╯"])
def test_a_name_of_signs_alone_is_found(name: str) -> None:
    """Without letters, the signs are the name."""
    assert hits(engine_of([name, "plus", "rocket"]), name)[0].name == name


def test_the_cost_of_a_name_does_not_grow_with_its_number_of_items() -> None:
    """Thousands of documents may be called `README`; only as many as needed are scored."""
    engine = keyword_engine(
        skill("README", number, f"Of project {number}") for number in range(1_000)
    )
    assert len(engine.rank(Query(text="readme", limit=10)).merged.order) < 300
    assert len(engine.search(Query(text="readme", limit=600)).hits) == 600


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
def test_accents_and_forms_of_a_letter_do_not_matter(name: str, typed: str) -> None:
    """A name in any script is the same without its accents, in any case and width."""
    assert names_of([name]).close(typed) == {0: EXACT}


def test_vowel_signs_are_letters() -> None:
    """Marks that are not accents distinguish words."""
    assert compact_name("दिल") != compact_name("दल")
    assert split_name("हिन्दी_खोज") == "हिन्दी खोज"
    assert folded("ค้นหา") == "ค้นหา"
