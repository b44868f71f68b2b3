"""Keyword search of a large catalogue in our segments, Qdrant's sparse vectors, and tantivy.

    python -m benchmarks.keyword_stores 100000

measures the same items and queries in each store: the time of a search, and the time until a saved
item is searchable. A search finds the 60 best items and, as the ranking needs, the weights of the
query's terms in 120 candidates. ``REPERTORY_TEST_QDRANT_URL`` adds a Qdrant server. tantivy
is measured if it is installed (``pip install tantivy``); it does not return the weights.
"""

import gc
import http.client
import json
import os
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
import numpy as np
import qdrant_edge as edge

from benchmarks.synthetic import items, questions
from repertory.catalogue.item import Item, item_key, point_id
from repertory.index.keywords.document import entry, term_weights
from repertory.index.keywords.index import KeywordIndex
from repertory.search.semantic_arm import MAX_BY_MEANING

SEARCHES, SAVES = 200, 50
PORTION = 1_000  # points per write

Ids = list[UUID]
Words = dict[str, list[Any]]  # the indices and values of a sparse vector


def main(count: int) -> None:
    """Measure all stores, and print a line for each."""
    held = list(items(count, seed=1))
    saved = list(items(SAVES, seed=9))
    for item in saved[: SAVES // 2]:  # half of the saved items replace existing ones
        saved[saved.index(item)] = msgspec.structs.replace(item, id=held[len(item.id)].id)
    index, seconds = _built(held)
    asked = [_terms(index, text) for text in questions(SEARCHES)]
    terms = statistics.mean(len(one["indices"]) for one in asked)
    print(f"{count:,} items, {terms:.1f} terms a query")
    _show("segments", _searches(_Segments(index).search, questions(SEARCHES)), _saves(index, saved))
    print(f"  built in {seconds:.1f} s of processor time, {len(index.parts)} segments")
    del index
    gc.collect()
    step = max(1, count // MAX_BY_MEANING)
    candidates = [_ids(held[at * 7 % count :: step][:MAX_BY_MEANING]) for at in range(97)]
    with tempfile.TemporaryDirectory() as folder:
        inside = _Edge(Path(folder), held)
        _compare("Qdrant Edge", inside, asked, candidates, saved)
    if url := os.environ.get("REPERTORY_TEST_QDRANT_URL"):
        server = _Server(url)
        try:
            server.fill(held)
            _compare("Qdrant server", server, asked, candidates, saved)
        finally:
            server.clear()
    _tantivy(held, saved)


class _Segments:
    def __init__(self, index: KeywordIndex) -> None:
        index.prepare()
        self._index = index

    def search(self, text: str) -> None:
        """Find the best rows, and the weights of these and of as many other rows."""
        matches = self._index.match(text)
        rows = matches.best(MAX_BY_MEANING)
        others = np.linspace(0, self._index.rows - 1, MAX_BY_MEANING).astype(np.int64)
        matches.weights(np.concatenate([rows, others]))


class _Edge:
    def __init__(self, folder: Path, held: Sequence[Item]) -> None:
        config = edge.EdgeConfig(sparse_vectors={"words": edge.EdgeSparseVectorParams()})
        self._shard = edge.EdgeShard.create(str(folder), config)
        for start in range(0, len(held), PORTION):
            self._write(held[start : start + PORTION])
        self._shard.optimize()

    def best(self, words: Words, _: Sequence[UUID] = ()) -> list[Any]:
        """The ids of the best points, without the words that the ranking needs."""
        asked = edge.Query.Nearest(edge.SparseVector(**words), using="words")
        request = edge.QueryRequest(limit=MAX_BY_MEANING, query=asked, with_payload=["hash"])
        return [point.id for point in self._shard.query(request)]

    def search(self, words: Words, others: Ids) -> None:
        """Find the best points, then read the words of these and of the others."""
        ids = [*self.best(words), *others]
        for record in self._shard.retrieve(ids, with_payload=["entry"], with_vector=True):
            vector: Any = record.vector
            dict(zip(vector["words"].indices, vector["words"].values, strict=True))

    def save(self, item: Item) -> None:
        """Write an item."""
        self._write([item])

    def _write(self, some: Sequence[Item]) -> None:
        points = [
            edge.Point(
                _ids([item])[0], {"words": edge.SparseVector(**_words(item))}, _payload(item)
            )
            for item in some
        ]
        self._shard.update(edge.UpdateOperation.upsert_points(points))


class _Server:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._http = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=600)

    def fill(self, held: Sequence[Item]) -> None:
        """Write items into a new collection."""
        self.clear()
        self._call("PUT", "/collections/bench_words", {"sparse_vectors": {"words": {}}})
        for start in range(0, len(held), PORTION):
            self._write(held[start : start + PORTION])

    def clear(self) -> None:
        """Delete the collection, so that nothing remains on the user's server."""
        self._call("DELETE", "/collections/bench_words")

    def best(self, words: Words, _: Sequence[UUID] = ()) -> list[Any]:
        """The same as ``_Edge.best``, in one request."""
        body = {"query": words, "using": "words", "limit": MAX_BY_MEANING, "with_payload": ["hash"]}
        batch = "/collections/bench_words/points/query/batch"
        found = self._call("POST", batch, {"searches": [body]})
        return [point["id"] for point in found[0]["points"]]

    def search(self, words: Words, others: Ids) -> None:
        """The same as ``_Edge.search``, in two requests."""
        ids = [*self.best(words), *map(str, others)]
        both = {"ids": ids, "with_payload": ["entry"], "with_vector": ["words"]}
        for point in self._call("POST", "/collections/bench_words/points", both):
            one = point["vector"]["words"]
            dict(zip(one["indices"], one["values"], strict=True))

    def save(self, item: Item) -> None:
        """Write an item."""
        self._write([item])

    def _write(self, some: Sequence[Item]) -> None:
        points = [
            {
                "id": str(_ids([item])[0]),
                "vector": {"words": _words(item)},
                "payload": _payload(item),
            }
            for item in some
        ]
        self._call("PUT", "/collections/bench_words/points?wait=true", {"points": points})

    def _call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        data = None if body is None else msgspec.json.encode(body)
        self._http.request(method, path, data, {"Content-Type": "application/json"})
        return msgspec.json.decode(self._http.getresponse().read()).get("result")


def _compare(
    name: str,
    store: "_Edge | _Server",
    asked: Sequence[Words],
    candidates: Sequence[Ids],
    saved: Sequence[Item],
) -> None:
    saves = _writes(store.save, saved)
    _show(f"{name}, sparse vectors", _sparse(store.search, asked, candidates), saves)
    _show(f"{name}, 60 best alone", _sparse(store.best, asked, candidates), saves)


def _tantivy(held: Sequence[Item], saved: Sequence[Item]) -> None:
    try:
        # tantivy is optional.
        import tantivy  # type: ignore[import-not-found]  # noqa: PLC0415
    except ImportError:
        return
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("key", stored=True, tokenizer_name="raw")
    schema.add_text_field("text")
    index = tantivy.Index(schema.build())
    writer = index.writer(200_000_000, 1)

    def add(item: Item) -> None:
        text = f"{item.name} {item.description} {item.body}"
        writer.add_document(tantivy.Document(key=item.id, text=text))

    for item in held:
        add(item)
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(text: str) -> None:
        for _, address in searcher.search(index.parse_query(text, ["text"]), MAX_BY_MEANING).hits:
            _ = searcher.doc(address)["key"]

    def save(item: Item) -> None:
        writer.delete_documents("key", item.id)
        add(item)
        writer.commit()
        index.reload()

    _show("tantivy, 60 best alone", _searches(search, questions(SEARCHES)), _writes(save, saved))


def _built(held: Sequence[Item]) -> tuple[KeywordIndex, float]:
    began = time.process_time()
    return KeywordIndex.empty().updated((), held), time.process_time() - began


def _terms(index: KeywordIndex, text: str) -> Words:
    terms = [(one, term.rarity) for term in index.match(text).terms for one in term.indexed]
    weights = {zlib.crc32(one.encode()): rarity for one, rarity in terms} or {0: 1.0}
    return {"indices": list(weights), "values": list(weights.values())}


def _words(item: Item) -> Words:
    weights = {zlib.crc32(term.encode()): weight for term, weight in term_weights(item).items()}
    return {"indices": list(weights), "values": list(weights.values())}


def _payload(item: Item) -> dict[str, Any]:
    one = entry(item)
    return {"hash": one.hash, "entry": json.dumps(msgspec.to_builtins(one))}


def _ids(some: Sequence[Item]) -> Ids:
    return [point_id(item_key(item.id)) for item in some]


def _searches(search: Callable[[str], None], asked: Sequence[str]) -> list[float]:
    return _times([partial(search, text) for text in asked])


def _sparse(
    search: Callable[[Words, Ids], object], asked: Sequence[Words], others: Sequence[Ids]
) -> list[float]:
    pairs = zip(asked, cycle(others), strict=False)
    return _times([partial(search, one, ids) for one, ids in pairs])


def _saves(index: KeywordIndex, saved: Sequence[Item]) -> list[float]:
    current = [index]

    def save(item: Item) -> None:
        current[0] = current[0].updated((), [item])
        current[0].prepare()

    return _writes(save, saved)


def _writes(save: Callable[[Item], None], saved: Sequence[Item]) -> list[float]:
    return _times([partial(save, item) for item in saved])


def _times(works: Sequence[Callable[[], object]]) -> list[float]:
    """The milliseconds of each call, without the first fifth, which only warms up."""
    times = []
    for work in works:
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1e3)
    return times[len(times) // 5 :]


def _show(name: str, searches: Sequence[float], saves: Sequence[float]) -> None:
    found, written = statistics.median(searches), statistics.mean(saves)
    print(f"{name}: search {found:.2f} ms, save {written:.2f} ms", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
