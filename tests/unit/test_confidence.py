"""A confidence depends on one query and one item; matching words set its minimum."""

import json
import math
from collections.abc import Sequence
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repertory.catalogue.item import Item
from repertory.index.keywords.background import rarity
from repertory.index.keywords.tokens import term_of
from repertory.search.answer import Mode
from repertory.search.candidates import Candidates
from repertory.search.confidence import (
    ADDED,
    ALL_ANYWHERE,
    ALL_IN_DESCRIPTION,
    ALL_IN_NAME,
    AS_TYPED,
    CORRECTED,
    CORRECTED_IN_NAME,
    CORRECTED_IN_REST,
    IDENTIFIER,
    IN_BODY,
    IN_DESCRIPTION,
    IN_NAME,
    IN_REST,
    ITS_PARTS,
    MAX_UNNAMED,
    MEANINGFUL,
    MISSPELT,
    SHORT_IDENTIFIER,
    TYPED,
    TYPED_ALSO,
    UNUSUAL_IN_BODY,
    WITHOUT_THE_WORD,
    confidences,
    probability,
)
from repertory.search.engine import SearchEngine
from repertory.search.evidence import (
    BESIDE_VECTORS,
    MAX_RARITY,
    EvidenceWeights,
    evidence_of_words,
    likeness,
    log_odds_of_words,
)
from repertory.search.query import Query
from repertory.search.similar_names import MIN_SIMILARITY
from repertory.values import Weights
from tests.support.builders import skill, tool
from tests.support.keyword_search import keyword_engine, row_of

ROUNDING = 1e-3
ROOT = Path(__file__).parents[2]
Range = tuple[float, float]


def rows(engine: SearchEngine) -> list[int]:
    """The rows of all items."""
    found: list[int] = engine.keywords.all_rows().tolist()
    return found


def confidence(text: str, item: Item, *others: Item, **weights: float) -> float:
    """The confidence of an item for a query by words alone, in a catalogue with other items."""
    engine = keyword_engine([item, *others])
    row = row_of(engine.keywords, item.id)
    task = engine.rank(Query(text=text, weights=Weights(**weights)), also=[row])
    return task.merged.confidence[row]


def least_confidence(text: str, item: Item) -> float:
    """The confidence of an item whose meaning is as far from the query as possible."""
    found = keyword_engine([item]).rank(Query(text=text), also=[0]).texts[0].candidates
    return float(confidences(with_odds(found, [-100.0]))[0])


def with_odds(found: Candidates, odds: Sequence[float]) -> Candidates:
    """The candidates as if the semantic arm had found them with these log odds."""
    semantic = np.array(odds, np.float32)
    return msgspec.structs.replace(found, mode=Mode.HYBRID, semantic=semantic)


def is_within(value: float, bounds: Range) -> bool:
    """Whether a value is in a range, except for rounding."""
    return bounds[0] - ROUNDING <= value <= bounds[1] + ROUNDING


SCHEMA = {"properties": {"zorblax": {"description": "the quuxly of it"}}}
BY_FIELD: list[tuple[Item, Range]] = [
    (skill("make_zorblax", "Makes things"), IN_NAME),
    (tool("srv__maker", "Makes things out of zorblax"), IN_DESCRIPTION),
    (tool("srv__maker", "Makes things", tags=("zorblax",)), IN_DESCRIPTION),
    (tool("srv__drop-zorblax", "Removes it"), IN_DESCRIPTION),
    (tool("srv__maker", "Makes things", input_schema=SCHEMA), IN_REST),
    (tool("zorblax__maker", "Makes things"), IN_REST),
    (skill("maker", "Makes things", "# About zorblax\nText.\n"), IN_REST),
    (skill("maker", "Makes things", "# About\nA text of zorblax.\n"), UNUSUAL_IN_BODY),
    (skill("zorblay_maker", "Makes things"), CORRECTED_IN_NAME),
    (tool("srv__maker", "Makes things out of zorblay"), CORRECTED),
    (tool("zorblay__maker", "Makes things"), CORRECTED_IN_REST),
    (skill("maker", "Makes things", "# About zorblay\nText.\n"), CORRECTED_IN_REST),
    (skill("maker", "Makes things", "# About\nA text of zorblay.\n"), WITHOUT_THE_WORD),
    (tool("srv__maker", "Makes things"), WITHOUT_THE_WORD),
]


