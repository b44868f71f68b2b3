"""The collections of the stand-in for a Qdrant server, stored as shards of the embedded engine.

Requests with unknown fields or conditions get status 501.
"""

import shutil
import threading
from pathlib import Path

import msgspec
import qdrant_edge as engine

from tests.support.qdrant_http import Json, RefusedError
from tests.support.qdrant_strict import StrictMode

OPTIMIZER_DELAY_S = 0.2  # after the last write

_DONE = {"operation_id": 0, "status": "completed"}
_DISTANCES = {"Cosine": engine.Distance.Cosine, "Dot": engine.Distance.Dot}
_HNSW = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000}
_OPTIMIZER = {
    "deleted_threshold": 0.2,
    "vacuum_min_vector_number": 1_000,
    "default_segment_number": 0,
    "flush_interval_sec": 5,
    "indexing_threshold": 10_000,
}


def missing(name: str) -> RefusedError:
    """The error for a missing collection."""
    return RefusedError(404, f"Not found: Collection `{name}` doesn't exist!")


class ServedCollection:
    """One collection in its own directory: its settings and a shard.

    Attributes:
        optimizer: ``runs`` by default. A test can set ``works``, so that the optimizer never
            finishes, or an error message, so that the optimizer has failed.
    """

    def __init__(self, directory: Path) -> None:
        """Open a collection that ``make`` has created."""
        self._directory = directory
        self._settings = msgspec.json.decode((directory / "settings.json").read_bytes())
        self._shard = engine.EdgeShard.load(str(directory / "shard"))
        self._lock = threading.Lock()
        self._closed = False
        self._timer: threading.Timer | None = None
        self.optimizer = "runs"

    @staticmethod
    def make(directory: Path, body: Json) -> None:
        """Create a collection with these settings atomically."""
        fields(
            body,
            "vectors",
            "hnsw_config",
            "quantization_config",
            "optimizers_config",
            "on_disk_payload",
            "replication_factor",
            "shard_number",
            "write_consistency_factor",
            "strict_mode_config",
        )
        vectors = fields(body["vectors"], "size", "distance", "on_disk")
        if vectors["distance"] not in _DISTANCES:
            raise RefusedError(501, f"distance {vectors['distance']}")
        StrictMode(body.get("strict_mode_config"))
        unfinished = directory.with_name(f".new-{directory.name}")
        shutil.rmtree(unfinished, ignore_errors=True)
        (unfinished / "shard").mkdir(parents=True)
        engine.EdgeShard.create(str(unfinished / "shard"), _configuration(body)).close()
        save(unfinished / "settings.json", {"collection": body, "indexed": {}})
        unfinished.rename(directory)

    def answer(self, operation: str, *body: Json) -> Json:
        """Run one of the operations below; operations never run concurrently."""
        with self._lock:
            if self._closed:
                raise missing(self._directory.name)
            return getattr(self, operation)(*body)

    def close(self) -> None:
        """Flush and close the collection."""
        with self._lock:
            self._closed = True
            if self._timer:
                self._timer.cancel()
            self._shard.close()

    def exists(self) -> Json:
        """Whether the collection exists (GET)."""
        return {"exists": True}

    def info(self) -> Json:
        """Describe the collection (GET)."""
        asked = self._settings["collection"]
        cluster = ("replication_factor", "shard_number", "write_consistency_factor")
        return {
            "status": self._status(),
            "optimizer_status": {"error": self.optimizer} if self._is_broken else "ok",
            "segments_count": 1,
            "points_count": self._shard.count(engine.CountRequest()),
            "config": {
                "params": {name: asked.get(name, 1) for name in cluster}
                | {"vectors": asked["vectors"]}
                | {"on_disk_payload": asked.get("on_disk_payload", True)},
                "hnsw_config": _HNSW | asked.get("hnsw_config", {}),
                "optimizer_config": _OPTIMIZER | asked.get("optimizers_config", {}),
                "quantization_config": asked.get("quantization_config"),
            },
            "payload_schema": self._settings["indexed"],
        }

    def change(self, body: Json) -> Json:
        """Change limits (PATCH), or start the optimizer if its settings are given but empty."""
        fields(body, "optimizers_config", "strict_mode_config")
        if body.get("optimizers_config"):
            raise RefusedError(501, "optimizers_config")
        if limits := body.get("strict_mode_config"):
            StrictMode(limits)
            self._settings["collection"]["strict_mode_config"] = limits
            save(self._directory / "settings.json", self._settings)
        if "optimizers_config" in body:
            self._optimize_later()
        return True

    def index(self, body: Json) -> Json:
        """Create a payload index (PUT)."""
        fields(body, "field_name", "field_schema")
        params = fields(body["field_schema"], "type", "on_disk")
        if params["type"] not in ("keyword", "integer"):
            raise RefusedError(501, f"index {params}")
        self._strict.index(len(self._settings["indexed"]))
        # The graph links points by indexed filter fields; other indexes do not affect answers.
        if params["type"] == "keyword" and not params.get("on_disk"):
            schema = engine.PayloadSchemaType.Keyword
            self._shard.update(
                engine.UpdateOperation.create_field_index(body["field_name"], schema)
            )
        made = {"data_type": params["type"], "params": params, "points": 0}
        self._settings["indexed"][body["field_name"]] = made
        save(self._directory / "settings.json", self._settings)
        return _DONE

    def upsert(self, body: Json) -> Json:
        """Write points (PUT)."""
        fields(body, "points", "update_filter")
        self._strict.upsert(len(body["points"]))
        points = [
            engine.Point(point["id"], point["vector"], point["payload"])
            for point in (fields(point, "id", "vector", "payload") for point in body["points"])
        ]
        condition = _filter(body["update_filter"]) if "update_filter" in body else None
        self._shard.update(engine.UpdateOperation.upsert_points(points, condition=condition))
        self._optimize_later()
        return _DONE

    def delete(self, body: Json) -> Json:
        """Delete the points that a filter selects (POST)."""
        where = fields(body, "filter")["filter"]
        self._strict.filter(where, self._settings["indexed"], is_write=True)
        self._shard.update(engine.UpdateOperation.delete_points_by_filter(_filter(where)))
        self._optimize_later()
        return _DONE

    def retrieve(self, body: Json) -> Json:
        """Read points by id (POST)."""
        fields(body, "ids", "with_payload", "with_vector")
        with_vector = body.get("with_vector", False)
        found = self._shard.retrieve(body["ids"], body["with_payload"], with_vector)
        return [
            {"id": str(point.id), "payload": point.payload}
            | ({"vector": point.vector} if with_vector else {})
            for point in found
        ]

    def query(self, body: Json) -> Json:
        """Find the points nearest to a vector (POST)."""
        fields(body, "query", "filter", "params", "limit", "with_payload", "with_vector")
        params = fields(body.get("params", {}), "hnsw_ef", "exact", "quantization", "acorn")
        if body.get("with_vector"):
            raise RefusedError(501, "with_vector")
        if body["limit"] < 1:
            raise RefusedError(422, "Validation error in JSON body: [limit: value 0 invalid]")
        self._strict.query(body["limit"], params)
        self._strict.filter(body.get("filter", {}), self._settings["indexed"], is_write=False)
        vector = body["query"]
        found = self._shard.query(
            engine.QueryRequest(
                limit=body["limit"],
                query=engine.Query.Nearest(
                    vector if isinstance(vector, list) else fields(vector, "nearest")["nearest"]
                ),
                filter=_filter(body["filter"]) if "filter" in body else None,
                params=_search_params(params),
                with_payload=body.get("with_payload", False),
            )
        )
        points = [
            {"id": str(p.id), "version": p.version, "score": p.score, "payload": p.payload}
            for p in found
        ]
        return {"points": points}

    def query_batch(self, body: Json) -> Json:
        """Run several queries (POST)."""
        return [self.query(one) for one in fields(body, "searches")["searches"]]

    def scroll(self, body: Json) -> Json:
        """Read one page of points (POST)."""
        fields(body, "filter", "limit", "offset", "with_payload", "with_vector")
        with_vector = body.get("with_vector", False)
        self._strict.query(body["limit"], {})
        self._strict.filter(body.get("filter", {}), self._settings["indexed"], is_write=False)
        page, offset = self._shard.scroll(
            engine.ScrollRequest(
                offset=body.get("offset"),
                limit=body["limit"],
                filter=_filter(body["filter"]) if "filter" in body else None,
                with_payload=body["with_payload"],
                with_vector=with_vector,
            )
        )
        points = [
            {"id": str(point.id), "payload": point.payload}
            | ({"vector": point.vector} if with_vector else {})
            for point in page
        ]
        return {"points": points, "next_page_offset": None if offset is None else str(offset)}

    def count(self, body: Json) -> Json:
        """Count points (POST)."""
        asked = fields(body, "exact", "filter")
        if not asked["exact"]:
            raise RefusedError(501, "an estimate")
        where = asked.get("filter")
        if where:
            self._strict.filter(where, self._settings["indexed"], is_write=False)
        request = engine.CountRequest(exact=True, filter=_filter(where) if where else None)
        return {"count": self._shard.count(request)}

    def timeout(self, seconds: int) -> None:
        """Check the time limit of a request."""
        self._strict.timeout(seconds)

    @property
    def _strict(self) -> StrictMode:
        return StrictMode(self._settings["collection"].get("strict_mode_config"))

    @property
    def _is_broken(self) -> bool:
        return self.optimizer not in ("runs", "works")

    def _status(self) -> str:
        """Green, yellow while optimization is pending, or red after an error.

        After a restart it is grey instead of yellow until the first write.
        """
        if self._is_broken:
            return "red"
        if self.optimizer == "runs" and not self._needs_optimizer():
            return "green"
        return "yellow" if self._timer else "grey"

    def _needs_optimizer(self) -> bool:
        asked, known = self._settings["collection"], self._shard.info()
        missing = known.points_count - known.indexed_vectors_count
        threshold = (_OPTIMIZER | asked.get("optimizers_config", {}))["indexing_threshold"]
        has_graph = (_HNSW | asked.get("hnsw_config", {}))["m"] > 0
        return bool(has_graph and missing * asked["vectors"]["size"] * 4 > threshold * 1_024)

    def _optimize_later(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = threading.Timer(OPTIMIZER_DELAY_S, self._optimize)
        self._timer.daemon = True
        self._timer.start()

    def _optimize(self) -> None:
        with self._lock:
            if not self._closed and self.optimizer == "runs" and self._needs_optimizer():
                self._shard.optimize()


def _configuration(body: Json) -> engine.EdgeConfig:
    """The shard configuration of a collection with these settings.

    The write-ahead log is enabled, so that acknowledged writes survive a kill.
    """
    vectors, hnsw = body["vectors"], _HNSW | body.get("hnsw_config", {})
    fields(hnsw, *_HNSW)
    optimizer = fields(_OPTIMIZER | body.get("optimizers_config", {}), *_OPTIMIZER)
    quantization = None
    if quantized := body.get("quantization_config"):
        scalar = fields(fields(quantized, "scalar")["scalar"], "type", "quantile", "always_ram")
        quantization = engine.ScalarQuantizationConfig(
            type=engine.ScalarType.Int8, quantile=scalar.get("quantile")
        )
    return engine.EdgeConfig(
        vectors=engine.EdgeVectorParams(
            size=vectors["size"], distance=_DISTANCES[vectors["distance"]]
        ),
        hnsw_config=engine.HnswIndexConfig(**hnsw),
        optimizers=engine.EdgeOptimizersConfig(indexing_threshold=optimizer["indexing_threshold"]),
        quantization_config=quantization,
        wal_enabled=True,
    )


def _search_params(params: Json) -> engine.SearchParams:
    quantization = fields(params.get("quantization", {}), "ignore", "rescore", "oversampling")
    acorn = fields(params.get("acorn", {}), "enable", "max_selectivity")
    return engine.SearchParams(
        hnsw_ef=params.get("hnsw_ef"),
        exact=params.get("exact", False),
        quantization=engine.QuantizationSearchParams(**quantization) if quantization else None,
        acorn=engine.AcornSearchParams(**acorn) if acorn else None,
    )


def fields(body: Json, *known: str) -> Json:
    """Return the body; raises RefusedError if it has unknown fields."""
    if unknown := set(body) - set(known):
        raise RefusedError(501, f"fields {sorted(unknown)}")
    return body


def _filter(body: Json) -> engine.Filter:
    clauses = fields(body, "must", "must_not")
    return engine.Filter(
        must=[_condition(one) for one in clauses.get("must") or ()],
        must_not=[_condition(one) for one in clauses.get("must_not") or ()],
    )


def _condition(
    body: Json,
) -> engine.FieldCondition | engine.IsEmptyCondition | engine.HasIdCondition:
    match body:
        case {"key": key, "match": {"any": values}, **rest} if not rest:
            return engine.FieldCondition(key, match=engine.MatchAny(values))
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
