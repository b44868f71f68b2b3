"""The fields of a hit: its evidence, its section, and the skill that takes precedence."""

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
from repertory.search.engine import SearchEngine
from repertory.search.explain import explain
from repertory.search.keyword_arm import MAX_BY_WORDS
from repertory.search.query import Query
from tests.support.builders import no_model, skill, tool
from tests.support.hybrid_search import Points, WordCounts, hybrid_engine
from tests.support.keyword_search import keyword_engine, reader

FIRST, SECOND = "# Kneading\nKnead the dough.\n", "# Oven\nSteam makes a CRUST.\n"
BREAD = skill("bread", "Bakes loaves of flour, water and salt", FIRST + SECOND)
FILE = tool("files__fetch", "Read the contents of a file from disk")


class Unsearchable(Points):
    """Points of a store that can read whole items, but fails every vector query."""

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        raise StoreError("The vectors are gone.")


def with_words_alone(*items: Item) -> SearchEngine:
    """An engine without vectors that can read whole items."""
    counts = WordCounts()
    return SearchEngine(
        keywords=KeywordIndex.empty().updated((), items),
        collection=cast("Collection", Unsearchable(items, counts)),
        embedding=lambda: counts,
        reader=reader(),
    )


def hit_of(engine: SearchEngine, text: str, name: str = "bread") -> Hit:
    """The hit with this name, at any threshold."""
    hits = engine.search(Query(text=text, threshold=0.0)).hits
    return next(hit for hit in hits if hit.name == name)


def test_the_evidence_has_the_measured_values() -> None:
    """The values are rounded to four digits."""
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
    """Missing values are None, not zero."""
    of_words = hit_of(keyword_engine([BREAD]), "loaves of flour").evidence
    assert (of_words.semantic, of_words.cosine, of_words.semantic_rank) == (None, None, None)
    assert of_words.keyword_rank == 1


def test_an_item_without_a_word_of_the_query_has_no_rank_among_words() -> None:
    """It was found by its meaning."""
    hit = hit_of(hybrid_engine([BREAD, FILE]), "loaves of flour", "fetch")
    assert hit.evidence.keyword_rank is None
    assert hit.evidence.keyword == 0.0


def ranks_of(text: str, items: Sequence[Item], limit: int) -> list[int | None]:
    """The ranks by words of all hits, ascending; missing ranks come last."""
    hits = hybrid_engine(items).search(Query(text=text, limit=limit, threshold=0.0)).hits
    return sorted((hit.evidence.keyword_rank for hit in hits), key=lambda rank: rank or 1_000)


def test_items_found_only_by_meaning_have_no_rank_among_words() -> None:
    """Beside vectors, words find only 20 items, although others have the words, too."""
    items = [skill(f"item-{at}", f"Mixes flour and {'salt ' * at}water") for at in range(50)]
    ranks = ranks_of("mixes flour with salt", items, limit=200)
    assert len(ranks) > MAX_BY_WORDS
    assert all(rank <= MAX_BY_WORDS for rank in ranks if rank is not None)
    assert None in ranks


def test_all_items_with_the_only_word_have_a_rank() -> None:
    """A query of one word finds by words as many items as are asked for."""
    items = [skill(f"item-{at}", f"Mixes zorblax {'salt ' * at}") for at in range(60)]
    ranks = ranks_of("zorblax", items, limit=60)
    assert len(ranks) == 60
    assert None not in ranks


def test_items_ranked_after_duplicates_have_a_rank() -> None:
    """Duplicates do not count towards the limit, so the ranks of other items can be higher."""
    copy = skill("same", "Mixes flour with salt")
    items = [msgspec.structs.replace(copy, id=f"s{at}/same", source=f"s{at}") for at in range(45)]
    items += [skill(f"item-{at}", f"Mixes flour and {'salt ' * at}water") for at in range(5)]
    ranks = ranks_of("mixes flour with salt", items, limit=10)
    assert len(ranks) == 6
    assert None not in ranks
    assert max(rank for rank in ranks if rank) > 45


def test_the_section_with_the_nearest_meaning_is_named() -> None:
    """It is named even if the item's description has the words."""
    about = "Kneads dough, heats the oven, makes a crust with steam, and cools, cuts and serves it"
    body = f"# Kneading\n{'Knead the dough. ' * 200}\n# Oven\n{'Steam makes a crust. ' * 200}\n"
    item = skill("bread", about, body)
    assert hit_of(hybrid_engine([item]), "steam and a crust").matched_in == "# Oven"
    assert hit_of(hybrid_engine([item]), "knead that dough").matched_in == "# Kneading"


def test_a_section_is_named_if_much_of_the_match_is_in_the_body_alone() -> None:
    """Two fifths of the matched words, weighed by rarity, must be in the body only."""
    texts = "# One\nOf ZORBLAX.\n# Two\nOf Quuxly and vrendig.\n"
    item = skill("thing", "Makes a vrendig of a sprokket", texts)
    engine = with_words_alone(item)
    assert hit_of(engine, "use zorblax", "thing").matched_in == "# One"
    assert hit_of(engine, "use quuxly", "thing").matched_in == "# Two"
    assert hit_of(engine, "zorblax and sprokket", "thing").matched_in == "# One"
    assert hit_of(engine, "zorblax, vrendig and sprokket", "thing").matched_in == ""
    assert hit_of(engine, "a vrendig", "thing").matched_in == ""