@pytest.mark.parametrize(("item", "bounds"), BY_FIELD)
def test_the_best_field_with_the_only_word_sets_the_range(item: Item, bounds: Range) -> None:
    """Other evidence moves the confidence within that range."""
    assert is_within(confidence("zorblax", item), bounds)


def test_a_deletion_does_not_come_first_for_a_bare_noun() -> None:
    """A bare noun asks for no deletion, even if another name has only another form of it."""
    drop = tool("mongodb__drop-database", "Removes the database, deleting its data files")
    others = tool("mongodb__list-databases", "Lists what a connection has"), tool("x__other", "A")
    assert confidence("database", drop, *others) < confidence("database", others[0], drop)
    assert confidence("drop", drop, *others) > IN_NAME[0]
    assert confidence("drop database", drop, *others) > TYPED - ROUNDING


@pytest.mark.parametrize(("item", "bounds"), BY_FIELD)
def test_the_meaning_moves_the_confidence_through_the_whole_range(
    item: Item, bounds: Range
) -> None:
    """No vectors exceed the range. Its lowest part is for items with another form of the word."""
    assert lowest_and_highest("zorblax", item) == pytest.approx(as_typed(bounds), abs=1e-6)


def test_another_form_of_the_word_has_the_lower_part_of_the_range() -> None:
    """Another form never reaches the top of the range, nor the typed word its bottom."""
    low, high = IN_DESCRIPTION
    for typed in ("modified", "modifies", "modifying"):
        found = lowest_and_highest(typed, skill("maker", "To modify things"))
        assert found == pytest.approx((low, high - AS_TYPED * (high - low)), abs=1e-6)
        found = lowest_and_highest(typed, skill("maker", f"What is {typed}"))
        assert found == pytest.approx(as_typed(IN_DESCRIPTION), abs=1e-6)


def lowest_and_highest(typed: str, item: Item) -> Range:
    """The confidences of an item for a one-word query with the worst and the best meaning."""
    found = keyword_engine([item]).rank(Query(text=typed), also=[0]).texts[0].candidates
    lowest, highest = (float(confidences(with_odds(found, [odds]))[0]) for odds in (-100, 100))
    return lowest, highest


def as_typed(bounds: Range) -> Range:
    """The part of a range for items with the word as typed, or with a correction of it."""
    low, high = bounds
    return (low + AS_TYPED * (high - low) if low else low), high


def test_the_ranges_of_the_fields_are_in_order() -> None:
    """Names are above descriptions, and these above the rest; all exceed the default threshold."""
    ranges = (IN_NAME, IN_DESCRIPTION, IN_REST, UNUSUAL_IN_BODY, IN_BODY)
    assert all(low < high for low, high in ranges)
    assert all(low > high for (low, _), (_, high) in pairwise(ranges))
    assert IN_BODY[0] > 0.35
    assert all(low < high for low, high in zip(CORRECTED_IN_REST, CORRECTED, strict=True))
    assert CORRECTED[1] < UNUSUAL_IN_BODY[0]
    assert IN_REST[0] <= CORRECTED_IN_NAME[1] < IN_DESCRIPTION[0]


def test_an_unusual_word_of_a_body_comes_before_its_corrections() -> None:
    """A correction in a name may still come first; a usual word is not corrected."""
    item = skill("maker", "Makes things", "# About\nSTARD and pytest.\n")
    other = skill("beginner", "Starts with a star")
    assert is_within(confidence("STARD", item, other), UNUSUAL_IN_BODY)
    assert confidence("STARD", other, item) < confidence("STARD", item, other)
    assert is_within(confidence("pytest", item, other), IN_BODY)


