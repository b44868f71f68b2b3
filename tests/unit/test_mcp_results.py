"""Answers over MCP are valid in every version of the protocol and lose no hits."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from mcp_types import TextContent

from repertory.backend import Backend
from repertory.calling.result import CallResult
from repertory.catalogue.item import Item
from repertory.errors import StoreError, UnknownItemError
from repertory.search.answer import Answer
from repertory.search.links import Links
from repertory.search.query import Query
from repertory.values import Values
from repertory_query.mcp import catalogue, reading
from tests.support.builders import skill, tool
from tests.support.hybrid_search import hybrid_engine


class Stub:
    """A backend that answers calls with one result and whose store may be unavailable."""

    def __init__(self, result: object = None) -> None:
        self.result = result
        self.error: Exception | None = None

    def call(self, _tool: str, _arguments: Mapping[str, Any]) -> CallResult:
        """The configured result."""
        return CallResult(content=[], structured_content=self.result)

    def search(self, query: Query) -> Answer:
        """The answer over two skills."""
        return hybrid_engine([skill("keys", "Rotate keys"), skill("locks", "Oil locks")]).search(
            query
        )

    def items(self, _ids: Sequence[str]) -> dict[str, Any]:
        """No items."""
        return {}

    def links(self, item_id: str) -> Links:
        """A missing tool, or the error for the first skill."""
        if self.error and item_id == "team/keys":
            raise self.error
        return Links(missing=("mcp__vault__lock",))


@pytest.mark.parametrize("result", [[1, 2], "ok", 3, True])
def test_a_result_that_is_not_an_object_is_text(result: object) -> None:
    """Older versions allow only objects; a rejected answer would look like a failed call."""
    found = catalogue._call(cast("Backend", Stub(result)), {"tool": "a__b"})
    assert found.structured_content is None
    [text] = found.content
    assert isinstance(text, TextContent)
    assert json.loads(text.text) == result


@pytest.mark.parametrize("result", [{"a": 1}, None])
def test_a_result_that_is_an_object_is_structured_and_text(result: object) -> None:
    """Many hosts show their models only the text."""
    found = catalogue._call(cast("Backend", Stub(result)), {"tool": "a__b"})
    texts = [json.loads(one.text) for one in found.content if isinstance(one, TextContent)]
    assert texts == ([result] if result else [])
    assert found.structured_content == result


@pytest.mark.parametrize("error", [StoreError("Away."), UnknownItemError("It is gone.")])
def test_hits_are_returned_without_links_that_cannot_be_read(error: Exception) -> None:
    """A keyword search also works while the store is unavailable."""
    stub = Stub()
    stub.error = error
    given = {"query": "rotate keys", "detail": True, "threshold": 0.0}
    found = catalogue._search(cast("Backend", stub), given, Values())
    texts = [one.text for one in found.content if isinstance(one, TextContent)]
    assert not found.is_error
    assert "team/keys" in texts[0]
    assert ("team/locks needs" in texts[-1]) is isinstance(error, UnknownItemError)


BODY = """
# Part one

## Example

First.

### Example

Inner.

# Part two

## Other

Not this.

## example

Second.

# Example

Third.
"""


def test_sections_with_the_same_title_are_returned_together() -> None:
    """Each comes once, after its parent heading; a single section comes without it."""
    assert reading._section(skill("a", body=BODY), "## EXAMPLE") == (
        "# Part one\n\n## Example\n\nFirst.\n\n### Example\n\nInner.\n\n"
        "# Part two\n\n## example\n\nSecond.\n\n# Example\n\nThird."
    )
    assert reading._section(skill("a", body=BODY), "Other") == "## Other\n\nNot this."


def test_a_long_section_is_cut_like_a_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint lists only sections that are short enough; without any, there is no hint."""
    monkeypatch.setattr(reading, "MAX_TEXT_LENGTH", 30)
    item = skill("a", body=BODY)
    end = " The resource skill://team/a/SKILL.md has all of it.]"

    assert reading._fitting(reading._section(item, "Part two"), item).endswith(
        f"[Cut after 30 characters. Ask for a section: 'Other'.{end}"
    )
    assert reading._fitting("x" * 31, skill("a", body="x" * 31)).endswith(
        f"[Cut after 30 characters.{end}"
    )


def test_the_definition_of_a_tool_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resource of the tool contains the whole definition."""
    monkeypatch.setattr(reading, "MAX_TEXT_LENGTH", 100)
    item = tool("lab__mix", "Mix. " * 99)
    backend = cast("Backend", Shown(item))
    found = reading.GET.run(backend, {"id": item.id}).content[0].text

    assert len(found) < 200
    assert found.endswith("[Cut after 100 characters. The resource tool://lab__mix has all of it.]")
    assert json.loads(reading.text_of(item))["description"] == item.description


class Shown(Stub):
    """A backend with one item."""

    def __init__(self, item: Item) -> None:
        super().__init__()
        self._item = item

    def item(self, _: str) -> Item:
        """The only item."""
        return self._item
