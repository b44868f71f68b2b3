"""Every setting: its flag, its environment variable and its key in the configuration file.

Settings are read once, at the start. A flag wins over the environment, which wins over the
project's configuration file, which wins over the user's, which wins over the default.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import platformdirs
from msgspec import Meta

from repertory.catalogue.policy import Rule
from repertory.errors import ConfigurationError
from repertory.sources.policies import rules as rules_of

PROJECT_FILE = "repertory.toml"


def _at(
    key: str,
    doc: str,
    *,
    ge: float | None = None,
    le: float | None = None,
    personal: bool = False,
    secret: bool = False,
) -> Meta:
    """Declare a setting.

    Args:
        key: Its key in the configuration file; flag and variable are named after field and key.
        doc: Its description, for help texts and schemas.
        ge: The minimum, if it is a number.
        le: The maximum, if it is a number.
        personal: A file that came with a project cannot set it: it decides where data goes.
        secret: Its value is never shown.
    """
    extra = {"key": key, "personal": personal, "secret": secret}
    return Meta(ge=ge, le=le, description=doc, extra=extra)


# The settings that a single query can override; its schemas and descriptions use these types.
Limit = Annotated[int, _at("search.limit", "The maximum number of results.", ge=1)]
Threshold = Annotated[
    float, _at("search.threshold", "The minimum confidence of a result, 0 to 1.", ge=0, le=1)
]
Alpha = Annotated[
    float, _at("search.alpha", "The share of meaning against words, 0 to 1.", ge=0, le=1)
]
NameWeight = Annotated[
    float,
    _at("search.name_weight", "How much a matching name adds to the score, 0 to 1.", ge=0, le=1),
]
SectionWeight = Annotated[
    float,
    _at("search.section_weight", "How much a section counts for its item, 0 to 1.", ge=0, le=1),
]


class Values(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values of all settings: the one place where a setting is declared."""

    data_dir: Annotated[str, _at("data_dir", "The folder of all stored data.", personal=True)] = ""
    model: Annotated[
        str | None, _at("search.model", "The embedding model: a name or a folder.")
    ] = None
    device: Annotated[
        Literal["auto", "cpu", "gpu"], _at("search.device", "Where the model runs.")
    ] = "auto"
    alpha: Alpha = 0.7
    name_weight: NameWeight = 0.8
    section_weight: SectionWeight = 0.95
    limit: Limit = 3
    threshold: Threshold = 0.35
    no_cache: Annotated[bool, _at("search.no_cache", "Load nothing stored, store nothing.")] = False
    mcp_timeout: Annotated[
        float, _at("mcp.timeout", "Seconds for an MCP server to answer.", ge=0.001)
    ] = 30.0
    allow_calls: Annotated[
        bool, _at("mcp.allow_calls", "Let callers run tools through this server.", personal=True)
    ] = False
    call_timeout: Annotated[
        float, _at("mcp.call_timeout", "Seconds for a called tool to answer.", ge=0.001)
    ] = 60.0
    sandbox: Annotated[
        str | None,
        _at(
            "sandbox",
            "The folder that Vector.VectorUpdate may read  [default: the directory itself]",
            personal=True,
        ),
    ] = None
    qdrant_url: Annotated[
        str | None,
        _at("qdrant.url", "A Qdrant server to use instead of the embedded engine.", personal=True),
    ] = None
    qdrant_api_key: Annotated[
        str | None, _at("qdrant.api_key", "The key for Qdrant.", personal=True, secret=True)
    ] = None
    redis_url: Annotated[
        str | None,
        _at(
            "redis.url",
            "The Redis of a team's server, where jobs wait for workers.",
            personal=True,
            secret=True,  # it may hold a password
        ),
    ] = None
    server_url: Annotated[
        str | None,
        _at("server.url", "A Repertory server to ask instead of a local index.", personal=True),
    ] = None
    server_api_key: Annotated[
        str | None, _at("server.api_key", "The key for that server.", personal=True, secret=True)
    ] = None
    host: Annotated[str, _at("server.host", "The address to serve on.", personal=True)] = (
        "127.0.0.1"
    )
    port: Annotated[
        int, _at("server.port", "The port to serve on.", ge=0, le=65_535, personal=True)
    ] = 7700
    keys: Annotated[
        str | None,
        _at("server.keys", "The file of the keys that the server accepts.", personal=True),
    ] = None
    requests_per_minute: Annotated[
        int,
        _at(
            "server.requests_per_minute",
            "The maximum number of requests per minute from one key or address.",
            ge=1,
            personal=True,
        ),
    ] = 6_000
    debounce: Annotated[
        float,
        _at("watch.debounce", "Seconds without changes before a file is read.", ge=0, le=60),
    ] = 0.3
    poll: Annotated[
        float,
        _at("watch.poll", "Seconds between scans where the system reports no changes.", ge=0.1),
    ] = 2.0
    reconcile: Annotated[
        float, _at("watch.reconcile", "Seconds between full scans of all sources.", ge=0.1)
    ] = 60.0


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting, as ``Values`` declares it; see ``_at``."""

    field: str
    key: str
    doc: str
    personal: bool
    secret: bool
    type: Any  # without its range
    meta: Meta

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
        """The variable of the predecessor, which still works."""
        return "TOOLSCRIPT_" + self.key.replace(".", "_").upper()

    @property
    def expected(self) -> str:
        """The valid values in words: ``a number from 0 to 1``."""
        if get_origin(self.type) is Literal:
            *others, last = get_args(self.type)
            return f"{', '.join(others)} or {last}"
        names = {bool: "true or false", int: "a whole number", float: "a number"}
        name, ge, le = names.get(self.type, "a text"), self.meta.ge, self.meta.le
        if ge is None:
            return name
        return f"{name} from {ge:g} to {le:g}" if le is not None else f"{name} of at least {ge:g}"

    def read(self, value: object, *, strict: bool = True) -> Any:  # noqa: ANN401 - of its type
        """Check a value and convert it.

        Args:
            value: The value as given.
            strict: Whether a text is no number; the environment gives numbers as text.

        Raises:
            ValueError: It has another type or is out of range.
        """
        return msgspec.convert(value, Annotated[self.type, self.meta], strict=strict)


def _declared() -> dict[str, Setting]:
    types = get_type_hints(Values)
    found = {}
    for field, declared in get_type_hints(Values, include_extras=True).items():
        (meta,) = declared.__metadata__
        found[field] = Setting(
            field=field, type=types[field], doc=meta.description, meta=meta, **meta.extra
        )
    return found


SETTINGS = _declared()  # by field


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The active settings, and where each was given.

    Attributes:
        values: The value of each.
        origins: Where each value that is not a default was given, by field.
        sources: The ``[[sources]]`` of the configuration file; empty if it has none.
        rules: The ``[[policy]]`` tables, the user's before the project's.
        base: The folder that relative paths of sources start from.
        file: The project's configuration file, if there is one.
        named: The same file, if the user named it; None if it was found.
        trusted: Whether the user named, or owns, the file of the sources: it may run servers.
        mcp_configs: MCP configurations that the user named.
        flags: The values that the command line gave, by field.
    """

    values: Values
    origins: dict[str, str] = {}
    sources: tuple[dict[str, Any], ...] = ()
    rules: tuple[Rule, ...] = ()
    base: Path
    file: Path | None = None
    named: Path | None = None
    trusted: bool = False
    mcp_configs: tuple[Path, ...] = ()
    flags: dict[str, Any] = {}

    @property
    def data_dir(self) -> Path:
        """The data directory."""
        given = self.values.data_dir
        return Path(given).expanduser() if given else Path(platformdirs.user_data_dir("repertory"))


