"""The request of an operation, as its item carries it: what a call needs besides its arguments."""

from typing import Any, Literal

import msgspec

FIELD = "http"  # of an item's extra fields

Place = Literal["path", "query", "header", "cookie"]
Style = Literal[
    "simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "deepObject", "json"
]


class Parameter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A parameter of the path, the query, the headers or the cookies.

    Attributes:
        argument: The name of the argument with its value.
        name: Its own name.
        place: Where it goes (``in`` in the document).
        style: How lists and objects are written; ``json`` if it is one JSON text.
        explode: Whether each of their values is written by itself.
        reserved: Whether reserved characters stay as they are.
    """

    argument: str
    name: str
    place: Place = msgspec.field(name="in")
    style: Style
    explode: bool = False
    reserved: bool = False


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """How one field of a form is written, if not in the default way.

    Attributes:
        style: The style of a list or an object in a form of text.
        explode: See ``Parameter``.
        type: The media type of a part.
        is_file: Whether it is a file.
    """

    style: Style | None = None
    explode: bool = True
    type: str = ""
    is_file: bool = False


class Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The body of a request.

    Attributes:
        type: Its media type.
        argument: The argument that is the body; empty if arguments are its fields.
        fields: The names of these arguments.
        parts: How fields of a form are written, by name.
        is_required: Whether it is sent without arguments for its fields, too.
    """

    type: str
    argument: str = ""
    fields: tuple[str, ...] = ()
    parts: dict[str, Part] = {}
    is_required: bool = False


class Scheme(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A way to authenticate that the document declares.

    Attributes:
        name: Its name in the document, by which the configuration gives its secret.
        place: ``basic`` or ``bearer``, or where an API key goes.
        key: The name of the header, the query parameter or the cookie of an API key.
    """

    name: str
    place: Literal["basic", "bearer", "header", "query", "cookie"] = msgspec.field(name="in")
    key: str = ""


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A request over HTTP with places for arguments.

    Attributes:
        method: In capitals.
        url: The URL of the server and the path, with ``{name}`` for parameters of the path.
        parameters: The parameters.
        body: The body, if there is one.
        security: Alternatives, each with all schemes that it needs; none if it needs none.
    """

    method: str
    url: str
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    security: tuple[tuple[Scheme, ...], ...] = ()


def operation_of(extra: dict[str, Any]) -> Operation | None:
    """The request that the extra fields of an item carry; None if they carry none."""
    try:
        return msgspec.convert(extra.get(FIELD), Operation)
    except msgspec.ValidationError:
        return None
