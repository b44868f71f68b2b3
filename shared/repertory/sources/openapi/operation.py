"""The request of an operation, stored in its item: what a call needs besides the arguments."""

from typing import Any, Literal

import msgspec

FIELD = "http"  # its key in an item's extra fields

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
        style: The encoding of lists and objects; ``json`` for JSON text.
        explode: Whether each of their values is written separately.
        reserved: Whether reserved characters are not escaped.
    """

    argument: str
    name: str
    place: Place = msgspec.field(name="in")
    style: Style
    explode: bool = False
    reserved: bool = False


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The encoding of one field of a form.

    Attributes:
        style: The style of a list or an object in a URL-encoded form.
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
        argument: The argument with the whole body; empty if its fields are separate arguments.
        fields: The names of these arguments.
        parts: The encodings of a form's fields, by name, unless they are the default.
        is_required: Whether it is sent even without arguments for its fields.
    """

    type: str
    argument: str = ""
    fields: tuple[str, ...] = ()
    parts: dict[str, Part] = {}
    is_required: bool = False


class Scheme(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A security scheme that the document declares.

    Attributes:
        name: Its name in the document, which is the key of its secret in the configuration.
        place: ``basic`` or ``bearer``, or where an API key goes.
        key: The name of the header, the query parameter or the cookie of an API key.
    """

    name: str
    place: Literal["basic", "bearer", "header", "query", "cookie"] = msgspec.field(name="in")
    key: str = ""


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """An HTTP request with places for arguments.

    Attributes:
        method: The method, in capitals.
        url: The URL of the server and the path, with ``{name}`` for parameters of the path.
        parameters: The parameters.
        body: The body, if any.
        security: Alternatives, each with all schemes that it needs; empty if the request needs no
            authentication.
    """

    method: str
    url: str
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    security: tuple[tuple[Scheme, ...], ...] = ()


def operation_of(extra: dict[str, Any]) -> Operation | None:
    """The request in the extra fields of an item; None without one."""
    try:
        return msgspec.convert(extra.get(FIELD), Operation)
    except msgspec.ValidationError:
        return None
