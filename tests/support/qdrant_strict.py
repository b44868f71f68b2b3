"""The strict mode of a Qdrant server: configured limits, and the server's original errors."""

from collections.abc import Collection

from tests.support.qdrant_http import Json, RefusedError

LIMITS = {
    "max_query_limit",
    "max_timeout",
    "unindexed_filtering_retrieve",
    "unindexed_filtering_update",
    "search_max_hnsw_ef",
    "search_allow_exact",
    "search_max_oversampling",
    "upsert_max_batchsize",
    "filter_max_conditions",
    "condition_max_size",
    "max_payload_index_count",
}


class StrictMode:
    """The limits of a collection, which apply only if strict mode is enabled."""

    def __init__(self, settings: Json) -> None:
        settings = dict(settings or {})
        self._limits = settings if settings.pop("enabled", False) else {}
        if unknown := {*self._limits} - LIMITS:
            raise RefusedError(501, f"strict mode {sorted(unknown)}")

    def upsert(self, points: int) -> None:
        """Check the size of a write."""
        self._most("upsert_max_batchsize", points, "upsert limit")

    def index(self, existing: int) -> None:
        """Check the number of payload indexes before another one is created."""
        limit = self._limits.get("max_payload_index_count")
        if limit is not None and existing >= limit:
            _refuse(
                f"Collection already has the maximum number of payload indices ({limit})",
                "Please delete an existing index before creating a new one.",
            )

    def timeout(self, seconds: int) -> None:
        """Check the time limit of a request."""
        self._most("max_timeout", seconds, "timeout")

    def query(self, limit: int, params: Json) -> None:
        """Check the limit and the parameters of a query or a scroll request."""
        self._most("max_query_limit", limit, "limit")
        if params.get("exact") and self._limits.get("search_allow_exact") is False:
            _refuse("Exact search disabled!", "Set exact=false.")
        oversampling = (params.get("quantization") or {}).get("oversampling")
        self._most("search_max_oversampling", oversampling, "oversampling")
        self._most("search_max_hnsw_ef", params.get("hnsw_ef"), "hnsw_ef")

    def filter(self, body: Json, indexed: Collection[str], *, is_write: bool) -> None:
        """Check the conditions of a filter."""
        conditions = [*body.get("must", ()), *(body.get("must_not") or ())]
        allows = "unindexed_filtering_update" if is_write else "unindexed_filtering_retrieve"
        for condition in conditions:
            key = condition.get("key") or condition.get("is_empty", {}).get("key")
            if key and key not in indexed and self._limits.get(allows) is False:
                _refuse(
                    f'Index required but not found for "{key}" of one of the following types: '
                    "[keyword, integer]",
                    "Create an index for this key or use a different filter.",
                )
            size = len(condition.get("match", {}).get("any", condition.get("has_id", ())))
            self._most_of("condition_max_size", size, "Condition size")
        self._most_of("filter_max_conditions", len(conditions), "Filter condition")

    def _most(self, limit: str, value: float | None, name: str) -> None:
        most = self._limits.get(limit)
        if most is not None and value is not None and value > most:
            _refuse(
                f'Limit exceeded {value} > {most} for "{name}"',
                f'Reduce the "{name}" parameter to or below {most}.',
            )

    def _most_of(self, limit: str, value: int, name: str) -> None:
        most = self._limits.get(limit)
        if most is not None and value > most:
            _refuse(f"{name} limit reached ({value} > {most})", "Reduce it.")


def _refuse(error: str, remedy: str) -> None:
    raise RefusedError(400, f"Bad request: {error}. Help: {remedy}")
