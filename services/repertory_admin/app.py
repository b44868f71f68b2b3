"""The application, its commands, and the decorator that adds one."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from repertory_admin.exits import MEANINGS
from repertory_admin.options import PANEL, with_flags

# Every command: its module, which is imported when the command is chosen, and its line of help.
COMMANDS = {
    "init": (
        "repertory_admin.commands.init",
        "Write a repertory.toml with the sources that are found.",
    ),
    "index": ("repertory_admin.commands.index", "Make the index equal to the sources."),
    "search": ("repertory_admin.commands.search", "Find what fits a task, some words or a name."),
    "explain": (
        "repertory_admin.commands.explain",
        "Explain why a search returns an item, or why not.",
    ),
    "items": ("repertory_admin.commands.items", "List and show the items that are indexed."),
    "stats": (
        "repertory_admin.commands.stats",
        "Show the index, its freshness and its problems.",
    ),
    "rebuild": ("repertory_admin.commands.index", "Build a new index beside the old one."),
    "mcp": ("repertory_admin.commands.mcp", "Be an MCP server for an agent host, on stdio."),
    "serve": (
        "repertory_admin.commands.serve",
        "Watch this directory and answer searches over HTTP.",
    ),
    "queue": (
        "repertory_admin.commands.queue",
        "The pending, running and failed jobs of a server.",
    ),
    "keys": ("repertory_admin.commands.keys", "The keys that a server accepts."),
    "watch": ("repertory_admin.commands.watch", "Watch this directory for a team's workers."),
    "worker": (
        "repertory_admin.commands.worker",
        "Embed and store the items that a team's watch service sends.",
    ),
    "api": ("repertory_admin.commands.api", "Answer a team's searches over HTTP."),
    "config": (
        "repertory_admin.commands.config",
        "The configuration, and which MCP servers may run.",
    ),
    "doctor": (
        "repertory_admin.commands.doctor",
        "Check data directory, model, index or server, and sources.",
    ),
    "eval": (
        "repertory_eval.evaluate",
        "Measure the ranking on labelled or generated queries.",
    ),
    "calibrate": (
        "repertory_eval.calibrate",
        "Fit the confidence of a model to labelled queries.",
    ),
}
_EXIT_CODES = [f"{code:<3} {meaning}" for code, meaning in MEANINGS.items()]


def _unwrapped(title: str, lines: Iterable[str]) -> str:
    """A part of a help text whose lines are not wrapped."""
    return "\b\n" + "\n  ".join((f"{title}:", *lines))


class _Group(TyperGroup):
    """A group that lists its commands in the order in which they were added."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002, ANN401 - Typer's own types
        return list(self.commands)


class _Root(_Group):
    """The group of all commands, which imports a command's module when the command is chosen."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - Typer's own
        super().__init__(**attributes)
        # A module that was imported has added its commands to ``app``.
        unloaded = {name: _Unloaded(name, help=line) for name, (_, line) in COMMANDS.items()}
        self.commands = {**unloaded, **self.commands}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - Typer's own
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, _Unloaded) and command.name:
            import_module(COMMANDS[command.name][0])
            command = typer.main.get_group(app).commands[command.name]
        return name, command, rest


class _Unloaded(TyperCommand):
    """Stands for a command whose module is not imported, in lists of commands."""


def group(
    name: str, text: str, epilog: str | None = None, cls: type[TyperGroup] = _Group
) -> typer.Typer:
    """A group of commands."""
    return typer.Typer(
        name=name,
        cls=cls,
        help=text,
        epilog=epilog,
        no_args_is_help=True,
        rich_markup_mode=None,  # rich would take longer to import than the help takes to write
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


app = group(
    "repertory",
    "One searchable list of the skills, tools and documents that AI agents can use.\n\n"
    '`repertory search "…"` in a project finds its sources, indexes them and answers.',
    _unwrapped("Exit codes", _EXIT_CODES),
    _Root,
)


class _Command(TyperCommand):
    """A command whose help shows the settings apart from its own options."""

    # Typer's own types of context and formatter are private.
    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        own: list[tuple[str, str]] = []
        settings: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_setting = getattr(parameter, "rich_help_panel", None) == PANEL
                (settings if is_setting else own).append(record)
        for title, records in (("Options", own), (PANEL, settings)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def command(
    to: typer.Typer, name: str, *, examples: Iterable[str], settings: Iterable[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function to a group as a command with the shared options.

    Args:
        to: The group.
        name: The command's name.
        examples: Command lines for its help.
        settings: The settings with a flag here, besides those of every command.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        run = with_flags(function, settings)
        to.command(name, cls=_Command, epilog=_unwrapped("Examples", examples))(run)
        return function

    return add
