"""Builds the request of an operation from validated arguments and credentials. Does no I/O."""

import base64
import binascii
import json
import re
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import msgspec

from repertory.calling.http.credentials import Credentials
from repertory.calling.http.styles import (
    Pair,
    in_cookie,
    in_header,
    in_path,
    in_query,
    query_pairs,
    text_of,
)
from repertory.errors import ArgumentsError
from repertory.sources.openapi.bodies import FORM, MULTIPART, is_json
from repertory.sources.openapi.operation import Body, Operation, Part

MAX_URL_LENGTH = 200_000  # characters

_ENDING = re.compile(r'[\x00-\x1f\x7f"]')  # characters that would end a quoted name or its header


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request, ready to be sent. It contains secrets and must never be logged."""

    method: str
    url: str
    headers: dict[str, str]
    content: bytes | None = None

    def __repr__(self) -> str:
        """Show only the method, because everything else may be secret."""
        return f"Request({self.method!r})"


def request_of(
    operation: Operation, arguments: Mapping[str, Any], credentials: Credentials
) -> Request:
    """Build the request of an operation. Missing arguments are omitted.

    Raises:
        ArgumentsError: An argument cannot be encoded for its part of the request.
    """
    path: dict[str, str] = {}
    query: list[Pair] = []
    cookies: list[Pair] = []
    headers: dict[str, str] = {"Accept": "application/json, */*;q=0.5"}
    for parameter in operation.parameters:
        value = arguments.get(parameter.argument)
        if value is None:
            continue
        match parameter.place:
            case "path":
                path[parameter.name] = in_path(parameter, value)
            case "query":
                query += in_query(parameter, value)
            case "header":
                headers[parameter.name] = in_header(parameter, value)
            case "cookie":
                cookies += in_cookie(parameter, value)
    content = None
    if operation.body is not None:
        content, media_type = _body(operation.body, arguments)
        if content is not None:
            headers["Content-Type"] = media_type
    query += [(quote(key, safe=""), quote(value, safe="")) for key, value in credentials.query]
    cookies += [(key, quote(value, safe="")) for key, value in credentials.cookies]
    headers = _over(headers, credentials.headers)
    if cookies:
        headers["Cookie"] = "; ".join(f"{key}={value}" for key, value in cookies)
    url = _url(operation.url, path, query)
    return Request(method=operation.method, url=url, headers=headers, content=content)


def _url(template: str, path: Mapping[str, str], query: list[Pair]) -> str:
    parts = []
    for number, part in enumerate(template.split("{")):
        name, brace, rest = part.partition("}")
        if number and (not brace or name not in path):
            raise ArgumentsError(f"The argument for {{{name}}} of the path is missing.")
        parts.append(path[name] + rest if number else part)
    url = quote("".join(parts), safe="%/:;,=.~!$&'()*+@-_[]")
    if query:
        url += "?" + "&".join(f"{key}={value}" for key, value in query)
    if len(url) > MAX_URL_LENGTH:
        raise ArgumentsError("The arguments make a URL that is too long; send less.")
    return url


def _over(headers: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Headers, overridden by others. Names are compared without case."""
    over = {name.lower() for name in others}
    return {name: value for name, value in headers.items() if name.lower() not in over} | dict(
        others
    )


def _body(body: Body, arguments: Mapping[str, Any]) -> tuple[bytes | None, str]:
    """The bytes of a body and its media type; None as bytes if no argument is for the body."""
    value: Any
    if body.argument:
        if body.argument not in arguments:
            return None, ""
        value = arguments[body.argument]
    else:
        value = {name: arguments[name] for name in body.fields if name in arguments}
        if not value and not body.is_required:
            return None, ""
    if is_json(body.type):
        return json.dumps(value, ensure_ascii=False).encode(), body.type
    if body.type == FORM and isinstance(value, Mapping):
        return _form(body, value).encode("ascii"), body.type
    if body.type == MULTIPART and isinstance(value, Mapping):
        return _multipart(body, value)
    return _file(text_of(value))[0], body.type


def _form(body: Body, fields: Mapping[str, Any]) -> str:
    pairs: list[Pair] = []
    for name, value in fields.items():
        part = body.parts.get(name, Part())
        style = part.style or ("json" if isinstance(value, Mapping) else "form")
        pairs += query_pairs(name, value, style, explode=part.explode)
    return "&".join(f"{key}={value}" for key, value in pairs)


def _multipart(body: Body, fields: Mapping[str, Any]) -> tuple[bytes, str]:
    boundary = secrets.token_hex(16)
    lines: list[bytes] = []
    for name, value in fields.items():
        part = body.parts.get(name, Part())
        for one in value if isinstance(value, list) else [value]:
            media_type, content, file = part.type, text_of(one).encode(), ""
            if part.is_file:
                content, found = _file(text_of(one))
                media_type = media_type or found or "application/octet-stream"
                file = f'; filename="{_quoted(name)}"'
            elif isinstance(one, Mapping | list):
                media_type = media_type or "application/json"
            head = f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"{file}'
            head += f"\r\nContent-Type: {media_type}" if media_type else ""
            lines += [f"{head}\r\n\r\n".encode(), content, b"\r\n"]
    lines.append(f"--{boundary}--\r\n".encode())
    return b"".join(lines), f"{MULTIPART}; boundary={boundary}"


def _quoted(name: str) -> str:
    """A name for a quoted header parameter, escaped as browsers do: in UTF-8, no line breaks."""
    return _ENDING.sub(lambda sign: quote(sign[0]), name)


def _file(text: str) -> tuple[bytes, str]:
    """The content of a file and its media type, which is empty unless a ``data:`` URL names it.

    Raises:
        ArgumentsError: The URL is invalid.
    """
    if not text.startswith("data:"):
        return text.encode(), ""
    head, comma, data = text.removeprefix("data:").partition(",")
    media_type, _, _ = head.partition(";")
    try:
        is_encoded = head.endswith(";base64")
        content = base64.b64decode(data, validate=True) if is_encoded else unquote_to_bytes(data)
    except (binascii.Error, ValueError):
        comma = ""
    if not comma or any(ord(character) < 33 for character in media_type):
        raise ArgumentsError("A `data:` URL among the arguments is invalid; its content is Base64.")
    return content, media_type
