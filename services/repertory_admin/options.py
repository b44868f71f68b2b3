"""The options that commands share: one for each setting, generated from its declaration."""

import functools
import inspect
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from repertory.values import SETTINGS, Setting, Weights
from repertory_admin import logs, terminal

# The value given for each setting, None if not given; see ``repertory.settings.load``.
Flags = dict[str, Any]

PANEL = "Settings"
EVERYWHERE = ("config", "mcp_config", "data_dir", "quiet", "verbose")
STORE = ("model", "qdrant_url", "qdrant_api_key", "namespace")
CLUSTER = ("qdrant_replication_factor", "qdrant_shard_number", "qdrant_write_consistency")
INDEXING = ("device", "mcp_timeout", "no_cache")
WEIGHTS = Weights.__struct_fields__
RANKING = ("limit", "threshold", *WEIGHTS)
ASKING = ("server_url", "server_api_key")
CALLING = ("allow_calls", "call_timeout", "sandbox")
SERVING = ("host", "port", "keys", "requests_per_minute", *CALLING)
WATCHING = ("debounce", "poll", "reconcile")
TEAM = ("redis_url",)
# All settings that have a flag in some command. `config show` accepts all of these flags.
FLAGGED = frozenset(
    {
        *("data_dir", "tools_max_age", "registry"),
        *(*STORE, *CLUSTER, *INDEXING, *RANKING, *ASKING, *SERVING, *WATCHING, *TEAM),
    }
)
SHORT = {"--limit": "-n", "--quiet": "-q"}
_METAVARS = {int: "N", float: "NUMBER"}


class Output(StrEnum):
    """The format of a command's result."""

    TABLE = "table"
    JSON = "json"


class SearchOutput(StrEnum):
    """The format of ``search``: a table, or one of ``repertory.formats``."""

    TABLE = "table"
    JSON = "json"
    TYPES = "types"
    MARKDOWN = "markdown"
    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    MCP = "mcp"


YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
OutputOption = Annotated[
    Output, typer.Option("--output", "-o", metavar="table|json", help="How to show the result.")
]
SearchOutputOption = Annotated[
    SearchOutput,
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT",
        help=f"How to show the result: {', '.join(SearchOutput)}.",
    ),
]


@functools.cache
def _options() -> dict[str, inspect.Parameter]:
    """Every option that commands share, in the order of their help."""
    options = {
        "config": Annotated[
            Path | None,
            _option(
                "--config", "The configuration file  [default: the nearest repertory.toml]", "FILE"
            ),
        ],
        "mcp_config": Annotated[
            list[Path] | None,
            _option(
                "--mcp-config", "An MCP configuration whose servers may be run; repeatable.", "FILE"
            ),
        ],
    }
    for setting in SETTINGS.values():
        # As text, because ``settings.load`` validates the value and explains an invalid one.
        options[setting.field] = Annotated[
            (bool if setting.type is bool else str) | None, _setting(setting)
        ]
    options["quiet"] = Annotated[
        bool | None, _option("--quiet", "Show no notices and no progress.")
    ]
    options["verbose"] = Annotated[
        bool | None, _option("--verbose", "Log each step on stderr, and show internals.")
    ]
    return {
        name: inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
        )
        for name, annotation in options.items()
    }


def with_flags(function: Callable[..., None], fields: Iterable[str]) -> Callable[..., None]:
    """A command with the shared options, passed to the function together as ``flags``.

    Args:
        function: Takes ``flags`` and its own arguments and options.
        fields: The settings with a flag here, besides those of every command.
    """
    wanted = {*EVERYWHERE, *fields}
    shared = [option for name, option in _options().items() if name in wanted]
    own = inspect.signature(function).parameters.values()
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in own if p.name != "flags"]

    def run(**given: object) -> None:
        flags = {option.name: given.pop(option.name) for option in shared}
        logs.begin(bool(flags.pop("verbose")))
        terminal.be_quiet(quiet=bool(flags.pop("quiet")))
        function(flags=flags, **given)

    run.__doc__ = function.__doc__
    run.__name__ = function.__name__
    run.__annotations__ = {p.name: p.annotation for p in (*parameters, *shared)}
    # Typer reads the options from here; mypy does not know the attribute of functions.
    run.__signature__ = inspect.Signature([*parameters, *shared])  # type: ignore[attr-defined]
    return run


def _option(flag: str, text: str, metavar: str | None = None, **more: Any) -> Any:  # noqa: ANN401 - as typer.Option
    flags = (flag, SHORT[flag]) if flag in SHORT else (flag,)
    return typer.Option(
        *flags, help=text, metavar=metavar, rich_help_panel=PANEL, show_default=False, **more
    )


def _setting(setting: Setting) -> Any:  # noqa: ANN401 - as typer.Option
    text = _help(setting)
    if setting.type is bool:
        return _option(setting.flag, text)
    if get_origin(setting.type) is Literal:
        choices = get_args(setting.type)
        return _option(setting.flag, text, "|".join(choices), autocompletion=lambda: choices)
    return _option(setting.flag, text, _METAVARS.get(setting.type, "TEXT"))


def _help(setting: Setting) -> str:
    shown = f"  [default: {setting.default}]" if setting.default else ""
    return f"{setting.doc}{shown}  [env: {setting.variable}]"
