"""``repertory index`` and ``repertory rebuild`` as separate processes."""

import json
import re
from pathlib import Path

from tests.support.command_line import Cli, add_skill


def test_index_lists_sources_and_counts(cli: Cli, project: Path) -> None:
    """A run lists its sources and counts its work."""
    done = cli.run(project, "index")

    assert done.returncode == 0, done.stderr
    header, *lines = done.stdout.splitlines()
    assert header.split() == ["Source", "Type", "Items", "Location", "State"]
    assert [line.split()[:3] for line in lines[:3]] == [
        ["project", "skills", "3"],
        ["tools", "tools", "3"],
        ["documents", "documents", "1"],
    ]
    assert "7 items of 3 sources indexed" in done.stdout
    assert "7 added, 0 changed, 0 removed, 0 unchanged" in done.stdout


def test_only_changed_texts_are_embedded(cli: Cli, project: Path) -> None:
    """A second run embeds nothing, and one after a change only the new text."""
    cli.run(project, "index")
    again = cli.json(project, "index")
    add_skill(project, "knots", "---\nname: knots\ndescription: Tie a sheet bend.\n---\n")
    third = cli.json(project, "index")

    assert (again["unchanged"], again["embedded"]) == (7, 0)
    assert (third["added"], third["unchanged"], third["embedded"]) == (1, 7, 1)


def test_paths_become_the_catalogue_until_the_next_index(cli: Cli, project: Path) -> None:
    """Only the given paths are searched; without paths, the discovered sources return."""
    narrow = cli.json(project, "index", "tools/files.json")
    answer = cli.json(project, "search", "bread", "--threshold", "0", "--limit", "9")
    wide = cli.json(project, "index")

    assert narrow["stats"]["items"] == 3
    assert {hit["kind"] for hit in answer["results"]} <= {"tool"}
    assert (wide["stats"]["items"], wide["embedded"]) == (7, 0)


def test_an_unreadable_file_is_exit_code_3(cli: Cli, project: Path, broken_skill: Path) -> None:
    """The other files are indexed, and the unreadable file is named."""
    done = cli.run(project, "index")

    assert done.returncode == 3
    assert "7 items of 3 sources indexed" in done.stdout
    assert "1 error (left out; what was indexed before stays)" in done.stdout
    assert f"./{broken_skill.relative_to(project)}" in done.stdout


def test_many_problems_are_cut_short(cli: Cli, project: Path) -> None:
    """At most twenty messages are shown, errors first; the others are counted."""
    add_skill(project, "broken-0", "---\nname: x\n---\n")
    add_skill(project, "broken-1", "---\nname: x\n---\n")
    for number in range(25):
        add_skill(project, f"long-{number}", f"---\nname: x{number}\ndescription: d\n---\n")
    done = cli.run(project, "index")

    assert done.stdout.count("  error: ") == 1
    assert "./skills/broken-0/SKILL.md, ./skills/broken-1/SKILL.md: The skill" in done.stdout
    assert done.stdout.count("  warning: ") == 19
    assert "more: `repertory doctor` lists more" in done.stdout


def test_a_missing_path_is_exit_code_2(cli: Cli, project: Path) -> None:
    """The path is named and nothing changes."""
    done = cli.run(project, "index", "nowhere")

    assert done.returncode == 2
    assert "There is no nowhere" in done.stderr


def test_an_impossible_data_directory_is_exit_code_4(cli: Cli, project: Path) -> None:
    """A file in place of the data directory is a one-line error of every command."""
    file = project / "handbook.md"
    for arguments in (["index"], ["search", "x"], ["index", "tools"], ["rebuild"], ["stats"]):
        done = cli.run(project, *arguments, "--data-dir", file)

        assert done.returncode == 4, arguments
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert done.stderr.startswith("repertory: ")


