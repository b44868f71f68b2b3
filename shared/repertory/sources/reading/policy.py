"""The policy that an author gives an item in its front matter or manifest.

Authors are untrusted, so their boost is more limited than one in a configuration.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from repertory.catalogue.policy import FIELDS, MAX_AUTHOR_BOOST, Policy, as_field, defect
from repertory.sources.source import Problem, warning

KEYS = frozenset(FIELDS) | {field.replace("_", "-") for field in FIELDS}
_COMMAS = re.compile("[,\u060c\u3001\uff0c\uff64]")  # including Arabic, Chinese and Japanese ones


def authored(fields: Mapping[str, Any], path: str) -> tuple[Policy | None, list[Problem]]:
    """Read the policy in front matter, at its top level or in its metadata, and its problems.

    Names may have hyphens. Metadata is text in the Agent Skills format, so lists may be
    comma-separated and numbers may be text.
    """
    policy, problems = Policy(), []
    for field, value in _given(fields):
        if wanted := defect(field, value):
            message = f"The `{field}` was left out; it must be {wanted}."
            problems.append(warning(path, message))
            continue
        if field == "boost" and value > MAX_AUTHOR_BOOST:
            message = (
                f"The `boost` is {value:g} and counts {MAX_AUTHOR_BOOST}; only a [[policy]] of a "
                "configuration may give more."
            )
            problems.append(warning(path, message))
            value = MAX_AUTHOR_BOOST  # noqa: PLW2901 - the value that counts
        policy = msgspec.structs.replace(policy, **{field: as_field(value)})
    return None if policy == Policy() else policy, problems


def parts_of(text: str) -> list[str]:
    """The parts of a text between commas of any script, without empty ones."""
    return [one for one in map(str.strip, _COMMAS.split(text)) if one]


def _given(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the given fields of a policy with their values in the expected shape."""
    metadata = fields.get("metadata")
    places = [metadata, fields] if isinstance(metadata, dict) else [fields]  # the last one wins
    for place in places:
        for field in FIELDS:
            for key in dict.fromkeys((field.replace("_", "-"), field)):
                if place.get(key) is not None:
                    yield field, _shaped(field, place[key])


def _shaped(field: str, value: Any) -> Any:  # noqa: ANN401 - any value from an author
    if field in ("pin", "aliases") and isinstance(value, str):
        return parts_of(value)
    if field == "boost" and isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    if field == "when_not_to_use" and isinstance(value, list):
        return "; ".join(map(str, value))
    return value
