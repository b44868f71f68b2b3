"""The addresses of a Qdrant cluster: chooses a node for each request, and repeats requests."""

import base64
import logging
from collections.abc import Callable
from threading import Lock
from time import sleep
from urllib.parse import SplitResult, quote, unquote, urlsplit

from repertory.errors import StoreError
from repertory.index.qdrant_requests import Answer, NoAnswerError, Node, is_proxied

MAX_RETRY_AFTER_S = 60.0  # the total time that a write waits because a server asks for it

_USUAL_PORTS = {"http": 6333, "https": 443}
_RATE_LIMITED, _UNAVAILABLE = 429, 503

_log = logging.getLogger(__name__)


class Cluster:
    """The nodes of a cluster, or one server. Threads may share it.

    A request goes to the node that answered last, or if that is unreachable, to the next one. It
    may be sent twice, which is harmless: writes compare revisions, and other requests can be
    repeated. The creation of a collection may then fail because it exists.

    Attributes:
        shown: The addresses for messages, without users and passwords.
        is_encrypted: Whether all addresses are ``https``.
        has_password: Whether any address has a user or a password.
        prefix: The path of all addresses.
    """

    def __init__(self, urls: str) -> None:
        """Use some addresses, separated by commas.

        Raises:
            StoreError: An address is invalid.
        """
        parts = [_parts(url.strip()) for url in urls.split(",")]
        if len({part.path.rstrip("/") for part in parts}) > 1:
            raise StoreError("The URLs of the Qdrant servers must have the same path.")
        self._nodes = [_node(part) for part in parts]
        self._current = 0
        self._leaving = Lock()  # guards the change to another node
        self.prefix = quote(parts[0].path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        self.is_encrypted = all(part.scheme == "https" for part in parts)
        self.has_password = any(node.authorization for node in self._nodes)
        self.shown = ", ".join(f"{node}{self.prefix}" for node in self._nodes)

    def answer(self, send: Callable[[Node], Answer], *, waits: bool = False) -> Answer:
        """The answer of a node that is available.

        Args:
            send: Sends the request to a node.
            waits: Whether to retry later if a node asks for it.

        Raises:
            NoAnswerError: No node answers.
        """
        left = MAX_RETRY_AFTER_S if waits else 0.0
        while True:
            answer = self._answer(send)
            seconds = _retry_after(answer)
            if seconds is None or seconds > left:
                return answer
            left -= seconds
            sleep(seconds)

    @property
    def is_direct(self) -> bool:
        """Whether no node is reached through a proxy."""
        return not any(map(is_proxied, self._nodes))

    def _answer(self, send: Callable[[Node], Answer]) -> Answer:
        """The answer of the current node, else of the next one that is available.

        After a timeout no other node is tried, because the caller has waited long enough. The next
        request goes to the next node.
        """
        for _ in self._nodes[1:]:
            asked = self._current
            try:
                answer = send(self._nodes[asked])
            except NoAnswerError as exc:
                self._leave(asked, str(exc))
                if exc.is_late:
                    raise
            else:
                if answer.status != _UNAVAILABLE:
                    return answer
                self._leave(asked, "it is not ready")
        return send(self._nodes[self._current])

    def _leave(self, asked: int, reason: str) -> None:
        """Switch to the next node, unless another thread has already done so."""
        with self._leaving:
            if self._current != asked:
                return
            self._current = (asked + 1) % len(self._nodes)
        node = str(self._nodes[asked])
        _log.warning("qdrant_node_away", extra={"node": node, "error": reason})


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _USUAL_PORTS and parts.hostname and parts.port != 0
    except ValueError:  # half an IPv6 address, or an invalid port
        usable = False
    if not usable:
        raise StoreError("The URL of the Qdrant server must look like http://localhost:6333.")
    return parts


def _node(parts: SplitResult) -> Node:
    """The address of a node. The default port is 443 for ``https``, else 6333."""
    port = parts.port or _USUAL_PORTS[parts.scheme]
    authorization = ""
    if parts.username or parts.password:
        user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        encoded = base64.b64encode(user.encode("utf-8", "surrogateescape"))
        authorization = f"Basic {encoded.decode()}"
    return Node(parts.scheme, parts.hostname or "", port, authorization)


def _retry_after(answer: Answer) -> float | None:
    """The seconds after which a server asks to retry; None if it does not."""
    if answer.status not in (_RATE_LIMITED, _UNAVAILABLE) or not answer.retry_after.isdecimal():
        return None
    return max(float(answer.retry_after), 1.0)
