"""``repertory serve`` in a process of its own, and the commands that ask it."""

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command_line import COMMAND, Cli, add_skill
from tests.support.server_process import PATIENCE, Serve, note_of, until

ALL = ("--threshold", "0", "--limit", "9")
# Runs the command line, and then says whether numpy or a model was loaded for it.
LOADED = """
import sys
from repertory_admin.cli import cli
try:
    cli()
finally:
    print("loaded", sorted({"numpy", "onnxruntime", "qdrant_edge"} & sys.modules.keys()))
"""


@pytest.fixture
def own(tmp_path: Path) -> Cli:
    """The command line of somebody who has nothing yet."""
    (tmp_path / "home").mkdir()
    return Cli(tmp_path / "home", tmp_path / "data")


def url(user: Cli, folder: Path) -> str:
    """Where the server of a folder answers."""
    return str(json.loads(note_of(user, folder).read_bytes())["url"])


def found(user: Cli, folder: Path, *query: str) -> list[str]:
    """The ids that a search finds."""
    return [hit["toolId"] for hit in user.json(folder, "search", *query, *ALL)["results"]]


def test_a_search_asks_the_server(user: Cli, served: Path) -> None:
    """It answers as it does over HTTP, and nothing of an index is opened or loaded for it."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "search", "read_fil", "--output", "json"],
        cwd=served,
        env=user.environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    answer, end, loaded = done.stdout.rpartition("}\n")
    hit = json.loads(answer + end)["results"][0]

    assert hit["toolId"] == "files__read_file"
    assert hit["evidence"]["semantic"] is not None
    assert loaded == "loaded []\n"


def test_the_table_is_the_same_as_without_a_server(user: Cli, served: Path) -> None:
    """Reasons, corrections and the advice where nothing is found come over the wire as well."""
    done = user.run(served, "search", "reed the contents", "--explain")
    nothing = user.run(served, "search", "read the contents", "--threshold", "1")

    for part in ("semantic", "keyword", "rank 1", "contents", "mode hybrid"):
        assert part in done.stdout
    assert nothing.returncode == 1
    assert "the best is 0." in nothing.stdout


def test_filters_and_bad_values_reach_the_server(user: Cli, served: Path) -> None:
    """A filter holds there; a value that cannot be is exit code 2."""
    answer = user.json(served, "search", "file", *ALL, "--kind", "skill")
    refused = user.run(served, "search", "file", "--limit", "5000")

    assert {hit["kind"] for hit in answer["results"]} == {"skill"}
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "limit" in refused.stderr


def test_items_are_listed_and_shown(user: Cli, served: Path) -> None:
    """As without a server; an unknown id is exit code 2, with the one that was meant."""
    tools = user.json(served, "items", "list", "--kind", "tool")
    item = user.json(served, "items", "show", "files__read_file")
    unknown = user.run(served, "items", "show", "files__reed_file")

    assert [tool["id"] for tool in tools] == [
        "files__read_file",
        "files__run_command",
        "files__search_code",
    ]
    assert item["inputSchema"]["properties"] == {"path": {"type": "string"}}
    assert unknown.returncode == 2
    assert "did you mean files__read_file" in unknown.stderr


def test_stats_show_the_server(user: Cli, served: Path) -> None:
    """Sources with their freshness, the queue, model and collection."""
    done = user.run(served, "stats")
    facts = user.json(served, "stats")

    for part in (
        "project",
        "ago",
        url(user, served),
        "0 saves, 0 builds",
        "all-minilm-l6-v2",
        "no source",
    ):
        assert part in done.stdout
    assert {source["name"]: source["items"] for source in facts["sources"]}["tools"] == 3
    assert facts["queue"] == {"saves": 0, "builds": 0, "failed": 0}


def test_what_is_saved_is_found_without_a_command(user: Cli, served: Path) -> None:
    """A new file, and its removal, show in the next search but a few."""
    file = add_skill(served, "knots", "---\nname: knots\ndescription: Tie a bowline.\n---\n")
    until(lambda: "project/knots" in found(user, served, "bowline"))
    file.unlink()
    until(lambda: "project/knots" not in found(user, served, "bowline"))


def test_a_rebuild_can_be_waited_for(user: Cli, served: Path) -> None:
    """Without --wait it is begun; with it, another generation is searched when it ends."""
    before = user.json(served, "stats")["collection"]
    after = user.json(served, "rebuild", "--wait")
    begun = user.run(served, "rebuild")
    code, written = user.in_terminal(served, "rebuild", "--wait")

    assert after["stats"]["collection"] != before
    assert "`repertory rebuild --wait` waits for it" in begun.stdout
    assert code == 0
    assert "items are searched in repertory_" in written


def test_index_leaves_it_to_the_server(user: Cli, served: Path) -> None:
    """It says so; paths become the catalogue that the server watches."""
    done = user.run(served, "index", "tools")
    until(lambda: len(user.json(served, "items", "list")) == 3)
    user.run(served, "index")
    until(lambda: len(user.json(served, "items", "list")) >= 7)

    assert done.returncode == 0
    assert done.stdout.startswith(f"The server at {url(user, served)} watches the sources")


def test_doctor_looks_at_the_server(user: Cli, served: Path) -> None:
    """That it holds the index is no fault."""
    done = user.run(served, "doctor")

    assert f"answers at {url(user, served)}" in done.stdout
    assert "in use by process" not in done.stdout


def test_a_second_server_of_a_directory_is_refused(user: Cli, served: Path) -> None:
    """A directory has one server; the answer names it and what to do."""
    done = user.run(served, "serve", "--port", "0")

    assert done.returncode == 4
    assert len(done.stderr.splitlines()) == 1
    assert f"at {url(user, served)}" in done.stderr
    assert "--data-dir" in done.stderr
    assert user.run(served, "search", "read_file").returncode == 0


def test_another_directory_has_a_server_of_its_own(
    user: Cli, served: Path, project: Path, tmp_path: Path
) -> None:
    """In the same data directory; commands ask the one of theirs."""
    add_skill(project, "knots", "---\nname: knots\ndescription: Tie a bowline.\n---\n")
    with Serve(user, project, tmp_path / "log"):
        assert "project/knots" in found(user, project, "bowline")
        assert "project/knots" not in found(user, served, "bowline")
        assert url(user, project) != url(user, served)


@pytest.mark.usefixtures("served")
def test_other_directories_do_not_ask_it(user: Cli, project: Path) -> None:
    """They have an index of their own in the same data directory."""
    done = user.run(project, "search", "bake bread")

    assert "items of 3 sources indexed" in done.stderr
    assert user.run(project, "queue", "list").returncode == 4


def test_what_asks_for_another_index_does_not_ask_it(user: Cli, served: Path) -> None:
    """Another model, another configuration file and --no-cache are for this call alone."""
    (served.parent / "other.toml").write_text('[[sources]]\ntype = "tools"\npath = "tools"\n')
    for arguments in (["--no-cache"], ["--config", "../other.toml"], ["--model", "nobody/none"]):
        done = user.run(served, "search", "read_file", *arguments)

        assert "indexed in" in done.stderr
        assert "files__read_file" in done.stdout or "../" in arguments[-1]


def test_it_ends_in_order(own: Cli, project: Path, tmp_path: Path) -> None:
    """SIGTERM is exit code 0; its log is JSON, its note gone, and the index is there without it."""
    with Serve(own, project, tmp_path / "log") as server:
        assert server.get("/search?q=bake+bread")["results"][0]["toolId"] == "project/bread-baking"
        code = server.end(signal.SIGTERM)
    events = [json.loads(line)["event"] for line in server.log.read_text("utf-8").splitlines()]
    assert code == 0
    assert {"serving", "configuration_adopted", "collection_published", "request"} <= set(events)
    assert not note_of(own, project).exists()
    assert own.run(project, "search", "bake bread").returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_it_indexed_is_found_without_it(
    own: Cli, project: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """Also where something was indexed before, and however it ended."""
    own.run(project, "index")
    with Serve(own, project, tmp_path / "log") as server:
        add_skill(project, "knots", "---\nname: knots\ndescription: Tie a bowline.\n---\n")
        until(lambda: "project/knots" in found(own, project, "bowline"))
        server.end(number)

    assert "project/knots" in found(own, project, "bowline")


def test_a_note_left_behind_is_passed_over(own: Cli, project: Path, tmp_path: Path) -> None:
    """After kill -9 commands do without the server, and another can be started."""
    with Serve(own, project, tmp_path / "log") as server:
        server.end(signal.SIGKILL)
    note = note_of(own, project)
    assert note.exists()
    assert own.run(project, "search", "bake bread").returncode == 0
    note.write_text(json.dumps(json.loads(note.read_bytes()) | {"pid": os.getpid()}))
    assert own.run(project, "search", "bake bread").returncode == 0
    note.write_bytes(b'{"url": 7')
    assert own.run(project, "search", "bake bread").returncode == 0

    with Serve(own, project, tmp_path / "log") as server:
        assert server.end(signal.SIGINT) == 130
    assert not note.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [0.3, 0.6, 0.9])
def test_it_can_be_ended_while_it_starts(
    own: Cli, project: Path, after: float, number: signal.Signals
) -> None:
    """Whenever that is: it ends, and shows no traceback."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0"],
        cwd=project,
        env=own.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        time.sleep(after)
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode in {-number, 130 if number == signal.SIGINT else 0}
    assert "Traceback" not in said


