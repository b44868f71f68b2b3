"""The log lines of services."""

import json
import logging
import sys

from repertory.logs import JsonLines


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
