"""What an author decided about an item, in its front matter or its manifest.

Authors may be strangers: what would put their items before others counts less from them than from
a configuration.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from repertory.catalogue.policy import FIELDS, Policy, defect
from repertory.sources.policies import as_field
from repertory.sources.reading.problems import warning
from repertory.sources.source import Problem

MOST_BOOST = 0.25  # that an author may give

KEYS = frozenset(FIELDS) | {field.replace("_", "-") for field in FIELDS}


def authored(
    fields: Mapping[str, Any], path: str, item_id: str
) -> tuple[Policy | None, list[Problem]]:
    """The policy that front matter holds, on its top level or as metadata, and what is wrong in it.

    Names may have hyphens. As metadata is text in the Agent Skills format, lists may be words
    with commas and numbers may be text.

    Args:
        fields: The front matter.
        path: Its file, for problems.
        item_id: The item, likewise.
    """
    policy, problems = Policy(), []
    for field, value in _given(fields):
        if wanted := defect(field, value):
            message = f"The `{field}` was left out; it must be {wanted}."
            problems.append(warning(path, message, item=item_id))
            continue
        if field == "boost" and value > MOST_BOOST:
            message = f"The `boost` is {value:g} and counts {MOST_BOOST}; only a [[policy]] of a "
            message += "configuration may give more."
            problems.append(warning(path, message, item=item_id))
            value = MOST_BOOST  # noqa: PLW2901 - what it counts
        policy = msgspec.structs.replace(policy, **{field: as_field(value)})
    return None if policy == Policy() else policy, problems


def _given(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields of a policy with what was written as theirs, in a shape that they have."""
    metadata = fields.get("metadata")
    places = [metadata, fields] if isinstance(metadata, dict) else [fields]  # the last one wins
    for place in places:
        for field in FIELDS:
            for key in dict.fromkeys((field.replace("_", "-"), field)):
                if place.get(key) is not None:
                    yield field, _shaped(field, place[key])


def _shaped(field: str, value: Any) -> Any:  # noqa: ANN401 - whatever an author wrote
    if field in ("pin", "aliases") and isinstance(value, str):
        return [one for one in map(str.strip, value.split(",")) if one]
    if field == "boost" and isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    if field == "when_not_to_use" and isinstance(value, list):
        return "; ".join(map(str, value))
    return value
