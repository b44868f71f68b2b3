"""What an agent host is, and where it keeps its configuration on a machine."""

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
    """Whose configuration a file is: the user's for all projects, or that of one project."""

    USER = "user"
    PROJECT = "project"


class Machine(msgspec.Struct, frozen=True):
    """Where folders are.

    Attributes:
        system: The operating system.
        home: The user's home directory.
        project: The project that is meant.
        environment: The variables that name other folders.
    """

    system: System
    home: Path
    project: Path
    environment: Mapping[str, str]

    def folder(self, template: str) -> Path:
        """The path of a template such as ``{config}/goose``.

        ``{home}`` and ``{project}`` are the folders above, ``{xdg}`` is that of the XDG
        specification, and ``{config}`` is where the system's programs keep their settings.
        """
        xdg = self._named("XDG_CONFIG_HOME", ".config")
        config = {
            System.LINUX: xdg,
            System.MACOS: self.home / "Library/Application Support",
            System.WINDOWS: self._named("APPDATA", "AppData/Roaming"),
        }[self.system]
        return Path(template.format(home=self.home, project=self.project, xdg=xdg, config=config))

    def _named(self, variable: str, otherwise: str) -> Path:
        """The folder of a variable with an absolute path, or one in the home directory."""
        named = Path(self.environment.get(variable, ""))
        return named if named.is_absolute() else self.home / otherwise


class Place(msgspec.Struct, frozen=True):
    """Where a host keeps the configuration of a scope.

    Attributes:
        folder: The template of its folder, or one for each system.
        files: The names that the file may have; the first one is used if no file is there.
        variable: A variable of the environment that names another folder.
        directory: The directory that the entry names, since the host starts its servers in no
            project: a template of ``Machine.folder``, or a variable of the host. Empty if none.
    """

    folder: str | Mapping[System, str]
    files: tuple[str, ...]
    variable: str = ""
    directory: str = ""

    def file(self, machine: Machine) -> Path:
        """The path of the file on a machine, which may be missing."""
        template = self.folder if isinstance(self.folder, str) else self.folder[machine.system]
        folder = Path(machine.environment.get(self.variable, "") or machine.folder(template))
        paths = [folder / name for name in self.files]
        return next((path for path in paths if os.path.lexists(path)), paths[0])


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """An agent host.

    Attributes:
        id: Its name on the command line.
        title: Its own name.
        syntax: The syntax of its configuration.
        servers: The key of its servers, in the top of the configuration.
        places: Its files by scope.
        local: Makes the entry of a program, given its words.
        remote: Makes the entry of a URL, given the value of the header ``Authorization``, which
            may be empty; None if the host reaches no URL by its configuration.
        reference: How a text of the configuration names a variable of the environment; empty if
            it cannot. ``%s`` is the name.
        programs: The names of its program.
        traces: Templates of paths that are there where it is installed.
        check: How to see that the host uses the entry.
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
        """The keys of our entry."""
        return (self.servers, OWN_NAME)

    def is_installed(self, machine: Machine) -> bool:
        """Whether its program or a file or folder of it is there."""
        search = machine.environment.get("PATH")
        return any(os.path.lexists(machine.folder(trace)) for trace in self.traces) or any(
            shutil.which(program, path=search or os.defpath) for program in self.programs
        )


def this_machine(project: Path) -> Machine:
    """The machine that this process runs on."""
    systems = {"win32": System.WINDOWS, "darwin": System.MACOS}
    system = systems.get(sys.platform, System.LINUX)
    return Machine(system, Path.home(), project, os.environ)
