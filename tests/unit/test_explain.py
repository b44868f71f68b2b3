"""Explanations of why a search shows an item or not, with the keyword arm alone."""

from collections.abc import Iterable

import msgspec
import pytest

from repertory.catalogue.item import Item
from repertory.catalogue.policy import Policy
from repertory.errors import UnknownItemError, UsageError
from repertory.search.explain import _left_out
from repertory.search.explain import explain as explained
from repertory.search.explanation import Explanation
from repertory.search.query import Query
from repertory.search.semantic_arm import MAX_BY_MEANING
from tests.support.builders import skill, tool
from tests.support.keyword_search import keyword_engine

SCHEMA = {"properties": {"path": {"type": "string"}, "encoding": {"type": "string"}}}
ITEMS = [
    tool("files__read_file", "Read the contents of a file from disk", input_schema=SCHEMA),
    tool("files__write_file", "Write text to a file on disk", tags=("danger",)),
    tool("files__move_file", "Move a file into another folder of the disk"),
    tool("term__run_command", "Execute a shell command in a terminal and return its output"),
    tool("mail__send_email", "Send a message to a recipient"),
    tool("mail__list", "List the messages of a mailbox"),
    tool("calendar__list", "List the meetings of a day"),
    skill("rotation", "Exchange credentials", "# Steps\nAsk the vault for a fresh certificate."),
]


def explain(text: str, item: str, items: Iterable[Item] = ITEMS, **options: object) -> Explanation:
    """Explain one of these items for a query."""
    query = msgspec.convert({"text": text, **options}, Query)
    return explained(keyword_engine(items), query, item)


def test_only_items_that_fit_better_are_listed_before_a_filtered_one() -> None:
    """Items that the filter allows but that fit worse are not listed."""
    explanation = explain("read_file of a mailbox", "files__read_file", where={"servers": ["mail"]})
    assert explanation.verdict.startswith("Filtered out")
    assert not explanation.better


def test_an_exact_name_identifies_an_item() -> None:
    """``read_file`` is the name of one item; ``READ FILE`` may be either."""
    items = [*ITEMS, tool("disk__readFile", "Read from a disk")]
    assert explain("read", "read_file", items).hit.id == "files__read_file"
    with pytest.raises(UnknownItemError, match="Several items"):
        explain("read", "READ FILE", items)


@pytest.mark.parametrize(
    "query",
    [
        Query(text="read the contents of a file"),
        Query(text="file disk", limit=1),
        Query(text="list", threshold=0.9),
        Query(text="commit my changes to git"),
        Query(text="zzqx"),
    ],
)
def test_explanations_agree_with_the_search_for_every_item(query: Query) -> None:
    """An item is explained as shown, with the same hit and rank, exactly if the search shows it."""
    engine = keyword_engine(ITEMS)
    hits = engine.search(query).hits
    found = [explained(engine, query, item.id) for item in ITEMS]
    shown = sorted((one for one in found if one.shown), key=lambda one: one.rank or 0)
    assert [one.hit for one in shown] == hits
    assert [one.rank for one in shown] == list(range(1, len(hits) + 1))
    for place, one in enumerate(shown, 1):
        assert one.verdict == f"Shown, at place {place} of {len(hits)}."
        assert len(one.better) == place - 1
    ranks = [one.rank for one in found if one.rank]
    assert sorted(ranks) == list(range(1, len(ranks) + 1))


def test_an_item_below_the_threshold_is_shown_with_a_lower_one() -> None:
    """With the suggested threshold the item is shown, and with a little more it is not."""
    found = explain("write a note", "files__write_file", threshold=0.9)
    assert found.verdict.startswith("Hidden: its confidence 0.")
    assert "is below the threshold 0.9; a threshold of 0." in found.verdict
    needed = float(found.verdict.split()[-4])
    assert explain("write a note", "files__write_file", threshold=needed).shown
    assert not explain("write a note", "files__write_file", threshold=needed + 0.02).shown


def test_a_hidden_confidence_is_rounded_as_it_is_shown() -> None:
    """It is never rounded up to the threshold that it does not reach."""
    hit = explain("write a note", "files__write_file", threshold=0.9).hit
    query = Query(text="x", threshold=0.5)
    for confidence, shown in ((0.1387, "0.14"), (0.1312, "0.13"), (0.4987, "0.49")):
        said = _left_out(msgspec.structs.replace(hit, confidence=confidence), [], query)
        assert said.startswith(f"Hidden: its confidence {shown} is below the threshold 0.5;")


def test_an_item_beyond_the_limit_is_shown_with_a_larger_one() -> None:
    """The verdict names the best item and the limit that is needed."""
    found = explain("read file", "files__move_file", limit=1, threshold=0.0)
    assert found.verdict.startswith("Not among the first 1: ")
    assert "the best is files__read_file (0." in found.verdict
    assert found.rank is not None
    assert found.verdict.endswith(f"; a limit of {found.rank} would show it.")
    assert found.better[0].id == "files__read_file"
    assert explain("read file", "files__move_file", limit=found.rank, threshold=0.0).shown


