"""The metrics that a team's query service exports when every metric has a value."""

from prometheus_client.parser import text_string_to_metric_families

from repertory.stats import Lengths, Stats, Verification, Watch, Worker
from repertory.watch_status import Building, SaveTimes, SourceState
from repertory_query.records.metrics import Metrics
from repertory_query.records.recent import Counts

SOURCE = SourceState(
    name="skills", type="skills", location="skills", items=3, stale=1, error="", seen=1.0
)
STATS = Stats(
    index_version=7,
    configuration="0123456789abcdef",
    collection="old",
    model="test",
    items=3,
    kinds={"skill": 3},
    points=5,
    missing={"model": "It is being loaded."},
    sources=[SOURCE],
    building=Building(collection="new", done=1, total=3),
    queue=Lengths(saves=1, builds=2, failed=1),
    workers=[Worker(worker="worker:host:1", at=1.0)],
    problems=[],
    errors=0,
    warnings=0,
    watch=Watch(at=1.0, saves=SaveTimes()),
    counters={"embedded": 3.0},
    verification=Verification(at=1.0, repaired=1),
)


def exported_text() -> str:
    """All metrics in the text format of Prometheus."""
    metrics = Metrics(is_team=True)
    metrics.request("GET", "/search", 200, 0.01)
    metrics.search("hybrid")
    metrics.cached()
    text, _ = metrics.text("", STATS, {"ok": 1}, Counts(), {"key:agent": 1})
    return text.decode()


def exported() -> dict[str, set[str]]:
    """The label names by exported metric."""
    return {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(exported_text())
        for sample in family.samples
    }
