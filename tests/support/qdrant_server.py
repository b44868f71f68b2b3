"""A stand-in for a Qdrant server: the REST calls that Repertory uses, on the embedded engine.

An unknown path, parameter or field gets status 501, so that no test passes because something was
ignored. A separate process keeps its data even if it is killed:

    python -m tests.support.qdrant_server --port 6333 --directory DIRECTORY
"""

import argparse
import re
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

import msgspec

from tests.support.qdrant_collections import ServedCollection, fields, missing, save
from tests.support.qdrant_http import HttpServer, Json, RefusedError, Request

VERSION = "1.16.0"

_COLLECTION = r"/collections/([A-Za-z0-9][A-Za-z0-9._-]*)"
_OPERATIONS = {  # operations on one collection
    ("GET", ""): "info",
    ("GET", "/exists"): "exists",
    ("PATCH", ""): "change",
    ("PUT", "/index"): "index",
    ("PUT", "/points"): "upsert",
    ("POST", "/points"): "retrieve",
    ("POST", "/points/delete"): "delete",
    ("POST", "/points/query"): "query",
    ("POST", "/points/query/batch"): "query_batch",
    ("POST", "/points/scroll"): "scroll",
    ("POST", "/points/count"): "count",
}
_WRITES = {"index", "upsert", "delete"}  # Qdrant runs these later, unless the client waits