def test_who_asks_while_it_starts_waits_for_it(own: Cli, project: Path) -> None:
    """Once the server has left its note, no other process indexes."""
    note = note_of(own, project)
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0"],
        cwd=project,
        env=own.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(note.exists)
        done = own.run(project, "search", "bowline")
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0 or "The server at" in done.stderr  # its first index is not whole
    assert "indexed in" not in done.stderr


def test_a_port_in_use_is_said_in_one_line(own: Cli, project: Path) -> None:
    """It names the port and the flag; the exit code is 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = own.run(project, "serve", "--port", str(port))

    assert done.returncode == 2
    assert f"port {port}: Address already in use; choose" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "environment", "said"),
    [
        ("serve", {"REPERTORY_REDIS_URL": "redis://localhost"}, "unset REPERTORY_REDIS_URL"),
        ("serve", {"REPERTORY_SEARCH_NO_CACHE": "true"}, "unset REPERTORY_SEARCH_NO_CACHE"),
        ("watch", {}, "REPERTORY_REDIS_URL"),
        ("worker", {}, "REPERTORY_REDIS_URL"),
        ("api", {}, "REPERTORY_REDIS_URL"),
        ("search x", {"REPERTORY_REDIS_URL": "redis://localhost"}, "REPERTORY_SERVER_URL"),
        ("rebuild", {"REPERTORY_REDIS_URL": "redis://localhost"}, "REPERTORY_SERVER_URL"),
        ("queue list", {"REPERTORY_REDIS_URL": "redis://localhost"}, "REPERTORY_SERVER_URL"),
    ],
)
def test_settings_that_do_not_fit_are_exit_code_2(
    own: Cli, project: Path, command: str, environment: dict[str, str], said: str
) -> None:
    """The line says which setting, and what to do."""
    done = own.run(project, *command.split(), **environment)

    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert said in done.stderr


def test_a_missing_package_is_named(own: Cli, project: Path, tmp_path: Path) -> None:
    """Without the extra, one line says what to install; the exit code is 4."""
    (tmp_path / "without" / "celery").mkdir(parents=True)
    raised = "raise ModuleNotFoundError('No module named celery', name='celery')"
    (tmp_path / "without" / "celery" / "__init__.py").write_text(raised)
    done = own.run(project, "worker", PYTHONPATH=str(tmp_path / "without"))

    assert done.returncode == 4
    assert done.stderr == (
        "repertory: This needs celery, which is not installed; run: pip install 'repertory[team]'\n"
    )


def test_a_terminal_gets_lines_to_read(own: Cli, project: Path) -> None:
    """It says where it serves, and its log is no JSON."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0"],
        cwd=project,
        env=own.environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    try:
        while b"collection_published" not in written:
            assert select.select([ours], [], [], PATIENCE)[0]
            written += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    finally:
        process.kill()
        os.close(ours)
    assert b"Serving . at http://127.0.0.1:" in written
    assert b"info repertory_watch.service configuration_adopted configuration=" in written
