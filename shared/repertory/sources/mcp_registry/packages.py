"""The command lines that run packages, as lists of arguments with a pinned version."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from repertory.sources.mcp_registry.document import VERSION, Package

_NPM = re.compile(r"(?:@[a-z0-9~][a-z0-9._~-]{0,100}/)?[a-z0-9~][a-z0-9._~-]{0,200}", re.IGNORECASE)
_PYPI = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,200}[A-Za-z0-9])?")
_NUGET = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,200})")
_IMAGE = re.compile(
    r"(?P<name>[a-z0-9](?:[a-z0-9._-]{0,100})(?::[0-9]{1,5}(?=/))?"
    r"(?:/[a-z0-9](?:[a-z0-9._-]{0,100})){0,8})"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
# The public indexes, which the commands use. Another index may have another package by that name.
_INDEXES = {
    "npm": ("https://registry.npmjs.org",),
    "pypi": ("https://pypi.org",),
    "nuget": ("https://api.nuget.org", "https://api.nuget.org/v3/index.json"),
    "oci": ("https://docker.io",),
}
# The options of a runtime that a document may use, and whether each has a value. Other options may
# select another package, another index or a shell command.
_OPTIONS = {
    "npm": {"-y": False, "--yes": False, "-q": False, "--quiet": False, "--loglevel": True},
    "pypi": {"-q": False, "--quiet": False, "--no-cache": False, "-p": True, "--python": True},
    "nuget": {"-y": False, "--yes": False},
}
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,50}")
# Docker's options without a value or with one after "=", and those followed by a value.
_ALONE = re.compile(
    r"-[itqdP]+|--(?:rm|init|interactive|tty|quiet|detach|read-only|privileged|publish-all)"
    r"|--[a-z-]{1,50}=.{0,5000}",
)
_WITH_VALUE = re.compile(
    r"-[acehlmpuvw]|--(?:add-host|cap-add|cap-drop|cpus|device|dns|entrypoint|env|env-file|expose"
    r"|gpus|group-add|hostname|ipc|label|log-driver|log-opt|memory|mount|name|net|network|pid"
    r"|platform|publish|pull|restart|runtime|security-opt|shm-size|sysctl|tmpfs|ulimit|user|userns"
    r"|volume|volumes-from|workdir)"
)


class Command(NamedTuple):
    """The parts of a command line around the document's own arguments."""

    program: str
    before: tuple[str, ...]  # the runtime's arguments
    package: tuple[str, ...]  # after these
    note: str = ""


def command_of(package: Package, names: tuple[str, ...]) -> Command:
    """The command that runs a package.

    Args:
        package: The package.
        names: The environment variables to pass to a container.

    Raises:
        ValueError: The package cannot be pinned, or its name is invalid.
    """
    kind, identifier = package.registry_type, package.identifier
    index = package.registry_base_url.rstrip("/")
    if kind in _INDEXES and index and index not in _INDEXES[kind] and not _names_host(package):
        raise ValueError(f"its package is at {index[:100]}, and not in the public index")
    if kind == "npm":
        return Command("npx", ("-y",), (f"{_checked(_NPM, package)}@{_version(package)}",))
    if kind == "pypi":
        return Command("uvx", (), (f"{_checked(_PYPI, package)}@{_version(package)}",))
    if kind == "nuget":
        pinned = f"{_checked(_NUGET, package)}@{_version(package)}"
        return Command("dnx", (), (pinned, "--yes", "--"))
    if kind == "oci":
        image, note = _image(package)
        given = tuple(part for name in names for part in ("-e", name))
        return Command("docker", ("run", "-i", "--rm", *given), (image,), note)
    raise ValueError(f"its package {identifier!r} is of the unknown type {kind!r}")


def check_runtime(kind: str, arguments: Sequence[str]) -> None:
    """Reject arguments of a runtime that may make it run something other than the package.

    Raises:
        ValueError: An argument is not allowed.
    """
    options, awaited = _OPTIONS.get(kind), ""
    for one in arguments:
        if awaited:
            is_fit = options is None or bool(_VALUE.fullmatch(one))
            awaited = ""
        elif options is None:  # of a container
            awaited = one if _WITH_VALUE.fullmatch(one) else ""
            is_fit = bool(awaited or _ALONE.fullmatch(one))
        else:
            awaited = one if options.get(one) else ""
            is_fit = one in options
        if not is_fit:
            raise ValueError(
                f"its runtime has the argument {one[:100]!r}, which may run something else"
            )
    if awaited:
        raise ValueError(f"the option {awaited[:100]!r} of its runtime has no value")


def _names_host(package: Package) -> bool:
    """Whether the name of an image starts with the host of its registry."""
    host = package.registry_base_url.rpartition("://")[2].strip("/")
    return package.registry_type == "oci" and package.identifier.startswith(f"{host}/")


def _checked(form: re.Pattern[str], package: Package) -> str:
    if not form.fullmatch(package.identifier):
        raise ValueError(
            f"{package.identifier[:100]!r} is not the name of a package of type "
            f"{package.registry_type}"
        )
    return package.identifier


def _version(package: Package) -> str:
    version = package.version
    if not VERSION.fullmatch(version) or not any(map(str.isdigit, version)):
        raise ValueError(f"its package has no version to pin ({version[:100]!r})")
    return version


def _image(package: Package) -> tuple[str, str]:
    """The reference of an image with a tag or a digest, and a note for the user."""
    identifier = package.identifier.removeprefix("https://")
    found = _IMAGE.fullmatch(identifier)
    if not found:
        raise ValueError(f"{identifier[:100]!r} is not an image reference")
    if found["digest"]:
        return identifier, ""
    if not found["tag"]:
        identifier = f"{identifier}:{_version(package)}"
    if (found["tag"] or package.version) == "latest":
        raise ValueError("its image has the tag `latest`, which names no version")
    return identifier, f"The image {identifier} has no digest, so its content can change."