@pytest.mark.parametrize("typed", ["max_cache_size", "MAX_CACHE_SIZE", "max.cache.size"])
def test_an_item_with_the_typed_identifier_comes_before_those_with_its_parts(typed: str) -> None:
    """Even if it is only in a body, and the parts are in a name and a description."""
    item = skill("tuning", "Makes things faster", "Set `max_cache_size` first.")
    parts = skill("cache-size", "Set the max size of the cache", "The max of the size of a cache.")
    assert is_within(least_confidence(typed, item), IDENTIFIER)
    assert confidence(typed, parts, item) <= ITS_PARTS < confidence(typed, item, parts)
    assert confidence(typed, parts) == confidence(typed, parts, item)
    assert confidence("max cache size", parts, item) > confidence("max cache size", item, parts)


def test_a_name_with_all_parts_counts_as_the_identifier() -> None:
    """A tool for API keys is not behind the skills that mention a variable of that name."""
    item = skill("chat", "Asks a model", "Set `API_KEY` first.")
    named = tool("srv__create_api_key", "Creates a key for the API")
    assert is_within(confidence("API_KEY", named, item), IDENTIFIER)
    assert confidence("API_KEY", named, item) > confidence("API_KEY", item, named)


@pytest.mark.parametrize("typed", ["GRÖSSE_MAX", "MAX_TOOL"])
def test_a_name_with_some_parts_does_not_count_as_the_identifier(typed: str) -> None:
    """A constant is no request in another language, or for a tool."""
    item = skill("tuning", "Makes things faster", f"Set `{typed}` first.")
    named = tool("srv__max", "The maximum of numbers")
    assert confidence(typed, named, item) <= ITS_PARTS < confidence(typed, item, named)


@pytest.mark.parametrize("typed", ["task_status", "taskStatus", "task.status"])
def test_an_item_with_a_short_identifier_comes_before_weak_matches(typed: str) -> None:
    """Texts mention it by the way, so it does not come before good matches."""
    item = skill("log", "What changed", "Set `task_status` and `taskStatus`.")
    weak = skill("jobs", "Runs things", "The status of each task.")
    assert is_within(least_confidence(typed, item), SHORT_IDENTIFIER)
    assert confidence(typed, weak, item) < SHORT_IDENTIFIER[0]
    assert confidence(typed, skill("task-status", "The status"), item) > SHORT_IDENTIFIER[1]


@pytest.mark.parametrize("typed", ["1.2.3", "3.11", "2024.01.15", "10.0.0.1", "1 2"])
def test_a_version_is_not_a_number_of_its_digits(typed: str) -> None:
    """An item with the number 123 does not have the version 1.2.3."""
    item = skill("log", "What changed", f"Version {typed} is faster.")
    other = skill("parts", "Counts", f"It has {typed.replace('.', '').replace(' ', '')} parts.")
    assert confidence(typed, item, other) > 0.3 > confidence(typed, other, item)


def test_a_typed_name_comes_before_other_items_with_the_identifier() -> None:
    """Also if only its beginning was typed."""
    item = skill("tuning", "Makes things faster", "Set `max_cache_size` first.")
    for name in ("max-cache-size", "max-cache-size-setter"):
        assert confidence("max_cache_size", skill(name, "A"), item) > MAX_UNNAMED - 0.01
    named = skill("max-cache-size", "A")
    assert confidence("max_cache_size", named, item) > confidence("max_cache_size", item, named)


@pytest.mark.parametrize("word", ["result", "choose", "zorblax"])
def test_a_single_word_of_a_body_exceeds_the_default_threshold(word: str) -> None:
    """Even if most texts have it: it may be the only item that has the word."""
    assert least_confidence(word, skill("maker", "Makes things", f"The {word}.")) > 0.35


def test_common_words_of_a_body_say_little_together() -> None:
    """Most long texts have two common words somewhere."""
    assert rarity(term_of("result")) + rarity(term_of("choose")) < 1
    item = skill("maker", "Makes things", "Choose the result.")
    assert least_confidence("choose result", item) < 0.01


