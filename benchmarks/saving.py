"""The cost of a save in the process that watches a source, and the memory that the source takes.

python -m benchmarks.saving 10000

It generates a folder with this number of skills. It prints the processor time of the steps between
a save and its job, and the resident memory. No worker runs.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil

from benchmarks.texts import descriptions
from repertory.index.vectors import State
from repertory.indexing.diff import diff
from repertory.indexing.latest_scans import LatestScans
from repertory.indexing.ledger import Ledger
from repertory.indexing.scan import ChangeResult, scan_source
from repertory.review.gate import Gate
from repertory.review.store import ReviewStore
from repertory.sources.configured import Catalogue
from repertory.sources.skill_folders import SkillFolders

SAVES = 20
SLICE = 2_000
SETTLED_S = 2.5  # the wait before the first scan; a scan reads recently written files again

T = TypeVar("T")


def main(number: int) -> None:
    """Measure a folder of ``number`` skills."""
    with tempfile.TemporaryDirectory(prefix="repertory-bench-") as name:
        root = Path(name) / "skills"
        _write(root, number)
        time.sleep(SETTLED_S)
        source = SkillFolders(name="team", path=root)
        source.disk = Path(name)
        scans = LatestScans({}, Gate(ReviewStore(Path(name) / "reviews.sqlite")))
        scans.adopt(Catalogue((source,)))
        print(f"{number:,} skills; resident at the start: {_resident():.0f} MB")
        scan = _timed("first scan", lambda: scan_source(source))
        _timed("first judgement", lambda: scans.add(scan))
        del scan
        states = [_state(item, one.metadata_hash()) for item, one in scans.items.items()]
        ledger = Ledger("bench")
        ledger.load(states)
        print(f"resident: {_resident():.0f} MB")
        scan = _timed("scan without a change", lambda: scan_source(source))
        _timed("taking it in", lambda: scans.add(scan))
        _timed("comparing everything", lambda: diff(scans.items, ledger.states))
        _timed("status", lambda: scans.status(ledger.per_source, frozenset()))
        _timed("status, again", lambda: scans.status(ledger.per_source, frozenset()))
        _timed(f"{SAVES} saves", lambda: _save(root, source, scans, ledger))
        page = sorted(states, key=lambda one: one.item)[:SLICE]
        _timed("a slice of reconciliation", lambda: ledger.compare(page, 0, 1))


def _save(root: Path, source: SkillFolders, scans: LatestScans, ledger: Ledger) -> None:
    """Save some skills one by one, and compare each with the ledger."""
    for at in range(SAVES):
        path = root / "0" / f"skill-{at * 100}" / "SKILL.md"
        path.write_text(f"---\nname: skill-{at * 100}\ndescription: Is new.\n---\n")
        change = source.rescan([str(path)])
        assert change is not None
        ids = scans.add(ChangeResult(source=source, change=change, at=0.0))
        assert ids is not None
        items = {item: scans.items[item] for item in ids}
        changes = diff(items, {item: ledger.states[item] for item in ids}, others=scans.offering)
        assert len(changes.written) == 1


def _write(root: Path, number: int) -> None:
    texts = descriptions(1_000)
    for at in range(number):
        folder = root / str(at % 100) / f"skill-{at}"
        folder.mkdir(parents=True)
        description, body = (
            texts[at % 1_000][1],
            " ".join(texts[(at + k) % 1_000][1] for k in range(8)),
        )
        front = f"---\nname: skill-{at}\ndescription: {description!r}\n---\n"
        (folder / "SKILL.md").write_text(f"{front}{body} {at}\n")


def _state(item: str, metadata_hash: str) -> State:
    return State(item=item, source="team", content_hash="", metadata_hash=metadata_hash, revision=1)


def _timed(what: str, work: Callable[[], T]) -> T:
    before = time.process_time()
    result = work()
    print(f"{what}: {time.process_time() - before:.4f} s of processor time")
    return result


def _resident() -> float:
    return float(psutil.Process().memory_info().rss) / 1e6


if __name__ == "__main__":
    main(int(sys.argv[1]))
