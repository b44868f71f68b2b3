"""``repertory search`` as a separate process."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.command_line import COMMAND, Cli, add_skill

HOLDER = """
import sys, pathlib
from repertory.index.edge import EdgeStore
store = EdgeStore(pathlib.Path(sys.argv[1]))
held = [store.open(name) for name in store.collections()]
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "darwin", reason="Metal cannot be hidden")
def test_a_missing_gpu_is_an_error(own: Cli, project: Path) -> None:
    """``--device gpu`` without a GPU is exit code 4 for search, explain and serve."""
    assert own.run(project, "search", "read a file").returncode == 0
    for command in (["search", "file"], ["explain", "file", "files__read_file"], ["serve"]):
        refused = own.run(project, *command, "--device", "gpu", CUDA_VISIBLE_DEVICES="")
        assert refused.returncode == 4, command
        assert "There is no GPU that an installed engine can use" in refused.stderr


def test_a_pipe_gets_plain_aligned_text(cli: Cli, indexed: Path) -> None:
    """Without a terminal there are no colours or boxes, and the columns are aligned."""
    done = cli.run(indexed, "search", "read", "file", "contents")

    header, first, *_ = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert header.split() == ["Tool", "Confidence", "Reason"]
    assert first.split()[0] == "files__read_file"
    assert first.index("Semantic") == header.index("Reason")
    assert done.stdout.isascii() or not set(done.stdout) & set("─│\x1b")


def test_a_terminal_gets_description_and_file(cli: Cli, indexed: Path) -> None:
    """On a terminal, each hit has its description and a link to its file."""
    code, written = cli.in_terminal(indexed, "search", "read_file", "-n1")

    assert code == 0
    assert "\x1b[1;36mfiles__read_file\x1b[0m" in written
    assert "Read the contents of a file from disk." in written
    assert f"file://{indexed}/tools/files.json" in written
    assert "./tools/files.json" in written


def test_short_flags(cli: Cli, indexed: Path) -> None:
    """``-n`` limits, ``-k`` filters, ``-o`` chooses the output."""
    asked = ("search", "file", "--threshold", "0", "-n", "2", "-k", "tool", "-k", "document")
    done = cli.run(indexed, *asked, "-o", "json")
    kinds = [hit["kind"] for hit in json.loads(done.stdout)["results"]]

    assert len(kinds) == 2
    assert set(kinds) <= {"tool", "document"}


def test_quiet_omits_messages(cli: Cli, project: Path) -> None:
    """With ``--quiet``, a first search does not report its indexing."""
    assert cli.run(project, "search", "bake bread", "--quiet").stderr == ""


def test_json_has_the_fields_of_the_contract(cli: Cli, indexed: Path) -> None:
    """JSON output has the fields of contract 3 and further ones."""
    answer = cli.json(indexed, "search", "read_fil", "--limit", "1")

    assert answer["query"] == "read_fil"
    assert answer["totalResults"] == len(answer["results"]) == 1
    assert (answer["mode"], answer["degraded"], answer["threshold"]) == ("hybrid", "", 0.35)
    hit = answer["results"][0]
    assert (hit["toolId"], hit["serverName"], hit["toolName"]) == (
        "files__read_file",
        "files",
        "read_file",
    )
    assert 0.35 <= hit["confidence"] <= 1
    assert {"reason", "description", "kind", "path", "source", "tags"} <= hit.keys()
    assert {"matchedIn", "shadowedBy", "evidence"} <= hit.keys()


def test_explain_shows_the_parts_of_a_confidence(cli: Cli, indexed: Path) -> None:
    """Each hit has its probability, semantic and keyword evidence, and ranks."""
    done = cli.run(indexed, "search", "reed the contents", "--explain")

    for part in ("probability", "semantic", "cosine", "keyword", "rank 1", "mode hybrid"):
        assert part in done.stdout


def test_one_item_is_explained(cli: Cli, indexed: Path) -> None:
    """`explain` succeeds for shown and hidden items; the query needs no quotes."""
    shown = cli.run(indexed, "explain", "reed", "the", "contents", "files__read_file")
    hidden = cli.json(indexed, "explain", "reed the contents", "Handbook", "--kind", "tool")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert "Shown, at place 1 of " in shown.stdout
    for part in ("reason", "semantic", "keyword", "cosine", "description", "mode hybrid"):
        assert part in shown.stdout
    assert not hidden["shown"]
    assert hidden["verdict"].startswith("Filtered out: its kind is document, and tool was asked")
    assert hidden["hit"]["toolId"] == "documents/handbook.md"


