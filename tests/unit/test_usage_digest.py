"""The usage digest: Slack's format, at most one per day, and no text of hashed queries."""

import json
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NoReturn

import pytest

from repertory.errors import ConfigurationError, StoreError
from repertory.usage.digest import check_webhook, payload, send, send_due
from repertory.usage.report import report
from repertory.usage.store import DAY_S, UsageStore
from repertory.usage.wire import Insights
from tests.support.http_stub import serving
from tests.support.usage import NOW, search

HOSTILE = "deploy <!channel> <https://evil.example|here> & more"


def insights(mode: str = "plain") -> Insights:
    """A report on one search without results."""
    return report([search(HOSTILE)], [], [], recording=mode, now=NOW)


class Webhook:
    """A webhook that records what it receives and answers with ``status``."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.status = 200

    def serving(self) -> AbstractContextManager[str]:
        """Run it; the context manager gives its URL."""

        def take(request: BaseHTTPRequestHandler) -> None:
            self._take(request)

        return serving(take)

    def _take(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        self.sent.append(json.loads(body))
        request.send_response(self.status)
        request.send_header("Location", "/elsewhere")
        request.send_header("Content-Length", "0")
        request.end_headers()


def test_the_message_has_slacks_format() -> None:
    """It has text sections, and its texts are escaped so that they mention and link nothing."""
    message = payload(insights())
    kinds = [(block["type"], block["text"]["type"]) for block in message["blocks"]]
    assert kinds == [("header", "plain_text"), ("section", "mrkdwn"), ("section", "mrkdwn")]
    assert "1 search of 1 caller; 1 found nothing" in message["text"]
    assert "deploy &lt;!channel&gt; &lt;https://evil.example|here&gt; &amp; more" in message["text"]
    assert not {"<", ">"} & {*json.dumps(message)}
    assert all(block["text"]["verbatim"] for block in message["blocks"][1:])
    assert all(len(block["text"]["text"]) <= 3_000 for block in message["blocks"])


def test_hashed_queries_are_not_sent() -> None:
    """Only their digests are sent."""
    message = payload(insights("hashed"))
    assert "deploy" not in json.dumps(message)
    assert search(HOSTILE).digest in message["text"]


def test_sections_are_not_too_long_for_slack() -> None:
    """Slack refuses sections of more than 3,000 characters, in which `<` counts as four."""
    words = [chr(ord("a") + number) * 9 for number in range(26)]
    events = [search(f"{word} {'< ' * 250}", ago=n) for n, word in enumerate(words)]
    message = payload(report(events, [], [], recording="plain", now=NOW))
    lengths = [len(block["text"]["text"]) for block in message["blocks"]]
    assert max(lengths) <= 3_000
    assert message["text"].count("\u2022 ") == 3  # the others have no room


def broken() -> NoReturn:
    """Raise an unexpected error instead of making a report."""
    raise RuntimeError


def test_all_processes_together_send_one_digest_a_day(tmp_path: Path) -> None:
    """A digest that could not be sent is retried; without searches, none is sent."""
    now = NOW
    store = UsageStore(tmp_path / "some.sqlite", 90, 10, now=lambda: now)
    webhook = Webhook()
    with webhook.serving() as url:
        quiet = report([], [], [], recording="plain", now=NOW)
        assert not send_due(url, store, lambda: quiet)
        webhook.status = 500
        with pytest.raises(StoreError, match="status 500"):
            send_due(url, store, insights)
        webhook.status = 200
        with pytest.raises(RuntimeError):
            send_due(url, store, broken)
        assert [send_due(url, store, insights) for _ in range(3)] == [True, False, False]
        now += DAY_S
        assert send_due(url, store, insights)
    assert len(webhook.sent) == 3
    assert webhook.sent[1] == payload(insights())


def test_redirects_are_not_followed_and_the_url_is_not_shown() -> None:
    """The URL is a secret, because everyone who knows it can post."""
    webhook = Webhook()
    webhook.status = 307
    with webhook.serving() as url, pytest.raises(StoreError) as raised:
        send(f"{url}/services/T0K3N", {"text": "a"})
    assert len(webhook.sent) == 1
    for host in (url, "https://xn--a.example"):  # the second is not a valid name
        with pytest.raises(StoreError) as unreachable:
            send(f"{host}/services/T0K3N", {"text": "a"})
        assert "T0K3N" not in f"{raised.value} {unreachable.value}"


@pytest.mark.parametrize(
    ("url", "is_valid"),
    [
        ("https://hooks.slack.com/services/T0/B0/x", True),
        ("http://127.0.0.1:8080/hook", True),
        ("http://127.0.0.2/hook", True),
        ("http://hook.localhost/", True),
        ("http://[::ffff:127.0.0.1]/hook", True),
        ("http://localhost.example.com/hook", False),
        ("http://localhost:x@hooks.slack.com/", False),
        ("https://hooks.slack.com:port/", False),
        ("http://hooks.slack.com/services/T0/B0/x", False),
        ("ftp://hooks.slack.com", False),
        ("https://", False),
        ("https://[half", False),
        ("hooks.slack.com", False),
    ],
)
def test_a_webhook_needs_https_unless_it_is_local(url: str, *, is_valid: bool) -> None:
    """The error message does not show the URL."""
    if is_valid:
        check_webhook(url)
        return
    with pytest.raises(ConfigurationError) as raised:
        check_webhook(url)
    assert (
        str(raised.value)
        == "insights.webhook must be an https URL, or an http URL of this machine."
    )
