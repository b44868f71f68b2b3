"""The commands: lazy imports, help texts, and errors."""

import subprocess
import sys
from ast import literal_eval
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from repertory.errors import ConfigurationError, UsageError
from repertory.values import SETTINGS
from repertory_admin import completion, terminal
from repertory_admin.app import COMMANDS, app
from repertory_admin.commands import backup, config, init, mcp
from repertory_admin.confirmation import confirm
from repertory_admin.exits import missing_package, system_problem
from repertory_admin.options import FLAGGED

# Shows the help of each command in its own process, which then lists the imported modules.
# The empty command shows the main help.
IMPORTED = """
import atexit, os, sys
from repertory_admin.cli import cli
for command in ["", *sys.argv[1:]]:
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0, command
        continue
    atexit.register(lambda: print("imported", repr(command), *sys.modules))
    sys.argv = ["repertory", *command.split(), "--help"]
    cli()
"""
HEAVY = {
    *("numpy", "onnxruntime", "qdrant_edge", "starlette", "rich", "repertory.compose"),
    *("ir_measures", "scipy", "sklearn"),  # of an extra, without which help must work
}


UNKNOWN_HOME = Path("~unknown-user/x")


@pytest.fixture(scope="module")
def imported() -> dict[str, set[str]]:
    """The modules that the help of each command imports."""
    command = [sys.executable, "-c", IMPORTED, *COMMANDS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("imported ")]
    return {literal_eval(name): set(modules) for _, name, *modules in lines}


def test_the_main_help_imports_no_command(imported: dict[str, set[str]]) -> None:
    """It lists every command without importing a command's module."""
    modules = imported[""]
    assert "repertory_admin.app" in modules
    assert not modules & {module for module, _ in COMMANDS.values()}
    assert not modules & HEAVY


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_imports_no_engine(
    imported: dict[str, set[str]], command: str
) -> None:
    """It imports the command's module, but no numpy, engine, web server or optional package."""
    modules = imported[command]
    assert COMMANDS[command][0] in modules
    assert not modules & HEAVY


@pytest.mark.parametrize(
    ("package", "extra"),
    [("celery", "team"), ("ir_measures.measures", "eval"), ("sklearn", "eval")],
)
def test_a_missing_optional_package_is_named_with_its_extra(package: str, extra: str) -> None:
    """The message ends with the command that installs it."""
    text = missing_package(ModuleNotFoundError("No module", name=package))
    assert text.endswith(f"pip install 'repertory[{extra}]'")


def test_a_missing_module_of_our_own_is_a_defect() -> None:
    """No extra would install it, so none is suggested."""
    assert not missing_package(ModuleNotFoundError("No module", name="repertory.nowhere"))
    assert not missing_package(ModuleNotFoundError("No module"))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_main_help_shows_the_first_line_of_each_command(name: str) -> None:
    """The summaries in the table of commands equal the first lines of the commands' own help."""
    root = typer.main.get_group(app)
    assert isinstance(root, TyperGroup)
    command = root.resolve_command(typer.Context(root), [name])[1]
    assert command is not None
    assert (command.help or "").partition("\n")[0] == COMMANDS[name][1]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_no_truncated_lines_and_no_type_names(name: str) -> None:
    """A group truncates no line of its commands, and no option shows ``<str>`` for its value."""
    root = typer.main.get_group(app)
    assert isinstance(root, TyperGroup)
    context = typer.Context(root)
    command = root.resolve_command(context, [name])[1]
    assert command is not None
    text = command.get_help(typer.Context(command, parent=context, info_name=name))
    _, *lines = text.splitlines()  # the first line has "..." for repeated arguments
    assert not [line for line in lines if line.endswith("...")]
    assert "<str>" not in text


def test_a_lack_of_memory_is_no_defect() -> None:
    """The message says that there is not enough memory."""
    assert system_problem(MemoryError()).startswith("There is not enough memory")


def test_the_settings_with_a_flag_are_options_of_commands() -> None:
    """`config show` names the flag of a setting only if another command takes it."""
    root = typer.main.get_group(app)
    assert isinstance(root, TyperGroup)
    taken: set[str] = set()
    context = typer.Context(root)
    for name in COMMANDS:
        command = root.resolve_command(context, [name])[1]
        parts = command.commands if isinstance(command, TyperGroup) else {"": command}
        for part, one in parts.items():
            if one and (name, part) != ("config", "show"):
                taken |= {str(option) for parameter in one.params for option in parameter.opts}
    assert {one.field for one in SETTINGS.values() if one.flag in taken} == FLAGGED


@pytest.mark.parametrize(
    "run",
    [
        lambda flags: backup.backup(flags, UNKNOWN_HOME),
        lambda flags: backup.restore(flags, UNKNOWN_HOME),
        lambda flags: config.trust(flags, [UNKNOWN_HOME]),
        lambda flags: config.untrust(flags, [UNKNOWN_HOME]),
        lambda flags: init.init(flags, UNKNOWN_HOME),
        lambda flags: mcp.mcp(flags, directory=UNKNOWN_HOME),
    ],
    ids=["backup", "restore", "config trust", "config untrust", "init", "mcp"],
)
def test_a_path_in_an_unknown_home_is_a_wrong_argument(
    run: Callable[[dict[str, object]], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says that the home is unknown, instead of reporting a defect."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="names a home that is unknown"):
        run({"data_dir": str(tmp_path / "data")})


def test_completion_shows_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a deleted directory it offers nothing: a message would appear in the typed line."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        assert completion.names("") == []
    finally:
        terminal.be_quiet(quiet=False)
    assert capsys.readouterr() == ("", "")


def test_no_question_is_asked_that_nobody_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    """With stderr in a file, a command ends instead of waiting for an answer."""
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: True)
    with pytest.raises(UsageError, match="give --yes"):
        confirm("Remove it?", yes=False)