def test_nothing_found_says_what_to_try(cli: Cli, indexed: Path) -> None:
    """Without hits, exit code 1, the line of contract 3 and the closest item are shown."""
    done = cli.run(indexed, "search", "read the contents", "--threshold", "1")

    first, advice = done.stdout.splitlines()
    assert done.returncode == 1
    assert first == "No tools found matching query"
    assert "--threshold" in advice
    assert "the closest is files__read_file with 0." in advice
    assert cli.json(indexed, "search", "zzqx", "--threshold", "1")["results"] == []
    skills = cli.run(indexed, "search", "zzqx", "--threshold", "1", "--kind", "skill")
    assert skills.stdout.startswith("No skills found matching query\n")


def test_mixed_kinds_are_distinguished(cli: Cli, indexed: Path) -> None:
    """Hits of several kinds have a column for the kind."""
    done = cli.run(indexed, "search", "file", "--threshold", "0", "--limit", "9")

    assert done.stdout.splitlines()[0].split() == ["Item", "Kind", "Confidence", "Reason"]


@pytest.mark.parametrize(
    ("option", "value", "kinds"),
    [
        ("--kind", "skill", {"skill"}),
        ("--source", "documents", {"document"}),
        ("--server", "files", {"tool"}),
    ],
)
def test_filters_narrow_the_search(
    cli: Cli, indexed: Path, option: str, value: str, kinds: set[str]
) -> None:
    """Only matching items are shown."""
    answer = cli.json(indexed, "search", "file", "--threshold", "0", "--limit", "9", option, value)

    assert {hit["kind"] for hit in answer["results"]} == kinds


@pytest.mark.parametrize(
    ("tag", "tool"), [("read-only", "files__read_file"), ("destructive", "files__run_command")]
)
def test_tags_of_tools_are_shown_and_filtered_by(
    cli: Cli, indexed: Path, tag: str, tool: str
) -> None:
    """Searches, lists, explanations and the item itself have the tag."""
    [hit] = cli.json(indexed, "search", "file", "--threshold", "0", "--tag", tag)["results"]
    explained = cli.run(indexed, "search", "file", "--threshold", "0", "--tag", tag, "--explain")

    assert (hit["toolId"], hit["tags"]) == (tool, [tag])
    assert re.search(rf"tags +{tag}\n", explained.stdout)
    assert [item["id"] for item in cli.json(indexed, "items", "list", "--tag", tag)] == [tool]
    assert re.search(rf"tags +{tag}\n", cli.run(indexed, "items", "show", tool).stdout)


def test_destructive_tools_are_marked(cli: Cli, indexed: Path) -> None:
    """Destructive tools are marked in pipes and on terminals."""
    arguments = ("search", "file", "--threshold", "0", "--limit", "9", "--kind", "tool")
    _, drawn = cli.in_terminal(indexed, *arguments)

    for shown in (cli.run(indexed, *arguments).stdout, drawn):
        assert shown.count("(destructive)") == 1
    [line] = [line for line in cli.run(indexed, *arguments).stdout.splitlines() if "run_" in line]
    assert "(destructive)" in line


def test_the_first_search_indexes(cli: Cli, project: Path, broken_skill: Path) -> None:
    """Without an index, a search indexes first, says so on stderr, and answers."""
    done = cli.run(project, "search", "bake bread")

    assert done.returncode == 0
    assert "bread-baking" in done.stdout
    assert "7 items of 3 sources indexed" in done.stderr
    assert "1 error while reading the sources; `repertory doctor` says where." in done.stderr
    assert not broken_skill.read_text("utf-8").endswith("indexed")


def test_no_text_of_an_author_steers_the_terminal(cli: Cli, indexed: Path) -> None:
    """Control sequences are removed, and markup is shown unchanged."""
    done = cli.run(indexed, "items", "show", "project/steering")
    _, drawn = cli.in_terminal(indexed, "items", "list", "--kind", "skill")

    assert "[bold]markup[/bold]" in done.stdout
    assert "\x1b" not in done.stdout
    assert "[bold]markup[/bold]" in drawn
    assert "\x1b[31m" not in drawn