@pytest.mark.parametrize("text", ["har file", "har result", "result of a har"])
def test_a_rare_word_of_a_body_is_enough_beside_a_usual_one(text: str) -> None:
    """The item need not have the usual word, and a usual English word may be there by chance."""
    assert rarity(term_of("file")) < 0.3
    item = skill("maker", "Makes things", "Attach the HAR file.")
    assert least_confidence("har", item) >= 0.35
    assert least_confidence(text, item) >= 0.35
    other = skill("maker", "Makes things", "Attach the pizza.")
    assert least_confidence("pizza result", other) < 0.01


def test_a_word_of_a_very_long_body_counts_like_one_of_a_short_one() -> None:
    """Other words in the body do not lower the confidence."""
    item = skill("maker", "Makes things", f"{'filler ' * 20_000} zorblax")
    assert is_within(confidence("zorblax", item), UNUSUAL_IN_BODY)


def test_the_parts_of_a_word_are_no_surer_than_a_correction() -> None:
    """A name with the parts of ``zyx8quon`` is not another spelling of this word."""
    value = confidence("zyx8quon", skill("quon-of-zyx-8", "Makes zyx 8 quon"))
    assert value == pytest.approx(CORRECTED_IN_NAME[1])


def test_the_description_of_a_parameter_counts_like_a_body() -> None:
    """It is long, and seldom says what a tool is about."""
    item = tool("srv__maker", "Makes things", input_schema=SCHEMA)
    assert is_within(confidence("quuxly", item), UNUSUAL_IN_BODY)


@pytest.mark.parametrize(
    ("text", "item", "least"),
    [
        ("zorblax quuxly", skill("quuxly-of-zorblax", "Thing"), ALL_IN_NAME),
        ("zorblax quuxly", skill("thing", "For zorblax of a quuxly"), ALL_IN_DESCRIPTION),
        ("zorblax quuxly", skill("zorblax-thing", "For a quuxly"), ALL_IN_DESCRIPTION),
        ("zorblax quuxly result", skill("thing", "For zorblax", "# The quuxly\nX"), MEANINGFUL),
    ],
)
def test_an_item_with_all_words_has_a_minimum_confidence(
    text: str, item: Item, least: float
) -> None:
    """The minimum is higher for names than for descriptions, and above the default threshold."""
    assert least_confidence(text, item) == pytest.approx(least, abs=1e-4)
    assert confidence(text, item) > least >= 0.35


def test_other_evidence_decides_between_items_with_all_words() -> None:
    """A closer meaning raises the confidence even where the words set the minimum."""
    items = [skill("quuxly-of-zorblax", "Thing"), skill("zorblax-of-quuxly", "Thing")]
    engine = keyword_engine(items)
    found = engine.rank(Query(text="zorblax quuxly with it"), also=rows(engine))
    far, near = confidences(with_odds(found.texts[0].candidates, [-100.0, -11.0]))
    assert ALL_IN_NAME <= far < near < ALL_IN_NAME + ADDED


def test_without_the_only_word_the_meaning_sets_the_confidence() -> None:
    """It stays below the upper bound for items without the word."""
    query = Query(text="zorblax", weights=Weights(alpha=1.0))
    found = keyword_engine([skill("maker", "Makes it")]).rank(query, also=[0]).texts[0].candidates
    values = [float(confidences(with_odds(found, [odds]))[0]) for odds in (-2.0, 100.0)]
    low = MAX_UNNAMED * math.sqrt(1 / (1 + math.exp(2.0 / Weights().alpha)))
    assert values == pytest.approx([low, WITHOUT_THE_WORD[1]], abs=1e-4)
    assert low < WITHOUT_THE_WORD[1] - 0.1


def test_a_small_part_of_the_words_is_not_enough() -> None:
    """One rare word of three, or some words of a body, set no minimum confidence."""
    asked = "zorblax quuxly vrendig"
    partly = skill("thing", "Something", "For zorblax of a quuxly.")
    in_body = skill("thing", "Something", "For zorblax of a quuxly and a vrendig.")
    in_heading = skill("thing", "Something", "# Zorblax of a quuxly and a vrendig\n")
    assert least_confidence(asked, skill("thing", "For zorblax")) < 0.01
    assert least_confidence(asked, skill("thing", "For zorblax of a quuxly")) >= MEANINGFUL
    assert least_confidence(asked, in_heading) >= MEANINGFUL
    assert least_confidence(asked, partly) < 0.01
    assert least_confidence(asked, in_body) == pytest.approx(ALL_ANYWHERE, abs=1e-4)
    assert confidence(asked, in_body) < confidence(asked, in_heading)


