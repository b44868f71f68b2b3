"""A stand-in for a Qdrant server: the REST calls that Repertory makes, on the embedded engine.

It takes nothing for granted: a path, a parameter or a field that it does not know is answered with
501, so that no test passes because something was passed over.
"""

import json
import re
import shutil
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import qdrant_edge as engine

VERSION = "1.16.0"

Json = Any  # what a request or an answer holds


class RefusedError(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class QdrantStandIn:
    """A server on a free port of this machine, with nothing in it; a context manager."""

    def __init__(self, api_key: str | None = None, version: str = VERSION) -> None:
        self.api_key = api_key
        self.version = version
        self._directory = Path(tempfile.mkdtemp(prefix="repertory-qdrant-"))
        self._collections: dict[str, _Collection] = {}
        self._aliases: dict[str, str] = {}
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.standin = self
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening and delete everything."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        for collection in self._collections.values():
            collection.shard.close()
        shutil.rmtree(self._directory)

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Json) -> Json:
        """What a real server answers, without its envelope where ``result`` is all there is."""
        # ``wait`` is always so here, and a timeout is never reached.
        unknown = set(query) - {"wait", "timeout"}
        if unknown or query.get("wait", ["true"]) != ["true"]:
            raise RefusedError(501, f"parameters {query}")
        with self._lock:
            for verb, pattern, handler in self._routes():
                if verb == method and (found := re.fullmatch(pattern, path)):
                    return handler(*found.groups(), *([] if body is None else [body]))
        raise RefusedError(501, f"{method} {path}")

    def _routes(self) -> list[tuple[str, str, Callable[..., Json]]]:
        name = r"/collections/([^/]+)"
        return [
            ("GET", r"/collections", self._list),
            ("GET", r"/aliases", self._list_aliases),
            ("POST", r"/collections/aliases", self._switch),
            ("GET", name, lambda n: self._get(n).info()),
            ("PUT", name, self._create),
            ("DELETE", name, self._delete),
            ("PUT", name + "/index", lambda n, body: self._get(n).index(body)),
            ("PUT", name + "/points", lambda n, body: self._get(n).upsert(body)),
            ("POST", name + "/points", lambda n, body: self._get(n).retrieve(body)),
            ("POST", name + "/points/delete", lambda n, body: self._get(n).delete(body)),
            ("POST", name + "/points/query", lambda n, body: self._get(n).query(body)),
            ("POST", name + "/points/scroll", lambda n, body: self._get(n).scroll(body)),
            ("POST", name + "/points/count", lambda n, body: self._get(n).count(body)),
        ]

    def _list(self) -> Json:
        return {"collections": [{"name": name} for name in self._collections]}

    def _get(self, name: str) -> "_Collection":
        found = self._collections.get(self._aliases.get(name, name))
        if found is None:
            raise RefusedError(404, f"Not found: Collection `{name}` doesn't exist!")
        return found

    def _create(self, name: str, body: Json) -> Json:
        if name in self._collections:
            raise RefusedError(409, f"Wrong input: Collection `{name}` already exists!")
        self._collections[name] = _Collection(Path(tempfile.mkdtemp(dir=self._directory)), body)
        return True

    def _delete(self, name: str) -> Json:
        if name not in self._collections:
            return False
        self._collections.pop(name).shard.close()
        self._aliases = {alias: at for alias, at in self._aliases.items() if at != name}
        return True

    def _list_aliases(self) -> Json:
        pairs = self._aliases.items()
        return {"aliases": [{"alias_name": alias, "collection_name": at} for alias, at in pairs]}

    def _switch(self, body: Json) -> Json:
        aliases = dict(self._aliases)
        for action in _fields(body, "actions")["actions"]:
            match action:
                case {"delete_alias": {"alias_name": alias}}:
                    aliases.pop(alias, None)
                case {"create_alias": {"alias_name": alias, "collection_name": name}}:
                    self._get(name)
                    aliases[alias] = name
                case _:
                    raise RefusedError(501, f"action {action}")
        self._aliases = aliases
        return True


