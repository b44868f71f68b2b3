"""Search with the keyword arm only: names, corrections, inference, confidence."""

from unittest.mock import Mock

import msgspec
import pytest

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.policy import Policy
from repertory.errors import UsageError
from repertory.formats.phrases import nothing, notices
from repertory.notices import ALL_FILTERED_OUT
from repertory.search import keyword_arm
from repertory.search.answer import Answer, Mode
from repertory.search.engine import SearchEngine
from repertory.search.query import Query, query_of
from repertory.values import Values
from tests.support.builders import no_model, skill, tool
from tests.support.keyword_search import keyword_engine, reader

ITEMS = [
    tool("files__read_file", "Read the contents of a file from disk"),
    tool("files__write_file", "Write text to a file on disk", tags=("danger",)),
    tool("term__run_command", "Execute a shell command in a terminal and return its output"),
    tool("mail__send_email", "Send a message to a recipient"),
    tool("pictures__resize_picture", "Make a picture smaller"),
]


def search(text: str, items: list[Item] | None = None, **options: object) -> Answer:
    """Search some items with the keyword arm only."""
    query = query_of(Values(), text, **options)  # type: ignore[arg-type]  # by name
    engine = keyword_engine(ITEMS if items is None else items, ["project", "user"])
    return engine.search(query)


def test_a_misspelt_name_is_first_and_the_reason_shows_the_correction() -> None:
    """`read_fil` finds `read_file`, and the reason shows it."""
    first = search("read_fil").hits[0]
    assert first.id == "files__read_file"
    assert first.reason == "Fuzzy name match (read_fil → read_file)"
    assert first.confidence > 0.8


@pytest.mark.parametrize(
    "typed", ["read_file", "READ_FILE", "readFile", "read file", "files__read_file"]
)
def test_a_name_typed_whole_is_nearly_certain(typed: str) -> None:
    """The case and separators do not matter, and the id works too."""
    first = search(typed).hits[0]
    assert first.id == "files__read_file"
    assert first.reason == "Exact name match"
    assert first.confidence >= 0.98


def test_a_name_within_a_sentence_is_found() -> None:
    """An identifier in a longer request counts as a name."""
    assert search("please call resize_picture on all of my holiday photos").hits[0].name == (
        "resize_picture"
    )


def test_the_threshold_never_hides_a_typed_name() -> None:
    """A typed name is found at a threshold as high as 0.95."""
    assert [hit.name for hit in search("send_email", threshold=0.95).hits] == ["send_email"]


def test_a_capability_is_inferred_if_no_item_does_the_job() -> None:
    """With no git tool, a shell is offered, and the reason names the inference."""
    first = search("commit my changes to git").hits[0]
    assert first.id == "term__run_command"
    assert first.reason == "Capability inference (shell → git operations)"
    assert first.evidence.capability == "shell → git operations"


def test_copies_of_a_weak_hit_take_only_one_place() -> None:
    """Three copies of a skill are one hit, so with limit 3 the shell is offered as well."""
    advice = skill("branching-advice", "Ideas for git changes of teams and people in firms")
    copies = [msgspec.structs.replace(advice, id=f"host{at}/advice") for at in range(3)]
    for searched in ([advice], copies):
        hits = search("commit my changes to git", [*ITEMS, *searched], limit=3).hits
        assert [hit.name for hit in hits] == ["branching-advice", "run_command"]
        assert len(hits[0].duplicates) == len(searched) - 1


def test_confidence_falls_down_the_list_despite_a_lowered_tool() -> None:
    """A weak hit precedes an inferred tool whose policy lowers its confidence below the hit's."""
    shell = tool("term__run_command", "Executes one in a terminal", policy=Policy(boost=-1.0))
    other = tool("notes__changes", "Lists what is new in a text that others wrote")
    hits = search("commit my changes to git", [shell, other], threshold=0.0).hits
    assert [hit.id for hit in hits] == [other.id, shell.id]
    assert hits[0].confidence > hits[1].confidence


