"""Searches without a server follow the files, and say what they do not know."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write
from tests.support.command_line import COMMAND, Cli, add_skill
from tests.support.mcp_servers import WEATHER
from tests.support.waiting import until

# It never answers, and ends with the process that started it.
HANGING = {"command": "sh", "args": ["-c", "cat > /dev/null"]}


def skill(name: str, description: str) -> str:
    """The text of a skill."""
    return f"---\nname: {name}\ndescription: {description}\n---\n"


def search(cli: Cli, folder: Path, *arguments: str) -> Any:  # noqa: ANN401 - JSON
    """The answer to a search, repeated while a slow machine has no time for all changes."""

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
    """Deleted, new and edited skills are so at the next search, without `repertory index`."""
    assert ids(cli, project, "bake bread")[0] == "project/bread-baking"

    shutil.rmtree(project / "skills" / "bread-baking")
    add_skill(project, "knots", skill("knots", "Tie a bowline."))
    add_skill(project, "steering", skill("steering", "Sail a dinghy upwind."))

    assert "project/bread-baking" not in ids(cli, project, "bake bread", "--threshold", "0")
    assert ids(cli, project, "tie a bowline")[0] == "project/knots"
    assert ids(cli, project, "sail a dinghy")[0] == "project/steering"
    listed = [item["id"] for item in cli.json(project, "items", "list", "--kind", "skill")]
    assert listed == ["project/knots", "project/release-notes", "project/steering"]


def test_an_encoding_of_the_locale_hides_no_files(cli: Cli, project: Path) -> None:
    """A Python that takes names of files for ASCII reads those of other scripts, too."""
    file = project / "skills" / "größe-メモ" / "SKILL.md"
    write(file, skill("größe-メモ", "Tie a bowline."))
    assert ids(cli, project, "größe メモ") == ["project/größe-メモ"]

    # A path of its own makes it a new Python.
    path = str(project)
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONPATH": path}
    answer = cli.run(project, "search", "größe メモ", "--output", "json", **ascii_only)
    assert [hit["toolId"] for hit in json.loads(answer.stdout)["results"]] == ["project/größe-メモ"]
    assert ids(cli, project, "größe メモ") == ["project/größe-メモ"]


def test_a_search_follows_new_and_deleted_folders(cli: Cli, project: Path) -> None:
    """A folder of skills that appears or vanishes is a source that appears or vanishes."""
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
    """An emptied folder may be one that is not mounted: its items stay, but are not shown."""
    folder = tmp_path / "one"
    file = add_skill(folder, "kube-debug", skill("kube-debug", "Why a pod crashes."))
    assert ids(own, folder, "pod crash") == ["project/kube-debug"]

    shutil.rmtree(file.parent)

    assert ids(own, folder, "pod crash") == []
    assert own.json(folder, "items", "list") == []
    assert own.run(folder, "items", "show", "project/kube-debug").returncode == 2
    assert own.run(folder, "explain", "pod", "crash", "project/kube-debug").returncode == 2


def test_the_skills_of_a_suddenly_empty_folder_are_found(own: Cli, tmp_path: Path) -> None:
    """A folder that lost all its skills at once may not be mounted: they are kept and found."""
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
    """A new policy and new sources in repertory.toml hold at the next search."""
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


def test_a_first_search_asks_no_server(own: Cli, project: Path) -> None:
    """The files are found at once; the notice names the server that was not asked."""
    marker = project / "STARTED"
    starting = {"command": "sh", "args": ["-c", f"touch {marker}; sleep 600"]}
    config = write_servers(project, slow=starting)

    first = own.run(project, "search", "bake bread", "--mcp-config", config)
    again = own.json(project, "search", "bake bread", "--mcp-config", str(config))

    assert "bread-baking" in first.stdout
    assert (
        "The tools of 1 MCP server have not been listed yet: slow; run `repertory index`."
        in first.stderr
    )
    assert again["notices"] == [
        "The tools of 1 MCP server have not been listed yet: slow; run `repertory index`."
    ]
    assert not marker.exists()


def test_a_search_uses_the_last_known_tools_and_says_their_age(cli: Cli, project: Path) -> None:
    """After a change of files, the tools are there, with the policies of now, and are not asked."""
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
    assert notice.startswith("The tools of weather were last listed ")
    assert notice.endswith("ago; run `repertory index`.")


def test_another_spelling_of_the_model_knows_the_same_tools(own: Cli, project: Path) -> None:
    """A first search with the model named uses the tools that a command without it indexed."""
    config = write_servers(project, weather=WEATHER)
    assert own.run(project, "config", "trust", str(config)).returncode == 0

    found = own.json(project, "search", "weather forecast", "--model", "repertory")

    assert found["results"][0]["toolId"] == "weather__forecast"
    assert found["notices"] == [
        "The tools of 1 MCP server have not been listed yet: weather; run `repertory index`."
    ]


def test_a_hanging_server_is_listed_and_the_others_are_indexed(own: Cli, project: Path) -> None:
    """`index` indexes the files and the other server, and names the one that does not answer."""
    config = write_servers(project, hanging=HANGING, weather=WEATHER)

    done = own.run(project, "index", "--mcp-config", config, "--mcp-timeout", "20")
    answer = own.json(project, "search", "weather forecast", "--mcp-config", str(config))

    assert done.returncode == 3
    assert "9 items of 5 sources" in done.stdout
    assert answer["results"][0]["toolId"] == "weather__forecast"
    [notice] = answer["notices"]
    assert notice.startswith("The source hanging could not be read: ")


def test_trusting_a_configuration_indexes_its_tools(cli: Cli, project: Path) -> None:
    """`config trust` says what it found, and the next search finds it."""
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
    """The exit code says that something could not be read, and so does the next search."""
    write_servers(project, broken={"command": "/does/not/exist"})

    trusted = cli.run(project, "config", "trust", ".mcp.json")
    answer = cli.json(project, "search", "bake bread")

    assert trusted.returncode == 3
    assert "broken: " in trusted.stdout
    [notice] = answer["notices"]
    assert notice.startswith("The source broken could not be read: ")


def test_a_named_configuration_needs_no_advice(cli: Cli, project: Path) -> None:
    """A server that was named is run, wherever else it is configured."""
    config = write_servers(project, weather=WEATHER)
    (project / ".cursor").mkdir()
    shutil.copy(config, project / ".cursor" / "mcp.json")

    done = cli.run(project, "index", "--mcp-config", ".mcp.json")
    searched = cli.run(project, "search", "weather forecast", "--mcp-config", ".mcp.json")

    assert done.returncode == 0
    for text in ("found but not run", "not trusted yet", "several files", "await your trust"):
        assert text not in done.stdout + done.stderr + searched.stderr


def test_an_empty_catalogue_is_no_bad_query(own: Cli, tmp_path: Path) -> None:
    """The answer says that there is nothing to search."""
    folder = tmp_path / "empty"
    folder.mkdir()

    done = own.run(folder, "search", "anything")

    assert done.returncode == 1
    assert done.stdout.startswith("Nothing to search yet: ")
    assert "repertory init" in done.stdout
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
    """It is bad usage, and the message has the known values, the closest first."""
    for command in (["search", "file"], ["explain", "file", "files__read_file"], ["items", "list"]):
        done = cli.run(indexed, *command, option, value)

        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr


def test_an_unknown_model_tells_why_and_leaves_no_index(own: Cli, project: Path) -> None:
    """A search answers by words, with the reason that `index` gives, and keeps nothing of it."""
    indexing = own.run(project, "index", "--model", "foo/bar")
    searching = own.run(project, "search", "bake bread", "--model", "foo/bar")

    assert (indexing.returncode, searching.returncode) == (4, 0)
    assert "bread-baking" in searching.stdout
    assert "degraded" in searching.stderr
    assert indexing.stderr.removeprefix("repertory: ").strip() in searching.stderr
    data = Path(own.environment["REPERTORY_DATA_DIR"])
    assert not list(data.glob("collections/*"))


def test_the_model_that_stands_in_is_said_once(own: Cli, project: Path) -> None:
    """The first run says it in a short line, and no other run."""
    first, second = own.run(project, "index"), own.run(project, "index")
    words = "from the installed package"

    [line] = [line for line in first.stderr.splitlines() if words in line]
    assert len(line) <= 160
    assert words not in second.stdout + second.stderr


def test_a_search_in_a_terminal_shows_at_once_that_it_works(own: Cli, project: Path) -> None:
    """The spinner comes before the first bar, whose library is slow to import."""
    code, written = own.in_terminal(project, "search", "bake bread")

    assert code == 0
    assert written.index("Searching") < written.index("Reading sources")


def test_what_has_answered_is_found_while_a_server_hangs(own: Cli, project: Path) -> None:
    """Other commands find the files and the other server's tools before `index` has ended."""
    config = write_servers(project, hanging=HANGING, weather=WEATHER)
    named = ("--mcp-config", str(config))
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
        assert indexing.poll() is None
        assert ids(own, project, "bake bread", *named)[0] == "project/bread-baking"
    finally:
        indexing.kill()
        indexing.wait()