class _Collection:
    """One collection, as a shard of the embedded engine."""

    def __init__(self, directory: Path, body: Json) -> None:
        self.settings = _fields(
            body,
            "vectors",
            "hnsw_config",
            "quantization_config",
            "optimizers_config",
            "on_disk_payload",
        )
        vectors = _fields(body["vectors"], "size", "distance", "on_disk")
        if vectors["distance"] != "Cosine":
            raise RefusedError(501, f"distance {vectors['distance']}")
        params = engine.EdgeVectorParams(size=vectors["size"], distance=engine.Distance.Cosine)
        self.shard = engine.EdgeShard.create(
            str(directory), engine.EdgeConfig(vectors=params, wal_enabled=False)
        )
        self.indexed: dict[str, Json] = {}

    def info(self) -> Json:
        hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000}
        optimizer = {"deleted_threshold": 0.2, "default_segment_number": 0, "flush_interval_sec": 5}
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "points_count": self.shard.count(engine.CountRequest()),
            "config": {
                "params": {"vectors": self.settings["vectors"]},
                "hnsw_config": hnsw | self.settings["hnsw_config"],
                "optimizer_config": optimizer | self.settings["optimizers_config"],
                "quantization_config": self.settings["quantization_config"],
            },
            "payload_schema": self.indexed,
        }

    def index(self, body: Json) -> Json:
        _fields(body, "field_name", "field_schema")
        schema = _fields(body["field_schema"], "type", "on_disk")
        if schema["type"] not in ("keyword", "integer"):
            raise RefusedError(501, f"index {schema}")
        # An index makes the shard faster and changes no answer: it is only noted.
        self.indexed[body["field_name"]] = {"data_type": schema["type"], "points": 0}
        return _DONE

    def upsert(self, body: Json) -> Json:
        _fields(body, "points", "update_filter")
        points = [
            engine.Point(point["id"], point["vector"], point["payload"])
            for point in (_fields(point, "id", "vector", "payload") for point in body["points"])
        ]
        self.shard.update(
            engine.UpdateOperation.upsert_points(points, condition=_filter(body["update_filter"]))
        )
        return _DONE

    def delete(self, body: Json) -> Json:
        where = _filter(_fields(body, "filter")["filter"])
        self.shard.update(engine.UpdateOperation.delete_points_by_filter(where))
        return _DONE

    def retrieve(self, body: Json) -> Json:
        _fields(body, "ids", "with_payload", "with_vector")
        if body.get("with_vector"):
            raise RefusedError(501, "with_vector")
        found = self.shard.retrieve(body["ids"], body["with_payload"], False)
        return [{"id": str(point.id), "payload": point.payload} for point in found]

    def query(self, body: Json) -> Json:
        _fields(body, "query", "filter", "params", "limit", "with_payload", "with_vector")
        params = _fields(body.get("params", {}), "hnsw_ef", "exact", "quantization", "indexed_only")
        _fields(params.get("quantization", {}), "ignore", "rescore", "oversampling")
        if body.get("with_vector") or params.get("indexed_only"):
            raise RefusedError(501, "with_vector, indexed_only")
        if body["limit"] < 1:
            raise RefusedError(422, "Validation error in JSON body: [limit: value 0 invalid]")
        found = self.shard.query(
            engine.QueryRequest(
                limit=body["limit"],
                query=engine.Query.Nearest(_fields(body["query"], "nearest")["nearest"]),
                filter=_filter(body["filter"]) if "filter" in body else None,
                params=engine.SearchParams(
                    hnsw_ef=params.get("hnsw_ef"), exact=params.get("exact", False)
                ),
                with_payload=body["with_payload"],
            )
        )
        points = [
            {"id": str(p.id), "version": p.version, "score": p.score, "payload": p.payload}
            for p in found
        ]
        return {"points": points}

    def scroll(self, body: Json) -> Json:
        _fields(body, "filter", "limit", "offset", "with_payload", "with_vector")
        if body.get("with_vector"):
            raise RefusedError(501, "with_vector")
        page, offset = self.shard.scroll(
            engine.ScrollRequest(
                offset=body.get("offset"),
                limit=body["limit"],
                filter=_filter(body["filter"]),
                with_payload=body["with_payload"],
                with_vector=False,
            )
        )
        points = [{"id": str(point.id), "payload": point.payload} for point in page]
        return {"points": points, "next_page_offset": None if offset is None else str(offset)}

    def count(self, body: Json) -> Json:
        return {
            "count": self.shard.count(engine.CountRequest(exact=_fields(body, "exact")["exact"]))
        }


_DONE = {"operation_id": 0, "status": "completed"}


def _fields(body: Json, *known: str) -> Json:
    """The body, when it has only fields that are known."""
    if unknown := set(body) - set(known):
        raise RefusedError(501, f"fields {sorted(unknown)}")
    return body


def _filter(body: Json) -> engine.Filter:
    clauses = _fields(body, "must", "must_not")
    return engine.Filter(
        must=[_condition(one) for one in clauses["must"]],
        must_not=[_condition(one) for one in clauses.get("must_not") or ()],
    )


def _condition(
    body: Json,
) -> engine.FieldCondition | engine.IsEmptyCondition | engine.HasIdCondition:
    match body:
        case {"key": key, "match": {"any": values}, **rest} if not rest:
            return engine.FieldCondition(key, match=engine.MatchAny(values))
        case {"key": key, "range": {"lt": number, **more}, **rest} if not rest and not more:
            return engine.FieldCondition(key, range=engine.RangeFloat(lt=number))
        case {"is_empty": {"key": key}, **rest} if not rest:
            return engine.IsEmptyCondition(key)
        case {"has_id": ids, **rest} if not rest:
            return engine.HasIdCondition(set(ids))
    raise RefusedError(501, f"condition {body}")


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    standin: QdrantStandIn


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def do_GET(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name in the base
        """Say nothing."""

    def _serve(self) -> None:
        standin = self.server.standin
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        parts = urlsplit(self.path)
        answer: Json
        status = 200
        try:
            if standin.api_key and self.headers.get("api-key") != standin.api_key:
                raise RefusedError(401, "Must provide an API key or an Authorization bearer token")
            if parts.path == "/":
                answer = {"title": "stand-in for qdrant", "version": standin.version}
            else:
                result = standin.answer(self.command, parts.path, parse_qs(parts.query), body)
                answer = {"result": result, "status": "ok", "time": 0.0}
        except RefusedError as exc:
            status, answer = exc.status, {"status": {"error": str(exc)}}
        except Exception as exc:  # the engine raises plain Exception for wrong input
            if type(exc) is not Exception:
                status, answer = 501, {"status": {"error": f"{exc!r} in {body}"}}
            else:
                status, answer = 400, {"status": {"error": f"Wrong input: {exc}"}}
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
