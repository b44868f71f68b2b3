"""Converts the parameters of an operation to arguments of a tool."""

import re
from collections.abc import Mapping
from typing import Any

from repertory.sources.openapi.document import BrokenError, Document
from repertory.sources.openapi.operation import Parameter, Style
from repertory.sources.openapi.schemas import Builder
from repertory.sources.openapi.security import FRAMING, HEADER_NAME

MAX_PARAMETERS = 200
_IGNORED_HEADERS = {"accept", "content-type", "authorization"}  # as OpenAPI specifies
FORM_STYLES: tuple[Style, ...] = ("form", "spaceDelimited", "pipeDelimited", "deepObject")
_STYLES: dict[str, tuple[Style, ...]] = {  # the default comes first
    "path": ("simple", "label", "matrix"),
    "query": FORM_STYLES,
    "header": ("simple",),
    "cookie": ("form",),
}
_TEMPLATE = re.compile(r"\{([^{}]*)\}")


class Arguments:
    """The arguments of one tool, which are the properties of its schema.

    Args:
        builder: Converts their schemas.

    Attributes:
        remarks: The repaired defects, each as a clause with "it" as its subject.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.remarks: list[str] = []
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []

    def add(self, name: str, schema: object, place: str, *, required: bool) -> str:
        """Add an argument. If its name is in use, it is prefixed with the place."""
        if name in self.properties:
            name = f"{place}_{name}"
        if name in self.properties:
            raise BrokenError(f"it has two parameters {name!r}")
        self.properties[name] = schema
        if required:
            self.required.append(name)
        return name

    def schema(self) -> tuple[dict[str, Any], list[str]]:
        """The schema of all arguments, and the defects of them and their schemas."""
        found: dict[str, Any] = {
            "type": "object",
            "properties": self.properties,
            "additionalProperties": False,
        }
        if self.required:
            found["required"] = self.required
        if definitions := self.builder.definitions():
            found["$defs"] = definitions
        defects = [*self.remarks]
        if self.builder.broken:
            defects.append(self.builder.broken)
        if self.builder.is_cut:
            defects.append("its schema is too large; the parts that were cut accept any value")
        return found, defects


def parameters_of(
    document: Document,
    item: Mapping[str, Any],
    raw: Mapping[str, Any],
    path: str,
    arguments: Arguments,
) -> list[Parameter]:
    """Add an operation's parameters, with those of its path, to its arguments.

    Raises:
        BrokenError: A parameter is invalid, or there are too many.
    """
    given: dict[tuple[str, str], Mapping[str, Any]] = {}
    for owner in (item, raw):
        listed = owner.get("parameters") or []
        if not isinstance(listed, list) or len(listed) > MAX_PARAMETERS:
            raise BrokenError(f"its `parameters` are not a list of at most {MAX_PARAMETERS}")
        for number, one in enumerate(listed):
            parameter = document.resolved(one, f"parameter {number}")
            given[str(parameter.get("in")), str(parameter.get("name"))] = parameter
    found = [
        _parameter(name, place, parameter, arguments)
        for (place, name), parameter in given.items()
        if not (place == "header" and name.lower() in _IGNORED_HEADERS)
    ]
    known = {one.name for one in found if one.place == "path"}
    missing = [name for name in dict.fromkeys(_TEMPLATE.findall(path)) if name not in known]
    if len(missing) > MAX_PARAMETERS:  # leaving some out would change the path
        raise BrokenError(f"its path has more than {MAX_PARAMETERS} parameters")
    for name in missing:
        found.append(_parameter(name, "path", {"schema": {"type": "string"}}, arguments))
        arguments.remarks.append(f"its path has {{{name}}}, which is not described; it is any text")
    return found


def _parameter(name: str, place: str, raw: Mapping[str, Any], arguments: Arguments) -> Parameter:
    if place not in _STYLES or not name:
        raise BrokenError(f"its parameter {name!r} is in {place!r}, which is not a valid place")
    if place in ("header", "cookie") and not HEADER_NAME.fullmatch(name):
        raise BrokenError(f"its {place} {name!r} has a name that cannot be sent")
    if place == "header" and name.lower() in FRAMING:
        raise BrokenError(f"its header {name!r} cannot be set")
    schema, style = raw.get("schema", {}), raw.get("style", _STYLES[place][0])
    content = raw.get("content")
    if isinstance(content, Mapping) and content:
        [media, *_] = content.values()
        schema = media.get("schema", {}) if isinstance(media, Mapping) else {}
        style = "json"
    elif style not in _STYLES[place]:
        raise BrokenError(f"its parameter {name!r} has the unknown style {style!r}")
    is_required = place == "path" or raw.get("required") is True
    converted = _described(arguments.builder.convert(schema), raw)
    return Parameter(
        argument=arguments.add(name, converted, place, required=is_required),
        name=name,
        place=place,  # type: ignore[arg-type]  # checked above
        style=style,
        explode=_flag(raw, "explode", style == "form"),
        reserved=_flag(raw, "allowReserved", False),
    )


def _flag(raw: Mapping[str, Any], name: str, default: bool) -> bool:
    value = raw.get(name, default)
    return value if isinstance(value, bool) else default


def _described(schema: Any, raw: Mapping[str, Any]) -> Any:  # noqa: ANN401 - an object or a bool
    about = raw.get("description")
    if not isinstance(about, str) or not about.strip() or not isinstance(schema, dict):
        return schema
    return {**schema, "description": about.strip()[:1_000]}