@contextmanager
def store_held(cli: Cli) -> Iterator[None]:
    """Have another process hold the store in this context."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, cli.environment["REPERTORY_DATA_DIR"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert holder.stdout
    try:
        assert holder.stdout.readline() == "held\n"
        yield
    finally:
        holder.communicate("")


def test_a_store_that_is_in_use_degrades_the_answer(cli: Cli, indexed: Path) -> None:
    """While another process holds the store, keywords alone answer, and one line says why."""
    with store_held(cli):
        searched = cli.run(indexed, "search", "read_file")

    assert searched.returncode == 0
    assert "files__read_file" in searched.stdout
    assert searched.stderr.startswith("repertory: degraded, answered by keyword alone: ")
    assert "in use by process" in searched.stderr
    assert len(searched.stderr.splitlines()) == 1


def test_commands_that_show_items_say_that_changes_are_missing(own: Cli, project: Path) -> None:
    """While the store is held, commands show the old state with a notice, and later the new.

    The notice counts only what differs from the index, also if a server has written it, so that no
    command has left a record of the files.
    """
    assert own.run(project, "index").returncode == 0
    for record in Path(own.environment["REPERTORY_DATA_DIR"]).glob("workspaces/*.seen"):
        record.unlink()
    add_skill(project, "steering", "---\nname: steering\ndescription: Sail upwind.\n---\n")

    with store_held(own):
        for command in (["items", "list"], ["items", "show", "steering"], ["search", "steering"]):
            shown = own.run(project, *command)
            assert "Sail upwind" not in shown.stdout
            assert shown.stderr.count("1 changed file is not searchable yet (") == 1, command

    for command in (["items", "list"], ["items", "show", "steering"]):
        shown = own.run(project, *command)
        assert "Sail upwind" in shown.stdout
        assert shown.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--limit", "many", "x"], "--limit is 'many'; it must be a whole number of at least 1."),
        (["--limit", "0", "x"], "--limit is '0'; it must be a whole number of at least 1."),
        (["--threshold", "7", "x"], "--threshold is '7'; it must be a number from 0 to 1."),
        (["--device", "abacus", "x"], "--device is 'abacus'; it must be auto, cpu or gpu."),
        (["--kind", "spoon", "x"], "--kind is 'spoon'; it must be one of skill, tool, document."),
        (
            ["--nonsense"],
            "There is no option --nonsense. A query that begins with a hyphen follows `--`.",
        ),
        (["x", "--limi", "3"], "There is no option --limi; there is --limit."),
        (["x", "--limit"], "--limit needs a value."),
        ([" "], "The query is "),
        ([], "QUERY is missing. `repertory search --help` shows how to call it."),
    ],
)
def test_bad_arguments_are_exit_code_2(
    cli: Cli, indexed: Path, arguments: list[str], error: str
) -> None:
    """Every error is one line in the same form, with what is wrong and what is right."""
    done = cli.run(indexed, "search", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"repertory: {error}")
    assert len(done.stderr.splitlines()) == 1


def test_an_unavailable_model_is_exit_code_4(cli: Cli, project: Path) -> None:
    """The error names the model in one line."""
    done = cli.run(project, "index", "--model", "unknown/no-such-model")

    assert done.returncode == 4
    assert done.stderr.startswith("repertory: ")
    assert len(done.stderr.splitlines()) == 1
    assert "unknown/no-such-model" in done.stderr


def test_no_cache_keeps_nothing(cli: Cli, project: Path) -> None:
    """With --no-cache a search indexes, answers, and stores nothing."""
    done = cli.run(project, "search", "bake bread", "--no-cache")

    assert "bread-baking" in done.stdout
    assert cli.run(project, "stats").returncode == 4


@pytest.mark.parametrize("call", ["items list --output json", "--help", "search --help"])
def test_a_closed_pipe_ends_a_command_silently(cli: Cli, indexed: Path, call: str) -> None:
    """When the reader exits, the command ends without a message, as done."""
    process = subprocess.Popen(
        [*COMMAND, *call.split()],
        cwd=indexed,
        env=cli.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    with process, process.stderr:
        assert process.stderr.read() == ""
    assert process.returncode == 0


def in_shell(cli: Cli, folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell, in which ``$REPERTORY`` is the command."""
    variables = {**cli.environment, "REPERTORY": shlex.join(COMMAND)}
    return subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_defect(cli: Cli, indexed: Path, closed: str) -> None:
    """A search with closed standard streams succeeds without a traceback."""
    done = in_shell(cli, indexed, f"$REPERTORY search 'read file contents' {closed}")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


def test_an_output_that_is_full_is_named(cli: Cli, indexed: Path) -> None:
    """A full output device is exit code 4 with a one-line message."""
    done = in_shell(cli, indexed, "$REPERTORY search 'read file contents' > /dev/full")
    assert done.returncode == 4
    assert done.stderr == (
        "repertory: Nothing more can be written (No space left on device): make room, or write "
        "elsewhere.\n"
    )


def test_a_deleted_directory_is_named(cli: Cli, tmp_path: Path) -> None:
    """A deleted working directory is exit code 4 with a one-line message."""
    folder = tmp_path / "deleted"
    folder.mkdir()
    done = in_shell(cli, folder, f"rmdir '{folder}'; $REPERTORY search keys")
    assert done.returncode == 4
    assert done.stderr == "repertory: The current directory has been deleted: go to another one.\n"
