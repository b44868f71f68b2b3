"""`repertory api --processes`: several processes behind one port behave like one server."""

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from repertory.errors import ConfigurationError
from repertory.settings import load
from repertory_query.server.processes import run
from tests.support.model_folders import write_model
from tests.support.team import Team

PROCESSES = 2
LIMIT = 30  # requests a minute
INTERRUPTED = 130  # the exit code after Ctrl-C
NEEDS_PROC = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")


@pytest.fixture
def team(tmp_path: Path, qdrant_url: str) -> Team:
    """A team with two query processes and a fast model, not yet started."""
    model = str(write_model(tmp_path / "model"))
    team = Team(qdrant_url, settings={"REPERTORY_SEARCH_MODEL": model})
    team.api = team.service("api", "api", "--processes", str(PROCESSES))
    team.skill("bread", "Bake sourdough bread")
    return team


def processes(team: Team) -> dict[int, int]:
    """The process ids that answer, by process number; one that is busy for long may be missing."""
    found: dict[int, int] = {}
    for _ in range(300):
        process = team.get("/stats")["process"]
        assert process["of"] == PROCESSES
        found[process["number"]] = process["pid"]
        if len(found) == PROCESSES:
            break
    return found


def runs(pid: int) -> bool:
    """Whether a process is alive."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def samples(team: Team) -> list[Any]:
    """All samples of the metrics."""
    families = text_string_to_metric_families(team.metrics())
    return [one for family in families for one in family.samples]


def answered(team: Team) -> float:
    """The number of searches in the metrics."""
    return sum(
        float(one.value)
        for one in samples(team)
        if one.name == "repertory_request_duration_seconds_count"
        and one.labels["route"] == "/search"
        and one.labels["status"] == "200"
    )


@pytest.mark.timeout(240)
@NEEDS_PROC
def test_a_process_that_dies_is_replaced_without_losing_counts(team: Team) -> None:
    """Other processes answer meanwhile, the log is complete, and all processes end together."""
    with team:
        team.ready()
        team.wait(lambda: team.first("bread") == "project/bread")
        team.wait(lambda: len(processes(team)) == PROCESSES)
        before = processes(team)
        counted = answered(team)
        for _ in range(20):
            team.search("bread")
        assert answered(team) == counted + 20
        log = team.folder / "data" / "audit" / "audit.jsonl"
        team.wait(lambda: str(before[1]) in log.read_text())  # lines are written in batches
        os.kill(before[1], signal.SIGKILL)
        team.wait(lambda: not runs(before[1]))
        for _ in range(20):
            team.search("bread")  # no request is refused or waits for the new process
        team.wait(lambda: processes(team).get(1, before[1]) != before[1])
        after = processes(team)
        assert after[2] == before[2]
        assert answered(team) == counted + 40
        memory = [one for one in samples(team) if one.name == "process_resident_memory_bytes"]
        assert {one.labels["process"] for one in memory} == {"1", "2"}
        team.skill("bread", "Water the plants on the roof")
        team.wait(lambda: {team.first("plants roof") for _ in range(20)} == {"project/bread"})
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert len({line["pid"] for line in lines}) == PROCESSES + 1
        assert team.api.terminate() == 0
        team.wait(lambda: not any(map(runs, after.values())))
        assert "Traceback" not in team.api.log.read_text()
        assert [one["number"] for one in team.api.events("process_ended")] == [1]


@pytest.mark.timeout(240)
@NEEDS_PROC
def test_processes_share_a_rate_limit_and_end_with_their_parent(team: Team) -> None:
    """A kill -9 of the parent or Ctrl-C leaves no process behind."""
    team.environment["REPERTORY_SERVER_REQUESTS_PER_MINUTE"] = str(LIMIT)
    team.api.start()
    try:
        team.wait(lambda: len(team.api.events("serving")) == PROCESSES)
        counts = Counter(team.request("GET", "/items")[0] == 429 for _ in range(3 * LIMIT))
        assert LIMIT <= counts[False] <= 1.5 * LIMIT  # the limit is refilled while the test runs
        served = {one["process"] for one in team.api.events("request")}
        assert len(served) == PROCESSES
        os.kill(team.api.pid, signal.SIGKILL)
        team.wait(lambda: not any(map(runs, served)))
        team.api.restart()
        team.wait(lambda: len(team.api.events("serving")) == 2 * PROCESSES)
        assert team.api.interrupt() == INTERRUPTED
        started = {one["pid"] for one in team.api.events("process_started")}
        assert len(started) == 2 * PROCESSES
        assert not any(map(runs, started))
        assert "Traceback" not in team.api.log.read_text()
    finally:
        team.__exit__(None, None, None)


@pytest.mark.timeout(240)
def test_no_module_of_the_working_directory_is_imported(team: Team) -> None:
    """A file there with the name of a module that starts the processes is not run."""
    loaded = team.folder / "loaded"
    (team.project / "multiprocessing.py").write_text(f"open({str(loaded)!r}, 'w').close()\n")
    team.api.start()
    try:
        team.wait(lambda: loaded.exists() or len(team.api.events("serving")) == PROCESSES)
        assert not loaded.exists()
    finally:
        team.__exit__(None, None, None)


def test_several_processes_need_the_settings_of_a_team(tmp_path: Path) -> None:
    """No process is started without them."""
    with pytest.raises(ConfigurationError, match="REPERTORY_REDIS_URL"):
        run(load({"data_dir": str(tmp_path)}, tmp_path, {}), 2)
