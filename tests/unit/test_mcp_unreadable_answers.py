"""Invalid answers of MCP servers are repaired or replaced by an error."""

import json

import pytest

from repertory.sources.mcp.unreadable_answers import MAX_SIZE, mended


def test_a_lone_surrogate_is_replaced() -> None:
    """The tool with the surrogate is kept; only a tool with invalid JSON is left out."""
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
def test_a_large_unreadable_answer_becomes_an_error(form: str) -> None:
    """The request must not wait until its timeout; the id may be at the start or the end."""
    tools = f'{{"tools": [{{"name": "\\ud800", "description": "{"x" * MAX_SIZE}"}}]}}'
    answer = mended((form % tools).encode(), [])
    assert answer is not None
    message = json.loads(answer)
    assert message["id"] == 3
    assert "cannot be read" in message["error"]["message"]


@pytest.mark.parametrize("end", ['"id": 3', '"of": {"id": 3}', '"id": 3, "other": 4'])
def test_only_an_id_at_the_start_or_the_end_of_a_large_answer_is_read(end: str) -> None:
    """Without such an id there is no answer; an id of an inner object does not count."""
    text = f'{{"text": "\\ud800{"x" * MAX_SIZE}", {end}}}'
    assert (mended(text.encode(), []) is not None) is (end == '"id": 3')
