"""Every setting: its flag, its environment variable and its place in the configuration file.

Read once, at the start. A flag wins over the environment, which wins over the project's
configuration file, which wins over the user's, which wins over the default.
"""

import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from repertory.catalogue.policy import Rule
from repertory.errors import ConfigurationError
from repertory.sources.policies import rules as rules_of

PROJECT_FILE = "repertory.toml"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Where one setting can be given, and what it does."""

    field: str
    key: str
    doc: str
    secret: bool = False
    personal: bool = False  # not for a file that came with a project: it decides where data goes

    @property
    def flag(self) -> str:
        """The command line's flag."""
        return "--" + self.field.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return "REPERTORY_" + self.key.replace(".", "_").upper()

    @property
    def alias(self) -> str:
        """The variable of the system that went before, which still works."""
        return "TOOLSCRIPT_" + self.key.replace(".", "_").upper()


SETTINGS = (
    Setting(field="data_dir", key="data_dir", doc="Where all is kept.", personal=True),
    Setting(field="model", key="search.model", doc="The embedding model: a name or a folder."),
    Setting(field="device", key="search.device", doc="auto, cpu or gpu."),
    Setting(field="alpha", key="search.alpha", doc="The share of meaning against words, 0 to 1."),
    Setting(
        field="name_weight",
        key="search.name_weight",
        doc="What a name typed as it is adds to meaning and words, 0 to 1.",
    ),
    Setting(
        field="section_weight",
        key="search.section_weight",
        doc="The share of a section's meaning that counts for its item, 0 to 1.",
    ),
    Setting(field="limit", key="search.limit", doc="The most results to show."),
    Setting(field="threshold", key="search.threshold", doc="The least confidence to show, 0 to 1."),
    Setting(field="no_cache", key="search.no_cache", doc="Load nothing stored, store nothing."),
    Setting(field="mcp_timeout", key="mcp.timeout", doc="Seconds for an MCP server to answer."),
    Setting(
        field="allow_calls",
        key="mcp.allow_calls",
        doc="Let tools be called through here.",
        personal=True,
    ),
    Setting(
        field="call_timeout",
        key="mcp.call_timeout",
        doc="Seconds for a tool that is called to answer.",
    ),
    Setting(
        field="sandbox",
        key="sandbox",
        doc="The folder that Vector.VectorUpdate may read  [default: the directory itself]",
        personal=True,
    ),
    Setting(
        field="qdrant_url",
        key="qdrant.url",
        doc="A Qdrant server, instead of the embedded.",
        personal=True,
    ),
    Setting(
        field="qdrant_api_key",
        key="qdrant.api_key",
        doc="The key to it.",
        secret=True,
        personal=True,
    ),
    Setting(
        field="redis_url",
        key="redis.url",
        doc="The Redis of a team's server, where jobs wait for workers.",
        secret=True,  # it may hold a password
        personal=True,
    ),
    Setting(
        field="server_url",
        key="server.url",
        doc="A Repertory server to ask, instead of an index here.",
        personal=True,
    ),
    Setting(
        field="server_api_key",
        key="server.api_key",
        doc="The key to it.",
        secret=True,
        personal=True,
    ),
    Setting(field="host", key="server.host", doc="The address to serve on.", personal=True),
    Setting(field="port", key="server.port", doc="The port to serve on.", personal=True),
    Setting(
        field="keys",
        key="server.keys",
        doc="The file of the keys that a server accepts.",
        personal=True,
    ),
    Setting(
        field="requests_per_minute",
        key="server.requests_per_minute",
        doc="The most requests a minute of one key or address.",
        personal=True,
    ),
    Setting(
        field="quiet", key="watch.quiet", doc="Seconds a file must be quiet before it is read."
    ),
    Setting(
        field="poll",
        key="watch.poll",
        doc="Seconds between two looks where the system tells of no changes.",
    ),
    Setting(
        field="reconcile",
        key="watch.reconcile",
        doc="Seconds between two looks at everything, whatever was told.",
    ),
)


# The least and the most that a number may be.
_RANGES = {
    "alpha": (0.0, 1.0),
    "name_weight": (0.0, 1.0),
    "section_weight": (0.0, 1.0),
    "threshold": (0.0, 1.0),
    "limit": (1, math.inf),
    "mcp_timeout": (0.001, math.inf),
    "call_timeout": (0.001, math.inf),
    "port": (0, 65_535),
    "requests_per_minute": (1, math.inf),
    "quiet": (0.0, 60.0),
    "poll": (0.1, math.inf),
    "reconcile": (0.1, math.inf),
}


