"""Tools whose names are easily confused with names of another server's tools are reported."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.catalogue.likeness import MAX_FOUND, MIN_LENGTH, is_near, likenesses
from repertory.indexing.item_problems import problems_between
from repertory.indexing.latest_scans import LatestScans
from repertory.indexing.scan import scan_source
from repertory.sources.configured import Catalogue
from tests.support.builders import Folder, tool


def test_a_tool_with_the_name_of_another_servers_tool_is_found() -> None:
    """The spelling of the name does not matter; the later tool is reported."""
    items = [tool("git__create_issue"), tool("gut__createIssue"), tool("git__list_issues")]
    said = (
        "gut__createIssue has the same name as git__create_issue, a tool of another server; check "
        "that both are wanted."
    )
    assert likenesses(items) == ({"gut__createIssue": said}, 0)


@pytest.mark.parametrize("name", ["create_isue", "create_issuee", "create_issve", "xcreate_issue"])
def test_a_tool_whose_name_differs_by_one_letter_is_found(name: str) -> None:
    """One letter is added, missing or different."""
    found, _ = likenesses([tool("git__create_issue"), tool(f"gut__{name}")])
    assert list(found) == [f"gut__{name}"]
    assert "one letter from that of git__create_issue" in found[f"gut__{name}"]


def test_other_tools_are_not_reported() -> None:
    """Tools of one server, short names, and names with larger differences are not reported."""
    assert likenesses([tool("git__create_issue"), tool("git__create_issues")]) == ({}, 0)
    assert likenesses([tool("git__add"), tool("gut__ads")]) == ({}, 0)
    assert likenesses([tool("git__create_issue"), tool("gut__create_tissues")]) == ({}, 0)
    assert not is_near("abcdef", "bcdefa")
    assert not is_near("abcdef", "abcdef")


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.text("xy", min_size=5, max_size=8)), max_size=9)
)
def test_every_tool_after_one_with_a_similar_name_is_found(named: list[tuple[str, str]]) -> None:
    """The result equals a comparison of each tool with all before it."""
    tools = [tool(f"{server}{n}__{name}") for n, (server, name) in enumerate(named)]
    expected = {
        later.id
        for n, later in enumerate(tools)
        for earlier in tools[:n]
        if earlier.name == later.name
        or (
            min(len(earlier.name), len(later.name)) >= MIN_LENGTH
            and is_near(earlier.name, later.name)
        )
    }
    assert likenesses(tools)[0].keys() == expected


def test_the_number_of_reported_names_is_bounded() -> None:
    """A hostile server can offer thousands of them. A last problem counts the unlisted ones."""
    items = [tool(f"a__name_of_{n:04}") for n in range(2_000)]
    items += [tool(f"b__name_of_{n:04}") for n in range(2_000)]
    found, others = likenesses(items)
    assert (len(found), others) == (MAX_FOUND, 2_000 - MAX_FOUND)
    *listed, last = problems_between(items, ["team"], are_all=True)
    assert len(listed) == MAX_FOUND
    assert last.message.startswith("1,900 more tools have the name of another server's tool")


def test_a_similar_name_is_a_warning_about_the_item() -> None:
    """The warning names the tool, since the file of its server may define many."""
    folder, scans = Folder("team"), LatestScans({})
    folder.items = {one: tool(one) for one in ("git__create_issue", "gut__create_issue")}
    scans.adopt(Catalogue((folder,)))
    scans.add(scan_source(folder))
    assert [(one.severity, one.item) for one in scans.problems] == [
        ("warning", "gut__create_issue")
    ]
    assert all("gut__create_issue" in one.message for one in scans.problems)
