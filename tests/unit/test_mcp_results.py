"""Answers over MCP that every version of the protocol allows, and that lose no hit."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from mcp_types import TextContent

from repertory.backend import Backend
from repertory.calling.result import CallResult
from repertory.errors import StoreError, UnknownItemError
from repertory.search.answer import Answer
from repertory.search.links import Links
from repertory.search.query import Query
from repertory.values import Values
from repertory_query.mcp import catalogue
from tests.support.builders import skill
from tests.support.hybrid_search import hybrid_engine


class Stub:
    """A backend that answers calls with one result, and whose store may be away."""

    def __init__(self, result: object = None) -> None:
        self.result = result
        self.error: Exception | None = None

    def call(self, _tool: str, _arguments: Mapping[str, Any]) -> CallResult:
        """The result."""
        return CallResult(content=[], structured_content=self.result)

    def search(self, query: Query) -> Answer:
        """Two skills."""
        return hybrid_engine([skill("keys", "Rotate keys"), skill("locks", "Oil locks")]).search(
            query
        )

    def items(self, _ids: Sequence[str]) -> dict[str, Any]:
        """Nothing."""
        return {}

    def links(self, item_id: str) -> Links:
        """A missing tool; of the first skill only an error."""
        if self.error and item_id == "team/keys":
            raise self.error
        return Links(missing=("mcp__vault__lock",))


@pytest.mark.parametrize("result", [[1, 2], "ok", 3, True])
def test_data_that_is_no_object_is_a_text(result: object) -> None:
    """Older versions allow objects alone; a refused answer would look like a failed call."""
    found = catalogue._call(cast("Backend", Stub(result)), {"tool": "a__b"})
    assert found.structured_content is None
    [text] = found.content
    assert isinstance(text, TextContent)
    assert json.loads(text.text) == result


@pytest.mark.parametrize("result", [{"a": 1}, None])
def test_an_object_stays(result: object) -> None:
    """As it is, and a text says it, too: many hosts show their models the text alone."""
    found = catalogue._call(cast("Backend", Stub(result)), {"tool": "a__b"})
    texts = [json.loads(one.text) for one in found.content if isinstance(one, TextContent)]
    assert texts == ([result] if result else [])
    assert found.structured_content == result


@pytest.mark.parametrize("error", [StoreError("Away."), UnknownItemError("It is gone.")])
def test_links_that_cannot_be_read_take_no_hit_away(error: Exception) -> None:
    """The words of a query answer while the store is away."""
    stub = Stub()
    stub.error = error
    given = {"query": "rotate keys", "detail": True, "threshold": 0.0}
    found = catalogue._search(cast("Backend", stub), given, Values())
    texts = [one.text for one in found.content if isinstance(one, TextContent)]
    assert not found.is_error
    assert "team/keys" in texts[0]
    assert ("team/locks needs" in texts[-1]) is isinstance(error, UnknownItemError)
