"""Laws of the order: typed names first, the requested action first, inferred hits last."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from repertory.catalogue.item import Item
from tests.support.builders import skill, tool
from tests.support.search_laws import (
    BOTH_ARMS,
    PROSE,
    Engine,
    catalogues,
    few,
    names,
    queries,
    search,
    spellings,
)

TO_GIT = "commit my changes to git"

# Names


@BOTH_ARMS
def test_names_that_equal_the_typed_words_come_before_longer_ones(engine: Engine) -> None:
    """A name that only adds the server's name to the typed words also precedes longer names."""
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
    found = names(search(engine(tools), "create an issue"))
    assert {*found[:2]} == {"create_issue", "linear_create_issue"}


@BOTH_ARMS
def test_a_matched_name_hides_no_other_item(engine: Engine) -> None:
    """``read file`` finds the tool of that name and one that does the same."""
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
    """It leads in any spelling, whatever the texts of other items."""
    named = data.draw(st.sampled_from(catalogue))
    typed = data.draw(st.sampled_from(spellings(named.name.split("_"))))
    assert search(engine(catalogue), typed)[0].name == named.name


# Inference


@BOTH_ARMS
@few
@given(catalogue=catalogues, text=queries | st.just(TO_GIT))
@example(catalogue=[], text=TO_GIT)
def test_inferred_hits_come_last_and_displace_no_direct_hit(
    engine: Engine, catalogue: list[Item], text: str
) -> None:
    """Their confidences do not exceed those of direct hits, and they only fill free places."""
    more = [skill("history", "How changes are committed"), tool("term__run_command", "Run it")]
    searched = engine([*catalogue, *(more if catalogue else [*PROSE, *more])])
    hits = search(searched, text)
    direct = [hit for hit in hits if not hit.evidence.capability]
    assert catalogue or (len(direct), len(hits)) == (1, 2)
    assert hits[: len(direct)] == direct
    for hit in hits[len(direct) :]:
        assert all(hit.confidence <= other.confidence for other in direct)
    for limit in range(1, len(direct) + 1):
        assert search(searched, text, limit) == direct[:limit]


@BOTH_ARMS
@pytest.mark.parametrize(
    "text", ["kubernetes", "docker", "pytest", "Terraform", "run a shell command", "find files"]
)
def test_a_tool_that_waits_for_a_terminal_state_is_not_a_shell(engine: Engine, text: str) -> None:
    """A tool counts as a shell because of its name or parameters, not of its description."""
    tools = [
        tool("crawler__crawl", "Start a crawl and poll until it reaches a terminal state"),
        tool("ci__wait_for_job", "Wait for a job to reach a terminal status"),
    ]
    assert search(engine(tools), text) == []
    shell = tool("Shell__run", "Run any shell command")
    inferred = [hit for hit in search(engine([*tools, shell]), text) if hit.evidence.capability]
    assert {hit.id for hit in inferred} <= {shell.id}


# Actions


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
def test_the_verb_of_a_request_decides_between_tools_for_one_object(
    engine: Engine, text: str, expected: str, not_first: str
) -> None:
    """Verbs of the same class of actions match, such as ``remove`` and ``forget``."""
    actions = ("create", "get", "list", "update", "forget")
    tools = [tool(f"notes__{verb}_note", "For a note") for verb in actions]
    found = names(search(engine([*tools, *PROSE]), text))
    assert found[0] == expected
    assert not_first not in found or found.index(not_first) > 0


@BOTH_ARMS
def test_ties_are_broken_by_safety(engine: Engine) -> None:
    """Tags from tools' annotations decide: read-only, then unknown, then destructive."""
    tools = [
        tool("a__note", "The note of a customer order", tags=("destructive",), server="s"),
        tool("b__note", "Of a customer, the order note", server="s"),
        tool("c__note", "An order of the note, customer", tags=("read-only",), server="s"),
    ]
    assert [hit.id for hit in search(engine(tools), "note")] == ["c__note", "b__note", "a__note"]
