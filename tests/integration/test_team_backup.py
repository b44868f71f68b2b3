"""A team's backup restores its dropped collections and its flushed Redis completely."""

import subprocess
from pathlib import Path

import pytest

from repertory.backup.archive import Archive
from repertory.backup.restore import check
from repertory.compose import Parts
from repertory.errors import StoreBusyError, UsageError
from repertory.index.qdrant import QdrantStore
from repertory.settings import load
from tests.support.command_line import COMMAND
from tests.support.model_folders import write_model
from tests.support.team import Team

QUERIES = ("w2 baked", "w5 now", "keys")


def run(team: Team, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command as the operator of the team."""
    return subprocess.run(
        [*COMMAND, *map(str, command)],
        cwd=team.project,
        env=team.environment,
        capture_output=True,
        text=True,
        check=False,
    )


def parts_of(team: Team, **flags: str) -> Parts:
    """The parts of the team's server, in this process."""
    return Parts(load(flags, team.project, team.environment), team.project)


def test_a_team_is_restored_without_embedding(qdrant_url: str, tmp_path: Path) -> None:
    """Answers are equal, and vectors of texts that no item has any more are restored too."""
    file = tmp_path / "team.zip"
    model = str(write_model(tmp_path / "model"))
    with Team(qdrant_url, settings={"REPERTORY_SEARCH_MODEL": model}) as team:
        team.skill("keys", "w1 of before")
        team.skill("bread", "w2 w3 baked", "# w4\n\nTwice a day.")
        team.ready()
        team.wait(lambda: team.item("project/keys"))
        team.skill("keys", "w5 of now")
        team.wait(lambda: "w5" in team.item("project/keys")["description"])
        team.wait(lambda: not team.get("/stats")["watch"]["pending"])
        team.wait(lambda: all(map(team.first, QUERIES)))  # the query service may lag a little
        before = [team.search(query)["results"] for query in QUERIES]
        made = run(team, "backup", file)
        assert made.returncode == 0, made.stderr
        with Archive(file) as archive, pytest.raises(StoreBusyError, match="repertory watch"):
            check(parts_of(team), archive, lambda *_: None, force=True)
        embedded = team.texts_embedded()
        assert embedded > 0

        for service in team.services:
            service.kill()
        store = QdrantStore(qdrant_url)
        stored = [name for name in store.collections() if name.startswith("repertory")]
        for name in stored:
            store.drop(name)
        team.redis.flush()
        others = parts_of(team, namespace="others")
        with Archive(file) as archive, pytest.raises(UsageError, match="--namespace repertory"):
            check(others, archive, lambda *_: None, force=True)
        done = run(
            team, "restore", file, "--yes", "--force"
        )  # --force, because keys and calibrations exist
        assert done.returncode == 0, done.stderr
        assert [one for one in store.collections() if one.startswith("repertory")] == stored

        for service in team.services:
            service.restart()
        team.ready()
        assert [team.search(query)["results"] for query in QUERIES] == before
        team.skill("keys", "w1 of before")  # its vector is only in the cache
        team.wait(lambda: "w1" in team.item("project/keys")["description"])
        assert team.texts_embedded() == embedded
