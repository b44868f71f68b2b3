"""A query process keeps little of the keyword index in memory, and rarely reads it."""

from contextlib import closing
from pathlib import Path

import pytest

from repertory.coordination.ports import Coordination, in_process
from repertory.coordination.snapshots import FileSnapshots, Stored
from repertory.errors import StoreError
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.index.keywords.index import KeywordIndex
from repertory.indexing import keyword_sync
from repertory.live_search.followed_index import FREE_INTERVAL_S
from repertory.live_search.live import WORDS_INTERVAL_S, LiveSearch
from repertory.values import NAMESPACE
from tests.support.builders import coordination, no_model, skill, words_writer
from tests.support.keyword_search import reader


def live_at(now: list[float], store: EdgeStore, parts: Coordination) -> LiveSearch:
    """A search whose clock is `now`."""
    return LiveSearch(
        store=store,
        coordination=parts,
        active=NAMESPACE,
        embedding=no_model,
        reader=reader(),
        clock=lambda: now[0],
    )


def test_memory_is_freed_at_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is freed once per interval, even if nothing changes."""
    monkeypatch.setattr("repertory.live_search.live.POLL_INTERVAL_S", 0.002)
    now, freed_at = [0.0], []
    monkeypatch.setattr(KeywordIndex, "free_memory", lambda _: freed_at.append(now[0]))
    parts = in_process(tmp_path / "coordination")
    store = EdgeStore(tmp_path)
    with closing(SqliteVectorCache(tmp_path / "vectors.sqlite", 1)) as cache:
        words_writer(store, cache, parts).begin("c" * 16)
    store.set_alias(NAMESPACE, *store.collections())
    live = live_at(now, store, parts)
    for second in (1.0, 2.0, FREE_INTERVAL_S, FREE_INTERVAL_S + 1.5, FREE_INTERVAL_S + 2.0):
        now[0] = second
        live.step()
    live.close()
    assert freed_at == [1.0, FREE_INTERVAL_S + 1.5]


class ReadSnapshots(FileSnapshots):
    """Snapshots that count how often they are read."""

    reads = 0

    def load(self, collection: str) -> Stored | None:
        """Read a snapshot."""
        self.reads += 1
        return super().load(collection)


def test_a_stored_index_is_rarely_read_while_its_collection_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches answer from the stored index, which may be large."""
    monkeypatch.setattr("repertory.live_search.live.FIRST_POLL_S", 0.0)
    snapshots = ReadSnapshots(tmp_path / "keywords")
    parts = coordination(tmp_path, snapshots=snapshots)
    store = EdgeStore(tmp_path)
    with closing(SqliteVectorCache(tmp_path / "vectors.sqlite", 1)) as cache:
        words_writer(store, cache, parts).begin("c" * 16)
    store.set_alias(NAMESPACE, *store.collections())
    index = KeywordIndex.empty().updated((), [skill("a")])
    keyword_sync.save(snapshots, store.collections()[0], index, 1)

    def away(*_: object) -> None:
        raise StoreError("It is away.")

    monkeypatch.setattr(EdgeStore, "open", away)
    now = [0.0]
    live = live_at(now, store, parts)
    reads = []
    for second in (0.0, 0.25, WORDS_INTERVAL_S - 1, WORDS_INTERVAL_S, WORDS_INTERVAL_S + 1):
        now[0] = second
        live.step()
        reads.append(snapshots.reads)
    assert live.engine.keywords
    live.close()
    assert reads == [1, 1, 1, 2, 2]
