"""The application, its commands, and the decorator that adds one."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from repertory.errors import UsageError
from repertory_admin.exits import MEANINGS
from repertory_admin.options import PANEL, with_flags

# The sections of the help. Each command maps to its module, which is imported on demand, and its
# help line.
SECTIONS = {
    "Search": {
        "search": ("admin.commands.search", "Find items for a task, some words or a name."),
        "explain": (
            "admin.commands.search",
            "Explain why an item is, or is not, in the results.",
        ),
        "items": ("admin.commands.items", "List and show the indexed items."),
        "types": ("admin.commands.types", "Print a TypeScript module of tools."),
    },
    "Index": {
        "init": ("admin.commands.init", "Write a repertory.toml with the sources that are found."),
        "add": (
            "admin.commands.add",
            "Add a repository, marketplace, archive, web API or server of an MCP registry.",
        ),
        "remove": ("admin.commands.add", "Remove a source from the configuration."),
        "index": ("admin.commands.index", "Make the index equal to the sources."),
        "rebuild": ("admin.commands.index", "Build a new index beside the old one."),
        "stats": ("admin.commands.stats", "Show the index, its freshness and its problems."),
        "doctor": (
            "admin.commands.doctor",
            "Check data directory, keys, model, index or server, sign-in, and sources.",
        ),
        "config": ("admin.commands.config", "Show and check the settings; trust MCP servers."),
        "login": ("admin.commands.login", "Sign in at an MCP server that asks for it."),
        "logout": ("admin.commands.login", "Forget the sign-in at an MCP server."),
        "trust": (
            "admin.commands.trust",
            "Review and approve changed items; `config trust` trusts a file.",
        ),
        "history": (
            "admin.commands.history",
            "Show when an item appeared, how it changed, and who approved it.",
        ),
        "clean": ("admin.commands.clean", "Remove stored data that nothing uses any more."),
        "backup": (
            "admin.commands.backup",
            "Write a backup: all indexes, keys and approvals, without recorded usage.",
        ),
        "restore": (
            "admin.commands.backup",
            "Restore the indexes of a backup, without embedding anything.",
        ),
    },
    "Serve": {
        "serve": (
            "admin.commands.serve",
            "Watch, index and answer over HTTP until you press Ctrl-C.",
        ),
        "connect": (
            "admin.commands.connect",
            "Connect an agent host, such as Claude Code, to Repertory.",
        ),
        "mcp": ("admin.commands.mcp", "Run as an MCP server over stdio, for an agent host."),
        "hook": ("admin.commands.hook", "Answer the prompt hook of an agent host, from its input."),
        "queue": ("admin.commands.queue", "List and retry the jobs of a server."),
        "keys": ("admin.commands.keys", "Create, list, revoke and reset the keys of a server."),
    },
    "Team": {
        "watch": ("admin.commands.team", "Watch this directory for a team's workers."),
        "worker": (
            "admin.commands.team",
            "Embed and store the items that a team's watch service sends.",
        ),
        "api": ("admin.commands.team", "Answer a team's searches over HTTP."),
    },
    "Quality": {
        "insights": (
            "admin.commands.insights",
            "Show which searches found nothing and which items are not used, and what to do.",
        ),
        "eval": ("eval.commands", "Measure the ranking on labelled or generated queries."),
    },
}
COMMANDS = {
    name: (f"repertory_{module}", line)
    for commands in SECTIONS.values()
    for name, (module, line) in commands.items()
}
ALIASES = {"get-types": "types"}  # names of Toolscript, which Repertory replaces
REMOVED = {"calibrate": "every model is calibrated at its first use"}  # and why
IN_GROUPS = {"approve": "trust approve", "review": "trust review"}  # names that are often expected
_FIRST_STEPS = (
    'repertory search "fill in a PDF form"',
    "repertory doctor                   # lists sources, problems and remedies",
    "repertory config trust .mcp.json   # starts its servers, indexes their tools",
    "repertory connect claude-code      # shows the change, and asks",
)
_EXIT_CODES = [f"{code:<3} {meaning}" for code, meaning in MEANINGS.items()]


def _unwrapped(title: str, lines: Iterable[str]) -> str:
    """A section of a help text, with unwrapped lines."""
    return "\b\n" + "\n  ".join((f"{title}:", *lines))


class _Group(TyperGroup):
    """A group whose help shows the whole first paragraph of each command."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - Typer's own
        with formatter.section("Commands"):
            formatter.write_dl([(name, _line(one)) for name, one in self.commands.items()])


def _line(command: Any) -> str:  # noqa: ANN401 - Typer's own
    """The first paragraph of a command's help, on one line."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


class _Root(TyperGroup):
    """The group of all commands, which imports a command's module when the command is chosen."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - Typer's own
        super().__init__(**attributes)
        # Modules that are imported already have added their commands to ``app``.
        unloaded = {name: _Unloaded(name, help=line) for name, (_, line) in COMMANDS.items()}
        self.commands = {**unloaded, **self.commands}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - Typer's own
        if found := IN_GROUPS.get(args[0]):
            raise UsageError(f"There is no command {args[0]}; there is `repertory {found}`.")
        if why := REMOVED.get(args[0]):
            raise UsageError(f"The command {args[0]} was removed, because {why}.")
        args = [ALIASES.get(args[0], args[0]), *args[1:]]
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, _Unloaded) and command.name:
            import_module(COMMANDS[command.name][0])
            command = typer.main.get_group(app).commands[command.name]
        return name, command, rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - as above
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, line) for name, (_, line) in commands.items()])


class _Unloaded(TyperCommand):
    """A command whose module is not imported yet; it is only listed."""


def _group(text: str, **options: Any) -> typer.Typer:  # noqa: ANN401 - Typer's own
    return typer.Typer(
        **options,
        help=text,
        no_args_is_help=True,
        rich_markup_mode=None,  # rich would take longer to import than the help takes to write
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


app = _group(
    "One searchable list of the skills, tools and documents that AI agents can use.\n\n"
    '`repertory search "…"` in a project finds its sources, indexes them and answers.',
    epilog=f"{_unwrapped('Examples', _FIRST_STEPS)}\n\n{_unwrapped('Exit codes', _EXIT_CODES)}",
    cls=_Root,
)


def group(name: str) -> typer.Typer:
    """Add one of ``COMMANDS`` as a group of commands."""
    added = _group(COMMANDS[name][1], cls=_Group)
    app.add_typer(added, name=name)
    return added


class _Command(TyperCommand):
    """A command whose help separates its arguments, its own options and the settings."""

    # Typer's own types of context and formatter are private.
    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], PANEL: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                panel = getattr(parameter, "rich_help_panel", None)
                title = "Arguments" if is_argument else panel or "Options"
                sections[title].append(record)
        for title, records in sections.items():
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
