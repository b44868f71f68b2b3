"""The source of one OpenAPI document, with its operations as tools."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from typing_extensions import override

from repertory.catalogue.item import Item
from repertory.catalogue.safety import CLAIMS
from repertory.errors import CallsOffError, SourceError
from repertory.sources.fetched.source import FetchedSource
from repertory.sources.openapi.api import Api
from repertory.sources.openapi.document import MAX_SIZE, Document, parse
from repertory.sources.openapi.operation import FIELD
from repertory.sources.openapi.operations import Broken, Tool, tools
from repertory.sources.openapi.security import Security
from repertory.sources.openapi.servers import origin, servers_of
from repertory.sources.source import Problem, Scan, Source, Trust, WatchedFolder, error, warning
from repertory.sources.tools import takes, tool_id, tool_items
from repertory.system.untrusted_files import read_within
from repertory.text import one_line

MAX_PROBLEMS = 100  # with the operations of one document


class OpenApi(Source):
    """The operations of one document.

    Args:
        api: The callable API, with the configured origin.
        file: The document.
        location: Its path or URL, for people.
        url: Its URL; empty if it is a file.
        server: A URL that replaces the document's servers; empty to use those.
        include: Globs of the operations to take, as ``name`` or ``api__name``; empty for all.
        exclude: Globs of the operations to leave out.
    """

    type = "openapi"
    trust = Trust.REVIEW

    def __init__(
        self,
        api: Api,
        file: Path,
        location: str,
        *,
        url: str,
        server: str,
        include: tuple[str, ...],
        exclude: tuple[str, ...],
    ) -> None:
        self.name = api.name
        self.location = location
        self.folder = None if url else WatchedFolder(file)
        self._api = api
        self.file = str(file)
        self._url = url
        self._base = location if url else ""  # without user and query
        self._server = server
        self._include = include
        self._exclude = exclude
        self._last: tuple[str, Scan] | None = None  # with the digest of the document

    @override
    def configuration(self) -> object:
        return self._api, self.file, self._url, self._server, self._include, self._exclude

    @override
    def identity(self) -> Mapping[str, Any]:
        # Only a digest of the URL and no headers, because both may contain secrets.
        return {
            "type": self.type,
            "name": self.name,
            "document": self.location,
            "url": hashlib.sha256(self._url.encode()).hexdigest() if self._url else "",
            "server": self._server,
            "include": sorted(self._include),
            "exclude": sorted(self._exclude),
        }

    @override
    def scan(self) -> Scan:
        """Read the document. If it has not changed, the result of the last scan is returned."""
        try:
            content = read_within(self.file, self.within, MAX_SIZE)
        except OSError as exc:
            raise SourceError(f"{self.location} cannot be read: {exc.strerror}.") from exc
        digest = hashlib.sha256(content).hexdigest()
        if self._last is None or self._last[0] != digest:
            self._last = digest, self._read(parse(content, self.location))
        return self._last[1]

    @override
    def to_call(self, tool: str) -> Api:
        if not self._takes(tool):
            raise CallsOffError(
                f"The operation {one_line(tool)} of the API {self.name} is left out by its "
                "configuration; include it there to call it."
            )
        return self._api

    def _read(self, document: Document) -> Scan:
        found: dict[str, Tool] = {}
        problems: list[Problem] = []
        for one in tools(document, self._base, self._server):
            if isinstance(one, Broken):
                message = f"The operation {one.place} was left out: {one.reason}."
                problems.append(error(self.location, message))
            elif self._takes(name := str(one.raw["name"])):
                found[name] = one
                problems += [self._warning(name, one, reason) for reason in one.complaints]
        if len(problems) > MAX_PROBLEMS:
            message = f"{len(problems) - MAX_PROBLEMS:,} more operations have problems."
            problems[MAX_PROBLEMS:] = [warning(self.location, message)]
        raw = [one.raw for one in found.values()]
        items, wrong = tool_items(self.name, self.name, raw, self.location)
        problems += [*wrong, *self._about_servers(document, found), *self._about_auth(document)]
        return Scan(items=[_tagged(item, found) for item in items], problems=problems)

    def _warning(self, name: str, tool: Tool, reason: str) -> Problem:
        message = f"The operation {tool.place} is not complete: {reason}."
        return warning(self.location, message, item=tool_id(self.name, name))

    def _about_servers(self, document: Document, found: Mapping[str, Tool]) -> Iterator[Problem]:
        """Warnings about operations that need the user's permission for another server."""
        allowed = self._api.origin
        named = servers_of(document.root, self._base)
        if self._server and named and self._server not in named:
            yield warning(
                self.location,
                f"The document names the server {named[0]}, and the source {self.name} has "
                f"{self._server}, which is called. Change `server` there to call the other one.",
            )
        urls = [str(one.raw[FIELD]["url"]) for one in found.values()]
        if elsewhere := [url for url in urls if origin(url) != allowed]:
            server = named[0] if named and not self._server else origin(elsewhere[0])
            yield warning(
                self.location,
                f"{len(elsewhere):,} of {len(urls):,} operations cannot be called: the document "
                f"names {server or 'no server'}, and the source {self.name} allows "
                f"{allowed or 'none'}. Set its `server` to allow another one.",
            )

    def _about_auth(self, document: Document) -> Iterator[Problem]:
        """Warnings about secrets in the configuration that the document has no scheme for."""
        known = {scheme.name for scheme in Security(document).schemes()}
        for name in sorted(self._api.auth.keys() - known):
            yield warning(
                self.location,
                f"`auth` of the source {self.name} has {name!r}, and the document has "
                f"{', '.join(sorted(known)) or 'no security schemes'}.",
            )

    def _takes(self, name: str) -> bool:
        return takes(self.name, name, self._include, self._exclude)


class FetchedOpenApi(FetchedSource, OpenApi):
    """The operations of a fetched document."""


def _tagged(item: Item, found: Mapping[str, Tool]) -> Item:
    """The item with the tags of its operation, except those that would be claims."""
    tags = set(found[item.name].tags) - CLAIMS
    return msgspec.structs.replace(item, tags=tuple(sorted({*item.tags, *tags})))
