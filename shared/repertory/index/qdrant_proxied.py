"""HTTP requests to a Qdrant server through the proxies of the environment.

Import this module only if a proxy is set, because httpx takes time and memory.
"""

import httpx

from repertory.index.qdrant_requests import (
    CONNECT_TIMEOUT_S,
    IDLE_S,
    Answer,
    NoAnswerError,
    Node,
    Request,
)
from repertory.system.addresses import DIRECT
from repertory.system.certificates import trusted

# Connections are kept open, one per thread, so that a busy client does not run out of ports.
_LIMITS = httpx.Limits(
    max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_S
)


class Proxied:
    """Sends requests by httpx, which supports proxies. Threads may share it.

    Args:
        headers: The headers of every request.
    """

    def __init__(self, headers: dict[str, str]) -> None:
        self._client = httpx.Client(
            headers=headers, limits=_LIMITS, verify=trusted(), mounts=DIRECT
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def send(self, node: Node, request: Request) -> Answer:
        """Send a request to a node.

        Raises:
            NoAnswerError: The node does not answer, or not in time.
        """
        try:
            response = self._client.request(
                request.method,
                f"{node}{request.path}",
                content=request.content,
                headers=node.headers,
                timeout=httpx.Timeout(request.timeout, connect=CONNECT_TIMEOUT_S),
            )
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as exc:  # Unicode: invalid host
            raise NoAnswerError(str(exc), is_late=isinstance(exc, httpx.ReadTimeout)) from exc
        after = response.headers.get("Retry-After", "")
        return Answer(response.status_code, response.content, after)
