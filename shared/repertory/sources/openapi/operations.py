"""Converts the operations of a document to tools, one by one."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from repertory.catalogue.names import MARKS
from repertory.sources.openapi.bodies import body_of, output_of
from repertory.sources.openapi.document import BrokenError, Document, pointer
from repertory.sources.openapi.operation import FIELD, Operation
from repertory.sources.openapi.parameters import Arguments, parameters_of
from repertory.sources.openapi.schemas import Schemas
from repertory.sources.openapi.security import Security
from repertory.sources.openapi.servers import origin, servers_of
from repertory.text import one_line

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
MAX_OPERATIONS = 10_000  # per document
MAX_NAME_LENGTH = 100
MAX_TAGS = 20
MAX_TAG_LENGTH = 60

_NOT_IN_NAMES = re.compile(rf"[^\w{MARKS}.-]+")
_READ_ONLY = frozenset(("get", "head", "options"))
_UNSENT = frozenset(("trace",))  # the response would show the credentials


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as a tool.

    Attributes:
        raw: The tool in MCP form, with its request in the field ``http``.
        tags: The tags of the operation.
        place: The JSON pointer of the operation.
        given: Its ``operationId``; empty if its name is made of its method and path.
        complaints: Its defects, each as a clause with "it" as its subject.
    """

    raw: dict[str, Any]
    given: str = ""
    tags: tuple[str, ...]
    place: str
    complaints: tuple[str, ...] = ()


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """An operation that was left out: its place, and a reason with "it" as the subject."""

    place: str
    reason: str


def tools(document: Document, base: str, server: str) -> Iterator[Tool | Broken]:
    """Convert all operations of a document.

    Args:
        document: The document.
        base: Its URL; empty if it is a file.
        server: A URL that replaces the document's servers; empty to use those.
    """
    reader = _Reader(document, base, server)
    first: dict[str, str] = {}  # the place of each operationId
    names = _Names(_fitting(given) for given in _given_names(document))
    for count, (path, method, item) in enumerate(_places(document)):
        place = pointer("paths", path, method)
        if count == MAX_OPERATIONS:
            yield Broken(
                place=place,
                reason=f"it and all following operations exceed the limit of {MAX_OPERATIONS:,}",
            )
            return
        try:
            tool = reader.tool(place, path, method, item)
        except BrokenError as error:
            yield Broken(place=place, reason=str(error))
            continue
        if tool.given and first.setdefault(tool.given, place) != place:
            reason = f"it has the operationId of {first[tool.given]}: {tool.raw['name']}"
            yield Broken(place=place, reason=reason)
            continue
        tool.raw["name"] = names.free(tool.raw["name"], is_given=bool(tool.given))
        yield tool


def _given_names(document: Document) -> Iterator[str]:
    """The ``operationId`` of each operation, if usable."""
    for _, method, item in _places(document):
        raw = item[method]
        if isinstance(raw, Mapping) and (given := _given_name(raw)):
            yield given


class _Names:
    """Gives unique names to a document's tools: a name in use gets a number.

    Args:
        given: The names from the document, which are reserved for their operations.
    """

    def __init__(self, given: Iterable[str]) -> None:
        self._given = set(given)
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def free(self, name: str, *, is_given: bool) -> str:
        """A unique name for an operation."""
        found = name
        while found in self._taken or (found in self._given and not (is_given and found == name)):
            number = self._numbers[name] = self._numbers.get(name, 1) + 1
            end = f"_{number}"
            found = name[: MAX_NAME_LENGTH - len(end)] + end
        self._taken.add(found)
        return found


def _places(document: Document) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Each path and method, with the path item that has the method."""
    paths = document.root.get("paths") or {}
    for path, raw in paths.items():
        if not path.startswith("/"):
            continue  # an extension
        try:
            item = document.resolved(raw, "path item")
        except BrokenError:
            item = {"get": raw}  # so that an operation is reported with the same reason
        for method in METHODS:
            if method in item:
                yield path, method, item


class _Reader:
    """Reads operations of one document."""

    def __init__(self, document: Document, base: str, server: str) -> None:
        self._document = document
        self._base = base
        self._server = server or next(iter(servers_of(document.root, base)), "")
        if not self._server and not document.root.get("servers"):
            self._server = origin(base)  # as OpenAPI specifies
        self._servers: dict[int, str] = {}
        self._security = Security(document)
        self._requests = Schemas(document, "readOnly")
        self._responses = Schemas(document, "writeOnly")

    def tool(self, place: str, path: str, method: str, item: Mapping[str, Any]) -> Tool:
        """Convert an operation.

        Raises:
            BrokenError: It cannot be used.
        """
        raw = self._document.resolved(item[method], "definition")
        if method in _UNSENT:
            raise BrokenError("it is a TRACE request, which is not supported")
        arguments = Arguments(self._requests.builder())
        parameters = parameters_of(self._document, item, raw, path, arguments)
        body = body_of(self._document, raw, arguments)
        schema, defects = arguments.schema()
        security, wrong = self._security.alternatives(raw)
        request = Operation(
            method=method.upper(),
            url=self._server_of(item, raw) + path,
            parameters=tuple(parameters),
            body=body,
            security=security,
        )
        tool = {
            "name": _name(raw, method, path),
            "description": _description(raw),
            "inputSchema": schema,
            "annotations": {
                "readOnlyHint": method in _READ_ONLY,
                "destructiveHint": method == "delete",
            },
            FIELD: msgspec.to_builtins(request),
        }
        if output := output_of(self._document, raw, self._responses):
            tool["outputSchema"] = output
        return Tool(
            raw=tool,
            given=_given_name(raw),
            tags=_tags(raw),
            place=place,
            complaints=(*defects, *wrong),
        )

    def _server_of(self, item: Mapping[str, Any], raw: Mapping[str, Any]) -> str:
        return (self._first_of(raw) or self._first_of(item) or self._server).rstrip("/")

    def _first_of(self, owner: Mapping[str, Any]) -> str:
        """The first server that a part of the document names; cached, as paths may share a part."""
        if id(owner) not in self._servers:  # the id is unique, because the document keeps the part
            self._servers[id(owner)] = next(iter(servers_of(owner, self._base)), "")
        return self._servers[id(owner)]


def _name(raw: Mapping[str, Any], method: str, path: str) -> str:
    return _fitting(_given_name(raw) or f"{method}{path}")[:MAX_NAME_LENGTH]


def _given_name(raw: Mapping[str, Any]) -> str:
    """The ``operationId`` of an operation; empty if it is missing or unusable as a name."""
    given = raw.get("operationId")
    is_usable = isinstance(given, str) and 0 < len(_fitting(given)) <= MAX_NAME_LENGTH
    return str(given) if is_usable else ""


def _fitting(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name).strip("_")


def _description(raw: Mapping[str, Any]) -> str:
    texts = (raw.get("summary"), raw.get("description"))
    found = dict.fromkeys(text.strip() for text in texts if isinstance(text, str))
    return "\n\n".join(text for text in found if text)


def _tags(raw: Mapping[str, Any]) -> tuple[str, ...]:
    named = raw.get("tags")
    tags = [tag for tag in named if isinstance(tag, str)] if isinstance(named, list) else []
    fitting = (one_line(tag) for tag in tags[:MAX_TAGS])
    found = {tag for tag in fitting if 0 < len(tag) <= MAX_TAG_LENGTH}
    return tuple(sorted(found | {"deprecated"} if raw.get("deprecated") is True else found))
