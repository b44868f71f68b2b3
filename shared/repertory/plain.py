"""What programs are given: plain data, its names in camel case."""

from functools import cache
from typing import Any

import msgspec


def plain(value: object) -> Any:  # noqa: ANN401 - JSON
    """A value as plain data; structs have their fields in camel case, mappings stay as they are."""
    if isinstance(value, msgspec.Struct):
        return {_camel(name): plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


@cache  # there are only so many fields
def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.title() for other in others)