def test_an_item_with_all_words_in_its_body_is_shown_if_they_are_rare_enough() -> None:
    """A search finds what a plain text search, such as `grep`, would find."""
    text = "The legacy gateway needs a restart on Sundays. Customers get an error and a report."
    item = skill("thing", "Something", text)
    assert least_confidence("legacy gateway restart", item) == pytest.approx(ALL_ANYWHERE, abs=1e-4)
    assert least_confidence("kubectl", skill("thing", "Something", "`kubectl apply`")) > 0.35
    assert least_confidence("error report", item) < 0.01


def test_typed_names_are_in_order() -> None:
    """The full name is surest, then the name without its server's, then a misspelt name."""
    named = tool("linear__linear_mend_sprocket", "Mends it")
    values = [
        confidence(typed, named)
        for typed in ("linear_mend_sprocket", "mend_sprocket", "linear_mend_sprokket")
    ]
    leasts = [TYPED, TYPED_ALSO, MISSPELT]
    for value, least in zip(values, leasts, strict=True):
        assert is_within(value, (least, least + ROUNDING))
    assert TYPED > TYPED_ALSO > MISSPELT > MAX_UNNAMED


def test_items_with_the_same_typed_name_are_ranked_by_the_other_words() -> None:
    """Their names are equal, so the other words of the query decide."""
    surer = skill("deploy_app", "Roll out production")
    other = skill("deploy_app", "Bake bread")
    other = msgspec.structs.replace(other, id="another/deploy_app", source="another")
    query = "deploy_app roll out production"
    assert confidence(query, surer, other) > confidence(query, other, surer) >= TYPED


@pytest.mark.parametrize(
    ("typed", "name", "is_sure"),
    [
        ("sprokket", "sprocket", True),
        ("awl", "awk", False),  # three letters
        ("house", "mouse", False),  # another English word
        ("sail", "mail", False),  # an English word that is rare in texts about software
        ("house keeper", "mouse-keeper", False),  # an English word, although another word agrees
        ("hose keeper", "horse-keeper", True),  # the first letters are equal
        ("huse keeper", "house-keeper", True),  # "huse" is not an English word
        ("notes keeper", "note-keeper", True),  # the beginnings are equal
        ("kubi", "kubo", True),  # four letters
    ],
)
def test_one_edit_of_a_name_may_be_another_word(typed: str, name: str, is_sure: bool) -> None:
    """Short names and English words do not count as misspelt names."""
    value = confidence(typed, skill(name, "Something"))
    assert value >= MISSPELT if is_sure else 0.35 <= value < 0.9


@pytest.mark.parametrize(
    ("typed", "name", "is_similar"),
    [
        ("uninstall package", "install-package", False),
        ("remove folder", "move-folder", False),
        ("lock the door", "unlock-door", False),
        ("enable alarm", "disable-alarm", False),
        ("import data", "export-data", False),
        ("instal package", "install-package", True),  # not an English word
        ("nstall package", "install-package", True),
        ("creation of issues", "create-issue", True),  # a word with the same beginning is related
        ("install packages", "install-package", True),
        ("backup database", "back-up-database", True),  # words that may be written as one
        ("set up page", "setup-page", True),
        ("lustre autoimport", "lustre-blob-autoimport-get", True),
    ],
)
def test_another_word_makes_no_similar_name(typed: str, name: str, *, is_similar: bool) -> None:
    """Words that only end alike are often opposites, so they do not count as misspelt."""
    hit = keyword_engine([skill(name)]).search(Query(text=typed, threshold=0.0)).hits[0]
    assert hit.evidence.name >= MIN_SIMILARITY if is_similar else hit.evidence.name == 0
    assert ("Fuzzy" in hit.reason) <= is_similar


