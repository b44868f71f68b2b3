"""Answers of MCP servers that are too large to be taken apart."""

import json

import pytest

from repertory.sources.mcp.mending import MAX_SIZE, mended


@pytest.mark.parametrize(
    "form",
    ['{"id": 3, "jsonrpc": "2.0", "result": %s}', '{"jsonrpc": "2.0", "result": %s, "id" : 3 }\n'],
)
def test_a_large_unreadable_answer_ends_the_wait(form: str) -> None:
    """Its request gets an error, wherever its id stands."""
    tools = f'{{"tools": [{{"name": "\\ud800", "description": "{"x" * MAX_SIZE}"}}]}}'
    answer = mended((form % tools).encode(), [])
    assert answer is not None
    message = json.loads(answer)
    assert message["id"] == 3
    assert "cannot be read" in message["error"]["message"]


@pytest.mark.parametrize("end", ['"id": 3', '"of": {"id": 3}', '"id": 3, "other": 4'])
def test_only_an_id_of_the_answer_is_taken(end: str) -> None:
    """Nothing is answered for a request that a large answer does not name at its start or end."""
    text = f'{{"text": "\\ud800{"x" * MAX_SIZE}", {end}}}'
    assert (mended(text.encode(), []) is not None) is (end == '"id": 3')
