"""A search with the keyword arm alone: names, corrections, inference, confidence."""

from unittest.mock import Mock

import msgspec
import pytest

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.policy import Policy
from repertory.errors import UsageError
from repertory.search import candidates
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
    """Search some items by keywords alone."""
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
    """In any case and with any separators, and by its id too."""
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
    """This holds up to the confidence of a name."""
    assert [hit.name for hit in search("send_email", threshold=0.95).hits] == ["send_email"]


def test_a_capability_is_inferred_if_no_item_does_the_job() -> None:
    """With no git tool, a shell is offered, and the reason names the inference."""
    first = search("commit my changes to git").hits[0]
    assert first.id == "term__run_command"
    assert first.reason == "Capability inference (shell → git operations)"
    assert first.evidence.capability == "shell → git operations"


def test_copies_of_a_weak_hit_leave_room_for_a_general_tool() -> None:
    """Three copies of a skill are one hit of three: the shell is offered beside it."""
    advice = skill("branching-advice", "Ideas for git changes of teams and people in firms")
    copies = [msgspec.structs.replace(advice, id=f"host{at}/advice") for at in range(3)]
    for searched in ([advice], copies):
        hits = search("commit my changes to git", [*ITEMS, *searched], limit=3).hits
        assert [hit.name for hit in hits] == ["branching-advice", "run_command"]
        assert len(hits[0].duplicates) == len(searched) - 1


def test_confidence_does_not_rise_behind_a_tool_that_its_policy_lowers() -> None:
    """At a low threshold a weak hit may fit better than what is inferred."""
    shell = tool("term__run_command", "Executes one in a terminal", policy=Policy(boost=-1.0))
    other = tool("notes__changes", "Lists what is new in a text that others wrote")
    hits = search("commit my changes to git", [shell, other], threshold=0.0).hits
    assert [hit.id for hit in hits] == [other.id, shell.id]
    assert hits[0].confidence > hits[1].confidence


def test_the_closest_item_is_none_that_is_shown() -> None:
    """A tool may be offered for its capability whose own confidence is below the threshold."""
    shell = tool("term__run_command", "Runs a command and shows the changes")
    other = skill("notes", "Lists what is new", "Some changes are listed.")
    answer = search("commit my changes to git", [shell, other])
    assert [(hit.id, bool(hit.evidence.capability)) for hit in answer.hits] == [(shell.id, True)]
    assert answer.closest == other.id


def test_what_is_gone_is_not_the_closest_item_and_takes_no_room() -> None:
    """A search that may not wait for the index asks whether the files of its hits are there."""
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
    """A direct match that is good enough stands alone."""
    git = tool("git__git_commit", "Commit changes to git")
    hits = search("commit my changes to git", [*ITEMS, git]).hits
    assert hits[0].id == "git__git_commit"
    assert not any(hit.evidence.capability for hit in hits)


def test_nonsense_finds_nothing() -> None:
    """No hit is better than a wrong one."""
    answer = search("purple elephant quantum yodel")
    assert answer.hits == []
    assert answer.best_below < answer.threshold


def test_filters_hold_for_names_and_inference_too() -> None:
    """An excluded item does not return by name or inference."""
    assert search("read_file", servers=["mail"]).hits == []
    assert search("commit my changes to git", servers=["mail"]).hits == []
    assert [hit.name for hit in search("file", tags=["danger"]).hits] == ["write_file"]


def test_confidences_fall_down_the_list_and_stay_in_range() -> None:
    """They follow the order, within 0…1, at or above the threshold."""
    hits = search("write a message to a file", limit=5, threshold=0.0).hits
    values = [hit.confidence for hit in hits]
    assert len(values) >= 3
    assert values == sorted(values, reverse=True)
    assert all(0.0 <= value <= 1.0 for value in values)


def test_a_confidence_does_not_depend_on_the_limit() -> None:
    """It is a property of the item and the query."""
    one = search("send a message", limit=1).hits[0]
    assert search("send a message", limit=5).hits[0] == one


def test_of_equals_the_harmless_one_leads_whatever_its_source() -> None:
    """Then the source that comes first."""
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
    """Degradation is never silent."""
    answer = search("file")
    assert answer.mode is Mode.KEYWORD
    assert answer.degraded == "There is no model."
    assert answer.hits[0].evidence.semantic is None


def test_the_earlier_source_leads_and_the_other_says_it_is_shadowed() -> None:
    """Two skills of one name are both found; the one with precedence comes first."""
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
    """Empty, too long, a number out of range, an unknown kind, a string instead of a list."""
    with pytest.raises(UsageError):
        search(text, ITEMS, **options)


def test_a_typed_name_is_shown_at_any_threshold() -> None:
    """Even at a threshold that no confidence reaches."""
    assert [hit.name for hit in search("send_email", threshold=1.0).hits] == ["send_email"]
    assert search("send a message", threshold=1.0).hits == []


@pytest.mark.parametrize("typed", ["close", "port", "js"])
def test_another_word_is_not_taken_for_a_typed_name(typed: str) -> None:
    """It is one edit away from a name, yet a usual word, or too short to be misspelt."""
    items = [tool("git__clone"), tool("blog__post"), tool("box__jq")]
    assert search(typed, items).hits[0].confidence < 0.8
    assert search(typed, items, threshold=0.9).hits == []


def test_a_name_in_a_long_text_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the text has it, and however many items are called so."""
    read = Mock(wraps=candidates._has_words)
    monkeypatch.setattr(candidates, "_has_words", read)
    items = [tool(f"server{number}__list_items") for number in range(candidates.MAX_NAMED + 9)]
    assert search("why does list_items " * 50, items).hits
    assert read.call_count == candidates.MAX_NAMED


def test_an_id_that_was_typed_leads_a_name_of_the_same_letters() -> None:
    """The id that a result shows finds that item."""
    skill = Item(id="s/x", kind=Kind.SKILL, name="git-commit", source="s", description="Commits")
    hits = search("git__commit", [tool("git__commit", "Commits"), skill]).hits
    assert [hit.id for hit in hits] == ["git__commit", "s/x"]


@pytest.mark.parametrize("typed", ["longrun", "geturl"])
def test_a_word_of_one_description_is_found_beside_many_items_with_its_parts(typed: str) -> None:
    """``longrun`` is two common words, too, that stand in many names; of ``geturl`` one is left."""
    many = [tool(f"a__long_run_{number}_url", "A long run to a url") for number in range(50)]
    only = tool("b__turtles", f"With templates of @{typed}/turtle")
    assert only.id in [hit.id for hit in search(typed, [*many, only], limit=100).hits]


def test_a_name_without_letters_does_no_harm() -> None:
    """An item named by a picture alone is found by its description."""
    party = Item(
        id="s/p", kind=Kind.SKILL, name="🎉", source="s", description="Celebrate a birthday party"
    )
    assert search("celebrate birthday party", [*ITEMS, party]).hits[0].id == "s/p"


@pytest.mark.parametrize("text", ["the of and", "?!...", "🎉", "文", "\x00", "a" * 3_000])
def test_odd_queries_have_an_answer(text: str) -> None:
    """Stop words, signs, pictures, one character, a very long word."""
    assert search(text).hits == []
