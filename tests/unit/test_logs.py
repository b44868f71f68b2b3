"""The log lines of services."""

import json
import logging
import sys

from repertory.logs import JsonLines, PlainLines


def test_a_line_is_an_event_and_its_fields() -> None:
    """Each line is one JSON object, whatever the fields hold."""
    record = logging.makeLogRecord(
        {"name": "repertory.x", "levelname": "INFO", "msg": "done", "items": 3, "odd": {1}}
    )
    line = json.loads(JsonLines().format(record))
    assert (line["level"], line["logger"], line["event"]) == ("info", "repertory.x", "done")
    assert (line["items"], line["odd"]) == (3, "{1}")
    assert "trace" not in line


def test_a_line_break_and_a_lone_surrogate_stay_on_their_line() -> None:
    """A hostile name cannot start a new line."""
    record = logging.makeLogRecord({"msg": "read", "file": "a\n{}\ud800"})
    text = JsonLines().format(record)
    assert "\n" not in text
    assert json.loads(text)["file"] == "a\n{}\ud800"


def test_an_exception_is_logged_with_its_trace() -> None:
    """The trace is one field."""
    try:
        raise ValueError("It broke.")
    except ValueError:
        record = logging.makeLogRecord({"msg": "failed", "exc_info": sys.exc_info()})
    assert "It broke." in json.loads(JsonLines().format(record))["trace"]


def plain(**fields: object) -> str:
    """The line of a record for people, without its time."""
    record = logging.makeLogRecord({"levelno": logging.INFO, **fields})
    return PlainLines().format(record).split(" ", 1)[1]


def test_a_terminal_shows_sentences() -> None:
    """The usual events have their own; others are shown with their fields."""
    request = {"method": "GET", "route": "/search", "status": 200, "ms": 7.3, "caller": "me"}
    assert plain(msg="request", **request) == "GET /search: status 200, 7.3 ms"
    assert plain(msg="index_opened", collection="c", items=3) == "3 items can be searched"
    assert plain(msg="odd_event", name_of="x", empty="") == "Odd event: name_of x"
    assert plain(msg="ending") == "Ending"


def test_a_warning_in_a_terminal_says_that_it_is_one() -> None:
    """On one line, without control characters."""
    line = plain(
        msg="source_polled", levelno=logging.WARNING, levelname="WARNING", reason="a\n\x1b"
    )
    assert line.startswith("Warning: Source polled: reason a")
    assert "\n" not in line
    assert "\x1b" not in line