class QdrantStandIn:
    """A server on a local port; a context manager that runs it.

    Args:
        api_key: The required key; None if no key is required.
        version: The reported version.
        directory: The data directory; by default a temporary one that is deleted at the end.
        port: The port; 0 for a free one.
        strict_mode: The limits of new collections.
        host: The address to listen on.

    Attributes:
        requests: All requests so far.
        refusals: Errors with which the next requests are refused, one each; GET is not affected.
    """

    def __init__(
        self,
        api_key: str | None = None,
        version: str = VERSION,
        directory: Path | None = None,
        port: int = 0,
        strict_mode: Json = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.requests: list[Request] = []
        self.refusals: list[RefusedError] = []
        self._strict_mode = strict_mode
        self.api_key = api_key
        self.version = version
        self._kept = directory is not None
        self._directory = directory or Path(tempfile.mkdtemp(prefix="repertory-qdrant-"))
        self._folders = self._directory / "collections"
        self._folders.mkdir(parents=True, exist_ok=True)
        self._collections = {
            path.name: ServedCollection(path)
            for path in self._folders.iterdir()
            if not path.name.startswith(".")
        }
        self._aliases: dict[str, str] = {}
        if (self._directory / "aliases.json").exists():
            self._aliases = msgspec.json.decode((self._directory / "aliases.json").read_bytes())
        self._lock = threading.Lock()  # for collections and aliases; collections have their own
        self._http = HttpServer((host, port), self._answered)

    @property
    def url(self) -> str:
        """The server's URL."""
        return self._http.url

    def __enter__(self) -> Self:
        self._http.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening, close the collections, and delete temporary data."""
        self._http.stop()
        for collection in self._collections.values():
            collection.close()
        if not self._kept:
            shutil.rmtree(self._directory)

    def another_node(self) -> HttpServer:
        """Serve the same data at a second address, like another node of a cluster.

        The caller stops the returned server.
        """
        node = HttpServer(("127.0.0.1", 0), self._answered)
        node.start()
        return node

    def optimizer(self, name: str, state: str) -> None:
        """Set the state of a collection's optimizer; see ``ServedCollection.optimizer``."""
        self._get(name).optimizer = state

    def _answered(self, request: Request) -> Json:
        """Answer a request like a real server."""
        self.requests.append(request)
        if self.api_key and request.headers.get("api-key") != self.api_key:
            raise RefusedError(401, "Must provide an API key or an Authorization bearer token")
        if request.path == "/":
            return {"title": "stand-in for qdrant", "version": self.version}
        if self.refusals and request.method != "GET":
            raise self.refusals.pop(0)
        result = self._result(request.method, request.path, request.parameters, request.body)
        return {"result": result, "status": "ok", "time": 0.0}

    def _result(self, method: str, path: str, query: dict[str, list[str]], body: Json) -> Json:
        # Only wait=true is accepted: writes are finished before the answer.
        unknown = set(query) - {"wait", "timeout"}
        if unknown or query.get("wait", ["true"]) != ["true"]:
            raise RefusedError(501, f"parameters {query}")
        bodies = [] if body is None else [body]
        for verb, pattern, handler in self._routes():
            if verb == method and (found := re.fullmatch(pattern, path)):
                with self._lock:
                    return handler(*found.groups(), *bodies)
        if found := re.fullmatch(_COLLECTION + "(.*)", path):
            name, rest = found.groups()
            if operation := _OPERATIONS.get((method, rest)):
                if operation in _WRITES and "wait" not in query:
                    raise RefusedError(501, f"{operation} without wait")
                if operation == "exists" and name not in self._collections:
                    return {"exists": False}
                collection = self._get(name)
                if "timeout" in query:
                    collection.timeout(int(query["timeout"][0]))
                return collection.answer(operation, *bodies)
        raise RefusedError(501, f"{method} {path}")

    def _routes(self) -> list[tuple[str, str, Callable[..., Json]]]:
        """The calls that are not operations on one collection: method, path pattern, handler."""
        return [
            ("GET", "/readyz", lambda: "all shards are ready"),
            ("GET", "/collections", self._list),
            ("GET", "/aliases", self._list_aliases),
            ("POST", "/collections/aliases", self._switch),
            ("PUT", _COLLECTION, self._create),
            ("DELETE", _COLLECTION, self._delete),
        ]

    def _list(self) -> Json:
        return {"collections": [{"name": name} for name in self._collections]}

    def _get(self, name: str) -> ServedCollection:
        found = self._collections.get(self._aliases.get(name, name))
        if found is None:
            raise missing(name)
        return found

    def _create(self, name: str, body: Json) -> Json:
        if name in self._collections:
            raise _taken(name)
        if self._strict_mode:
            body = {"strict_mode_config": self._strict_mode} | body
        ServedCollection.make(self._folders / name, body)
        self._collections[name] = ServedCollection(self._folders / name)
        return True

    def _delete(self, name: str) -> Json:
        if name not in self._collections:
            return False
        self._collections.pop(name).close()
        self._keep({alias: at for alias, at in self._aliases.items() if at != name})
        dropped = self._folders / f".old-{name}"
        shutil.rmtree(dropped, ignore_errors=True)
        shutil.rmtree((self._folders / name).rename(dropped))
        return True

    def _list_aliases(self) -> Json:
        pairs = self._aliases.items()
        return {"aliases": [{"alias_name": alias, "collection_name": at} for alias, at in pairs]}

    def _switch(self, body: Json) -> Json:
        """Run actions in order; if one fails, the earlier ones stay in effect."""
        for action in fields(body, "actions")["actions"]:
            match action:
                case {"delete_alias": {"alias_name": alias}}:
                    self._keep({one: at for one, at in self._aliases.items() if one != alias})
                case {"create_alias": {"alias_name": alias, "collection_name": name}}:
                    if name not in self._collections:
                        raise missing(name)
                    if alias in self._collections:
                        raise _taken(alias)
                    self._keep(self._aliases | {alias: name})
                case _:
                    raise RefusedError(501, f"action {action}")
        return True

    def _keep(self, aliases: dict[str, str]) -> None:
        save(self._directory / "aliases.json", aliases)
        self._aliases = aliases


def _taken(name: str) -> RefusedError:
    return RefusedError(409, f"Wrong input: Collection `{name}` already exists!")


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--directory", type=Path, required=True)
    given = parser.parse_args()
    with QdrantStandIn(directory=given.directory, port=given.port, host=given.host) as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
