"""JSON Schema validation with a time limit, because schemas and values are untrusted.

The deadline is checked before each keyword, and before each pattern as well. Keywords whose
library versions could run for long are replaced by our own. References are never fetched.
"""

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend, validator_for
from pydantic_core import SchemaError, SchemaValidator, core_schema
from pydantic_core import ValidationError as Mismatch
from referencing import Registry

CHECK_TIMEOUT_S = 1.0  # of CPU time
PATTERN_CACHE_SIZE = 64  # compiled patterns; one can take up to 10 MB

# The library does not export types for its validators and keywords.
_Validator = Any
_Keyword = Callable[[_Validator, Any, Any, Any], Iterator[ValidationError] | None]

_deadline: ContextVar[float] = ContextVar("deadline")


class CheckTimeoutError(Exception):
    """The check exceeded its time limit."""


def schema_errors(value: object, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    """Yield the errors of a value against a schema, lazily.

    Args:
        value: Plain JSON.
        schema: A schema of the draft that its ``$schema`` names, 2020-12 by default. Formats,
            ``unevaluated…`` and patterns that need backtracking are not checked.

    Raises:
        CheckTimeoutError: The check takes too long.
        Exception: The schema is invalid; the library may raise any exception.
    """
    draft = schema.get("$schema")
    named = {"$schema": draft} if isinstance(draft, str) else {}
    kind = _bounded(validator_for(named, Draft202012Validator))
    _deadline.set(time.thread_time() + CHECK_TIMEOUT_S)
    yield from kind(dict(schema), registry=Registry()).iter_errors(value)


def closest(error: ValidationError) -> ValidationError:
    """The error of the best matching alternative, or the error itself if it has none."""
    return best_match([error]) or error


@functools.cache
def _bounded(draft: Any) -> Any:  # noqa: ANN401 - classes without a type
    """A draft's validator class, with our keywords and the deadline checks."""
    keywords = {name: _timed(_OWN.get(name, one)) for name, one in draft.VALIDATORS.items()}
    bounded: Any = extend(draft, keywords)  # type: ignore[no-untyped-call]  # it has no types

    def evolve(self: _Validator, schema: object, _resolver: object = None) -> _Validator:
        """Keep this class for subschemas, because the class of another draft has no deadline."""
        return type(self)(schema, registry=Registry(), _resolver=_resolver or self._resolver)

    library = bounded.descend

    def descend(
        self: _Validator,
        instance: object,
        schema: object,
        path: str | int | None = None,
        schema_path: str | int | None = None,
        resolver: object = None,
    ) -> Iterator[ValidationError]:
        """Name the value that a False schema forbids; the library does not name it."""
        if schema is False and path is not None:
            keyword: Any = None  # the schema is False, so there is no keyword
            yield ValidationError("", validator=keyword, path=[path])
        else:
            yield from library(self, instance, schema, path, schema_path, resolver)

    bounded.evolve, bounded.descend = evolve, descend
    return bounded


def _timed(keyword: _Keyword) -> _Keyword:
    def run(
        validator: _Validator, wanted: object, value: object, schema: object
    ) -> Iterator[ValidationError] | None:
        _check_time()
        return keyword(validator, wanted, value, schema)

    return run


def _check_time() -> None:
    if time.thread_time() > _deadline.get():
        raise CheckTimeoutError


def _anything(*_: object) -> None:
    """Accept any value."""


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
    """Whether a text contains a match; None if the pattern is unsupported."""
    _check_time()  # a keyword may have thousands of patterns
    matcher = _compiled(pattern)
    if matcher is None:
        return None
    try:
        matcher.validate_python(text)
    except Mismatch:
        return False
    return True


@functools.lru_cache(PATTERN_CACHE_SIZE)
def _compiled(pattern: str) -> SchemaValidator | None:
    """Compile a pattern with Rust's linear-time engine; Python's can take exponential time.

    None if the engine does not support the pattern.
    """
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except (SchemaError, UnicodeEncodeError):
        return None
