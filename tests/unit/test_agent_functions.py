"""The text that a model gets for a tool's result, in the adapters for agent frameworks."""

from typing import Any

import pytest

from repertory.calling.result import CallResult
from repertory.integrations.agent import words_of

TEXT = {"type": "text", "text": "done"}
FILE = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "what a.txt has"}}
BYTES = {"type": "resource", "resource": {"uri": "file:///b.bin", "blob": "AAA="}}
LINK = {"type": "resource_link", "uri": "file:///c.txt", "name": "c"}
IMAGE = {"type": "image", "data": "AAA=", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("content", "data", "words"),
    [
        ([], None, ""),
        ([TEXT, TEXT], {"a": 1}, "done\ndone"),
        ([], {"a": 1}, '{"a":1}'),
        ([IMAGE, LINK], {"a": 1}, '{"a":1}'),
        ([TEXT, FILE], None, "done\nwhat a.txt has"),
        ([BYTES, LINK, IMAGE], None, "file:///b.bin\nfile:///c.txt\nimage/png"),
        ([{"type": "text", "text": "", "resource": "odd"}], None, ""),
    ],
)
def test_the_result_of_a_tool_becomes_text_for_a_model(
    content: list[dict[str, Any]], data: object, words: str
) -> None:
    """Structured data is used if no text exists.

    Other content is named by its URI or media type.
    """
    assert words_of(CallResult(content=content, structured_content=data)) == words
