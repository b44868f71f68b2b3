"""``repertory insights``: its report, and labelled sets from queries without results."""

import asyncio
import getpass
import json
from pathlib import Path
from typing import Any

from tests.support.builders import write
from tests.support.command_line import Cli
from tests.support.mcp_sessions import stdio_session
from tests.support.server_process import Serve
from tests.support.waiting import until

FOUND = "files__read_file"
LOST, UNKNOWN = "zyxwv quarks", "harpsichord tuning"


def rows(file: Path) -> list[dict[str, Any]]:
    """The decoded lines of a JSON Lines file."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_queries_without_results_become_a_labelled_set(
    own: Cli, project: Path, tmp_path: Path
) -> None:
    """Items used soon after a failed query are its answers; other answers are proposed."""
    own.environment["REPERTORY_INSIGHTS_RECORD"] = "plain"
    folder = tmp_path / "sets" / "mine"
    with Serve(own, project, tmp_path / "log"):
        assert own.run(project, "search", LOST, "--threshold", "0.99").returncode == 1
        assert own.run(project, "items", "show", FOUND).returncode == 0
        assert own.run(project, "search", UNKNOWN, "--threshold", "0.99").returncode == 1

        def report() -> Any:  # noqa: ANN401 - JSON
            return own.json(project, "insights")

        until(lambda: report()["searches"] == 2)
        found = report()
        advised = {one["queries"][0]: one["items"] for one in found["unanswered"]}
        assert advised == {LOST: [FOUND], UNKNOWN: []}
        assert f"A caller used {FOUND}" in own.run(project, "insights").stdout

        done = own.run(project, "insights", "--labelled-set", folder)
        assert (done.returncode, done.stdout) == (0, f"Wrote 2 queries to {folder}.\n")
        assert "Proposed answers: 1," in done.stderr
        assert report()["searches"] == 2  # `insights` records no searches
        again = own.run(project, "insights", "--labelled-set", folder)
        assert (again.returncode, "has files already" in again.stderr) == (2, True)

    asked = {one["text"]: one for one in rows(folder / "queries.jsonl")}
    assert (asked[LOST]["tags"], asked[UNKNOWN]["tags"]) == (["used"], ["proposed"])
    right = {one["query_id"]: one["item_id"] for one in rows(folder / "qrels.jsonl")}
    assert right[asked[LOST]["id"]] == FOUND
    assert len(rows(folder / "corpus.jsonl")) == 7
    measured = own.run(project, "eval", folder, "--output", "json")
    assert measured.returncode == 0, measured.stderr
    assert json.loads(measured.stdout)[0]["queries"] == 2
    assert "Proposed answers that were not checked: 1," in measured.stderr

    other = own.home / "other"  # without a server, the records are read from the data directory
    assert own.run(project, "insights", "--labelled-set=~/other").returncode == 0
    assert rows(other / "qrels.jsonl") == rows(folder / "qrels.jsonl")


def test_a_stdio_session_is_recorded_with_hashed_queries(own: Cli, project: Path) -> None:
    """A stdio session records searches and uses; queries are hashed by default."""

    async def ask() -> None:
        async with stdio_session(own, project) as client:
            await client.call_tool("search", {"query": "read a swordfish"})
            await client.call_tool("get", {"id": FOUND})

    asyncio.run(ask())
    found = own.json(project, "insights")
    assert (found["searches"], found["uses"], found["recording"]) == (1, 1, "hashed")
    [file] = (own.data / "usage").glob("*.sqlite")
    assert b"swordfish" not in file.read_bytes()
    assert f"user:{getpass.getuser()}".encode() in file.read_bytes()
    refused = own.run(project, "insights", "--labelled-set", "set")
    assert refused.returncode == 2
    assert "REPERTORY_INSIGHTS_RECORD=plain" in refused.stderr


def test_nothing_recorded_and_an_invalid_webhook(own: Cli, project: Path) -> None:
    """An empty report says so; an invalid webhook is refused without showing its secret."""
    assert own.run(project, "insights").returncode == 4
    own.run(project, "index")
    done = own.run(project, "insights")
    assert done.returncode == 0
    assert "Nothing is recorded yet." in done.stdout
    write(
        own.home / ".config" / "repertory" / "config.toml",
        '[insights]\nwebhook = "http://x.example/T0K3N"\n',
    )
    refused = own.run(project, "serve", "--port", "0")
    assert refused.returncode == 2
    assert "insights.webhook must be an https URL" in refused.stderr
    assert "T0K3N" not in refused.stderr
