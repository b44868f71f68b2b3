"""The wheel is complete without the clone from which it was built."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A Python with the installed wheel and our dependencies, but not the clone."""
    built = tmp_path / "dist"
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run([*command, "--directory", str(built)], cwd=ROOT, capture_output=True, check=True)
    (wheel,) = built.glob("*.whl")
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    libraries = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    with ZipFile(wheel) as archive:
        archive.extractall(libraries)
    # `.pth` files in the added folder are not read, so the clone is not importable.
    (libraries / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return environment / "bin" / "python"


def test_a_wheel_searches_in_an_empty_home(program: Path, tmp_path: Path) -> None:
    """The wheel has its version and all packages, and a search finds an example."""
    project, home = tmp_path / "project", tmp_path / "home"
    shutil.copytree(ROOT / "examples", project)
    home.mkdir()
    settings = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "REPERTORY_DATA_DIR": str(tmp_path / "data"),
        "REPERTORY_SEARCH_MODEL": "repertory",
    }

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [program, *arguments],
            cwd=project,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    packages = ("repertory", *(f"repertory_{one}" for one in ("admin", "query", "watch", "worker")))
    lines = (f"import {one}; print({one}.__file__)" for one in (*packages, "repertory_eval"))
    files = run("-c", "\n".join(lines)).splitlines()
    assert all(file.startswith(str(tmp_path)) for file in files)
    version = run("-m", "repertory_admin", "--version").split()[1]
    assert f'\nversion = "{version}"\n' in (ROOT / "pyproject.toml").read_text("utf-8")
    found = run("-m", "repertory_admin", "search", "swap out credentials that leaked")
    assert "skills/rotating-api-keys" in found
