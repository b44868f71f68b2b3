"""The systemd units are accepted by systemd and agree with the compose file and the code."""

import re
import shutil
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import pytest
import yaml

from repertory.values import SETTINGS

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "deploy" / "systemd"
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
OURS = {
    "api": "query",
    "watch": "watch",
    "worker@": "worker",
}  # our units and their services in compose
PROGRAM = "/opt/repertory/bin/repertory"
MAX_EXPOSURE = 25  # of 100, as `systemd-analyze security` judges

each_of_ours = pytest.mark.parametrize("name", OURS)


def read(name: str) -> str:
    """The text of a unit."""
    return (UNITS / name).read_text("utf-8")


def service(name: str) -> dict[str, str]:
    """The keys of the section Service of a unit, with their last values."""
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign] # names have capitals
    parser.read_string(read(f"repertory-{name}.service"))
    return dict(parser["Service"])


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the units, which run a program that exists here."""
    for unit in UNITS.glob("*.*"):
        (tmp_path / unit.name).write_text(unit.read_text("utf-8").replace(PROGRAM, "/bin/true"))
    return tmp_path


def analyze(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The result of `systemd-analyze`, which needs no running systemd."""
    program = shutil.which("systemd-analyze")
    if not program:
        pytest.skip("There is no systemd here.")
    command = [program, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_systemd_accepts_the_units_without_warnings(installed: Path) -> None:
    """Only lines about our own units count."""
    (installed / "repertory-worker@1.service").write_text(read("repertory-worker@.service"))
    units = ["repertory.target", *(f"repertory-{name}.service" for name in ("api", "watch"))]
    done = analyze("verify", *(f"./{unit}" for unit in units), folder=installed)
    assert "No such file or directory" not in done.stdout
    ours = [line for line in done.stderr.splitlines() if "repertory" in line]
    assert (done.returncode, ours) == (0, [])


@each_of_ours
def test_a_unit_is_confined(name: str, installed: Path) -> None:
    """`systemd-analyze security` gives an exposure within the limit."""
    unit = f"./repertory-{name}.service"
    words = ["--offline=true", "--no-pager", f"--threshold={MAX_EXPOSURE}", unit]
    if "offline" not in analyze("--help", folder=installed).stdout:
        pytest.skip("This systemd cannot judge files.")
    done = analyze("security", *words, folder=installed)
    assert done.returncode == 0, done.stdout


@each_of_ours
def test_a_unit_runs_an_existing_command_within_the_limits_of_compose(name: str) -> None:
    """After an exit for a wrong configuration, systemd does not restart it."""
    unit, compose = service(name), COMPOSE[OURS[name]]
    program, command = unit["ExecStart"].split()
    assert program == PROGRAM
    done = subprocess.run(
        [sys.executable, "-m", "repertory_admin", command, "--help"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    limits = compose["deploy"]["resources"]["limits"]
    assert f":-{unit['MemoryMax'].lower()}}}" in limits["memory"]  # the default of its variable
    assert int(unit["TasksMax"]) == limits["pids"]
    assert unit["RestartPreventExitStatus"] == "2"
    if period := compose.get("stop_grace_period"):
        assert unit["TimeoutStopSec"] + "s" == period


def test_the_target_starts_each_part() -> None:
    """It starts one worker; more workers are instances of the same unit."""
    [wanted] = re.findall(r"^Wants=(.*)$", read("repertory.target"), re.MULTILINE)
    assert {re.sub(r"@\d", "@", one) for one in wanted.split()} == {
        f"repertory-{name}.service" for name in OURS
    }
    for name in OURS:
        assert "PartOf=repertory.target" in read(f"repertory-{name}.service")


def test_every_variable_is_a_setting() -> None:
    """This covers the units and the example of their environment."""
    known = {setting.variable for setting in SETTINGS.values()}
    texts = [path.read_text("utf-8") for path in UNITS.rglob("*.*")]
    used = {name for text in texts for name in re.findall(r"\bREPERTORY_\w+", text)}
    assert {"REPERTORY_QDRANT_URL", "REPERTORY_REDIS_URL", "REPERTORY_DATA_DIR"} <= used <= known
