"""Agent hosts, and the locations of their configuration files."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from repertory.agent_hosts.document import Syntax
from repertory.agent_hosts.edits import Value
from repertory.sources.mcp.server import OWN_NAME


class System(StrEnum):
    """An operating system."""

    LINUX = "linux"
    MACOS = "macos"
    WINDOWS = "windows"


class Scope(StrEnum):
    """Whether a configuration applies to all projects of the user or to one project."""

    USER = "user"
    PROJECT = "project"


class Machine(msgspec.Struct, frozen=True):
    """The machine on which hosts are configured.

    Attributes:
        system: The operating system.
        home: The user's home directory.
        project: The folder of the project to connect.
        environment: The environment variables, which may override folders.
    """

    system: System
    home: Path
    project: Path
    environment: Mapping[str, str]

    def folder(self, template: str) -> Path:
        """The path of a template such as ``{config}/goose``.

        ``{home}`` and ``{project}`` are the attributes, ``{xdg}`` is the configuration folder of
        the XDG specification, and ``{config}`` is the system's usual folder for settings.
        """
        xdg = self._named("XDG_CONFIG_HOME", ".config")
        config = {
            System.LINUX: xdg,
            System.MACOS: self.home / "Library/Application Support",
            System.WINDOWS: self._named("APPDATA", "AppData/Roaming"),
        }[self.system]
        return Path(template.format(home=self.home, project=self.project, xdg=xdg, config=config))

    def _named(self, variable: str, otherwise: str) -> Path:
        """The folder in a variable if its path is absolute, else the default in ``home``."""
        named = Path(self.environment.get(variable, ""))
        return named if named.is_absolute() else self.home / otherwise


class Place(msgspec.Struct, frozen=True):
    """The location of a host's configuration for one scope.

    Attributes:
        folder: The template of its folder, or one template per system.
        files: The possible file names; the first is the default if no file exists.
        variable: An environment variable that overrides the folder.
        directory: The value of ``--directory`` in the entry, for hosts that do not start servers in
            the project: a template of ``Machine.folder`` or a variable of the host. Empty if none.
    """

    folder: str | Mapping[System, str]
    files: tuple[str, ...]
    variable: str = ""
    directory: str = ""

    def file(self, machine: Machine) -> Path:
        """The path of the file on a machine. The file may be missing."""
        template = self.folder if isinstance(self.folder, str) else self.folder[machine.system]
        folder = Path(machine.environment.get(self.variable, "") or machine.folder(template))
        paths = [folder / name for name in self.files]
        return next((path for path in paths if os.path.lexists(path)), paths[0])


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """An agent host.

    Attributes:
        id: The name on the command line.
        title: The product name.
        syntax: The syntax of its configuration.
        servers: The top-level key of the MCP servers in the configuration.
        places: The locations of its configuration by scope.
        local: Builds the entry of a program from its command line.
        remote: Builds the entry of a URL from the URL and the ``Authorization`` header, which may
            be empty. None if the configuration of the host cannot name a URL.
        reference: The syntax of a reference to an environment variable, with ``%s`` for its name;
            empty if the host does not support references.
        programs: The possible names of its executable.
        traces: Templates of paths that exist if the host is installed.
        check: Tells the user how to check that the host uses the entry.
    """

    id: str
    title: str
    syntax: Syntax
    servers: str
    places: Mapping[Scope, Place]
    local: Callable[[list[str]], Value]
    remote: Callable[[str, str], Value] | None
    reference: str
    programs: tuple[str, ...]
    traces: tuple[str, ...]
    check: str

    @property
    def keys(self) -> tuple[str, str]:
        """The keys of Repertory's entry."""
        return (self.servers, OWN_NAME)

    def is_installed(self, machine: Machine) -> bool:
        """Whether its executable, or one of its files or folders, exists."""
        search = machine.environment.get("PATH")
        return any(os.path.lexists(machine.folder(trace)) for trace in self.traces) or any(
            shutil.which(program, path=search or os.defpath) for program in self.programs
        )


def this_machine(project: Path) -> Machine:
    """The machine that this process runs on."""
    systems = {"win32": System.WINDOWS, "darwin": System.MACOS}
    system = systems.get(sys.platform, System.LINUX)
    return Machine(system, Path.home(), project, os.environ)
