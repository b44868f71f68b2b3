"""A run without a model: what words alone can find, until there is one."""

import time

from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.snapshot import SnapshotStore
from repertory.pipeline import keywords
from repertory.pipeline.collections import collection_name
from repertory.pipeline.report import Progress, Report, SourceReport, Stage
from repertory.pipeline.scan import scan_all, unite
from repertory.sources.catalogue import Catalogue
from repertory.sources.source import Problem, Severity

NO_MODEL = "keywords"  # stands where a model's slug would


def index_keywords(
    catalogue: Catalogue, snapshots: SnapshotStore, progress: Progress, reason: str
) -> Report:
    """Index every item by its words.

    Args:
        catalogue: The sources.
        snapshots: Where the keyword index is kept.
        progress: Told how far the run is.
        reason: Why there is no model; it becomes a problem of the report.
    """
    started = time.monotonic()
    sources = catalogue.sources
    scanned = scan_all(sources, lambda: progress(Stage.SCAN, 1, len(sources)))
    items, problems = unite(scanned)
    name = collection_name(catalogue.hash, NO_MODEL, 1)
    revision = time.time_ns() // 1_000_000
    keywords.save(snapshots, name, KeywordIndex.empty().updated((), items.values()), revision)
    offered = [item.source for item in items.values()]
    return Report(
        collection=name,
        model="",
        revision=revision,
        sources=[
            SourceReport(
                name=one.source.name,
                type=one.source.type,
                location=one.source.location,
                items=offered.count(one.source.name),
                error=one.error,
                seen=0.0 if one.error else one.at,
            )
            for one in scanned
        ],
        items=len(items),
        points=0,
        added=len(items),
        changed=0,
        removed=0,
        unchanged=0,
        embedded=0,
        problems=[
            Problem(severity=Severity.ERROR, message=f"Only words are indexed: {reason}"),
            *catalogue.problems,
            *problems,
        ],
        seconds=time.monotonic() - started,
    )
