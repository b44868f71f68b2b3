"""The latest scans of a catalogue, with results that a test can give."""

from collections.abc import Iterable

from repertory.indexing.latest_scans import LatestScans
from repertory.indexing.scan import ScanResult, scan_source
from repertory.sources.configured import Catalogue


def latest_scans(catalogue: Catalogue, results: Iterable[ScanResult] | None = None) -> LatestScans:
    """The latest scans with the given results; without results, all sources are scanned."""
    scans = LatestScans({})
    scans.adopt(catalogue)
    for one in map(scan_source, catalogue.sources) if results is None else results:
        scans.add(one)
    return scans
