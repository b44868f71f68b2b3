"""The shown fields of a hit: its evidence, its section, and the skill that takes precedence."""

from collections.abc import Sequence
from typing import cast

import msgspec
import numpy as np
import pytest
from typing_extensions import override

from repertory.catalogue.item import Item
from repertory.embedding.models import Calibration
from repertory.errors import StoreError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Collection, VectorAnswer, VectorQuery
from repertory.search.answer import Hit, Term
from repertory.search.candidates import MAX_BY_WORDS
from repertory.search.engine import SearchEngine
from repertory.search.explain import explain
from repertory.search.query import Query
from tests.support.builders import no_model, skill, tool
from tests.support.hybrid_search import Points, WordCounts, hybrid_engine
from tests.support.keyword_search import keyword_engine, reader

FIRST, SECOND = "# Kneading\nKnead the dough.\n", "# Oven\nSteam makes a CRUST.\n"
BREAD = skill("bread", "Bakes loaves of flour, water and salt", FIRST + SECOND)
FILE = tool("files__fetch", "Read the contents of a file from disk")


class Unsearchable(Points):
    """Points of a store that gives whole items only."""

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        raise StoreError("The vectors are gone.")


def with_words_alone(*items: Item) -> SearchEngine:
    """An engine that answers with the words and can read whole items."""
    counts = WordCounts()
    return SearchEngine(
        keywords=KeywordIndex.empty().updated((), items),
        collection=cast("Collection", Unsearchable(items, counts)),
        embedding=lambda: counts,
        reader=reader(),
    )


def hit_of(engine: SearchEngine, text: str, name: str = "bread") -> Hit:
    """The hit of that name, at any threshold."""
    hits = engine.search(Query(text=text, threshold=0.0)).hits
    return next(hit for hit in hits if hit.name == name)


def test_the_evidence_is_what_was_measured() -> None:
    """In four digits."""
    engine = hybrid_engine([BREAD, FILE])
    query = Query(text="loaves of flour with fresh water", threshold=0.0)
    hit, found = hit_of(engine, query.text), engine.rank(query).texts[0].candidates
    names = [found.entry(place).name for place in range(len(found.rows))]
    evidence, place = hit.evidence, names.index("bread")
    measured = {
        "probability": hit.confidence**2,
        "semantic": 1 / (1 + np.exp(-found.semantic[place])),
        "cosine": found.cosine[place],
        "keyword": found.keyword[place],
    }
    for name, value in measured.items():
        shown = getattr(evidence, name)
        assert shown == pytest.approx(value, abs=2e-4), name
        assert shown == round(shown, 4) != round(shown, 3), name
    assert hit.confidence == round(hit.confidence, 4)
    assert (evidence.semantic_rank, evidence.keyword_rank) == (1, 1)
    similarity = hit_of(engine, "braed please").evidence.name
    assert similarity == round(similarity, 4) != round(similarity, 2)


def test_evidence_of_an_arm_that_did_not_answer_is_missing() -> None:
    """It is no zero."""
    of_words = hit_of(keyword_engine([BREAD]), "loaves of flour").evidence
    assert (of_words.semantic, of_words.cosine, of_words.semantic_rank) == (None, None, None)
    assert of_words.keyword_rank == 1


def test_an_item_without_a_word_of_the_query_has_no_rank_among_words() -> None:
    """Its meaning found it."""
    hit = hit_of(hybrid_engine([BREAD, FILE]), "loaves of flour", "fetch")
    assert hit.evidence.keyword_rank is None
    assert hit.evidence.keyword == 0.0


def ranks_of(text: str, items: Sequence[Item], limit: int) -> list[int | None]:
    """The ranks among words of all hits, in ascending order; the missing ones come last."""
    hits = hybrid_engine(items).search(Query(text=text, limit=limit, threshold=0.0)).hits
    return sorted((hit.evidence.keyword_rank for hit in hits), key=lambda rank: rank or 1_000)


def test_what_the_words_did_not_find_has_no_rank_among_words() -> None:
    """Beside vectors they find 20 items; the meaning alone found the others that have the words."""
    items = [skill(f"item-{at}", f"Mixes flour and {'salt ' * at}water") for at in range(50)]
    ranks = ranks_of("mixes flour with salt", items, limit=200)
    assert len(ranks) > MAX_BY_WORDS
    assert all(rank <= MAX_BY_WORDS for rank in ranks if rank is not None)
    assert None in ranks


def test_all_that_the_only_word_found_has_its_rank() -> None:
    """A word alone finds as many items as are asked for."""
    items = [skill(f"item-{at}", f"Mixes zorblax {'salt ' * at}") for at in range(60)]
    ranks = ranks_of("zorblax", items, limit=60)
    assert len(ranks) == 60
    assert None not in ranks


def test_what_was_found_beside_copies_has_its_rank() -> None:
    """They take no places of other items, so more items are found; they are before these."""
    copy = skill("same", "Mixes flour with salt")
    items = [msgspec.structs.replace(copy, id=f"s{at}/same", source=f"s{at}") for at in range(45)]
    items += [skill(f"item-{at}", f"Mixes flour and {'salt ' * at}water") for at in range(5)]
    ranks = ranks_of("mixes flour with salt", items, limit=10)
    assert len(ranks) == 6
    assert None not in ranks
    assert max(rank for rank in ranks if rank) > 45