def load(
    flags: Mapping[str, Any],
    directory: Path,
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """Read all settings.

    Args:
        flags: The values of the command line by field, None for those not given; ``config`` names
            a configuration file, ``mcp_config`` is a list of MCP configurations.
        directory: The current directory; the project's file is searched for here and above.
        environment: The environment.

    Raises:
        ConfigurationError: A value is invalid; the message names where it was given.
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
    for setting in SETTINGS.values():
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
        named=file if named else None,
        trusted=trusted,
        mcp_configs=tuple(directory / Path(path).expanduser() for path in configs),
        flags={name: value for name, value in flags.items() if value is not None},
    )


def files(
    flags: Mapping[str, Any], directory: Path, environment: Mapping[str, str] = os.environ
) -> list[Path]:
    """Every configuration file that ``load`` looks for, existing or not."""
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
    known = {setting.key: setting for setting in SETTINGS.values()}
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
    values: dict[str, Any] = {}
    for field, value in given.items():
        setting = SETTINGS[field]
        try:
            values[field] = setting.read(value, strict=False)
        except ValueError as error:
            raise ConfigurationError(
                f"{origins[field]} is {value!r}; it must be {setting.expected}."
            ) from error
    return Values(**values)


def url_of(host: str, port: int) -> str:
    """The URL of a server; one that listens on all addresses is reached on this machine's own."""
    own = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared only
    return f"http://[{own}]:{port}" if ":" in own else f"http://{own}:{port}"