def test_the_closest_item_is_not_one_of_the_hits() -> None:
    """It is never an inferred hit, although such a hit may match directly below the threshold."""
    shell = tool("term__run_command", "Runs a command and shows the changes")
    other = skill("notes", "Lists what is new", "Some changes are listed.")
    answer = search("commit my changes to git", [shell, other])
    assert [(hit.id, bool(hit.evidence.capability)) for hit in answer.hits] == [(shell.id, True)]
    assert answer.closest == other.id


def test_deleted_items_are_neither_hits_nor_the_closest_item() -> None:
    """A search that cannot wait for the index checks whether the files of its hits still exist."""
    shell = tool("term__run_command", "Executes one in a terminal")
    advice = [
        skill(f"branching-{at}", f"Ideas {at} for git changes of teams and people in firms")
        for at in range(2)
    ]
    weak = [tool("a__changes", "Lists what is new"), tool("b__changes_of", "Lists what is old")]
    gone = {one.id for one in (*advice, weak[0])}
    index = keyword_engine([shell, *advice, *weak]).keywords
    engine = SearchEngine(
        keywords=index,
        collection=None,
        embedding=no_model,
        reader=reader(),
        is_gone=lambda entry: entry.id in gone,
    )
    answer = engine.search(Query(text="commit my changes to git", limit=2))
    assert [hit.id for hit in answer.hits] == [shell.id]
    assert answer.closest == weak[1].id


def test_nothing_is_inferred_if_an_item_fits() -> None:
    """A sufficiently good direct match prevents inferred hits."""
    git = tool("git__git_commit", "Commit changes to git")
    hits = search("commit my changes to git", [*ITEMS, git]).hits
    assert hits[0].id == "git__git_commit"
    assert not any(hit.evidence.capability for hit in hits)


def test_nonsense_finds_nothing() -> None:
    """No hit is better than a wrong one."""
    answer = search("purple elephant quantum yodel")
    assert answer.hits == []
    assert answer.best_below < answer.threshold


def test_filters_also_apply_to_names_and_inference() -> None:
    """An excluded item is found neither by its name nor by inference."""
    assert search("read_file", servers=["mail"]).hits == []
    assert search("commit my changes to git", servers=["mail"]).hits == []
    assert [hit.name for hit in search("file", tags=["danger"]).hits] == ["write_file"]


def test_an_answer_says_that_its_filters_allow_no_item() -> None:
    """Otherwise other words or a lower threshold could help."""
    found = search("read_file", kinds=["document"])
    assert (found.hits, found.notices) == ([], (ALL_FILTERED_OUT,))
    assert nothing(found) == ALL_FILTERED_OUT
    assert notices(found) == []
    assert search("read_file", servers=["mail"]).notices == ()


def test_confidences_fall_down_the_list_and_stay_in_range() -> None:
    """Confidences are sorted in descending order, and each is between 0 and 1."""
    hits = search("write a message to a file", limit=5, threshold=0.0).hits
    values = [hit.confidence for hit in hits]
    assert len(values) >= 3
    assert values == sorted(values, reverse=True)
    assert all(0.0 <= value <= 1.0 for value in values)


def test_a_confidence_does_not_depend_on_the_limit() -> None:
    """It is a property of the item and the query."""
    one = search("send a message", limit=1).hits[0]
    assert search("send a message", limit=5).hits[0] == one


def test_ties_are_broken_by_safety_and_then_by_source() -> None:
    """A harmless tool leads equals of earlier sources; equally safe ones follow source order."""
    risky, unknown, other, safe = (
        Item(
            id=f"{server}__list_cars",
            kind=Kind.TOOL,
            name="list_cars",
            server=server,
            source=source,
            description="List cars",
            tags=tags,
        )
        for server, source, tags in (
            ("a", "project", ("destructive",)),
            ("b", "user", ()),
            ("c", "project", ()),
            ("d", "user", ("read-only",)),
        )
    )
    found = search("list cars", [risky, unknown, other, safe], limit=4).hits
    assert [hit.id for hit in found] == [safe.id, other.id, unknown.id, risky.id]


