"""The first configuration file of a directory, written while its server runs."""

import json
from pathlib import Path

from tests.support.command_line import Cli
from tests.support.server_process import Serve
from tests.support.waiting import until

POLICY = '[[policy]]\nitem = "project/steering"\npin = ["hostile author"]\n'


def is_pinned(own: Cli, project: Path) -> bool:
    """Whether the policy is active, as a search of the command line sees it."""
    done = own.run(project, "search", "hostile author", "--output", "json")
    assert done.returncode == 0, done.stderr
    return bool(json.loads(done.stdout)["results"][0]["evidence"]["policy"])


def test_the_first_file_takes_effect_in_commands_and_server(
    own: Cli, project: Path, tmp_path: Path
) -> None:
    """A running server follows the creation and deletion of `repertory.toml`."""
    with Serve(own, project, tmp_path / "log") as server:
        assert not is_pinned(own, project)
        made = own.run(project, "init")
        assert made.returncode == 0, made.stderr
        file = project / "repertory.toml"
        file.write_text(file.read_text("utf-8") + POLICY, "utf-8")
        until(lambda: is_pinned(own, project))
        stats = own.run(project, "stats")
        assert server.url in stats.stdout
        file.unlink()
        until(lambda: not is_pinned(own, project))
        assert server.url in own.run(project, "stats").stdout
