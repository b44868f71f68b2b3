"""The code, commands and outputs in README, docs and examples are correct."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from repertory.catalogue.item import Item
from repertory.settings import load
from repertory.sources.configured import build_catalogue
from repertory_admin.app import COMMANDS
from tests.support.builders import write
from tests.support.command_line import Cli
from tests.support.server_process import Serve

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
TEXT = "\n".join((ROOT / page).read_text("utf-8") for page in PAGES)


def blocks(language: str) -> list[str]:
    """All code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_the_readme_is_short() -> None:
    """The README has at most 250 lines."""
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 250


@pytest.mark.parametrize(
    "code",
    re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text("utf-8"), re.DOTALL),
    ids=["a session", "an index of one's own"],
)
@pytest.mark.usefixtures("own_home")
def test_the_python_code_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python code of the page finds the only skill of a project."""
    skill = tmp_path / "skills" / "keys" / "SKILL.md"
    write(skill, "---\nname: keys\ndescription: Rotate API keys without downtime\n---\n")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(r"(project|skills)/keys", done.stdout)


def test_every_curl_line_works(user: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each `curl` line works unchanged on a server of the examples that allows calls."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # as in an activated environment
    monkeypatch.setitem(user.environment, "PATH", path)
    lines = re.findall(r"^curl --oauth2-bearer .*7700.*$", TEXT, re.MULTILINE)
    folder = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", folder)
    arguments = ("--config", "repertory.toml", "--allow-calls")
    with Serve(user, folder, tmp_path / "log", *arguments) as server:
        server.wait_for_sources()
        for line in lines:
            command = line.replace("http://127.0.0.1:7700", server.url).replace("> tools.ts", "")
            done = subprocess.run(
                ["bash", "-c", command.replace("curl ", "curl --silent --fail-with-body ")],
                env=user.environment | {"TOKEN": server.token},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{line}: {done.stdout}"
            assert done.stdout
    assert len(lines) >= 8


FIGURE = re.compile(r"\d\.\d+")


def consoles() -> list[tuple[str, str]]:
    """The commands over the examples whose whole output the pages show, with that output."""
    shown = "\n".join(one for one in blocks("console") if "\n…\n" not in one)
    return [(command, output.strip()) for command, output in re.findall(r"\$ (.*)\n([^$]*)", shown)]


def test_the_outputs_on_the_pages_are_correct(own: Cli, tmp_path: Path) -> None:
    """Commands print what the pages show, except for rounding of figures."""
    examples = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", examples)
    (policies,) = (one for one in blocks("toml") if one.startswith("[[policy]]"))
    with (examples / "repertory.toml").open("a") as file:
        file.write(policies)
    own.environment |= {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # as if activated
        "REPERTORY_CONFIG": "repertory.toml",
        "REPERTORY_SEARCH_MODEL": "repertory",
    }
    done = own.run(examples, "index")
    assert done.returncode == 0, done.stderr
    for command, output in consoles():
        program, *arguments = shlex.split(command.replace("examples/", ""))
        printed = own.run(examples, *arguments).stdout.strip()
        assert FIGURE.split(printed) == FIGURE.split(output), command
        figures = [[float(one) for one in FIGURE.findall(text)] for text in (printed, output)]
        assert figures[0] == pytest.approx(figures[1], abs=0.011), command
        assert program == "repertory"
    assert len(consoles()) == 5


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    """The configuration on the pages is accepted unchanged."""
    (tmp_path / "repertory.toml").write_text(blocks("toml")[0])
    settings = load({}, tmp_path, {})
    assert (settings.values.limit, len(settings.sources)) == (5, 2)


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    """``make`` refuses an old Python, such as the python3 of macOS, with a clear message."""
    if not (make := shutil.which("make")):
        pytest.skip("There is no make here.")
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    old = f"{sys.executable} -c 'import sys; sys.version_info = (3, 9); exec(sys.argv[2])'"
    # Variables of an outer ``make`` would make this one print directories.
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    for target in (".venv/installed", ".demo/venv/installed"):
        done = subprocess.run(
            [make, target, f"PYTHON={old}"],
            cwd=tmp_path,
            env=outside,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert f"make PYTHON=python3.12 {target}" in done.stderr
        assert done.stdout == ""


def test_every_command_exists() -> None:
    """Every command that the pages name exists."""
    named = set(re.findall(r"^repertory (\w+)", TEXT, re.MULTILINE))
    named |= set(re.findall(r"`repertory (\w+)", TEXT))
    assert {"search", "index", "eval", "doctor"} <= named
    assert named <= COMMANDS.keys()


def example_items() -> dict[str, Item]:
    """Every example item that is read from a file, by its id."""
    settings = load({"config": str(ROOT / "examples" / "repertory.toml")}, ROOT, {})
    entries = [entry for entry in settings.sources if entry["type"] != "mcp"]
    items: dict[str, Item] = {}
    for source in build_catalogue(entries, settings.base).sources:
        scan = source.scan()
        assert scan.problems == []
        items |= {item.id: item for item in scan.items}
    return items


def test_the_examples_labelled_set_matches_the_examples() -> None:
    """`eval` measures exactly the items of the catalogue."""
    items = example_items()
    assert len(items) >= 30
    lines = (ROOT / "examples" / "eval" / "corpus.jsonl").read_text("utf-8").splitlines()
    of_files = [row for line in lines if (row := json.loads(line)).get("server") != "notes"]
    assert of_files
    for row in of_files:
        item = items[row["id"]]
        assert (item.name, item.description) == (row["name"], row["description"])
