"""Read the settings once, at the start, from files, the environment and flags.

The order of precedence is: flags, the environment, the project's configuration file, the user's
configuration file, defaults.
"""

import os
import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from repertory.catalogue.policy import Rule
from repertory.data_directory import TRUSTED
from repertory.errors import ConfigurationError
from repertory.file_settings import Added, read_file
from repertory.sources.entry import path_of
from repertory.system.files import is_there
from repertory.system.paths import expanded
from repertory.text import is_unicode
from repertory.trust import TrustStore
from repertory.values import RENAMED, SETTINGS, Values, variables_of

PROJECT_FILE = "repertory.toml"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The active settings, and where each was given.

    Attributes:
        values: The value of each.
        origins: Where each value that is not a default was given, by field.
        sources: The ``[[sources]]`` of the configuration file; empty if it has none.
        added: The sources whose content is fetched, from the user's file and the project's.
        rules: The ``[[policy]]`` tables, the user's before the project's.
        base: The folder that relative paths of sources start from.
        file: The project's configuration file, if there is one.
        named: The same file, if the user named it; None if it was found.
        trusted: Whether the user named or owns the file of the sources, so that it may run servers.
        is_confined: Whether the file of the sources was found and is not trusted, so that it may
            use only its own folder.
        withheld: The settings of a found file that have no effect until the user trusts it, in
            words.
        digest: The SHA-256 of the project's configuration file as it was read; empty without one.
        mcp_configs: MCP configurations that the user named.
        flags: The values that the command line gave, by field.
        environment: The environment of the process that asked for the directory, if that is another
            process; else None.
    """

    values: Values
    origins: dict[str, str] = {}
    sources: tuple[dict[str, Any], ...] = ()
    added: tuple[Added, ...] = ()
    rules: tuple[Rule, ...] = ()
    base: Path
    file: Path | None = None
    named: Path | None = None
    trusted: bool = False
    is_confined: bool = False
    withheld: tuple[str, ...] = ()
    digest: str = ""
    mcp_configs: tuple[Path, ...] = ()
    flags: dict[str, Any] = {}
    environment: Mapping[str, str] | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment of the process that asked for the directory."""
        return _environment(self.environment)

    @property
    def data_dir(self) -> Path:
        """The data directory."""
        return _data_directory(self.values.data_dir)

    @property
    def is_of_team(self) -> bool:
        """Whether a process with these settings is part of a team's server."""
        return bool(self.values.redis_url) and not self.values.no_cache

    def team_redis(self) -> str:
        """The Redis URL of a team's server, which must have a Qdrant URL, too.

        Raises:
            ConfigurationError: The settings name no team's server.
        """
        if not self.values.redis_url or not self.values.qdrant_url:
            raise ConfigurationError(
                "A team's server needs REPERTORY_REDIS_URL and REPERTORY_QDRANT_URL; "
                "`repertory serve` needs neither."
            )
        return self.values.redis_url

    @property
    def to_index(self) -> str:
        """The command that indexes the same sources: files named by flags are named again."""
        words = ["repertory", "index"]
        if self.flags.get("config"):
            words += ["--config", str(self.named)]
        if self.flags.get("mcp_config"):
            words += [word for path in self.mcp_configs for word in ("--mcp-config", str(path))]
        return shlex.join(words)

    @property
    def to_trust(self) -> str:
        """The command that trusts the project's configuration file."""
        return f"repertory config trust {shlex.quote(str(self.file))}"


