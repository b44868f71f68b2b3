"""The log of a service on stderr: JSON lines for programs, plain sentences in a terminal.

A record is a static event and its fields.
"""

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from repertory.text import clean, one_line

# The caller of the current request; set by servers, read when logging.
CALLER: ContextVar[str] = ContextVar("caller", default="")

# The usual events of a server, in words. Others are shown with their fields.
_SENTENCES = {
    "serving": "Answering on {host}, port {port}",
    "request": "{method} {route}: status {status}, {ms} ms",
    "configuration_adopted": "Watching {sources} sources",
    "jobs_sent": "Indexing {items} items, removing {removed}",
    "texts_embedded": "Embedded {texts} texts",
    "collection_published": "The index is complete",
    "index_opened": "{items} items can be searched",
    "model_calibrated": "Calibrated the confidence of {model}",
    "ending": "Ended after {requests} requests",
}

PACKAGES = (  # those whose messages are logged, not only their warnings
    "repertory",
    "repertory_embedded",
    "repertory_query",
    "repertory_watch",
    "repertory_worker",
)
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "taskName"}


def begin(usual: int = logging.INFO) -> None:
    """Log Repertory's messages from a default level, and warnings of all packages, to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(PlainLines() if sys.stderr.isatty() else JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for package in PACKAGES:
        logger = logging.getLogger(package)
        logger.setLevel(logger.level or usual)  # a level that is already set stays
    logging.captureWarnings(True)


class PlainLines(logging.Formatter):
    """``HH:MM:SS Sentence``, without terminal control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line, followed by its traceback."""
        fields = _fields(record)
        event = record.getMessage()
        try:
            text = _SENTENCES[event].format_map(fields)
        except KeyError:
            facts = ", ".join(f"{name} {value}" for name, value in fields.items() if value != "")
            text = event.replace("_", " ").capitalize() + (f": {facts}" if facts else "")
        level = f"{record.levelname.capitalize()}: " if record.levelno >= logging.WARNING else ""
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        trace = f"\n{clean(self.formatException(record.exc_info))}" if record.exc_info else ""
        return one_line(f"{time} {level}{text}") + trace


class JsonLines(logging.Formatter):
    """``{"at": …, "level": …, "process": …, "logger": …, "event": …, FIELD: …}``."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line, whatever its fields contain."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "process": record.process,
            "logger": record.name,
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=repr)


class DebugLines(logging.Formatter):
    """``level logger event field=value …``, without terminal control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line, followed by its traceback."""
        fields = [f"{name}={value!r}" for name, value in _fields(record).items()]
        head = f"{record.levelname.lower()} {record.name} {record.getMessage()}"
        trace = f"\n{clean(self.formatException(record.exc_info))}" if record.exc_info else ""
        return one_line(" ".join([head, *fields])) + trace


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a record that not every record has."""
    return {name: value for name, value in vars(record).items() if name not in _OWN}
