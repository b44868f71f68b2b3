"""OpenAPI 3 documents: one source for each, its operations as tools that can be called."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from repertory.errors import ConfigurationError
from repertory.sources.entry import checked_name, source_path
from repertory.sources.fetched.source import content_of, interval_of
from repertory.sources.fetched.urls import is_http
from repertory.sources.openapi.api import Api
from repertory.sources.openapi.fetcher import FILE, DocumentFetcher
from repertory.sources.openapi.security import FRAMING, HEADER_NAME
from repertory.sources.openapi.servers import is_server, origin
from repertory.sources.openapi.source import FetchedOpenApi, OpenApi
from repertory.sources.source import Source

__all__ = ["OpenApi", "build"]

_VARIABLE = re.compile(r"\$\{[^{}]+\}")


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
    """Build the source of one document; nothing is fetched.

    Args:
        entry: ``name``, and ``url`` or ``path`` of the document. Optional are ``server``, the URL
            that operations are called at; ``auth``, the secret of each security scheme of the
            document, by its name (``user:password`` for HTTP basic); ``headers`` of every call;
            ``include`` and ``exclude``, globs of operation names; ``timeout`` of a call and
            ``refresh`` in seconds. The workspace sets ``store``.
        base: The folder that relative paths start from.

    Raises:
        ConfigurationError: The entry is invalid.
    """
    try:
        options = msgspec.convert(dict(entry), _Options)
    except msgspec.ValidationError as exc:
        raise ConfigurationError(f"A source of type 'openapi' is not set up right: {exc}") from exc
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
        "server": options.server.rstrip("/"),
        "include": options.include,
        "exclude": options.exclude,
    }
    if options.path:
        file = source_path(entry, base)
        return [OpenApi(api, file, str(file), **more)]
    content = content_of(DocumentFetcher(options.url), entry)
    location = content.fetcher.location
    source = FetchedOpenApi(api, content.path / FILE, location, url=options.url, **more)
    source.content, source.interval = content, interval_of(entry)
    return [source]


def _check(options: _Options) -> None:
    """Refuse what cannot work, and secrets that the file itself would hold.

    Raises:
        ConfigurationError: An option is invalid.
    """
    whose = f"The source {options.name!r} of type 'openapi'"
    if bool(options.url) == bool(options.path):
        raise ConfigurationError(f"{whose} needs either a `url` or a `path` of its document.")
    if options.url and not is_http(options.url):
        raise ConfigurationError(f"{whose} has a `url` that is not one of HTTP.")
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