def load(
    flags: Mapping[str, Any],
    directory: Path,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Read all settings.

    Args:
        flags: The values of the command line by field, None for those not given; ``config`` names
            a configuration file, ``mcp_config`` is a list of MCP configurations.
        directory: The project's directory, whose ``repertory.toml`` is read; see
            ``repertory.project.root``.
        environment: The environment; None for this process's own.

    Raises:
        ConfigurationError: A value is invalid, or a variable was renamed; the message names where
            it was given.
    """
    given_environment, environment = environment, _environment(environment)
    _check_variables(environment)
    named = named_files(flags, directory, environment)
    user_file, place = files(flags, directory, environment)
    file = place if _is_file(place) else None
    if "config" in named and file is None:
        raise ConfigurationError(f"There is no configuration file {place}.")

    given: dict[str, Any] = {}
    origins: dict[str, str] = {}
    sources: tuple[dict[str, Any], ...] = ()
    added: list[Added] = []
    rules: tuple[Rule, ...] = ()
    base, trusted, is_confined = directory, False, False
    withheld: list[str] = []
    digest = ""
    for path in dict.fromkeys((user_file, place)):  # once if the user names the own file
        if not _is_file(path):
            continue
        mine = path == user_file or "config" in named
        found = read_file(path, partial(_store, given, flags, environment), mine=mine)
        given |= found.values
        origins |= dict.fromkeys(found.values, str(path))
        added += found.added
        rules += found.rules
        withheld, digest = found.withheld, found.digest
        if found.sources is not None:
            sources, base = found.sources, path.parent
            trusted, is_confined = mine, found.is_confined
    _override(given, origins, flags, environment)
    settings = Settings(
        values=_convert(given, origins),
        origins=origins,
        sources=sources,
        added=tuple(added),
        rules=rules,
        base=base,
        file=file,
        named=file if "config" in named else None,
        trusted=trusted,
        is_confined=is_confined,
        withheld=tuple(withheld),
        digest=digest if file else "",
        mcp_configs=tuple(named.get("mcp_config", ())),
        flags={name: value for name, value in flags.items() if value is not None},
        environment=given_environment,
    )
    _check_data_directory(str(settings.data_dir))
    return settings


def files(
    flags: Mapping[str, Any], directory: Path, environment: Mapping[str, str] | None = None
) -> list[Path]:
    """The user's configuration file and the project's, which may be missing."""
    user_file = Path(platformdirs.user_config_dir("repertory")) / "config.toml"
    named = named_files(flags, directory, environment).get("config")
    return [user_file, named or directory / PROJECT_FILE]


def named_files(
    flags: Mapping[str, Any], directory: Path, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The files that flags or the environment name, as flags with absolute paths.

    Args:
        flags: As for ``load``.
        directory: The directory that relative paths start from.
        environment: The environment; None takes this process's own.
    """
    environment = _environment(environment)
    found: dict[str, Any] = {}
    if named := flags.get("config") or environment.get("REPERTORY_CONFIG"):
        found["config"] = path_of(str(named), directory)
    if configs := flags.get("mcp_config") or [
        path for path in environment.get("REPERTORY_MCP_CONFIG", "").split(os.pathsep) if path
    ]:
        several = [configs] if isinstance(configs, str | os.PathLike) else configs
        found["mcp_config"] = [path_of(str(path), directory) for path in several]
    return found


def _environment(given: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if given is None else given


def _check_variables(environment: Mapping[str, str]) -> None:
    """Refuse the variables of renamed settings, which would have no effect."""
    for old, new in RENAMED.items():
        for before, now in zip(variables_of(old), variables_of(new), strict=True):
            if environment.get(before):
                raise ConfigurationError(
                    f"The variable {before} is called {now} since release 0.2; rename it."
                )


def _override(
    given: dict[str, Any],
    origins: dict[str, str],
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
) -> None:
    """Override the values of files with those of the environment and the command line."""
    for setting in SETTINGS.values():
        for variable in (setting.alias, setting.variable):
            if value := environment.get(variable):
                given[setting.field], origins[setting.field] = value, variable
        if (flag := flags.get(setting.field)) is not None:
            given[setting.field], origins[setting.field] = flag, setting.flag


def _store(
    given: Mapping[str, Any], flags: Mapping[str, Any], environment: Mapping[str, str]
) -> TrustStore:
    """The store of trusted files; a found file cannot change its data directory."""
    own = dict(given)
    _override(own, {}, flags, environment)
    return TrustStore(_data_directory(own.get("data_dir")) / TRUSTED)


def _check_data_directory(path: str) -> None:
    """Refuse a path that is invalid Unicode, which neither the store nor the models can use."""
    if not is_unicode(path):
        raise ConfigurationError(
            f"The data directory {path!r} has characters that cannot be shown; choose another "
            "with --data-dir or REPERTORY_DATA_DIR."
        )


def _data_directory(given: object) -> Path:
    if given:
        return expanded(str(given))
    return Path(platformdirs.user_data_dir("repertory"))


def _is_file(path: Path) -> bool:
    """Whether a file exists; also True for a link that may not be followed, which fails later."""
    try:
        return is_there(path) and path.is_file()
    except OSError:
        return True


def _convert(given: Mapping[str, Any], origins: Mapping[str, str]) -> Values:
    values: dict[str, Any] = {}
    for field, value in given.items():
        setting = SETTINGS[field]
        try:
            values[field] = setting.read(value, strict=False)
        except ValueError as error:
            origin = origins[field]
            if origin not in (setting.flag, setting.variable, setting.alias):
                origin = f"{origin}: {setting.key}"
            raise ConfigurationError(
                f"{origin} is {value!r}; it must be {setting.expected}."
            ) from error
    return Values(**values)
