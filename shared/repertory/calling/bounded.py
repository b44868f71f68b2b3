"""JSON Schema within bounds: a schema comes from a stranger, and so may the value.

The library's keywords are kept, each with a look at the clock before it; those that match patterns
or compare everything with everything are our own. Nothing is ever fetched.
"""

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend, validator_for
from pydantic_core import SchemaError, SchemaValidator, core_schema
from pydantic_core import ValidationError as Mismatch
from referencing import Registry

LONGEST_CHECK = 1.0  # seconds of the processor
KNOWN_PATTERNS = 1_024  # that are kept compiled

# Neither the validator that a keyword is given nor what is checked has a type in the library.
_Validator = Any
_Keyword = Callable[[_Validator, Any, Any, Any], Iterator[ValidationError] | None]

_deadline: ContextVar[float] = ContextVar("deadline")


class TooLongError(Exception):
    """The check has taken its time."""


def errors(value: object, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    """What of a value does not fit a schema, found one by one.

    Args:
        value: Plain JSON.
        schema: In the draft that it names, else 2020-12. Formats are not checked, nor patterns
            that only an engine that backtracks could match, nor ``unevaluated…``.

    Raises:
        TooLongError: It takes too long.
        Exception: Whatever a schema that is not as it should be makes the library raise.
    """
    draft = schema.get("$schema")
    named = {"$schema": draft} if isinstance(draft, str) else {}
    kind = _bounded(validator_for(named, Draft202012Validator))
    _deadline.set(time.thread_time() + LONGEST_CHECK)
    yield from kind(dict(schema), registry=Registry()).iter_errors(value)


@functools.cache
def _bounded(draft: Any) -> Any:  # noqa: ANN401 - classes without a type
    """The validator of a draft, within our bounds."""
    keywords = {name: _timed(_OWN.get(name, one)) for name, one in draft.VALIDATORS.items()}
    bounded: Any = extend(draft, keywords)  # type: ignore[no-untyped-call]  # it has no types

    def evolve(self: _Validator, schema: object, _resolver: object = None) -> _Validator:
        """The same kind for a part: the kind of a draft that it names would have no bounds."""
        return type(self)(schema, registry=Registry(), _resolver=_resolver or self._resolver)

    bounded.evolve = evolve
    return bounded


def _timed(keyword: _Keyword) -> _Keyword:
    def run(
        validator: _Validator, wanted: object, value: object, schema: object
    ) -> Iterator[ValidationError] | None:
        if time.thread_time() > _deadline.get():
            raise TooLongError
        return keyword(validator, wanted, value, schema)

    return run


def _anything(*_: object) -> None:
    """Whatever it is, it fits."""


def _pattern(
    _validator: _Validator, pattern: str, value: object, _schema: object
) -> Iterator[ValidationError]:
    if isinstance(value, str) and _is_found(pattern, value) is False:
        yield ValidationError("")


def _pattern_properties(
    validator: _Validator, patterns: dict[str, Any], value: object, _schema: object
) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for pattern, schema in patterns.items():
            for name in value:
                if _is_found(pattern, name):
                    yield from validator.descend(value[name], schema, path=name)


def _additional_properties(
    validator: _Validator, wanted: object, value: object, schema: dict[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in value:
        if name in known or any(_is_found(one, name) is not False for one in patterns):
            continue
        if wanted is False:
            yield ValidationError("", path=[name])
        elif isinstance(wanted, dict):
            yield from validator.descend(value[name], wanted, path=name)


def _unique_items(
    _validator: _Validator, wanted: object, value: object, _schema: object
) -> Iterator[ValidationError]:
    if wanted and isinstance(value, list):
        seen = {msgspec.json.encode(one, order="deterministic") for one in value}
        if len(seen) < len(value):
            yield ValidationError("")


_OWN: dict[str, _Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
    "unevaluatedItems": _anything,
    "unevaluatedProperties": _anything,
}


def _is_found(pattern: str, text: str) -> bool | None:
    """Whether a pattern is found in a text; None for one that cannot be looked for."""
    matcher = _compiled(pattern)
    if matcher is None:
        return None
    try:
        matcher.validate_python(text)
    except Mismatch:
        return False
    return True


@functools.lru_cache(KNOWN_PATTERNS)
def _compiled(pattern: str) -> SchemaValidator | None:
    """A pattern for the engine of Rust, whose time is linear; Python's may take for ever."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except (SchemaError, UnicodeEncodeError):
        return None
