"""The number of tokens that the MCP server costs a model, on the example catalogue."""

from pathlib import Path

import pytest

from benchmarks import tokens
from repertory.values import Values
from repertory_query.mcp.toolset_names import Toolset
from repertory_query.mcp.toolsets import tools_of

pytest.importorskip("rs_bpe", reason="rs-bpe, the tokenizer, is not installed")


def test_definitions_and_hits_stay_within_their_limits(tmp_path: Path) -> None:
    """The figures are the three definitions, the longest three hits, and a peer's answer."""
    figures = tokens.run(tmp_path)

    assert len(figures) == 3
    for figure in figures:
        assert figure.ours > 50
        assert figure.reached, figure


def test_definitions_leave_room_for_twelve_tags() -> None:
    """They also leave room for twelve names of sources and servers."""
    names = ", ".join(f"{first}-{second}" for first in ("web", "team", "data") for second in "abcd")
    said = f"The catalogue holds 2,184 skills (user, team), 870 tools ({names}). Tags: {names}."
    tools = tools_of([Toolset.CATALOGUE], Values)
    listed = [
        tool.definition(said).model_dump(by_alias=True, exclude_none=True, mode="json")
        for tool in tools
    ]

    assert [tool.function.name for tool in tools] == ["search", "get", "call"]
    assert tokens.count(listed) <= tokens.MAX_DEFINITIONS
