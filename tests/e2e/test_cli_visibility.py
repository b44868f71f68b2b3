"""``visible_to`` in repertory.toml, and keys with groups."""

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from tests.support.builders import write, write_skill
from tests.support.command_line import Cli
from tests.support.server_process import Serve, ask
from tests.support.waiting import until

OPEN = '[[sources]]\ntype = "skills"\nname = "open"\npath = "open/skills"\n'
VAULT = '[[sources]]\ntype = "skills"\nname = "vault"\npath = "vault/skills"\n'
RESTRICTED = 'visible_to = ["team-a"]\n'


def project_in(folder: Path) -> Path:
    """A project with two skills in two sources that are visible to everyone."""
    project = folder / "project"
    write_skill(project / "open", "key-rotation", "Rotate API keys without downtime")
    write_skill(project / "vault", "vault-rotation", "Rotate the keys of the vault")
    write(project / "repertory.toml", OPEN + VAULT)
    return project


def found(serve: Serve, key: str) -> list[str]:
    """The ids that a caller with this key finds."""
    with ask(f"{serve.url}/search?q=rotate+keys&threshold=0", key) as response:
        return sorted(hit["toolId"] for hit in json.load(response)["results"])


def status(serve: Serve, key: str, path: str) -> int:
    """The status of an answer."""
    try:
        with ask(serve.url + path, key) as response:
            return int(response.status)
    except HTTPError as error:
        return error.code


def test_a_running_server_follows_the_visibility_of_a_source(own: Cli, tmp_path: Path) -> None:
    """A changed ``visible_to`` applies without embedding; the owner sees everything."""
    project = project_in(tmp_path)
    both, open_to_all = ["open/key-rotation", "vault/vault-rotation"], ["open/key-rotation"]
    with Serve(own, project, tmp_path / "log") as serve:
        made = own.json(project, "keys", "create", "anna", "--group", "team-a")
        assert made["groups"] == ["team-a"]
        anna, ben = made["key"], own.json(project, "keys", "create", "ben")["key"]
        until(lambda: found(serve, anna) == found(serve, ben) == both, serve.process)
        before: dict[str, Any] = serve.get("/stats")
        item = "/items/vault/vault-rotation"
        write(project / "repertory.toml", OPEN + VAULT + RESTRICTED)
        until(lambda: found(serve, ben) == open_to_all, serve.process)
        assert found(serve, anna) == both
        assert (status(serve, anna, item), status(serve, ben, item)) == (200, 404)
        as_ben = {"REPERTORY_SERVER_URL": serve.url, "REPERTORY_SERVER_API_KEY": ben}
        told = own.run(project, "stats", **as_ben).stdout
        assert "open" in told
        assert "vault" not in told
        assert "unknown number" not in told
        shown = own.json(project, "search", "rotate keys", "--threshold", "0")["results"]
        assert sorted(hit["toolId"] for hit in shown) == both
        write(project / "repertory.toml", OPEN + VAULT)
        until(lambda: found(serve, ben) == both, serve.process)
        after = serve.get("/stats")
    assert after["counters"]["texts"] == before["counters"]["texts"]
    assert (after["collection"], after["points"]) == (before["collection"], before["points"])


def test_groups_are_listed_and_checked(own: Cli, tmp_path: Path) -> None:
    """Groups are shown by `keys list`, `config show` and `doctor`; invalid ones are refused."""
    project = project_in(tmp_path)
    own.run(project, "keys", "create", "anna", "--group", "team-a", "--group", "ops@example.org")
    assert own.json(project, "keys", "list")[0]["groups"] == ["team-a", "ops@example.org"]
    assert "team-a, ops@example.org" in own.run(project, "keys", "list").stdout
    wrong = own.run(project, "keys", "create", "ben", "--group", "team a")
    assert (wrong.returncode, "A group cannot be named 'team a'" in wrong.stderr) == (2, True)
    write(project / "repertory.toml", OPEN + VAULT + RESTRICTED)
    assert own.run(project, "config", "check").returncode == 0
    assert "1 of them visible to groups only" in own.run(project, "config", "show").stdout
    assert "visible to team-a" in own.run(project, "doctor").stdout
    for value in ("[]", '"team-a"', '["team a"]', "[1]"):
        write(project / "repertory.toml", f"{OPEN}{VAULT}visible_to = {value}\n")
        refused = own.run(project, "config", "check")
        assert refused.returncode == 1
        assert "The `visible_to` of the source 'vault'" in refused.stdout
