"""A stand-in for a Qdrant server: the REST calls that Repertory makes, on the embedded engine.

An unknown path, parameter or field is answered with 501, so that no test passes because
something was ignored. As a separate process it keeps its data however it ends:

    python -m tests.support.qdrant_server --port 6333 --directory DIRECTORY
"""

import argparse
import contextlib
import re
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import msgspec

from tests.support.qdrant_collections import (
    Json,
    RefusedError,
    ServedCollection,
    fields,
    missing,
    save,
)

VERSION = "1.16.0"

_COLLECTION = r"/collections/([A-Za-z0-9][A-Za-z0-9._-]*)"
_OPERATIONS = {  # on one collection
    ("GET", ""): "info",
    ("PUT", "/index"): "index",
    ("PUT", "/points"): "upsert",
    ("POST", "/points"): "retrieve",
    ("POST", "/points/delete"): "delete",
    ("POST", "/points/query"): "query",
    ("POST", "/points/scroll"): "scroll",
    ("POST", "/points/count"): "count",
}


class QdrantStandIn:
    """A server on a port of this machine; a context manager.

    Args:
        api_key: The key that it requires.
        version: Its reported version.
        directory: Its data; by default it is empty and keeps nothing.
        port: 0 for a free one.
        host: The address that it listens on.
    """

    def __init__(
        self,
        api_key: str | None = None,
        version: str = VERSION,
        directory: Path | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
    ) -> None:
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
        self._lock = threading.Lock()  # of the list of collections; each one has its own lock
        self._http = _Http((host, port), partial(_Handler, self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening, and close or delete everything."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        for collection in self._collections.values():
            collection.close()
        if not self._kept:
            shutil.rmtree(self._directory)

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Json) -> Json:
        """Answer as a real server does, without the envelope around ``result``."""
        # ``wait`` is always so here, and a timeout is never reached.
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
                return self._get(name).answer(operation, *bodies)
        raise RefusedError(501, f"{method} {path}")

    def _routes(self) -> list[tuple[str, str, Callable[..., Json]]]:
        """The calls about all collections."""
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
            raise RefusedError(409, f"Wrong input: Collection `{name}` already exists!")
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
        aliases = dict(self._aliases)
        for action in fields(body, "actions")["actions"]:
            match action:
                case {"delete_alias": {"alias_name": alias}}:
                    aliases.pop(alias, None)
                case {"create_alias": {"alias_name": alias, "collection_name": name}}:
                    self._get(name)
                    aliases[alias] = name
                case _:
                    raise RefusedError(501, f"action {action}")
        self._keep(aliases)
        return True

    def _keep(self, aliases: dict[str, str]) -> None:
        save(self._directory / "aliases.json", aliases)
        self._aliases = aliases


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *args: Any) -> None:  # noqa: ANN401  # as in the base
        self._connections: set[socket.socket] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as in the base
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401  # as in the base
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Stop listening, and close the idle connections of clients."""
        super().server_close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):  # the client has just hung up itself
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as in the base
        """Ignore clients that disconnected."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, standin: QdrantStandIn, *args: Any) -> None:  # noqa: ANN401  # as in the base
        self._standin = standin
        super().__init__(*args)

    def do_GET(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name in the base
        """Log nothing."""

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = msgspec.json.decode(self.rfile.read(length)) if length else None
        parts = urlsplit(self.path)
        answer: Json
        status = 200
        try:
            if self._standin.api_key and self.headers.get("api-key") != self._standin.api_key:
                raise RefusedError(401, "Must provide an API key or an Authorization bearer token")
            if parts.path == "/":
                answer = {"title": "stand-in for qdrant", "version": self._standin.version}
            else:
                result = self._standin.answer(self.command, parts.path, parse_qs(parts.query), body)
                answer = {"result": result, "status": "ok", "time": 0.0}
        except RefusedError as exc:
            status, answer = exc.status, {"status": {"error": str(exc)}}
        except Exception as exc:  # the engine raises plain Exception for wrong input
            if type(exc) is not Exception:
                status, answer = 501, {"status": {"error": f"{exc!r} in {body}"}}
            else:
                status, answer = 400, {"status": {"error": f"Wrong input: {exc}"}}
        content = msgspec.json.encode(answer)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


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