class Values(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values of all settings."""

    data_dir: str = ""
    model: str | None = None
    device: str = "auto"
    alpha: float = 0.7
    name_weight: float = 0.8
    section_weight: float = 0.95
    limit: int = 3
    threshold: float = 0.35
    no_cache: bool = False
    mcp_timeout: float = 30.0
    allow_calls: bool = False
    call_timeout: float = 60.0
    sandbox: str | None = None
    qdrant_url: str | None = None
    qdrant_api_key: str | None = None
    redis_url: str | None = None
    server_url: str | None = None
    server_api_key: str | None = None
    host: str = "127.0.0.1"
    port: int = 7700
    keys: str | None = None
    requests_per_minute: int = 6_000
    quiet: float = 0.3
    poll: float = 2.0
    reconcile: float = 60.0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings in force, and where each came from.

    Attributes:
        values: What they are.
        origins: Where each that is not a default was given, by field.
        sources: The ``[[sources]]`` of the configuration file; empty where it has none.
        rules: What the ``[[policy]]`` tables decide, the user's before the project's.
        base: The folder that relative paths of sources start from.
        file: The project's configuration file, if there is one.
        trusted: Whether the user named, or owns, the file of the sources: it may run servers.
        mcp_configs: MCP configurations that the user named.
        flags: What the command line gave, by field.
    """

    values: Values
    origins: dict[str, str] = {}
    sources: tuple[dict[str, Any], ...] = ()
    rules: tuple[Rule, ...] = ()
    base: Path
    file: Path | None = None
    trusted: bool = False
    mcp_configs: tuple[Path, ...] = ()
    flags: dict[str, Any] = {}

    @property
    def data_dir(self) -> Path:
        """Where everything is kept."""
        given = self.values.data_dir
        return Path(given).expanduser() if given else Path(platformdirs.user_data_dir("repertory"))


def load(
    flags: Mapping[str, Any],
    directory: Path,
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """Read all settings.

    Args:
        flags: What the command line gave, by field, None for what it did not; ``config`` names a
            configuration file, ``mcp_config`` is a list of MCP configurations.
        directory: Where the user is; the project's file is looked for here and above.
        environment: The environment.

    Raises:
        ConfigurationError: A value is wrong; the message names the setting and where it was given.
    """
    named = flags.get("config") or environment.get("REPERTORY_CONFIG")
    file = directory / Path(named).expanduser() if named else _find(directory)
    if named and file and not file.is_file():
        raise ConfigurationError(f"There is no configuration file {file}.")
    user_file = _user_file()

    given: dict[str, Any] = {}
    origins: dict[str, str] = {}
    sources: tuple[dict[str, Any], ...] = ()
    rules: tuple[Rule, ...] = ()
    base, trusted = directory, False
    for path in (user_file, file):
        if path is not None and path.is_file():
            document = _read(path)
            mine = path == user_file or bool(named)
            if "sources" in document:
                sources, base = _sources(document.pop("sources"), path), path.parent
                trusted = mine
            rules += rules_of(document.pop("policy", []), str(path))
            for field, value in _flatten(document, path, mine=mine).items():
                given[field], origins[field] = value, str(path)
    for setting in SETTINGS:
        for variable in (setting.alias, setting.variable):
            if value := environment.get(variable):
                given[setting.field], origins[setting.field] = value, variable
        if (flag := flags.get(setting.field)) is not None:
            given[setting.field], origins[setting.field] = flag, setting.flag
    configs = flags.get("mcp_config") or [
        path for path in environment.get("REPERTORY_MCP_CONFIG", "").split(os.pathsep) if path
    ]
    return Settings(
        values=_convert(given, origins),
        origins=origins,
        sources=sources,
        rules=rules,
        base=base,
        file=file,
        trusted=trusted,
        mcp_configs=tuple(directory / Path(path).expanduser() for path in configs),
        flags={name: value for name, value in flags.items() if value is not None},
    )


def files(
    flags: Mapping[str, Any], directory: Path, environment: Mapping[str, str] = os.environ
) -> list[Path]:
    """Every configuration file that ``load`` looks for, whether it is there or not."""
    if named := flags.get("config") or environment.get("REPERTORY_CONFIG"):
        return [_user_file(), directory / Path(named).expanduser()]
    return [_user_file(), *(folder / PROJECT_FILE for folder in (directory, *directory.parents))]


def _user_file() -> Path:
    return Path(platformdirs.user_config_dir("repertory")) / "config.toml"


def _find(directory: Path) -> Path | None:
    for folder in (directory, *directory.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}.") from error


def _sources(value: object, path: Path) -> tuple[dict[str, Any], ...]:
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        if any("trusted" in entry for entry in value):
            raise ConfigurationError(
                f"{path}: a source cannot be trusted there; use `repertory config trust FILE`."
            )
        return tuple(value)
    raise ConfigurationError(
        f"{path}: `sources` is not a list of tables; write each as [[sources]] and its lines below."
    )


def _flatten(document: Mapping[str, Any], path: Path, *, mine: bool) -> dict[str, Any]:
    """The settings of a document by field."""
    known = {setting.key: setting for setting in SETTINGS}
    found: dict[str, Any] = {}
    for section, content in document.items():
        table = content if isinstance(content, dict) else {"": content}
        for name, value in table.items():
            key = f"{section}.{name}" if name else section
            if key not in known:
                raise ConfigurationError(
                    f"{path}: there is no setting {key!r}; `repertory config show` lists them."
                )
            if known[key].personal and not mine:
                raise ConfigurationError(
                    f"{path}: a file that came with a project cannot set {key!r}; set it in your "
                    f"own config.toml, or name this file with --config."
                )
            if key in ("data_dir", "sandbox") and isinstance(value, str):
                value = str(path.parent / Path(value).expanduser())  # noqa: PLW2901 - as sources
            found[known[key].field] = value
    return found


def _convert(given: Mapping[str, Any], origins: Mapping[str, str]) -> Values:
    checked: dict[str, Any] = {}
    for field, value in given.items():
        try:
            one = msgspec.convert({field: value}, Values, strict=False)
        except msgspec.ValidationError as error:
            reason = str(error).split(" - at ")[0].lower()
            raise ConfigurationError(
                f"{origins[field]} is {value!r}, which cannot be: {reason}."
            ) from error
        checked[field] = getattr(one, field)
    values = Values(**checked)
    for field, (least, most) in _RANGES.items():
        value = getattr(values, field)
        if not least <= value <= most:
            span = f"from {least:g} to {most:g}" if most < math.inf else f"at least {least:g}"
            raise ConfigurationError(f"{origins[field]} is {value}; it must be {span}.")
    if values.device not in {"auto", "cpu", "gpu"}:
        raise ConfigurationError(f"{origins['device']} is {values.device!r}; use auto, cpu or gpu.")
    return values
