"""The commands are imported when they are chosen, and not before."""

import subprocess
import sys

import pytest
import typer
from typer.core import TyperGroup

from repertory.values import SETTINGS
from repertory_admin.app import COMMANDS, app
from repertory_admin.exits import missing_package
from repertory_admin.options import FLAGGED

# Asks the command line for help, and then lists the imported modules.
IMPORTED = """
import atexit, sys
atexit.register(lambda: print("imported", *sys.modules))
sys.argv = ["repertory", *sys.argv[1:], "--help"]
from repertory_admin.cli import cli
cli()
"""
HEAVY = {
    *("numpy", "onnxruntime", "qdrant_edge", "starlette", "rich", "repertory.compose"),
    *("ir_measures", "scipy", "sklearn"),  # of an extra: help works without it
}


def imported(*command: str) -> set[str]:
    """The modules that a command's help imports."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *command], capture_output=True, text=True, check=True
    )
    return set(done.stdout.rpartition("imported ")[2].split())


def test_the_main_help_imports_no_command() -> None:
    """It lists every command without the module of any."""
    modules = imported()
    assert "repertory_admin.app" in modules
    assert not modules & {module for module, _ in COMMANDS.values()}
    assert not modules & HEAVY


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_imports_no_engine(command: str) -> None:
    """It imports the command's module, but no numpy, engine, web server or optional package."""
    modules = imported(command)
    assert COMMANDS[command][0] in modules
    assert not modules & HEAVY


@pytest.mark.parametrize(
    ("package", "extra"),
    [("celery", "team"), ("ir_measures.measures", "eval"), ("sklearn", "eval")],
)
def test_a_missing_optional_package_is_named_with_its_extra(package: str, extra: str) -> None:
    """The message is the command that installs it."""
    text = missing_package(ModuleNotFoundError("No module", name=package))
    assert text.endswith(f"pip install 'repertory[{extra}]'")


def test_a_missing_module_of_our_own_is_a_defect() -> None:
    """No extra would install it."""
    assert not missing_package(ModuleNotFoundError("No module", name="repertory.nowhere"))
    assert not missing_package(ModuleNotFoundError("No module"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_of_the_main_help_is_the_first_of_the_commands_own(name: str) -> None:
    """The table of commands says what the command itself does."""
    root = typer.main.get_group(app)
    assert isinstance(root, TyperGroup)
    command = root.resolve_command(typer.Context(root), [name])[1]
    assert command is not None
    assert (command.help or "").partition("\n")[0] == COMMANDS[name][1]


def test_the_settings_with_a_flag_are_those_of_the_commands() -> None:
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
