"""Searches without a server use the current files, with notices about missing content."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write
from tests.support.command_line import COMMAND, Cli, add_skill
from tests.support.mcp_servers import WEATHER
from tests.support.waiting import until

# A server that never answers and ends with its client.
HANGING = {"command": "sh", "args": ["-c", "cat > /dev/null"]}


def skill(name: str, description: str) -> str:
    """The text of a skill."""
    return f"---\nname: {name}\ndescription: {description}\n---\n"


def search(cli: Cli, folder: Path, *arguments: str) -> Any:  # noqa: ANN401 - JSON
    """The answer to a search, repeated until all changes are searchable on a slow machine."""

    def answer() -> Any:  # noqa: ANN401 - JSON
        found = cli.json(folder, "search", *arguments)
        return None if any("not searchable yet" in one for one in found["notices"]) else found

    return until(answer)


def ids(cli: Cli, folder: Path, *arguments: str) -> list[str]:
    """The ids that a search finds."""
    return [hit["toolId"] for hit in search(cli, folder, *arguments)["results"]]


def write_servers(folder: Path, **servers: object) -> Path:
    """Write the MCP configuration of a project."""
    file = folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return file


def test_a_search_follows_the_files(cli: Cli, project: Path) -> None:
    """The next search reflects deleted, new and edited skills without `repertory index`."""
    assert ids(cli, project, "bake bread")[0] == "project/bread-baking"

    shutil.rmtree(project / "skills" / "bread-baking")
    add_skill(project, "knots", skill("knots", "Tie a bowline."))
    add_skill(project, "steering", skill("steering", "Sail a dinghy upwind."))

    assert "project/bread-baking" not in ids(cli, project, "bake bread", "--threshold", "0")
    assert ids(cli, project, "tie a bowline")[0] == "project/knots"
    assert ids(cli, project, "sail a dinghy")[0] == "project/steering"
    listed = [item["id"] for item in cli.json(project, "items", "list", "--kind", "skill")]
    assert listed == ["project/knots", "project/release-notes", "project/steering"]


def test_an_ascii_locale_hides_no_files(cli: Cli, project: Path) -> None:
    """Under an ASCII locale, files with other characters in their names are found, too."""
    file = project / "skills" / "größe-メモ" / "SKILL.md"
    write(file, skill("größe-メモ", "Tie a bowline."))
    assert ids(cli, project, "größe メモ") == ["project/größe-メモ"]

    # PYTHONPATH makes `cli.run` start a new interpreter.
    path = str(project)
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONPATH": path}
    answer = cli.run(project, "search", "größe メモ", "--output", "json", **ascii_only)
    assert [hit["toolId"] for hit in json.loads(answer.stdout)["results"]] == ["project/größe-メモ"]
    assert ids(cli, project, "größe メモ") == ["project/größe-メモ"]


def test_a_search_follows_new_and_deleted_folders(cli: Cli, project: Path) -> None:
    """A new or deleted folder of skills adds or removes its source."""
    cli.run(project, "index")
    other = project / ".claude" / "skills" / "knots" / "SKILL.md"
    write(other, skill("knots", "Tie a bowline."))

    assert ids(cli, project, "tie a bowline") == ["project-claude/knots"]
    shutil.rmtree(project / ".claude")
    assert ids(cli, project, "tie a bowline") == []
    shutil.rmtree(project / "skills")
    assert cli.json(project, "items", "list", "--kind", "skill") == []


def test_the_last_skill_of_a_folder_is_not_found_when_its_file_is_gone(
    own: Cli, tmp_path: Path
) -> None:
    """The only skill of a folder is not shown any more after its file was deleted."""
    folder = tmp_path / "one"
    file = add_skill(folder, "kube-debug", skill("kube-debug", "Why a pod crashes."))
    assert ids(own, folder, "pod crash") == ["project/kube-debug"]

    shutil.rmtree(file.parent)

    assert ids(own, folder, "pod crash") == []
    assert own.json(folder, "items", "list") == []
    assert own.run(folder, "items", "show", "project/kube-debug").returncode == 2
    assert own.run(folder, "explain", "pod", "crash", "project/kube-debug").returncode == 2


def test_the_skills_of_a_suddenly_empty_folder_are_found(own: Cli, tmp_path: Path) -> None:
    """If a folder loses several skills at once, they are kept, as it may be unmounted."""
    folder = tmp_path / "one"
    add_skill(folder, "kube-debug", skill("kube-debug", "Why a pod crashes."))
    add_skill(folder, "knots", skill("knots", "Tie a bowline."))
    (folder / "repertory.toml").write_text(
        '[[sources]]\ntype = "skills"\npath = "skills"\nname = "team"\n', "utf-8"
    )
    assert ids(own, folder, "pod crash") == ["team/kube-debug"]

    (folder / "skills").rename(tmp_path / "away")
    (folder / "skills").mkdir()

    found = search(own, folder, "pod crash")
    assert [hit["toolId"] for hit in found["results"]] == ["team/kube-debug"]
    assert "suddenly empty; its items are kept" in " ".join(found["notices"])
    assert len(own.json(folder, "items", "list")) == 2
    assert own.run(folder, "items", "show", "team/knots").returncode == 0
    (tmp_path / "away" / "knots").rename(folder / "skills" / "knots")
    assert ids(own, folder, "pod crash") == []


def test_a_search_follows_the_configuration(cli: Cli, project: Path) -> None:
    """The next search uses new policies and sources of repertory.toml."""
    cli.run(project, "index")
    config = project / "repertory.toml"
    source = '[[sources]]\ntype = "skills"\npath = "skills"\nname = "team"\n'
    config.write_text(source, "utf-8")
    assert ids(cli, project, "bake bread")[0] == "team/bread-baking"

    config.write_text(
        source + '[[policy]]\nitem = "release-notes"\npin = ["bake bread"]\n', "utf-8"
    )
    assert cli.run(project, "config", "trust", "repertory.toml").returncode == 0
    assert ids(cli, project, "bake bread")[0] == "team/release-notes"


def test_a_first_search_starts_no_server(own: Cli, project: Path) -> None:
    """The first search finds files and starts no MCP server; a notice names the server."""
    marker = project / "STARTED"
    starting = {"command": "sh", "args": ["-c", f"touch {marker}; sleep 600"]}
    config = write_servers(project, slow=starting)

    first = own.run(project, "search", "bake bread", "--mcp-config", config)
    again = own.json(project, "search", "bake bread", "--mcp-config", str(config))

    assert "bread-baking" in first.stdout
    notice = (
        "The tools of 1 MCP server have not been listed yet: slow; run `repertory index "
        f"--mcp-config {config}`."
    )
    assert notice in first.stderr
    assert again["notices"] == [notice]
    assert not marker.exists()


def test_a_search_uses_the_last_known_tools_and_says_their_age(cli: Cli, project: Path) -> None:
    """A search uses the stored tools with current policies, and a notice says their age."""
    config = write_servers(project, weather=WEATHER)
    named = ("--mcp-config", str(config))
    assert cli.run(project, "index", *named).returncode == 0
    write_servers(project, weather={"command": "/does/not/exist"})
    add_skill(project, "knots", skill("knots", "Tie a bowline."))
    (project / "repertory.toml").write_text(
        '[[policy]]\nitem = "weather__*"\npin = ["tie a bowline"]\n', "utf-8"
    )
    assert cli.run(project, "config", "trust", "repertory.toml").returncode == 0

    found = ids(cli, project, "tie a bowline", *named)
    old = cli.json(project, "search", "bowline", "--tools-max-age", "0", *named)

    assert found[0].startswith("weather__")
    assert "project/knots" in found
    [notice] = old["notices"]
    age = r"(just now|\d+ \w+ ago)"
    command = re.escape(f"repertory index --mcp-config {config}")
    assert re.fullmatch(rf"The tools of weather were last listed {age}; run `{command}`.", notice)


def test_another_spelling_of_the_model_uses_the_same_tools(own: Cli, project: Path) -> None:
    """A search that names the default model uses the tools that `config trust` indexed."""
    config = write_servers(project, weather=WEATHER)
    assert own.run(project, "config", "trust", str(config)).returncode == 0

    found = own.json(project, "search", "weather forecast", "--model", "repertory")

    assert found["results"][0]["toolId"] == "weather__forecast"
    assert found["notices"] == [
        "The tools of weather were listed at an unknown time; run `repertory index`."
    ]


def test_going_back_to_a_configuration_keeps_its_tools(own: Cli, project: Path) -> None:
    """A configuration without the server was searched in between, so its report lacks it."""
    write_servers(project, weather=WEATHER)
    assert own.run(project, "config", "trust", ".mcp.json").returncode == 0
    other = project / "repertory.toml"
    other.write_text('[[sources]]\ntype = "documents"\npath = "."\n', "utf-8")
    assert "weather__forecast" not in ids(own, project, "weather forecast")
    other.unlink()

    for _ in range(2):
        found = own.json(project, "search", "weather forecast")
        assert found["results"][0]["toolId"] == "weather__forecast"
        assert found["notices"] == [
            "The tools of weather were listed at an unknown time; run `repertory index`."
        ]


def test_a_hanging_server_is_listed_and_the_others_are_indexed(own: Cli, project: Path) -> None:
    """`index` indexes files and other servers, and a notice names the hanging server."""
    config = write_servers(project, hanging=HANGING, weather=WEATHER)

    done = own.run(project, "index", "--mcp-config", config, "--mcp-timeout", "8")
    answer = own.json(project, "search", "weather forecast", "--mcp-config", str(config))

    assert done.returncode == 3
    assert "9 items of 5 sources" in done.stdout
    assert answer["results"][0]["toolId"] == "weather__forecast"
    [notice] = answer["notices"]
    assert notice.startswith("The source hanging could not be read: ")


def test_trusting_a_configuration_indexes_its_tools(cli: Cli, project: Path) -> None:
    """`config trust` lists the indexed tools, and the next search finds them."""
    config = write_servers(project, weather=WEATHER)
    first = cli.json(project, "search", "bake bread")

    trusted = cli.run(project, "config", "trust", ".mcp.json")
    answer = cli.json(project, "search", "weather forecast")

    [notice] = first["notices"]
    assert notice.startswith("MCP servers await your trust: weather. ")
    assert f"repertory config trust {config}" in notice
    assert trusted.returncode == 0
    assert "weather: 2 tools indexed." in trusted.stdout
    assert answer["results"][0]["toolId"] == "weather__forecast"
    assert answer["notices"] == []


def test_a_server_that_is_trusted_and_fails_is_named(cli: Cli, project: Path) -> None:
    """`config trust` of a broken server is exit code 3; the next search names the server."""
    write_servers(project, broken={"command": "/does/not/exist"})

    trusted = cli.run(project, "config", "trust", ".mcp.json")
    answer = cli.json(project, "search", "bake bread")

    assert trusted.returncode == 3
    assert "broken: " in trusted.stdout
    [notice] = answer["notices"]
    assert notice.startswith("The source broken could not be read: ")


def test_a_named_configuration_causes_no_warnings(cli: Cli, project: Path) -> None:
    """A configuration named by option is run without warnings about other files."""
    config = write_servers(project, weather=WEATHER)
    (project / ".cursor").mkdir()
    shutil.copy(config, project / ".cursor" / "mcp.json")

    done = cli.run(project, "index", "--mcp-config", ".mcp.json")
    searched = cli.run(project, "search", "weather forecast", "--mcp-config", ".mcp.json")

    assert done.returncode == 0
    for text in ("found but not run", "not trusted yet", "several files", "await your trust"):
        assert text not in done.stdout + done.stderr + searched.stderr


def test_an_empty_catalogue_is_reported(own: Cli, tmp_path: Path) -> None:
    """The answer says that nothing is indexed, instead of suggesting other words."""
    folder = tmp_path / "empty"
    folder.mkdir()

    done = own.run(folder, "search", "anything")

    assert done.returncode == 1
    assert done.stdout.startswith("Nothing to search yet: ")
    assert "`repertory doctor`" in done.stdout
    assert "Try other words" not in done.stdout


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--server", "nope", "There is no server 'nope'; available: files."),
        ("--source", "projekt", "There is no source 'projekt'; available: project, "),
        ("--tag", "read", "There is no tag 'read'; available: read-only, destructive."),
    ],
)
def test_an_unknown_filter_value_is_named(
    cli: Cli, indexed: Path, option: str, value: str, message: str
) -> None:
    """An unknown value is exit code 2, with the known values, the closest first."""
    for command in (["search", "file"], ["explain", "file", "files__read_file"], ["items", "list"]):
        done = cli.run(indexed, *command, option, value)

        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr


def test_an_unknown_model_degrades_the_search_and_leaves_no_index(own: Cli, project: Path) -> None:
    """A search falls back to keywords with the reason of `index`, and stores no index."""
    indexing = own.run(project, "index", "--model", "foo/bar")
    searching = own.run(project, "search", "bake bread", "--model", "foo/bar")

    assert (indexing.returncode, searching.returncode) == (4, 0)
    assert "bread-baking" in searching.stdout
    assert "degraded" in searching.stderr
    assert indexing.stderr.removeprefix("repertory: ").strip() in searching.stderr
    data = Path(own.environment["REPERTORY_DATA_DIR"])
    assert not list(data.glob("collections/*"))


def test_a_substituted_model_is_announced_once(own: Cli, project: Path) -> None:
    """Only the first run says, in a short line, that an installed model is used."""
    first, second = own.run(project, "index"), own.run(project, "index")
    words = "is used instead of"

    [line] = [line for line in first.stderr.splitlines() if words in line]
    assert len(line) <= 160
    assert line.endswith("because HF_HUB_OFFLINE is set.")
    assert words not in second.stdout + second.stderr


def test_a_terminal_shows_progress_at_once(own: Cli, project: Path) -> None:
    """The spinner is shown before the first progress bar, whose library is slow to import."""
    code, written = own.in_terminal(project, "search", "bake bread")

    assert code == 0
    assert written.index("Searching") < written.index("Reading sources")


@pytest.mark.parametrize("is_first", [True, False])
def test_ready_sources_are_searchable_while_a_server_hangs(
    own: Cli, project: Path, is_first: bool
) -> None:
    """While `index` waits for a server, other commands find files and the other server's tools.

    They also index a new file, so the waiting command does not hold the index.
    """
    config = write_servers(project, hanging=HANGING, weather=WEATHER)
    named = ("--mcp-config", str(config))
    if not is_first:
        assert own.run(project, "search", "bake bread", *named).returncode == 0
    indexing = subprocess.Popen(
        [*COMMAND, "index", *named, "--mcp-timeout", "600"],
        cwd=project,
        env=own.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def has_tools() -> bool:
        done = own.run(project, "search", "weather forecast", *named)
        return "weather__forecast" in done.stdout

    try:
        until(has_tools, indexing)
        assert ids(own, project, "bake bread", *named)[0] == "project/bread-baking"
        add_skill(project, "knots", "---\nname: knots\ndescription: Tie a bowline.\n---\n")
        assert ids(own, project, "bowline", *named)[0] == "project/knots"
        assert indexing.poll() is None
    finally:
        indexing.kill()
        indexing.wait()