def test_a_rebuild_makes_a_new_generation(cli: Cli, project: Path) -> None:
    """The new collection has the same items, and nothing is embedded again."""
    first = cli.json(project, "index")
    second = cli.json(project, "rebuild")

    assert first["stats"]["collection"] != second["stats"]["collection"]
    assert (second["stats"]["items"], second["embedded"]) == (7, 0)
    assert cli.run(project, "search", "read_file").returncode == 0


def test_servers_run_only_once_they_are_trusted(cli: Cli, project: Path, mcp_config: Path) -> None:
    """A discovered configuration is not run and not an error; it can be trusted and untrusted."""
    before = cli.run(project, "index")
    trusted = cli.run(project, "config", "trust", ".mcp.json")
    after = cli.run(project, "index")
    found = cli.json(project, "search", "weather forecast", "--server", "weather")
    untrusted = cli.run(project, "config", "untrust", ".mcp.json")
    last = cli.json(project, "index")

    assert before.returncode == 0
    assert "waiting for trust" in before.stdout
    assert f"repertory config trust {mcp_config}" in before.stdout
    assert "weather (runs " in trusted.stdout
    assert after.returncode == 0, after.stdout
    assert "9 items of 4 sources" in after.stdout
    assert found["results"][0]["toolId"] == "weather__forecast"
    assert untrusted.returncode == 0
    weather = next(source for source in last["stats"]["sources"] if source["name"] == "weather")
    assert (weather["items"], weather["stale"]) == (2, 2)


def test_a_terminal_asks_before_servers_are_trusted(
    cli: Cli, project: Path, mcp_config: Path
) -> None:
    """It shows their commands, and says where their arguments are, which may be secret."""
    code, written = cli.in_terminal(project, "config", "trust", mcp_config.name, keys="n\n")
    said = " ".join(written.split())
    assert code == 2
    assert "weather (runs " in said
    assert "Their arguments are in the file. Trust it?" in said
    assert "Nothing was trusted." in said
    assert "waiting for trust" in cli.run(project, "index").stdout


def test_a_failing_source_counts_as_an_error(cli: Cli, project: Path, mcp_config: Path) -> None:
    """A failing source is listed once with its reason; waiting for trust is no error."""
    broken = project / "broken.json"
    broken.write_text(json.dumps({"mcpServers": {"broken": {"command": "no-such-program"}}}))
    run = cli.run(project, "index", "--mcp-config", broken)
    stats = cli.json(project, "stats", "--mcp-config", broken)
    shown = cli.run(project, "stats", "--mcp-config", broken).stdout
    assert run.returncode == 3
    assert stats["errors"] == 1
    errors = [one["path"] for one in stats["problems"] if one["severity"] == "error"]
    assert errors == ["broken"]
    assert re.search(r"^broken .* failing$", shown, re.MULTILINE)
    assert re.search(
        r"^problems +1 error, [0-9]+ warnings; see `repertory doctor`$", shown, re.MULTILINE
    )
    assert shown.count("no-such-program") == 1

    assert cli.run(project, "index").returncode == 0
    waiting = cli.run(project, "stats").stdout
    assert re.search(r"^weather .* waiting for trust$", waiting, re.MULTILINE)
    assert re.search(r"^problems +[0-9]+ warnings; see `repertory doctor`$", waiting, re.MULTILINE)
    assert f"config trust {mcp_config}" in waiting


def test_a_named_configuration_is_run(cli: Cli, project: Path, mcp_config: Path) -> None:
    """Naming a configuration trusts it for this run."""
    moved = mcp_config.rename(project / "servers.json")
    report = cli.json(project, "index", "--mcp-config", moved)

    assert {source["name"]: source["items"] for source in report["stats"]["sources"]}[
        "weather"
    ] == 2


def test_progress_is_shown_on_a_terminal(cli: Cli, project: Path) -> None:
    """Bars are drawn during indexing, and the summary stays."""
    code, written = cli.in_terminal(project, "index")

    assert code == 0
    assert "Reading sources" in written
    assert "7 items of 3 sources indexed" in written