def test_the_list_of_english_words_is_a_public_vocabulary() -> None:
    """It has, sorted, all whole words of four or more letters in our encoder's tokenizer."""
    file = ROOT / "encoder" / "repertory_encoder" / "model" / "tokenizer.json"
    vocabulary = json.loads(file.read_text("utf-8"))["model"]["vocab"]
    words = {one for one in vocabulary if len(one) > 3 and one.isascii() and one.isalpha()}
    stored = files("repertory.index.keywords").joinpath("english.txt").read_text("ascii").split()
    assert stored == sorted(words)


def test_a_corrected_word_of_a_name_counts_beside_the_others() -> None:
    """After correction, all words of ``knwoledge map`` are in the name."""
    least = least_confidence("knwoledge map", skill("public-knowledge-map", "Something"))
    assert least == pytest.approx(CORRECTED_IN_NAME[0])


def test_a_longer_beginning_of_a_name_is_surer() -> None:
    """The typed share of the name counts. A misspelt name is surer still."""
    item = skill("zorblaxian-quuxly", "Something")
    values = [confidence(typed, item) for typed in ("zorb", "zorblaxi", "zorblaxianquux")]
    assert values == sorted(values)
    assert 0.7 < values[0] < values[-1] < MISSPELT


@pytest.mark.parametrize(
    ("typed", "name", "bounds"),
    [
        ("zorb", "zorblaxian-quuxly", (0.9, 0.95)),
        ("create", "create-quuxly", (0.8, 0.97)),  # a word of the name
        ("creat", "creature-of-quuxly", (0.7, 0.75)),
        ("create zorb", "create-zorblax", (0.9, 0.95)),
        ("how to creat", "how-to-creature", (0.7, 0.75)),
        ("create_te", "create-teapot", (0.955, 0.97)),
        ("c-th", "c-three-po", (0.7, 0.75)),
    ],
)
def test_an_unfinished_word_says_more_than_a_usual_one(
    typed: str, name: str, bounds: Range
) -> None:
    """A usual word may mean something else, unlike an identifier; stop words do not count."""
    assert is_within(confidence(typed, skill(name, "Something")), bounds)


def evidence(text: str, item: Item) -> dict[str, float]:
    """The evidence of an item for a query, by the name of its weight."""
    found = keyword_engine([item]).rank(Query(text=text), also=[0]).texts[0].candidates
    names = EvidenceWeights.__struct_fields__
    return dict(zip(names, evidence_of_words(found)[0].tolist(), strict=True))


MANY = " ".join(f"zorb{letter}lax" for letter in "abcdefghijklmnopqrstuvwxyz")


@pytest.mark.parametrize(
    ("name", "text", "item", "value"),
    [
        ("share", "zorblax quuxly", skill("thing", "For zorblax"), 0.5),
        ("share", "zorblax quuxly", skill("thing", "Other"), 0.0),
        ("mass", MANY, skill("thing", MANY), MAX_RARITY),
        ("named", "zorblax quuxly", skill("zorblax", "For a quuxly"), 0.5),
        ("whole", "my zorblax quuxly", skill("zorblax-quuxly"), 1.0),
        ("whole", "my zorblax quuxly", skill("zorblax"), 0.0),
        ("whole", "my zorblax quuxly", skill("zorblax-quuxly-sprocket"), 0.0),
        ("like", "zorblax quuxly", skill("zorblax-quuxly"), 1.0),
        ("like", "zorblax quuxly", skill("sprocket"), 0.0),
        ("action", "write a note", skill("create-note"), 1.0),
        ("action", "write a note", skill("note"), 0.0),
        ("action", "write a note", skill("delete-note"), 0.0),
        ("mismatch", "write a note", skill("create-note"), 0.0),
        ("mismatch", "write a note", skill("note"), 0.0),
        ("mismatch", "write a note", skill("delete-note"), 1.0),
        ("server", "find it in zorblax", tool("zorblax__find"), 1.0),
        ("server", "find it in zorblax", tool("quuxly__find"), 0.0),
        ("length", "create issue", skill("note"), math.log(2)),
        ("length", "createIssue", skill("note"), math.log(2)),
        ("length", "create", skill("note"), 0.0),
        ("rarity", "zorblax quuxly", skill("note"), 2.0),
        ("rarity", MANY, skill("note"), MAX_RARITY),
        ("bias", "zorblax", skill("note"), 1.0),
    ],
)
def test_each_piece_of_evidence_has_its_value(
    name: str, text: str, item: Item, value: float
) -> None:
    """These are the columns of the evidence table before they are weighed."""
    assert evidence(text, item)[name] == pytest.approx(value)


