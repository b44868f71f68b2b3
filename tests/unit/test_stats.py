"""The states of sources and the problems in a server's statistics."""

from typing import Any

import msgspec
import pytest

from repertory.sources.source import Problem, Severity
from repertory.stats import Lengths, Stats
from repertory.watch_status import SourceState


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"seen": 1.0}, "fresh"),
        ({"seen": 0.0}, "not read yet"),
        ({"seen": 0.0, "stale": 2}, "stale"),
        ({"seen": 0.0, "error": "It hangs."}, "failing"),
    ],
)
def test_a_source_that_was_never_read_is_not_fresh(fields: dict[str, Any], state: str) -> None:
    """It is "not read yet" unless it is stale or failing, for example a newly trusted server."""
    source = {"name": "a", "type": "mcp", "location": "", "items": 0, "stale": 0, "error": ""}
    assert SourceState(**{**source, **fields}).state == state


def test_problems_of_the_server_are_separated_from_faults_of_items() -> None:
    """Problems of files and items, and warnings, are not problems of the server."""
    own = Problem(severity=Severity.ERROR, message="Nothing is heard of a worker.")
    file = Problem(severity=Severity.ERROR, message="It is no YAML.", path="a.md")
    item = Problem(severity=Severity.ERROR, message="It was given up.", item="a")
    warning = Problem(severity=Severity.WARNING, message="A source is empty.")
    stats = Stats(
        index_version=1,
        configuration="",
        collection="",
        model="",
        items=0,
        kinds={},
        points=0,
        errors=0,
        warnings=0,
        missing={},
        sources=[],
        building=None,
        queue=Lengths(saves=0, builds=0, failed=0),
        workers=[],
        problems=[own, file, item, warning],
        watch=None,
        counters={},
    )
    assert stats.troubles == [own.message]
    assert stats.faults == [file, item, warning]
    assert "troubles" not in msgspec.to_builtins(stats)
