"""A release has the same version everywhere, and its images install a matching lock."""

import ast
import json
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCKS = {
    "requirements.lock": ("team", "telemetry"),
    "requirements-gpu.lock": ("team", "telemetry", "torch"),
}
ENTRY = re.compile(
    r"^(\S[^\\\n]*?) \\\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)


def locked(name: str) -> list[Requirement]:
    """The packages of a lock."""
    text = (ROOT / "deploy" / name).read_text("utf-8")
    return [Requirement(entry) for entry, _ in ENTRY.findall(text)]


def pinned(name: str, python: str) -> dict[str, str]:
    """The versions that a lock installs in an image with a version of Python."""
    linux = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    where = {name: str(value) for name, value in default_environment().items()}
    where |= linux | {"platform_machine": "x86_64"}
    where |= {"python_version": python, "python_full_version": f"{python}.14"}
    found: dict[str, str] = {}
    for one in locked(name):
        if one.marker is None or one.marker.evaluate(where):
            assert one.name not in found
            found[one.name] = str(one.specifier).removeprefix("==")
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_of_a_lock_has_an_exact_version_and_hashes(name: str) -> None:
    """The file contains nothing else, in particular no URL of a package index."""
    text = (ROOT / "deploy" / name).read_text("utf-8")
    assert all(str(one.specifier).startswith("==") and not one.url for one in locked(name))
    rest = [line for line in ENTRY.sub("", text).splitlines() if not line.startswith("#")]
    assert rest == []
    assert "://" not in text
    assert "--index" not in text


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_satisfies_the_requirements_of_the_project(name: str, python: str) -> None:
    """Run `make lock` after a change of the dependencies."""
    about = PROJECT["project"]
    wanted = [*about["dependencies"], *PROJECT["dependency-groups"]["build"]]
    wanted += [one for extra in LOCKS[name] for one in about["optional-dependencies"][extra]]
    versions = pinned(name, python)
    for one in map(Requirement, wanted):
        version = versions.get(canonicalize_name(one.name))
        assert version, f"{one.name} is missing; run `make lock`"
        assert one.specifier.contains(version), f"{one} is {version}; run `make lock`"


def imported() -> set[str]:
    """The third-party packages that the product imports."""
    names: set[str] = set()
    files = [
        file for root in ("shared", "services", "workers") for file in (ROOT / root).rglob("*.py")
    ]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {one.name.partition(".")[0] for one in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(str(node.module).partition(".")[0])
    return {
        name
        for name in names
        if name not in sys.stdlib_module_names and not name.startswith("repertory")
    }


def test_every_imported_package_is_required() -> None:
    """A package that only another requirement installs may be missing after its next version."""
    about = PROJECT["project"]
    optional = about["optional-dependencies"]
    wanted = [
        *about["dependencies"],
        *(one for name in optional if name != "dev" for one in optional[name]),
    ]
    declared = {canonicalize_name(Requirement(one).name) for one in wanted}
    homes = packages_distributions()
    undeclared = {
        name
        for name in imported()
        if declared.isdisjoint(map(canonicalize_name, homes.get(name, [name])))
    }
    assert not undeclared


def test_both_locks_have_the_same_versions() -> None:
    """A worker with a GPU must write data that the query service can read."""
    usual, gpu = (pinned(name, "3.11") for name in LOCKS)
    assert {name: gpu.get(name) for name in usual} == usual
    assert "torch" in gpu
    assert "torch" not in usual


def test_the_build_requirements_are_locked() -> None:
    """The dependency group that the lock includes equals the build system's requirements."""
    assert PROJECT["dependency-groups"]["build"] == PROJECT["build-system"]["requires"]


def test_the_locked_engine_satisfies_the_required_version() -> None:
    """The images and a base installation must write compatible shards."""
    (edge,) = (
        one
        for one in map(Requirement, PROJECT["project"]["dependencies"])
        if one.name == "qdrant-edge-py"
    )
    for name in LOCKS:
        assert edge.specifier.contains(pinned(name, "3.11")["qdrant-edge-py"])


def test_the_version_is_the_same_everywhere() -> None:
    """Packages, plugins, HTTP API and newest changelog entry have the project's version."""
    version = PROJECT["project"]["version"]
    files = {
        "plugin/.claude-plugin/plugin.json": ("version",),
        "plugin/.cursor-plugin/plugin.json": ("version",),
        "plugin/gemini-extension.json": ("version",),
        "clients/openapi.json": ("info", "version"),
        "clients/typescript/package.json": ("version",),
        "clients/typescript/package-lock.json": ("version",),
    }
    for file, keys in files.items():
        found = json.loads((ROOT / file).read_text("utf-8"))
        for key in keys:
            found = found[key]
        assert found == version, file
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newest = re.findall(r"^## \[(\d[^\]]*)\] - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)[0]
    assert newest == version


def test_a_release_has_complete_metadata() -> None:
    """All fields that a package index shows are set, and no dependency is a URL."""
    about = PROJECT["project"]
    for field in ("description", "readme", "license", "authors", "keywords", "classifiers"):
        assert about[field], field
    assert "Typing :: Typed" in about["classifiers"]
    required = [*about["dependencies"], *about["optional-dependencies"]["all"]]
    assert not any(Requirement(one).url for one in required)
    (encoder,) = map(Requirement, about["optional-dependencies"]["offline"])
    weights = tomllib.loads((ROOT / "encoder" / "pyproject.toml").read_text("utf-8"))["project"]
    assert encoder.name == weights["name"]
    assert encoder.specifier.contains(weights["version"])