def test_the_mass_of_evidence_is_weighed_by_field() -> None:
    """A word counts with its rarity and the weight of its field."""
    named, described = skill("zorblax-it", "Thing"), skill("thing", "For zorblax")
    values = [evidence("zorblax quuxly", item)["mass"] for item in (named, described)]
    assert 1.0 > values[0] > values[1] > 0.75


def test_an_item_with_the_requested_action_leads_items_with_other_actions() -> None:
    """The verb of the name is evidence for or against an item."""
    asked = "please delete the old sprocket from it"
    does, neutral, other = (
        confidence(asked, skill(name, "Of the machine"))
        for name in ("delete-sprocket", "sprocket", "create-sprocket")
    )
    assert does > neutral > other


def test_a_server_that_is_named_raises_its_tools() -> None:
    """``search the papers on arxiv`` means the tool of that server."""
    asked = "look for papers on gravity in zorblax"
    here, there = tool("zorblax__find", "Finds papers"), tool("quuxly__find", "Finds papers")
    assert confidence(asked, here) > confidence(asked, there) + 0.1


def test_two_letters_may_be_a_rare_word() -> None:
    """Two digits or a single letter are not rare."""
    assert rarity("qx") == 1.0 > rarity("42") == rarity("q")


def test_a_longer_query_needs_more_evidence() -> None:
    """One matching word of a description counts less in a sentence."""
    item = skill("maker", "Makes a sprocket")
    short = confidence("sprocket now", item)
    assert short > confidence("sprocket now then that which was there for us all", item)


def test_the_name_of_a_server_does_not_make_a_name_less_similar() -> None:
    """The rest of the query decides which of its tools is meant."""
    tools = [tool(f"notion__API-{verb}-a-data-source") for verb in ("update", "create")]
    query = Query(text="notion udpate data source", threshold=0.0)
    update, create = keyword_engine(tools).search(query).hits
    assert update.name == "API-update-a-data-source"
    assert update.evidence.name > max(MIN_SIMILARITY, create.evidence.name)


def test_a_name_with_another_number_is_not_similar() -> None:
    """A name without a number may be similar to a query with one."""
    name = skill("form-1040", "Something")
    assert evidence("form 1041", name)["like"] == 0
    assert evidence("forms 1040", name)["like"] > 0
    assert evidence("forms 7", skill("forms", "Something"))["like"] > 0


def test_names_below_the_least_similarity_do_not_count() -> None:
    """Many letters agree by chance."""
    half = (MIN_SIMILARITY + 1) / 2
    values = likeness(np.array([0.0, MIN_SIMILARITY, half, 1.0], np.float32))
    assert values == pytest.approx([0.0, 0.0, 0.5, 1.0], abs=1e-6)
    assert MIN_SIMILARITY >= 0.5


@pytest.mark.parametrize(("value", "chance"), [(0.0, 0.0), (0.35, 0.1225), (0.6, 0.36), (1.0, 1.0)])
def test_a_confidence_stands_for_a_probability(value: float, chance: float) -> None:
    """The probability is the square, so the default threshold is one in eight."""
    assert probability(value) == pytest.approx(chance)


