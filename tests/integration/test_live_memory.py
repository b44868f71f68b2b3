"""A query process gives back what its searches have read of the keyword index."""

from pathlib import Path

import pytest

from repertory.coordination.team import in_process
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.index.keywords.index import KeywordIndex
from repertory.indexing.collections import ACTIVE
from repertory.search.live import REST_INTERVAL_S, LiveSearch
from tests.support.builders import no_model, words_writer
from tests.support.keyword_search import reader


def test_pages_are_given_back_from_time_to_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once in an interval, also while nothing changes."""
    monkeypatch.setattr("repertory.search.live.POLL_INTERVAL_S", 0.002)
    now, rests = [0.0], []
    monkeypatch.setattr(KeywordIndex, "rest", lambda _: rests.append(now[0]))
    parts = in_process(tmp_path / "coordination")
    store = EdgeStore(tmp_path)
    words_writer(store, SqliteVectorCache(tmp_path / "vectors.sqlite", 1), parts).begin("c")
    store.set_alias(ACTIVE, *store.collections())
    live = LiveSearch(
        store=store,
        coordination=parts,
        active=ACTIVE,
        embedding=no_model,
        reader=reader(),
        clock=lambda: now[0],
    )
    for second in (1.0, 2.0, REST_INTERVAL_S, REST_INTERVAL_S + 1.5, REST_INTERVAL_S + 2.0):
        now[0] = second
        live.step()
    live.close()
    assert rests == [1.0, REST_INTERVAL_S + 1.5]
