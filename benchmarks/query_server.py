"""A query service whose index is already there, with one more route: it only embeds the query.

python -m benchmarks.query_server PROJECT DATA
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fastapi import Response
from repertory.serving import Parts

from benchmarks.indexing import MODEL
from repertory.embedding.device import cores
from repertory.indexing.collections import alias_name
from repertory.settings import load
from repertory_query.app import MOST_SEARCHES_WAITING, THREADS_PER_CORE, create_app
from repertory_query.pool import Pool
from repertory_query.run import READERS, listening, serve
from repertory_query.service import Service

PATIENCE = 60.0  # seconds
UNLIMITED = 10_000_000  # requests a minute


def main() -> None:
    """Serve until SIGTERM; the port is printed when searches are answered."""
    project, data = map(Path, sys.argv[1:])
    given = {"data_dir": str(data), "model": MODEL, "port": 0, "requests_per_minute": UNLIMITED}
    settings = load(given, project, {})
    parts = Parts(settings, project)
    indexed = parts.store.alias(alias_name(parts.workspace.catalogue().hash))
    assert indexed
    parts.store.set_alias(parts.in_force, indexed)  # as a watch service does when it is whole
    with (
        listening(settings) as listener,
        parts.in_process_queue() as queue,
        ThreadPoolExecutor(READERS) as reader,
        parts.live_search(reader) as live,
    ):
        assert live.wait(PATIENCE), live.missing
        app = create_app(Service(parts, live, queue), settings)
        pool = Pool("embed", THREADS_PER_CORE * cores(), MOST_SEARCHES_WAITING)

        @app.get("/embed")
        async def embed(q: str) -> Response:
            await pool.run(lambda: parts.queries.get().embed_query(q))
            return Response(b"{}", media_type="application/json")

        print(listener.getsockname()[1], flush=True)
        serve(app, listener)


if __name__ == "__main__":
    main()
