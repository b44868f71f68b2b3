"""``repertory serve`` with an additional route, ``/embed``, which only embeds the query.

python -m benchmarks.query_server PROJECT DATA MODEL
"""

import sys
from functools import cache
from pathlib import Path
from unittest.mock import patch

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from repertory.embedding.batching import BatchingEngine
from repertory.embedding.device import cores
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.load import load_engine
from repertory.settings import Settings, load
from repertory.system.addresses import url_of
from repertory.system.files import make_directory
from repertory_embedded import host
from repertory_query.access.callers import Owner
from repertory_query.access.rates import Rates
from repertory_query.app import MAX_WAITING_SEARCHES, THREADS_PER_CORE, create_app
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.server.listening import listening

UNLIMITED = 10_000_000  # requests a minute


def main() -> None:
    """Serve until SIGTERM; the URL is printed once requests are accepted."""
    project, data, model = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    given = {"data_dir": data, "model": model, "port": 0, "requests_per_minute": UNLIMITED}
    settings = load(given, project, {})
    make_directory(settings.data_dir)
    with listening(settings) as listener, patch.object(host, "create_app", _with_embed):
        url = url_of(*listener.getsockname()[:2])
        one = host.Host(settings, url, "")
        one.run(project, settings.data_dir, listener, (), lambda _: print(url, flush=True))


def _with_embed(service: Service, settings: Settings, rates: Rates, _: Owner) -> Starlette:
    """The server's application with the additional route, which needs no key."""
    app = create_app(service, settings, rates)
    pool = Pool("embed", THREADS_PER_CORE * cores(), MAX_WAITING_SEARCHES)

    @cache
    def engine() -> EmbeddingEngine:
        values = settings.values
        loaded = load_engine(values.model, values.device, settings.data_dir, queries_only=True)
        return BatchingEngine(loaded, cores())

    async def embed(request: Request) -> Response:
        query = request.query_params["q"]
        await pool.run(lambda: engine().embed_query(query))
        return Response(b"{}", media_type="application/json")

    app.add_route("/embed", embed)
    return app


if __name__ == "__main__":
    main()
