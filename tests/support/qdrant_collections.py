"""The collections of the stand-in for a Qdrant server: shards of the embedded engine.

Unknown fields and conditions are refused with 501.
"""

import shutil
import threading
from pathlib import Path
from typing import Any

import msgspec
import qdrant_edge as engine

Json = Any  # of a request or an answer

_DONE = {"operation_id": 0, "status": "completed"}
_DISTANCES = {"Cosine": engine.Distance.Cosine, "Dot": engine.Distance.Dot}


class RefusedError(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def missing(name: str) -> RefusedError:
    """The error for a missing collection."""
    return RefusedError(404, f"Not found: Collection `{name}` doesn't exist!")


class ServedCollection:
    """One collection in its own directory: its settings and a shard."""

    def __init__(self, directory: Path) -> None:
        """Open what ``make`` made."""
        self._directory = directory
        self._settings = msgspec.json.decode((directory / "settings.json").read_bytes())
        self._shard = engine.EdgeShard.load(str(directory / "shard"))
        self._lock = threading.Lock()
        self._closed = False

    @staticmethod
    def make(directory: Path, body: Json) -> None:
        """Create a collection with these settings, completely or not at all."""
        fields(
            body,
            "vectors",
            "hnsw_config",
            "quantization_config",
            "optimizers_config",
            "on_disk_payload",
        )
        vectors = fields(body["vectors"], "size", "distance", "on_disk")
        if vectors["distance"] not in _DISTANCES:
            raise RefusedError(501, f"distance {vectors['distance']}")
        unfinished = directory.with_name(f".new-{directory.name}")
        shutil.rmtree(unfinished, ignore_errors=True)
        (unfinished / "shard").mkdir(parents=True)
        params = engine.EdgeVectorParams(
            size=vectors["size"], distance=_DISTANCES[vectors["distance"]]
        )
        # With a log: what was answered is there after kill -9.
        config = engine.EdgeConfig(vectors=params, wal_enabled=True)
        engine.EdgeShard.create(str(unfinished / "shard"), config).close()
        save(unfinished / "settings.json", {"collection": body, "indexed": {}})
        unfinished.rename(directory)

    def answer(self, operation: str, *body: Json) -> Json:
        """Run one of the methods below; one at a time."""
        with self._lock:
            if self._closed:
                raise missing(self._directory.name)
            return getattr(self, operation)(*body)

    def close(self) -> None:
        """Flush and close."""
        with self._lock:
            self._closed = True
            self._shard.close()

    def info(self) -> Json:
        """GET of the collection."""
        asked = self._settings["collection"]
        hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000}
        optimizer = {
            "deleted_threshold": 0.2,
            "vacuum_min_vector_number": 1_000,
            "default_segment_number": 0,
            "flush_interval_sec": 5,
        }
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "points_count": self._shard.count(engine.CountRequest()),
            "config": {
                "params": {
                    "vectors": asked["vectors"],
                    "on_disk_payload": asked.get("on_disk_payload", True),
                },
                "hnsw_config": hnsw | asked.get("hnsw_config", {}),
                "optimizer_config": optimizer | asked.get("optimizers_config", {}),
                "quantization_config": asked.get("quantization_config"),
            },
            "payload_schema": self._settings["indexed"],
        }

    def index(self, body: Json) -> Json:
        """PUT of an index: it is recorded only, since it changes no answer."""
        fields(body, "field_name", "field_schema")
        schema = fields(body["field_schema"], "type", "on_disk")
        if schema["type"] not in ("keyword", "integer"):
            raise RefusedError(501, f"index {schema}")
        self._settings["indexed"][body["field_name"]] = {"data_type": schema["type"], "points": 0}
        save(self._directory / "settings.json", self._settings)
        return _DONE

    def upsert(self, body: Json) -> Json:
        """PUT of points."""
        fields(body, "points", "update_filter")
        points = [
            engine.Point(point["id"], point["vector"], point["payload"])
            for point in (fields(point, "id", "vector", "payload") for point in body["points"])
        ]
        condition = _filter(body["update_filter"]) if "update_filter" in body else None
        self._shard.update(engine.UpdateOperation.upsert_points(points, condition=condition))
        return _DONE

    def delete(self, body: Json) -> Json:
        """POST of a deletion."""
        where = _filter(fields(body, "filter")["filter"])
        self._shard.update(engine.UpdateOperation.delete_points_by_filter(where))
        return _DONE

    def retrieve(self, body: Json) -> Json:
        """POST of ids."""
        fields(body, "ids", "with_payload", "with_vector")
        with_vector = body["with_vector"]
        found = self._shard.retrieve(body["ids"], body["with_payload"], with_vector)
        return [
            {"id": str(point.id), "payload": point.payload}
            | ({"vector": point.vector} if with_vector else {})
            for point in found
        ]

    def query(self, body: Json) -> Json:
        """POST of a vector."""
        fields(body, "query", "filter", "params", "limit", "with_payload", "with_vector")
        params = fields(body.get("params", {}), "hnsw_ef", "exact", "quantization", "indexed_only")
        fields(params.get("quantization", {}), "ignore", "rescore", "oversampling")
        if body.get("with_vector") or params.get("indexed_only"):
            raise RefusedError(501, "with_vector, indexed_only")
        if body["limit"] < 1:
            raise RefusedError(422, "Validation error in JSON body: [limit: value 0 invalid]")
        found = self._shard.query(
            engine.QueryRequest(
                limit=body["limit"],
                query=engine.Query.Nearest(fields(body["query"], "nearest")["nearest"]),
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
        """POST of a page."""
        fields(body, "filter", "limit", "offset", "with_payload", "with_vector")
        if body.get("with_vector"):
            raise RefusedError(501, "with_vector")
        page, offset = self._shard.scroll(
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
        """POST of a count."""
        fields(body, "exact", "filter")
        where = _filter(body["filter"]) if "filter" in body else None
        request = engine.CountRequest(exact=body["exact"], filter=where)
        return {"count": self._shard.count(request)}


def fields(body: Json, *known: str) -> Json:
    """Return the body if it has only known fields."""
    if unknown := set(body) - set(known):
        raise RefusedError(501, f"fields {sorted(unknown)}")
    return body


def _filter(body: Json) -> engine.Filter:
    clauses = fields(body, "must", "must_not")
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
        case {"key": key, "range": {"gte": number, **more}, **rest} if not rest and not more:
            return engine.FieldCondition(key, range=engine.RangeFloat(gte=number))
        case {"is_empty": {"key": key}, **rest} if not rest:
            return engine.IsEmptyCondition(key)
        case {"has_id": ids, **rest} if not rest:
            return engine.HasIdCondition(set(ids))
    raise RefusedError(501, f"condition {body}")


def save(path: Path, content: Json) -> None:
    """Replace a file atomically."""
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_bytes(msgspec.json.encode(content))
    unfinished.replace(path)