def test_both_options_are_named_if_both_are_required() -> None:
    """A lower threshold alone would not show an item beyond the limit."""
    found = explain("read file", "files__move_file", limit=1, threshold=1.0)
    assert found.verdict.startswith("Hidden")
    assert " and a limit of " in found.verdict


@pytest.mark.parametrize(
    ("where", "fault"),
    [
        ({"kinds": ["skill"]}, "its kind is tool, and skill was asked for."),
        ({"servers": ["mail", "term"]}, "its server is files, and mail or term was asked for."),
        ({"tags": ["safe"]}, "its tags are none, and safe was asked for."),
        (
            {"sources": ["mail"], "kinds": ["skill"]},
            "its kind is tool, and skill was asked for; its source is files, and mail was asked "
            "for.",
        ),
    ],
)
def test_a_filter_that_excludes_the_item_is_named(where: dict[str, list[str]], fault: str) -> None:
    """The verdict also has the item's confidence without the filter."""
    found = explain("read_file", "files__read_file", where=where)
    alone = explain("read_file", "files__read_file")
    assert found.verdict == (
        f"Filtered out: {fault} Without the filter its confidence is {alone.hit.confidence:.2f}."
    )
    assert (found.shown, found.rank) == (False, None)
    assert found.hit.reason == "Exact name match"


def test_an_item_that_was_not_found_is_scored() -> None:
    """It has a confidence, but no rank."""
    found = explain("read the contents of a file", "calendar__list")
    assert found.verdict.startswith(f"Not found: its words are not among the {MAX_BY_MEANING} best")
    assert (found.shown, found.rank) == (False, None)
    assert found.hit.evidence.keyword_rank is None
    assert found.hit.confidence < found.better[0].confidence


def test_each_word_of_the_query_has_the_fields_of_its_match() -> None:
    """A word also has its correction and its share of the match."""
    found = explain("contnets encoding of a rotated file", "files__read_file")
    words = {word.typed: word for word in found.words}
    assert list(words) == ["contnets", "encoding", "rotated", "file"]
    assert (words["contnets"].matched, words["contnets"].fields) == ("contents", ("description",))
    assert (words["encoding"].matched, words["encoding"].fields) == ("encoding", ("parameters",))
    assert (words["rotated"].matched, words["rotated"].fields) == ("", ())
    assert words["file"].fields == ("name", "description", "server")
    assert sum(word.share for word in found.words) == pytest.approx(1, abs=0.001)
    assert words["encoding"].share > words["file"].share


def test_a_similar_word_is_named_for_a_missing_one() -> None:
    """The item contains it, and it may be the intended word."""
    found = explain("read the contestant", "files__read_file")
    assert found.words[1].near == "contents"


def test_an_item_inferred_by_its_capability_is_explained() -> None:
    """The evidence names the capability."""
    found = explain("commit my changes to git", "term__run_command")
    assert found.shown
    assert found.hit.evidence.capability == "shell → git operations"


def test_the_effect_of_a_policy_is_part_of_the_verdict() -> None:
    """The verdict names the deprecation."""
    old = tool("old__read_file", "Read a file", policy=Policy(deprecated_by="files__read_file"))
    found = explain("read a file from disk", "old__read_file", [*ITEMS, old], threshold=0.8)
    assert not found.shown
    assert found.verdict.endswith("Deprecated, use files__read_file.")


def test_a_unique_name_identifies_an_item() -> None:
    """Case and separators do not matter. For several items, the error lists their ids."""
    assert explain("file", "ReadFile").hit.id == "files__read_file"
    assert explain("file", "rotation").hit.id == "team/rotation"
    with pytest.raises(UnknownItemError, match="use calendar__list or mail__list"):
        explain("file", "list")
    with pytest.raises(UnknownItemError, match=r"no item 'red_file'; did you mean files__read_fil"):
        explain("file", "red_file")


def test_an_item_whose_id_is_its_name_is_one_item() -> None:
    """Another spelling of its name finds it, too."""
    only = tool("read_file", "Read a file", name="read_file", server="", source="files")
    assert explain("read", "READ FILE", [only]).hit.id == "read_file"


def test_an_invalid_query_is_refused() -> None:
    """The errors are the same as for a search."""
    with pytest.raises(UsageError, match="empty"):
        explain(" ", "files__read_file")


@pytest.mark.parametrize("text", ["the of and", "?!", "文", "x" * 3_000, "a b " * 900])
def test_odd_queries_have_an_explanation(text: str) -> None:
    """Stop words, symbols, other scripts and long texts are valid queries."""
    assert explain(text, "files__read_file").verdict


def test_an_explanation_survives_json() -> None:
    """Decoding the JSON gives an equal explanation."""
    found = explain("read contnets", "files__read_file", where={"kinds": ["tool"]}, limit=7)
    sent = msgspec.json.encode(found)
    assert msgspec.json.decode(sent, type=type(found)) == found
