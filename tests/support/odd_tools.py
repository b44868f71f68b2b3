"""Random tools with arbitrary names and odd or invalid schemas."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from repertory.catalogue.item import Item, Kind

NAMES = [
    "",
    " ",
    "-",
    "$",
    "_",
    "0",
    "read-file",
    "read_file",
    "readFile",
    "a.b",
    "2fast",
    "a",
    "b",
]
NAMES += ["new", "constructor", "__proto__", "get", "set", "async", "then", "toString", "readonly"]
NAMES += ["static", "default", "Ünïcode", "读取", "ǅ\u0301", "ß", "\U0001f4a5", "\u202e", "\ud800"]
NAMES += [
    "*/",
    "a\nb",
    "a\r\u2028b",
    "`${x}`",
    "\\",
    '"',
    "'",
    "</script>",
    "<!--",
    "//",
    "a*/b */",
]
NAMES += ["@ts-expect-error", "@ts-ignore\n", "\n@ts-expect-error", "\x00", "\x1b[31m", "x" * 130]

REFERENCES = ["#", "#/$defs/a", "#/$defs/b", "#/$defs/a%20~1", "#/definitions/a", "#/$defs/none"]
REFERENCES += ["#/properties/a", "#/anyOf/0", "#anchor", "https://example.org/x.json", "b.json#/b"]
TYPES = ["string", "number", "integer", "boolean", "null", "array", "object", "file"]
NUMBERS = [0, 1, -1, 0.5, -0.0, 1e300, 1e-7, 2**53, -(10**30), float("inf"), float("nan")]


Json = object
T = TypeVar("T")


class OddTools:
    """Generates tools.

    Args:
        seed: The seed; equal seeds give equal tools.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def tools(self, count: int) -> list[Item]:
        """Generate ``count`` tools with different ids."""
        made: dict[str, Item] = {}
        while len(made) < count:
            server, name = self._name(), f"{self._name()}{self._some(['', *map(str, range(99))])}"
            one = Item(
                id=f"{server}__{name}",
                kind=Kind.TOOL,
                name=name,
                source=server,
                server=server,
                description=self._name(),
                input_schema=self._root(),
                output_schema=self._root() if self._random.random() < 0.8 else None,
            )
            made[one.id] = one
        return list(made.values())

    def _root(self) -> dict[str, Json]:
        definitions = {name: self._schema(2) for name in ("a", "b", "a /")}
        schema = self._schema(4)
        own = schema if isinstance(schema, dict) else {"items": schema}
        return {"$defs": definitions, "definitions": definitions, **own}

    def _schema(self, depth: int) -> Json:
        if depth == 0 or self._random.random() < 0.1:
            return self._some([True, False, {}, {"type": self._some(TYPES)}])
        if self._random.random() < 0.03:
            return self._json()

        def schema() -> Json:
            return self._schema(depth - 1)

        def number() -> int:
            return self._random.randint(-1, 4)

        keywords: dict[str, Callable[[], Json]] = {
            "type": lambda: self._some([self._type(), self._several(self._type)]),
            "properties": lambda: self._named(schema),
            "required": lambda: self._several(self._name),
            "patternProperties": lambda: self._named(schema),
            "additionalProperties": schema,
            "items": lambda: self._some([schema(), self._several(schema)]),
            "prefixItems": lambda: self._several(schema),
            "additionalItems": schema,
            "minItems": number,
            "maxItems": number,
            "anyOf": lambda: self._several(schema),
            "oneOf": lambda: self._several(schema),
            "allOf": lambda: self._several(schema),
            "$ref": lambda: self._some(REFERENCES),
            "enum": lambda: self._several(self._json),
            "const": self._json,
            "nullable": lambda: self._some([True, False]),
            "description": self._name,
            "not": schema,
        }
        chosen = self._random.sample([*keywords], self._random.randint(0, 3))
        odd = self._random.random() < 0.03
        return {word: self._json() if odd else keywords[word]() for word in chosen}

    def _json(self, depth: int = 2) -> Json:
        if depth and self._random.random() < 0.4:
            if self._random.random() < 0.5:
                return self._several(lambda: self._json(depth - 1))
            return self._named(lambda: self._json(depth - 1))
        return self._some([None, True, False, self._name(), self._some(NUMBERS)])

    def _name(self) -> str:
        return self._some(NAMES)

    def _type(self) -> str:
        return self._some(TYPES)

    def _several(self, make: Callable[[], T]) -> list[T]:
        return [make() for _ in range(self._random.randint(0, 4))]

    def _named(self, make: Callable[[], T]) -> dict[str, T]:
        return {self._name(): make() for _ in range(self._random.randint(0, 4))}

    def _some(self, choices: Sequence[T]) -> T:
        return self._random.choice(choices)