def test_an_answer_says_which_arms_answered_and_why_not_both() -> None:
    """The mode, the cause of a degradation, and the evidence show it."""
    answer = search("file")
    assert answer.mode is Mode.KEYWORD
    assert answer.degraded == "There is no model."
    assert answer.hits[0].evidence.semantic is None


def test_an_item_of_a_later_source_is_marked_as_shadowed() -> None:
    """Both skills of one name are found; the one of the source with precedence comes first."""
    skills = [
        Item(
            id=f"{source}/review",
            kind=Kind.SKILL,
            name="review",
            source=source,
            description=f"For the {source}",
        )
        for source in ("user", "project")
    ]
    hits = search("review", skills).hits
    assert [(hit.id, hit.shadowed_by) for hit in hits] == [
        ("project/review", ""),
        ("user/review", "project/review"),
    ]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("  ", {}),
        ("x" * 32_001, {}),
        ("file", {"limit": 0}),
        ("file", {"threshold": 1.1}),
        ("file", {"alpha": -0.1}),
        ("file", {"alpha": "much"}),
        ("file", {"limit": True}),
        ("file", {"kinds": ["spoon"]}),
        ("file", {"tags": "danger"}),
    ],
)
def test_an_invalid_query_is_refused(text: str, options: dict[str, object]) -> None:
    """Every invalid text or option raises a ``UsageError``."""
    with pytest.raises(UsageError):
        search(text, ITEMS, **options)


def test_a_typed_name_is_shown_even_at_threshold_1() -> None:
    """No other hit reaches this threshold."""
    assert [hit.name for hit in search("send_email", threshold=1.0).hits] == ["send_email"]
    assert search("send a message", threshold=1.0).hits == []


@pytest.mark.parametrize("typed", ["close", "port", "js"])
def test_another_word_is_not_taken_for_a_typed_name(typed: str) -> None:
    """It is one edit away from a name, but a common word, or too short to be a misspelling."""
    items = [tool("git__clone"), tool("blog__post"), tool("box__jq")]
    assert search(typed, items).hits[0].confidence < 0.8
    assert search(typed, items, threshold=0.9).hits == []


def test_a_name_in_a_long_text_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is bounded, however often the text repeats the name and many items have it."""
    read = Mock(wraps=keyword_arm._has_words)
    monkeypatch.setattr(keyword_arm, "_has_words", read)
    items = [tool(f"server{number}__list_items") for number in range(keyword_arm.MAX_NAMED + 9)]
    assert search("why does list_items " * 50, items).hits
    assert read.call_count == keyword_arm.MAX_NAMED


def test_a_typed_id_ranks_above_a_name_with_the_same_letters() -> None:
    """Typing the id from an earlier result finds that item first."""
    skill = Item(id="s/x", kind=Kind.SKILL, name="git-commit", source="s", description="Commits")
    hits = search("git__commit", [tool("git__commit", "Commits"), skill]).hits
    assert [hit.id for hit in hits] == ["git__commit", "s/x"]


@pytest.mark.parametrize("typed", ["longrun", "geturl"])
def test_a_word_of_one_description_is_found_among_many_items_with_its_parts(typed: str) -> None:
    """Many names contain both parts of ``longrun``, or the part ``url`` of ``geturl``."""
    many = [tool(f"a__long_run_{number}_url", "A long run to a url") for number in range(50)]
    only = tool("b__turtles", f"With templates of @{typed}/turtle")
    assert only.id in [hit.id for hit in search(typed, [*many, only], limit=100).hits]


def test_an_item_whose_name_has_no_letters_is_found() -> None:
    """An item whose name is an emoji is found by its description."""
    party = Item(
        id="s/p", kind=Kind.SKILL, name="🎉", source="s", description="Celebrate a birthday party"
    )
    assert search("celebrate birthday party", [*ITEMS, party]).hits[0].id == "s/p"


@pytest.mark.parametrize("text", ["the of and", "?!...", "🎉", "文", "\x00", "a" * 3_000])
def test_odd_queries_are_answered_without_errors(text: str) -> None:
    """Stop words, punctuation, emoji, a single character and a very long word find nothing."""
    assert search(text).hits == []