def test_a_word_in_a_heading_counts_twice_for_its_section() -> None:
    """Of equal sections, the first with a heading is named."""
    texts = "# Other\nOf quuxly.\n# ZORBLAX\nIt.\n# Both\nOf quuxly it is.\n"
    engine = with_words_alone(skill("thing", "Makes it", texts))
    assert hit_of(engine, "quuxly with zorblax", "thing").matched_in == "# ZORBLAX"
    assert hit_of(engine, "quuxly", "thing").matched_in == "# Other"
    untitled = skill("thing", "Makes it", "Of vrendig.\n# Two\nOf vrendig.\n")
    assert hit_of(with_words_alone(untitled), "vrendig", "thing").matched_in == "# Two"


def test_the_section_with_the_typed_identifier_is_named() -> None:
    """Another section may have more of its parts, the nearer meaning, or a longer identifier."""
    body = (
        "# Sizes\nThe max size of a cache is MAX_CACHE_SIZE_KB.\n# Use\nSet MAX_CACHE_SIZE first.\n"
    )
    engine = hybrid_engine([skill("tuning", "Makes things faster", body), FILE])
    hit = hit_of(engine, "max_cache_size", "tuning")
    assert hit.matched_in == "# Use"
    assert hit.reason == "Keywords (max_cache_size), in “Use”"
    assert hit.evidence.terms == (
        Term(typed="max_cache_size", matched="max_cache_size", field="body"),
    )


def test_an_item_whose_name_was_typed_has_no_section() -> None:
    """The query asks for the item itself."""
    item = skill("kneading", "Works it", f"# Kneading\n{'Knead. ' * 300}")
    assert hit_of(hybrid_engine([item]), "kneading then", "kneading").matched_in == "# Kneading"
    for engine in (hybrid_engine([item]), with_words_alone(item)):
        assert hit_of(engine, "kneading", "kneading").matched_in == ""


def test_the_field_of_a_word_is_read_from_the_whole_item() -> None:
    """Headings and bodies are searched for the word, too, even after a long description."""
    engine = hybrid_engine([BREAD, skill("long", "Many words. " * 60, "Of zorblax.")])
    assert hit_of(engine, "an oven").evidence.terms == (
        Term(typed="oven", matched="oven", field="headings"),
    )
    assert hit_of(engine, "of zorblax", "long").evidence.terms == (
        Term(typed="zorblax", matched="zorblax", field="body"),
    )


def test_an_explanation_reads_bodies() -> None:
    """Each word has all fields in which it occurs."""
    item = msgspec.structs.replace(BREAD, description="Bakes bread with steam")
    words = explain(hybrid_engine([item]), Query(text="steam oven"), "bread").words
    assert [(word.typed, word.fields) for word in words] == [
        ("steam", ("description", "body")),
        ("oven", ("headings", "body")),
    ]


def test_a_shared_capability_is_part_of_a_reason() -> None:
    """The meaning must be near, and both query and item must have the capability."""
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


def test_words_outside_the_section_of_the_nearest_meaning_are_named() -> None:
    """The reason says that the section was found by its meaning, and where the words are."""
    counts = WordCounts()
    counts.model = msgspec.structs.replace(counts.model, calibration=Calibration(slope=9, bias=0))
    about = "Looks after " + ", ".join(f"thing{number}" for number in range(60))
    items = [skill("museum-guide", about, "# Loans\n" + "Crates go out and come back. " * 60)]
    engine = SearchEngine(
        keywords=KeywordIndex.empty().updated((), items),
        collection=Points(items, counts),
        embedding=lambda: counts,
        reader=reader(),
    )
    hit = hit_of(engine, "open the museum door", "museum-guide")
    assert hit.reason == "Semantic similarity, in “Loans” + keywords in name (museum)"
    assert hit.matched_in == "# Loans"


def test_only_a_skill_of_the_same_name_takes_precedence() -> None:
    """Tools of the same name have different servers, and other spellings are other skills."""
    tools = [tool("a__list", "Lists cars"), tool("b__list", "Lists ships")]
    skills = [skill("git-commit", "Commits"), skill("git_commit", "Saves changes")]
    engine = keyword_engine([*tools, *skills])
    for text in ("list", "git commit"):
        hits = engine.search(Query(text=text)).hits
        assert len(hits) >= 2
        assert {hit.shadowed_by for hit in hits} == {""}


def test_no_model_means_no_section_by_meaning() -> None:
    """Words can still name a section, if the item can be read."""
    points = Points([BREAD], WordCounts())
    engine = SearchEngine(
        keywords=KeywordIndex.empty().updated((), [BREAD]),
        collection=points,
        embedding=no_model,
        reader=reader(),
    )
    assert hit_of(engine, "a crust of steam").matched_in == "# Oven"


def test_a_shortened_description_ends_with_an_ellipsis() -> None:
    """It is cut between words; a short description stays complete."""
    short, long = "Bakes loaves of bread", "Bakes " + "loaves of bread " * 40
    assert hit_of(with_words_alone(skill("bread", short)), "bread").description == short
    shown = hit_of(with_words_alone(skill("bread", long)), "bread").description
    assert 380 <= len(shown) <= 400
    assert long.startswith(shown.removesuffix("…") + " ")
    assert shown.endswith("…")