def test_the_section_whose_meaning_is_nearest_is_named() -> None:
    """Also if the item itself has the words."""
    about = "Kneads dough, heats the oven, makes a crust with steam, and cools, cuts and serves it"
    body = f"# Kneading\n{'Knead the dough. ' * 200}\n# Oven\n{'Steam makes a crust. ' * 200}\n"
    item = skill("bread", about, body)
    assert hit_of(hybrid_engine([item]), "steam and a crust").matched_in == "# Oven"
    assert hit_of(hybrid_engine([item]), "knead that dough").matched_in == "# Kneading"


def test_a_section_is_named_if_much_of_the_match_is_in_the_body_alone() -> None:
    """Two fifths of the matched words, by rarity, in any case."""
    texts = "# One\nOf ZORBLAX.\n# Two\nOf Quuxly and vrendig.\n"
    item = skill("thing", "Makes a vrendig of a sprokket", texts)
    engine = with_words_alone(item)
    assert hit_of(engine, "use zorblax", "thing").matched_in == "# One"
    assert hit_of(engine, "use quuxly", "thing").matched_in == "# Two"
    assert hit_of(engine, "zorblax and sprokket", "thing").matched_in == "# One"
    assert hit_of(engine, "zorblax, vrendig and sprokket", "thing").matched_in == ""
    assert hit_of(engine, "a vrendig", "thing").matched_in == ""


def test_a_word_in_a_heading_counts_twice_for_its_section() -> None:
    """Of equal sections the first is named."""
    texts = "# Other\nOf quuxly.\n# ZORBLAX\nIt.\n# Both\nOf quuxly it is.\n"
    engine = with_words_alone(skill("thing", "Makes it", texts))
    assert hit_of(engine, "quuxly with zorblax", "thing").matched_in == "# ZORBLAX"
    assert hit_of(engine, "quuxly", "thing").matched_in == "# Other"
    untitled = skill("thing", "Makes it", "Of vrendig.\n# Two\nOf vrendig.\n")
    assert hit_of(with_words_alone(untitled), "vrendig", "thing").matched_in == "# Two"


def test_an_item_whose_name_was_typed_has_no_section() -> None:
    """The item itself is what was asked for."""
    item = skill("kneading", "Works it", f"# Kneading\n{'Knead. ' * 300}")
    assert hit_of(hybrid_engine([item]), "kneading then", "kneading").matched_in == "# Kneading"
    for engine in (hybrid_engine([item]), with_words_alone(item)):
        assert hit_of(engine, "kneading", "kneading").matched_in == ""


def test_the_field_of_a_word_is_read_from_the_whole_item() -> None:
    """Headings and bodies too, however long the description is."""
    engine = hybrid_engine([BREAD, skill("long", "Many words. " * 60, "Of zorblax.")])
    assert hit_of(engine, "an oven").evidence.terms == (
        Term(typed="oven", matched="oven", field="headings"),
    )
    assert hit_of(engine, "of zorblax", "long").evidence.terms == (
        Term(typed="zorblax", matched="zorblax", field="body"),
    )


def test_an_explanation_reads_bodies() -> None:
    """Each word has all fields that it occurs in."""
    item = msgspec.structs.replace(BREAD, description="Bakes bread with steam")
    words = explain(hybrid_engine([item]), Query(text="steam oven"), "bread").words
    assert [(word.typed, word.fields) for word in words] == [
        ("steam", ("description", "body")),
        ("oven", ("headings", "body")),
    ]


def test_the_kind_of_job_is_part_of_a_reason() -> None:
    """If the meaning is near, and the item serves that job too."""
    counts = WordCounts()
    counts.model = msgspec.structs.replace(counts.model, calibration=Calibration(slope=9, bias=0))
    items = [FILE, skill("notes", "Disk of my own for contents that stay here")]
    engine = SearchEngine(
        keywords=KeywordIndex.empty().updated((), items),
        collection=Points(items, counts),
        embedding=lambda: counts,
        reader=reader(),
    )
    text = "read the contents of a text file"
    assert hit_of(engine, text, "fetch").reason.startswith(
        "Semantic similarity (file operations) + keywords in description ("
    )
    assert hit_of(engine, text, "notes").reason.startswith("Semantic similarity + keywords")


def test_only_a_skill_of_the_same_name_takes_precedence() -> None:
    """Tools of one name are all called by their servers; other spellings are other skills."""
    tools = [tool("a__list", "Lists cars"), tool("b__list", "Lists ships")]
    skills = [skill("git-commit", "Commits"), skill("git_commit", "Saves changes")]
    engine = keyword_engine([*tools, *skills])
    for text in ("list", "git commit"):
        hits = engine.search(Query(text=text)).hits
        assert len(hits) >= 2
        assert {hit.shadowed_by for hit in hits} == {""}


def test_no_model_means_no_section_by_meaning() -> None:
    """The words still name one, if the item can be read."""
    points = Points([BREAD], WordCounts())
    engine = SearchEngine(
        keywords=KeywordIndex.empty().updated((), [BREAD]),
        collection=points,
        embedding=no_model,
        reader=reader(),
    )
    assert hit_of(engine, "a crust of steam").matched_in == "# Oven"


def test_a_description_that_was_cut_ends_with_an_ellipsis() -> None:
    """Between words; a shorter one is whole."""
    short, long = "Bakes loaves of bread", "Bakes " + "loaves of bread " * 40
    assert hit_of(with_words_alone(skill("bread", short)), "bread").description == short
    shown = hit_of(with_words_alone(skill("bread", long)), "bread").description
    assert 380 <= len(shown) <= 400
    assert long.startswith(shown.removesuffix("…") + " ")
    assert shown.endswith("…")