def test_no_evidence_but_a_typed_name_exceeds_the_highest_confidence() -> None:
    """Even the closest meaning does not exceed ``MAX_UNNAMED``."""
    items = [skill("maker", "Makes a sprocket"), skill("other", "Does it")]
    engine = keyword_engine(items)
    task = engine.rank(Query(text="make a sprocket of it"), also=rows(engine))
    found = task.texts[0].candidates
    assert confidences(with_odds(found, [100, 100])) == pytest.approx([MAX_UNNAMED] * 2)
    assert confidences(with_odds(found, [-100, -100]))[1] == pytest.approx(0, abs=1e-6)
    assert (confidences(with_odds(found, [2, 2])) > confidences(with_odds(found, [1, 1]))).all()


def test_stop_words_give_no_minimum_confidence() -> None:
    """For a query of stop words, an item with a distant meaning is not shown."""
    assert least_confidence("how is it with that", skill("how-to", "How is it")) < 0.01


def test_the_default_name_weight_is_the_fitted_one() -> None:
    """The setting scales the weight of similar names; at 0 they do not count."""
    item = skill("zorblax-quuxly", "Thing")

    def odds(weight: float) -> float:
        query = Query(text="zorblax quuxli", weights=Weights(name_weight=weight))
        found = keyword_engine([item]).rank(query, also=[0]).texts[0].candidates
        return float(log_odds_of_words(found)[0])

    likeness_of_it = evidence("zorblax quuxli", item)["like"]
    default = Weights().name_weight
    assert odds(default) - odds(0.0) == pytest.approx(
        BESIDE_VECTORS.like * likeness_of_it, rel=1e-4
    )
    assert odds(default / 2) - odds(0.0) == pytest.approx((odds(default) - odds(0.0)) / 2, rel=1e-4)


def test_alpha_divides_the_evidence_between_the_arms() -> None:
    """At 1 the words do not count, at 0 the meaning does not."""
    items = [skill("maker", "Makes a sprocket"), skill("other", "Does it")]
    engine = keyword_engine(items)

    def values(alpha: float, odds: Sequence[float]) -> list[float]:
        query = Query(text="of the sprocket that it was said of", weights=Weights(alpha=alpha))
        candidates = engine.rank(query, also=rows(engine)).texts[0].candidates
        return [float(one) for one in confidences(with_odds(candidates, odds))]

    assert values(0.0, [1, -1])[1] == values(0.0, [-1, 1])[1]
    even = values(1.0, [1.4, 1.4])
    assert even[1] == pytest.approx(MAX_UNNAMED * math.sqrt(1 / (1 + math.exp(-2))), abs=1e-4)


words = st.sampled_from(
    ["resize", "pictures", "send", "invoices", "rotate", "secrets", "zebra", "please", "at"]
)


@settings(max_examples=50)
@given(
    text=st.lists(words, min_size=1, max_size=9).map(" ".join),
    names=st.lists(st.lists(words, min_size=1, max_size=3).map("_".join), min_size=1, max_size=8),
)
def test_every_confidence_is_between_0_and_1(text: str, names: list[str]) -> None:
    """This is true for any query and any catalogue."""
    items = [tool(f"s{at}__{name}", f"Can {name}") for at, name in enumerate(names)]
    engine = keyword_engine(items)
    task = engine.rank(Query(text=text), also=rows(engine))
    assert len(task.merged.confidence) == len(items)
    assert all(0.0 <= value < 1.0 for value in task.merged.confidence.values())


def test_a_word_in_an_identifier_is_no_verb_of_a_request() -> None:
    """The word ``MediaQuery`` asks for no query, so ``build_layout`` is not another action."""
    text = "Use `MediaQuery` to fit the screen"
    assert is_within(confidence("MediaQuery", skill("build_layout", text)), IN_DESCRIPTION)


def test_one_word_in_a_long_sentence_is_less_sure_than_alone() -> None:
    """In a sentence, a single word is a smaller part of the request."""
    item = tool("crm__unsubscribe_contact", "Unsubscribe")
    alone, short, long = (
        confidence(text, item)
        for text in ("contact", "get the contact", "how do I get in contact with you")
    )
    assert alone >= IN_NAME[0]
    assert long < IN_NAME[0]
    assert long < alone
    assert short > CORRECTED_IN_NAME[0]
