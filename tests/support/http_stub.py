"""A local web server whose answers come from a function."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], object]


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """Serve every request by calling a function with its handler; yields the URL."""

    class Handler(BaseHTTPRequestHandler):
        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the names the base class looks for

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
