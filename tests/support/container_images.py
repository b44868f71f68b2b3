"""The images that tests of the compose file need; built locally if they cannot be pulled."""

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

from tests.support.container_engine import Engine

ROOT = Path(__file__).parents[2]
DEBIAN = "repertory-test-debian"
PYTHON = "repertory-test-python"
QDRANT = "repertory-test-qdrant"

_SUITE = "bookworm"
_PACKAGES = ("python3", "python3-venv", "python3-pip", "ca-certificates", "redis-server")
_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
_PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout")
_NEEDED = {"qdrant-edge-py", "msgspec"}  # dependencies of the stand-in for Qdrant


class NoImageError(Exception):
    """An image can neither be pulled nor built; the message gives the reason."""


def images(engine: Engine) -> dict[str, str]:
    """The variables of the compose file that name images, with available images as values.

    An image built from Debian packages replaces unavailable images of Python and Redis; our
    stand-in replaces an unavailable image of Qdrant.

    Raises:
        NoImageError: An image is missing and cannot be built.
    """
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
    named = {
        "PYTHON_IMAGE": services["query"]["build"]["args"]["PYTHON_IMAGE"],
        "QDRANT_IMAGE": services["qdrant"]["image"],
        "REDIS_IMAGE": services["redis"]["image"],
    }
    official = {name: _default(image) for name, image in named.items()}
    found = {name: image for name, image in official.items() if engine.can_have(image)}
    if official.keys() - found.keys() and not engine.has(DEBIAN):
        _make_debian(engine)
    _make_python(engine, found.get("PYTHON_IMAGE", DEBIAN))
    if "QDRANT_IMAGE" not in found:
        _make_qdrant(engine)
    return {"QDRANT_IMAGE": QDRANT, "REDIS_IMAGE": DEBIAN} | found | {"PYTHON_IMAGE": PYTHON}


def _default(image: str) -> str:
    """Replace the variables in an image name of the compose file by their defaults."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", image)


def _make_debian(engine: Engine) -> None:
    """Build an image from Debian packages."""
    if not shutil.which("mmdebstrap"):
        message = "The official images cannot be pulled, and mmdebstrap, which makes a base image, "
        raise NoImageError(message + "is not installed.")
    with tempfile.TemporaryDirectory(prefix="repertory-images-") as made:
        root = Path(made) / "root.tar"
        command = ["mmdebstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", _SUITE]
        done = subprocess.run([*command, root], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoImageError(f"mmdebstrap failed: {done.stderr[-2_000:]}")
        engine.run("import", root, DEBIAN)


def _make_python(engine: Engine, python: str) -> None:
    """Build a base image with this machine's pip settings and certificates."""
    settings = {name: value for name in _PIP_SETTINGS if (value := _pip_setting(name))}
    with tempfile.TemporaryDirectory(prefix="repertory-images-") as made:
        folder = Path(made)
        lines = [f"FROM {python}", "COPY pip.conf /etc/pip.conf"]
        if trusted := ssl.get_default_verify_paths().cafile:
            shutil.copy(trusted, folder / "certificates")
            lines.append(f"COPY certificates {_CERTIFICATES}")
            settings["cert"] = _CERTIFICATES
        written = [f"{name} = {value}\n" for name, value in settings.items()]
        (folder / "pip.conf").write_text("".join(["[global]\n", *written]), "utf-8")
        _build(engine, folder, PYTHON, lines)


def _pip_setting(name: str) -> str:
    """The value of a pip setting, from the environment or pip's configuration; empty if unset."""
    if found := os.environ.get(f"PIP_{name.upper().replace('-', '_')}"):
        return found
    command = [sys.executable, "-m", "pip", "config", "get", f"global.{name}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return found.strip().replace("\n", "\n    ")  # continuation lines must be indented


def _make_qdrant(engine: Engine) -> None:
    """Build an image of our stand-in for Qdrant."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [str(one) for one in map(Requirement, project["dependencies"]) if one.name in _NEEDED]
    with tempfile.TemporaryDirectory(prefix="repertory-images-") as made:
        folder = Path(made)
        for file in (ROOT / "tests" / "support").glob("qdrant_*.py"):
            shutil.copy(file, folder)
        words = ["/opt/qdrant/bin/python", "-m", "tests.support.qdrant_server"]
        words += ["--host", "0.0.0.0", "--port", "6333", "--directory", "/qdrant/storage"]
        lines = [
            f"FROM {PYTHON}",
            "RUN python3 -m venv /opt/qdrant",
            f"RUN /opt/qdrant/bin/pip install --no-cache-dir {' '.join(map(repr, needed))}",
            "RUN install --directory --owner=1000 --group=1000 /qdrant /qdrant/storage",
            "COPY *.py /opt/qdrant/tests/support/",
            "WORKDIR /opt/qdrant",
            f"CMD {json.dumps(words)}",
        ]
        _build(engine, folder, QDRANT, lines)


def _build(engine: Engine, folder: Path, tag: str, lines: list[str]) -> None:
    (folder / "Dockerfile").write_text("\n".join([*lines, ""]), "utf-8")
    engine.run("build", "--quiet", "--tag", tag, folder)
