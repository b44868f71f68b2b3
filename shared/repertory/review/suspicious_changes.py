"""Rules about suspicious changes, which compare an item with its approved version."""

import functools
import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.passages import item_passages
from repertory.catalogue.safety import READ_ONLY
from repertory.catalogue.schemas import References
from repertory.review.readings import readings
from repertory.review.suspicions import Finding, shown, suspicions

MAX_NESTING = 20  # levels of a schema
MAX_NAME = 200  # characters of a name in a path. Thousands of paths may repeat a longer one
MAX_PARTS = 20_000  # visited parts of a schema, each counted once per reference to it

_COMBINED = ("anyOf", "oneOf", "allOf")
# Values of these formats can carry little data away. Validators ignore unknown formats.
_SHORT_FORMATS = ("date", "date-time", "time", "duration", "uuid", "ipv4", "ipv6")

T = TypeVar("T")

# The parts of a regular expression: an escape, a class of characters, or one character.
_PARTS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*+\]?|.", re.DOTALL)
# Escapes that may match a blank.
_BLANK = re.compile(r"\\[sDWpPxuctnrfv0]")

# Orders to the model. Many honest texts have them, so only new ones in a tool count.
_ORDERS = re.compile(
    r"\b(?:you must|you should always|must always|always (?:call|use|run|send|include|pass|read)|"
    r"(?:call|use|run) this (?:tool )?(?:first|before)|before (?:using|calling) (?:this|any|other)|"
    r"important\s?:|do not ask|without asking|without confirmation|never ask)",
    re.IGNORECASE,
)


def suspicious_changes(item: Item, before: Item) -> list[Finding]:
    """The suspicions in an item that its approved version does not have.

    Args:
        item: The item as it is now.
        before: The approved version.
    """
    texts = set(item_passages(before))
    found = suspicions(item, known=texts)
    if item.kind is Kind.TOOL:
        found += _tool_changes(item, before, texts)
    return found


def _tool_changes(item: Item, before: Item, texts: set[str]) -> Iterator[Finding]:
    added = free_text(item.input_schema) - free_text(before.input_schema)
    if added:
        yield Finding(
            rule="new-free-text",
            message="It has a new parameter that takes any text, which can carry data away.",
            passage=shown(", ".join(sorted(added))),
        )
    if READ_ONLY in before.tags and READ_ONLY not in item.tags:
        yield Finding(
            rule="no-longer-read-only",
            message="Its server no longer says that it changes nothing.",
            passage="readOnlyHint",
        )
    if _request(before) and _request(item) != _request(before):
        yield Finding(
            rule="new-request",
            message="A call now sends another request, or sends secrets to another place.",
            passage=shown(f"{_request(before)} → {_request(item)}"),
        )
    for passage in item_passages(item):
        if passage not in texts and any(map(_ORDERS.search, readings(passage))):
            yield Finding(
                rule="new-instructions",
                message="It gives the model new orders.",
                passage=shown(passage),
            )
            return


def _request(item: Item) -> str:
    """The method, the URL and the security of an HTTP operation; empty for other tools."""
    http = item.extra.get("http")
    if not isinstance(http, Mapping):
        return ""
    security = msgspec.json.encode(http.get("security"), order="deterministic").decode()
    return f"{http.get('method')} {http.get('url')}{'' if security == 'null' else f' {security}'}"


def free_text(schema: Mapping[str, Any] | None) -> set[str]:
    """The paths of the parameters that take any text, such as ``options.note``.

    Recursive references are followed once. If a schema has more than ``MAX_PARTS``, its digest is
    added to the paths, so that any change of it counts.
    """
    found: set[str] = set()
    # A path, its part, the remaining depth, and the references that led there.
    start: tuple[str, object, int, frozenset[str]] = ("", schema, MAX_NESTING, frozenset())
    waiting = [start]
    referred = functools.cache(functools.partial(_referred, References(schema)))
    for _ in range(MAX_PARTS):
        if not waiting:
            return found
        path, part, depth, behind = waiting.pop()
        part = {} if part is True else part  # in JSON Schema, both mean any value
        if not isinstance(part, Mapping) or not depth:
            continue
        if path and _takes_any_text(part):
            found.add(path)
        inner = ((where, one, depth - 1, behind) for where, one in _inner(path, part))
        waiting += (one for one in inner if isinstance(one[1], Mapping) or one[1] is True)
        place = part["$ref"] if isinstance(part.get("$ref"), str) else ""
        if "$ref" in part and place not in behind:
            waiting.append((path, referred(place), depth - 1, behind | {place}))
    digest = hashlib.sha256(msgspec.json.encode(schema, order="deterministic"))
    return {*found, digest.hexdigest()}


def _inner(path: str, part: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The schemas in a part of a schema, each with its path."""
    for key, within in (("properties", f"{path}."), ("patternProperties", f"{path}.*")):
        for name, inner in _of(part, key, dict).items():
            yield f"{within}{_short(name)}".lstrip("."), inner
    for key in ("additionalProperties", "unevaluatedProperties"):
        if (others := part.get(key)) is not True:  # true is the default
            yield f"{path}.*".lstrip("."), others
    for key in ("items", "prefixItems", "contains"):
        value = part.get(key)
        yield from ((f"{path}[]", one) for one in (value if isinstance(value, list) else [value]))
    yield from ((path, one) for key in _COMBINED for one in _of(part, key, list))
    yield from ((path, part.get(key)) for key in ("then", "else"))
    for key in ("dependentSchemas", "dependencies"):
        yield from ((path, one) for one in _of(part, key, dict).values())


def _short(name: str) -> str:
    """A name, or the digest of a long one."""
    is_long = len(name) > MAX_NAME
    return hashlib.sha256(name.encode(errors="replace")).hexdigest() if is_long else name


def _referred(references: References, place: str) -> object:
    """The target of a reference within a schema; a schema for any value if it is missing."""
    pointer = references.pointer(place)
    return {} if pointer is None else references.at(pointer)


def _of(part: Mapping[str, Any], key: str, kind: type[T]) -> T:
    """The value of a key, or an empty value if it has another type."""
    value = part.get(key)
    return value if isinstance(value, kind) else kind()


def _takes_any_text(schema: Mapping[str, Any]) -> bool:
    types = schema.get("type")
    is_short = schema.get("format") in _SHORT_FORMATS or _is_bound(schema.get("pattern"))
    if is_short or "enum" in schema or "const" in schema:
        return False
    if "string" in (types if isinstance(types, list) else [types]):
        return True
    others = ("$ref", "properties", *_COMBINED)
    return types is None and not any(schema.get(other) for other in others)


def _is_bound(pattern: object) -> bool:
    """Whether a pattern is anchored at both ends and allows no blanks, so no sentences."""
    parts = _PARTS.findall(pattern) if isinstance(pattern, str) else []
    depth, branches = 0, [""]
    for part in parts:
        if _may_be_blank(part):
            return False
        depth += (part == "(") - (part == ")")
        if part == "|" and depth <= 0:
            branches.append("")
        else:
            branches[-1] += part if len(part) == 1 else "x"
    return all(len(one) > 1 and one[0] == "^" and one[-1] == "$" for one in branches)


def _may_be_blank(part: str) -> bool:
    """Whether a part of a regular expression may match a blank."""
    if part.startswith("[^"):
        return "\\s" not in _PARTS.findall(part[2:]) or not part.endswith("]")
    if part.startswith("["):
        return " " in part or bool(_BLANK.search(part)) or not part.endswith("]")
    return part in (".", " ") or bool(_BLANK.match(part))
