"""Laws of words: any spelling finds the same items, and a word finds all items that have it."""

import string

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from repertory.catalogue.item import Item
from repertory.index.keywords.document import BODY, fields
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.tokens import wholes
from repertory.index.keywords.tokens import words as words_of
from repertory.search.confidence import MEANINGFUL_SHARE
from tests.support.builders import skill, tool
from tests.support.search_laws import (
    BOTH_ARMS,
    PROSE,
    THINGS,
    VERBS,
    Engine,
    catalogues,
    few,
    names,
    phrases,
    search,
    spellings,
)

# Spelling


@BOTH_ARMS
@few
@given(
    catalogue=catalogues, parts=st.lists(st.sampled_from([*VERBS, *THINGS]), min_size=1, max_size=4)
)
def test_an_identifier_finds_the_same_items_in_any_spelling(
    engine: Engine, catalogue: list[Item], parts: list[str]
) -> None:
    """Snake case, kebab case, camel case, upper case and separate words are equal."""
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
def test_separators_next_to_words_with_digits_change_nothing(
    engine: Engine, catalogue: list[Item], parts: list[str]
) -> None:
    """``deploy-k8s-cluster`` and ``deploy_k8s_cluster`` are both three words."""
    searched = engine(catalogue)
    found = [[hit.id for hit in search(searched, joined.join(parts))] for joined in " _-"]
    assert found[1:] == found[:1] * 2


@BOTH_ARMS
@few
@given(catalogue=catalogues, text=phrases)
@example(
    catalogue=[tool("beta__update_command", "Runs it")],
    text="LaTeX file gpt-4o invoice create command",
)
def test_the_case_of_a_query_changes_nothing(
    engine: Engine, catalogue: list[Item], text: str
) -> None:
    """The items, their order and their confidences are the same."""
    searched = engine(catalogue)
    expected = search(searched, text.lower())
    for other in (text, text.upper(), text.title()):
        found = search(searched, other)
        assert [hit.id for hit in found] == [hit.id for hit in expected], other
        assert [hit.confidence for hit in found] == pytest.approx(
            [hit.confidence for hit in expected], abs=1e-3
        ), other


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
    """Camel case counts as one word and as several, in items and in queries."""
    assert names(search(engine(PROSE), typed)) == [name]
    lower = [skill(item.name, item.description.lower()) for item in PROSE]
    assert names(search(engine(lower), typed)) == [name]


# Exact words


letters = st.text(string.ascii_lowercase, min_size=2, max_size=5)


@st.composite
def invented(draw: st.DrawFn) -> str:
    """A word that occurs in no text: plain, or with a digit, a dot or a hyphen."""
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
    """Names come first, then descriptions and tags, then other fields; up to 20 items have it."""
    holding = [placed(word, field, number) for number, field in enumerate(placing)]
    found = [hit.id for hit in search(engine([*holding, *PROSE]), word, limit=25)]
    assert {item.id for item in holding} <= {*found}
    tier = {item.id: TIERS[field] for item, field in zip(holding, placing, strict=True)}
    places = [tier[one] for one in found if one in tier]
    assert places == sorted(places)


@BOTH_ARMS
def test_an_identifier_is_found_among_many_items_with_its_words(engine: Engine) -> None:
    """It stands whole only in a body, while 60 other items have its parts in better fields."""
    crowd = [skill(f"context-{at}", f"Creates a context of kind {at}") for at in range(60)]
    hooks = skill("hooks", "Shares what parts of a page need", "Call createContext first.")
    for asked in ("createContext", "create_context"):
        assert "hooks" in names(search(engine([*crowd, hooks]), asked, limit=100))


@BOTH_ARMS
def test_similar_skills_are_each_found_by_their_own_word(engine: Engine) -> None:
    """Twenty-five skills differ in one invented word; each word finds its skill first."""
    own = [f"zyx{at}quon" for at in range(25)]
    saved = engine(
        skill(f"skill-{at}", f"Saved one after the other, about {word}", f"Use {word}.")
        for at, word in enumerate(own)
    )
    for at, word in enumerate(own):
        assert names(search(saved, word))[:1] == [f"skill-{at}"]
        assert names(search(saved, f"how do I use {word}?"))[:1] == [f"skill-{at}"]


@BOTH_ARMS
def test_the_number_of_a_version_is_a_word(engine: Engine) -> None:
    """Its parts are in the numbers of other versions, too."""
    numbers = ["5.5", "5.1", "2.5", "55", "1.55", "5.6"]
    notes = [skill(f"notes-{at}", f"What is new in {at}", f"Changed in {at}.1.") for at in numbers]
    found = search(engine(notes), "what changed in 5.5", limit=9)
    assert names(found)[:1] == ["notes-5.5"]
    for typed in ("5.5", "v5.5", "5.5.1"):
        assert names(search(engine(notes), typed))[:1] == ["notes-5.5"]


@BOTH_ARMS
def test_a_word_of_many_bodies_is_found(engine: Engine) -> None:
    """All twenty items that have an invented word only in their bodies are found."""
    crowd = [skill(f"item{at}", f"Does job {at}", f"Then zorblax it {at}.") for at in range(20)]
    assert len(search(engine([*crowd, *PROSE]), "zorblax", limit=25)) == 20


@BOTH_ARMS
@few
@given(catalogue=catalogues, text=phrases)
def test_an_answer_is_empty_only_if_no_item_covers_enough_of_the_query(
    engine: Engine, catalogue: list[Item], text: str
) -> None:
    """The share is weighted by the rarity of words, and bodies do not count."""
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
