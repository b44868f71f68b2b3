"""The configuration entry of an OpenAPI document, and the recognition of its address."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from repertory.catalogue.names import MARKS
from repertory.errors import ConfigurationError, SourceError
from repertory.sources.adding import Address, Recognised
from repertory.sources.entry import checked_name, options_of, source_path
from repertory.sources.fetched.document import DocumentFetcher
from repertory.sources.fetched.source import content_of, interval_of
from repertory.sources.fetched.urls import check_step, host_of, is_http, shown
from repertory.sources.openapi.api import Api
from repertory.sources.openapi.document import MAX_SIZE, Document, is_openapi, parse
from repertory.sources.openapi.operation import Scheme
from repertory.sources.openapi.security import FRAMING, HEADER_NAME, Security
from repertory.sources.openapi.servers import is_server, origin, servers_of
from repertory.sources.openapi.source import FetchedOpenApi, OpenApi
from repertory.sources.source import Source
from repertory.system.untrusted_files import read_bytes

FILE = "document"  # the document's file name in the folder of its content

_VARIABLE = re.compile(r"\$\{[^{}]+\}")
_DOCUMENT = re.compile(r".*\.(?:json|ya?ml)|openapi|swagger|(?:v[0-9]-)?api-docs", re.IGNORECASE)
_NOT_IN_NAMES = re.compile(rf"(?:[^\w{MARKS}]|_)+")
_NOT_IN_VARIABLES = re.compile(r"[^a-z0-9]+")
_NO_NAMES = frozenset(("", "api", "rest", "openapi", "the", "swagger", "v1", "v2", "v3"))


class _Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: str
    name: str
    url: str = ""
    path: str = ""
    server: str = ""
    auth: dict[str, str] = {}
    headers: dict[str, str] = {}
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    refresh: float | None = None
    store: str = ""


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """Build the source of one document, without fetching it.

    Args:
        entry: ``name``, and ``url`` or ``path`` of the document. Optional: ``server``, the URL at
            which operations are called; ``auth``, the secret of each security scheme of the
            document, by its name (``user:password`` for HTTP basic); ``headers`` of every call;
            ``include`` and ``exclude``, globs of operation names; ``timeout`` of a call and
            ``refresh`` in seconds. The workspace sets ``store``.
        base: The folder that relative paths start from.

    Raises:
        ConfigurationError: The entry is invalid.
    """
    options = options_of(entry, _Options)
    name = checked_name(options.name)
    _check(options)
    api = Api(
        name=name,
        origin=origin(options.server or options.url),
        auth=options.auth,
        headers=options.headers,
        call_timeout=options.timeout,
        workspace=str(base.absolute()),
    )
    more: dict[str, Any] = {
        "url": options.url,
        "server": options.server.rstrip("/"),
        "include": options.include,
        "exclude": options.exclude,
    }
    if options.path:
        file = source_path(entry, base)
        return [OpenApi(api, file, str(file), **more)]
    location = shown(options.url)
    fetcher = DocumentFetcher(options.url, FILE, MAX_SIZE, lambda found: parse(found, location))
    content = content_of(fetcher, entry)
    fetched = FetchedOpenApi(api, content.path / FILE, location, **more)
    return [fetched.attach(content, interval_of(entry))]


def recognise(address: Address) -> Recognised | None:
    """Recognise the URL or the file of an OpenAPI 3 document.

    The entry names the called server and a variable for the secret of each scheme, so that the user
    sees both before they are written.

    Raises:
        SourceError: The document cannot be fetched or is invalid.
    """
    path, url = address.path, address.text
    if path is not None:
        if not path.is_file() or not _DOCUMENT.fullmatch(path.name):
            return None
        try:
            content = read_bytes(str(path), MAX_SIZE)
        except OSError as exc:
            raise SourceError(f"{path} cannot be read: {exc.strerror}.") from exc
    elif address.is_http and _DOCUMENT.fullmatch(urlsplit(url).path.rpartition("/")[2]):
        content = address.document().content
    else:
        return None
    if not is_openapi(content):
        return None
    base = "" if path else shown(url)
    place = str(path) if path else base
    document = parse(content, place)
    entry: dict[str, Any] = {"type": "openapi", **({"path": place} if path else {"url": url})}
    entry["name"] = _name_of(document, path.stem if path else host_of(url))
    if server := _server_of(document, base):
        entry["server"] = server
    if schemes := Security(document).schemes():
        start = _variable(entry["name"])
        start = f"_{start}" if start[0].isdigit() else start
        entry["auth"] = {one.name: f"${{{start}_{_variable(one.name)}}}" for one in schemes}
    return Recognised(title="an OpenAPI document", entry=entry, notes=_notes(entry, schemes))


def _notes(entry: Mapping[str, Any], schemes: list[Scheme]) -> tuple[str, ...]:
    """Notes about where calls go, and which secrets they need.

    They list variables that are already set: their names come from the document, so they may be
    those of secrets for another server.
    """
    found = [f"Its operations are called at {entry.get('server', 'no server')}."]
    names = [value[2:-1] for value in entry.get("auth", {}).values()]
    if known := sorted({name for name in names if os.environ.get(name)}):
        found.append(f"Set already, so that calls send their values there: {', '.join(known)}.")
    if schemes:
        found.append(
            "Set the variables of `auth` that you have secrets for, and remove the others."
        )
    if any(scheme.place == "basic" for scheme in schemes):
        found.append("A secret of HTTP basic is user:password.")
    return tuple(found)


def _server_of(document: Document, base: str) -> str:
    """The first server of a document, unless a public document leads into a private network."""
    for server in servers_of(document.root, base):
        try:
            if base:
                check_step(server, base)
        except SourceError:
            continue
        return server
    return origin(base)


def _name_of(document: Document, otherwise: str) -> str:
    words = _NOT_IN_NAMES.split(document.title.lower())
    found = "-".join(word for word in words if word not in _NO_NAMES)[:60].strip("-")
    return found or _NOT_IN_NAMES.sub("-", otherwise.lower()).strip("-") or "api"


def _variable(text: str) -> str:
    """Make a part of the name of an environment variable from a text."""
    return _NOT_IN_VARIABLES.sub("_", text.lower()).strip("_").upper() or "TOKEN"


def _check(options: _Options) -> None:
    """Reject invalid options, and secrets written into the file itself.

    Raises:
        ConfigurationError: An option is invalid.
    """
    whose = f"The source {options.name!r} of type 'openapi'"
    if bool(options.url) == bool(options.path):
        raise ConfigurationError(f"{whose} needs either a `url` or a `path` of its document.")
    if options.url and not is_http(options.url):
        raise ConfigurationError(f"{whose} has a `url` that is not an HTTP URL.")
    if options.server and not is_server(options.server):
        raise ConfigurationError(
            f"{whose} has an invalid `server`; write a URL such as https://api.example.com/v1, "
            "without user, query and fragment."
        )
    for scheme, value in options.auth.items():
        if not _VARIABLE.search(value):
            raise ConfigurationError(
                f"{whose} has the secret of {scheme!r} in the file; write `${{NAME}}` and set the "
                "environment variable NAME."
            )
    for header in options.headers:
        if not HEADER_NAME.fullmatch(header) or header.lower() in FRAMING:
            raise ConfigurationError(f"{whose} cannot set the header {header!r}.")
