"""``repertory types`` as a separate process."""

from pathlib import Path

import pytest

from tests.support.command_line import Cli, make_project
from tests.support.server_process import Serve, ask


def test_types_prints_the_module_of_a_server(own: Cli, tmp_path: Path) -> None:
    """The output equals ``/runtime/tools.ts``, for all tools and for named ones."""
    folder = make_project(tmp_path / "project")
    with Serve(own, folder, tmp_path / "log") as server:
        some = "files__read_file,files__search_code"
        for arguments, filtered in (
            ((), ""),
            (some.split(","), some),
            (("--filter", some), some),
        ):
            done = own.run(folder, "types", *arguments)
            with ask(f"{server.url}/runtime/tools.ts?filter={filtered}", server.token) as response:
                module = response.read().decode()
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout == module


def test_types_indexes_first_and_has_its_old_name(cli: Cli, project: Path) -> None:
    """The old name ``get-types`` works, and a first run indexes with notices on stderr."""
    done = cli.run(project, "get-types", "--filter", "files")
    assert done.returncode == 0
    assert "export interface FilesReadFileParams {" in done.stdout
    assert "7 items of 3 sources indexed" in done.stderr
    assert "get-types" not in cli.run(project, "--help").stdout


@pytest.mark.parametrize("command", ["types", "get-types"])
def test_an_unknown_name_is_exit_code_2(cli: Cli, indexed: Path, command: str) -> None:
    """An unknown name is exit code 2, and the error has the name."""
    done = cli.run(indexed, command, "files", "nope")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "repertory: There is no server and no tool 'nope'.\n"
