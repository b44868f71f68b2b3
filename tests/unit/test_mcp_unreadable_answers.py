"""Answers of MCP servers that are too large to be taken apart."""

import json

import pytest

from repertory.sources.mcp.unreadable_answers import MAX_SIZE, mended


def test_half_a_character_costs_nothing() -> None:
    """A tool with half an emoji is kept beside one that is left out; any other answer is whole."""
    half, bad = r'{"name": "half", "description": "\ud83d"}', '{"name": "bad", "x": "\\x"}'
    form = '{"jsonrpc": "2.0", "id": 3, "result": {"tools": [%s]}}'
    complaints: list[str] = []
    for tools in (half, f"{bad}, {half}"):
        answer = mended((form % tools).encode(), complaints)
        assert answer is not None
        [kept] = json.loads(answer)["result"]["tools"]
        assert kept == {"name": "half", "description": "\ufffd"}
    assert len(complaints) == 1

    called = b'{"jsonrpc": "2.0", "id": 3, "result": {"content": [{"text": "\\ud83d"}]}}'
    answer = mended(called, complaints)
    assert answer is not None
    assert json.loads(answer)["result"]["content"] == [{"text": "\ufffd"}]
    assert len(complaints) == 1


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
