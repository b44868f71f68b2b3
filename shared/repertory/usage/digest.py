"""The daily digest: the report in a few lines, for a webhook that takes Slack's format."""

from collections.abc import Callable, Sequence
from typing import Any

from repertory.errors import ConfigurationError, StoreError
from repertory.system.addresses import is_confidential
from repertory.text import counted, cut, one_line
from repertory.usage.store import DAY_S, UsageStore
from repertory.usage.wire import Insights, ItemFinding, SearchFinding

TIMEOUT_S = 10.0
MAX_LINES = 5  # per section
MAX_LENGTH = 150  # characters of a query or an id
MAX_SECTION = 3_000  # characters; Slack rejects a message with a longer section


def check_webhook(url: str) -> None:
    """Check the URL of a webhook.

    Raises:
        ConfigurationError: It is neither https nor on this machine. The message does not show the
            URL, because anyone who knows it can post there.
    """
    if not is_confidential(url):
        raise ConfigurationError(
            "insights.webhook must be an https URL, or an http URL of this machine."
        )


def send_due(url: str, store: UsageStore, make: Callable[[], Insights]) -> bool:
    """Send the digest, unless one was sent in the last day or there were no searches.

    Args:
        url: The webhook.
        store: Remembers when the last one was sent, for all processes of its data directory.
        make: Returns the report of the last day.

    Returns:
        Whether it was sent.

    Raises:
        StoreError: It cannot be made or sent now.
    """
    if not store.begin_digest(DAY_S):
        return False
    is_sent = False
    try:
        found = make()
        if found.searches:
            send(url, payload(found))
            is_sent = True
    finally:
        if not is_sent:
            store.undo_digest()
    return is_sent


def send(url: str, message: dict[str, Any]) -> None:
    """Post a message to a webhook, without retries or redirects.

    Raises:
        StoreError: It is unreachable or answered with an error. The message does not show the URL.
    """
    import httpx  # noqa: PLC0415 - slow, and optional

    try:
        # Only the status of the response is read.
        with httpx.stream("POST", url, json=message, timeout=TIMEOUT_S) as response:
            status = response.status_code
    # UnicodeError: the host is not a valid international name.
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise StoreError(
            f"The webhook of insights.webhook cannot be reached ({type(error).__name__})."
        ) from error
    if not 200 <= status < 300:
        raise StoreError(f"The webhook of insights.webhook answered with the status {status}.")


def payload(found: Insights) -> dict[str, Any]:
    """The message for a report, with its sections as Slack blocks, and as text for other hosts."""
    head = (
        f"{counted(found.searches, 'search', 'searches')} of "
        f"{counted(found.callers, 'caller')}; {found.without_results:,} found nothing, "
        f"of {found.without_use:,} no result was used."
    )
    parts = [
        ("Nothing found", _lines(found.unanswered)),
        ("Results not used", _lines(found.unused)),
        ("Slow", [f"{_query(one)} ({one.ms:,.0f} ms)" for one in found.slow[:MAX_LINES]]),
        ("Sources", [f"{_text(one.source)}: {one.state}" for one in found.stale[:MAX_LINES]]),
        ("Hard to tell apart", _ids(found.alike)),
        ("Shadowed skills", _ids(found.shadowed)),
    ]
    texts = [head, *(_section(title, lines) for title, lines in parts if lines)]
    return {
        "text": "\n\n".join(["Repertory: the last day", *texts]),
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": "Repertory: the last day"}},
            *({"type": "section", "text": _mrkdwn(text)} for text in texts),
        ],
    }


def _mrkdwn(text: str) -> dict[str, Any]:
    """A text of a block, in which Slack makes no links of addresses and names."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _section(title: str, lines: Sequence[str]) -> str:
    """A section with as many of its lines as fit."""
    text = f"*{title}*"
    for line in lines:
        if len(text) + len(f"\n• {line}") <= MAX_SECTION:
            text += f"\n• {line}"
    return text


def _lines(found: Sequence[SearchFinding]) -> list[str]:
    return [
        f"{_query(one)} ({counted(one.searches, 'search', 'searches')}): {_text(one.advice)}"
        for one in found[:MAX_LINES]
    ]


def _query(one: SearchFinding) -> str:
    return f"“{_text(one.queries[0])}”" if one.queries else f"query {one.digest}"


def _ids(found: Sequence[ItemFinding]) -> list[str]:
    return [", ".join(map(_text, one.items[:MAX_LINES])) for one in found[:MAX_LINES]]


def _text(text: str) -> str:
    """Escape Slack's control characters, so that a text cannot mention people or make links."""
    plain = cut(one_line(text), 2 * MAX_LENGTH)
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
