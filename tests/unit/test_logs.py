"""Services log JSON lines, or sentences in a terminal."""

import json
import logging
import sys

from repertory.system.logs import JsonLines, PlainLines


def test_a_line_contains_an_event_and_its_fields() -> None:
    """Each line is one JSON object; values that JSON cannot express become text."""
    record = logging.makeLogRecord(
        {"name": "repertory.x", "levelname": "INFO", "msg": "done", "items": 3, "odd": {1}}
    )
    line = json.loads(JsonLines().format(record))
    assert (line["level"], line["logger"], line["event"]) == ("info", "repertory.x", "done")
    assert (line["items"], line["odd"]) == (3, "{1}")
    assert "trace" not in line


def test_a_line_break_or_a_lone_surrogate_does_not_split_a_line() -> None:
    """A hostile name cannot start a new line."""
    record = logging.makeLogRecord({"msg": "read", "file": "a\n{}\ud800"})
    text = JsonLines().format(record)
    assert "\n" not in text
    assert json.loads(text)["file"] == "a\n{}\ud800"


def test_an_exception_is_logged_with_its_trace() -> None:
    """The stack trace is one field of the line."""
    try:
        raise ValueError("It broke.")
    except ValueError:
        record = logging.makeLogRecord({"msg": "failed", "exc_info": sys.exc_info()})
    assert "It broke." in json.loads(JsonLines().format(record))["trace"]


def plain(**fields: object) -> str:
    """The line that a terminal shows for a record, without its time."""
    record = logging.makeLogRecord({"levelno": logging.INFO, **fields})
    return PlainLines().format(record).split(" ", 1)[1]


def test_a_terminal_shows_sentences() -> None:
    """Usual events have their own sentences; others are shown with their fields."""
    request = {"method": "GET", "route": "/search", "status": 200, "ms": 7.3, "caller": "me"}
    assert plain(msg="request", **request) == "GET /search: status 200, 7.3 ms"
    assert plain(msg="index_opened", collection="c", items=3) == "3 items can be searched"
    assert plain(msg="odd_event", name_of="x", empty="") == "Odd event: name_of x"
    assert plain(msg="ending") == "Ending"


def test_a_terminal_labels_warnings() -> None:
    """A warning is one line without control characters."""
    line = plain(
        msg="source_polled", levelno=logging.WARNING, levelname="WARNING", reason="a\n\x1b"
    )
    assert line.startswith("Warning: Source polled: reason a")
    assert "\n" not in line
    assert "\x1b" not in line
