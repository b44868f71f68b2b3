"""The application that commands are added to, and how one is added."""

from collections.abc import Callable, Iterable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from repertory_admin.exits import MEANINGS
from repertory_admin.options import PANEL, with_flags

_ORDER = (
    *(
        "init",
        "index",
        "search",
        "explain",
        "items",
        "stats",
        "rebuild",
        "mcp",
        "serve",
        "queue",
        "keys",
    ),
    *("watch", "worker", "api", "config", "doctor", "eval", "calibrate"),
    *("create", "list", "show", "check", "trust", "untrust", "retry", "revoke"),
)
_EXIT_CODES = [f"{code:<3} {meaning}" for code, meaning in MEANINGS.items()]


def _unwrapped(title: str, lines: Iterable[str]) -> str:
    """A part of a help text whose lines stay as they are."""
    return "\b\n" + "\n  ".join((f"{title}:", *lines))


class _Group(TyperGroup):
    """A group that lists its commands in the order in which they are met."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer's type is private
        return sorted(super().list_commands(ctx), key=_ORDER.index)


def group(name: str, text: str, epilog: str | None = None) -> typer.Typer:
    """A group of commands."""
    return typer.Typer(
        name=name,
        cls=_Group,
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
    '`repertory search "…"` in a project finds what is there, indexes it and answers.',
    _unwrapped("Exit codes", _EXIT_CODES),
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
        name: What the command is called.
        examples: Command lines for its help.
        settings: The settings that have a flag here, besides those that every command has.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        run = with_flags(function, settings)
        to.command(name, cls=_Command, epilog=_unwrapped("Examples", examples))(run)
        return function

    return add
