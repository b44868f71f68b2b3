"""An answer in contract 3's JSON form, and an explanation of one: the same in every face."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from repertory.plain import plain
from repertory.search.answer import Answer, Hit
from repertory.search.explanation import Explanation


def as_json(answer: Answer) -> dict[str, Any]:
    """The answer in contract 3's form, with what is known beside it."""
    return {
        "query": answer.query,
        "results": [_hit_as_json(hit) for hit in answer.hits],
        "totalResults": len(answer.hits),
        "threshold": answer.threshold,
        "mode": answer.mode,
        "degraded": answer.degraded,
        "indexVersion": answer.index_version,
        "items": answer.items,
        "staleSources": list(answer.stale_sources),
        "bestBelow": answer.best_below,
    }


def answer_of(data: Mapping[str, Any]) -> Answer:
    """The answer that ``as_json`` made this of; what is not known is passed over.

    Raises:
        msgspec.ValidationError: It is none.
    """
    results = msgspec.convert(data.get("results"), list[dict[str, Any]])
    return msgspec.convert({**_snake(data), "hits": [_hit_of(hit) for hit in results]}, Answer)


def explanation_as_json(explanation: Explanation) -> dict[str, Any]:
    """The explanation, its hit in the form that it has in an answer."""
    fields: dict[str, Any] = plain(explanation)
    return {**fields, "hit": _hit_as_json(explanation.hit)}


def explanation_of(data: Mapping[str, Any]) -> Explanation:
    """The explanation that ``explanation_as_json`` made this of, as ``answer_of``."""
    hit = msgspec.convert(data.get("hit"), dict[str, Any])
    return msgspec.convert({**_snake(data), "hit": _hit_of(hit)}, Explanation)


def _hit_of(hit: Mapping[str, Any]) -> dict[str, Any]:
    return {**_snake(hit), "server": hit.get("serverName"), "name": hit.get("toolName")}


def _hit_as_json(hit: Hit) -> dict[str, Any]:
    fields: dict[str, Any] = plain(hit)
    server, name = fields.pop("server"), fields.pop("name")
    return {"toolId": hit.id, "serverName": server, "toolName": name, **fields}


def _snake(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields under their names in Python, also those within fields."""
    return {
        re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name): (
            _snake(value) if isinstance(value, dict) else value
        )
        for name, value in fields.items()
    }
