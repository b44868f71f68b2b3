"""An answer in contract 3's JSON form, the same from the command line and over HTTP."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from repertory.plain import plain
from repertory.search.answer import Answer, Hit


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
    hits = [
        {**_snake(hit), "server": hit.get("serverName"), "name": hit.get("toolName")}
        for hit in results
    ]
    return msgspec.convert({**_snake(data), "hits": hits}, Answer)


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
