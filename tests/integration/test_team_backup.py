"""A team's backup: its collections are dropped and its Redis is flushed, and nothing is lost."""

import subprocess
from pathlib import Path

from repertory.index.qdrant import QdrantStore
from tests.support.command_line import COMMAND
from tests.support.model_folders import write_model
from tests.support.team import Team

QUERIES = ("w2 baked", "w5 now", "keys")


def run(team: Team, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """A command of the team's operator."""
    return subprocess.run(
        [*COMMAND, *map(str, command)],
        cwd=team.project,
        env=team.environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_team_is_restored_without_embedding(qdrant_url: str, tmp_path: Path) -> None:
    """Equal answers and vectors, also of texts that no item has any more."""
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
        before = [team.search(query)["results"] for query in QUERIES]
        made = run(team, "backup", file)
        assert made.returncode == 0, made.stderr
        refused = run(team, "restore", file, "--force", "--yes")
        assert (refused.returncode, "repertory watch" in refused.stderr) == (4, True)
        embedded = team.texts_embedded()
        assert embedded > 0

        for service in team.services:
            service.terminate()
        store = QdrantStore(qdrant_url)
        stored = [name for name in store.collections() if name.startswith("repertory")]
        for name in stored:
            store.drop(name)
        team.redis.flush()
        assert run(team, "restore", file, "--yes", "--namespace", "others").returncode == 2
        done = run(team, "restore", file, "--yes", "--force")  # keys and calibrations are there
        assert done.returncode == 0, done.stderr
        assert [one for one in store.collections() if one.startswith("repertory")] == stored

        for service in team.services:
            service.restart()
        team.ready()
        assert [team.search(query)["results"] for query in QUERIES] == before
        team.skill("keys", "w1 of before")  # its vector is in the cache alone
        team.wait(lambda: "w1" in team.item("project/keys")["description"])
        assert team.texts_embedded() == embedded
