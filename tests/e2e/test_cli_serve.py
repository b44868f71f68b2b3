"""``repertory serve`` as a separate process, and the commands that use it."""

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.support.command_line import COMMAND, PROJECT_ITEMS, Cli, add_skill
from tests.support.http_stub import serving
from tests.support.server_process import Serve, note_file, note_of
from tests.support.waiting import TIMEOUT_S, until

ALL = ("--threshold", "0", "--limit", "9")
# Runs the command line, and then reports which slow libraries were loaded.
LOADED = """
import atexit, sys
from repertory_admin.cli import cli
slow = {"numpy", "onnxruntime", "qdrant_edge"}
atexit.register(lambda: print("loaded", sorted(slow & sys.modules.keys())))
cli()
"""
# Runs the command line, and prints a line when the import of its modules begins.
BEGIN = """
import sys
from repertory_admin.__main__ import main

class Finder:
    def find_spec(name, path=None, target=None):
        if name == "repertory_admin.cli":
            print("begun", flush=True)

sys.meta_path.insert(0, Finder)
main()
"""
# Runs the command line, and sends SIGINT in a callback during the import of the command.
SIGNAL_IN_IMPORT = """
import os, signal, sys
from repertory_admin.__main__ import main

class Callback:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(100):
            pass

class Finder:
    def find_spec(name, path=None, target=None):
        if name == "repertory_admin.commands." + sys.argv[1]:
            Callback()

sys.meta_path.insert(0, Finder)
main()
"""


def found(user: Cli, folder: Path, *query: str) -> list[str]:
    """The ids that a search finds."""
    return [hit["toolId"] for hit in user.json(folder, "search", *query, *ALL)["results"]]


def test_a_search_uses_the_server(user: Cli, served: Path) -> None:
    """A search of a running server neither opens an index nor loads a model."""
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


def test_the_table_has_explanations_and_suggestions(user: Cli, served: Path) -> None:
    """Explanations and suggestions are shown as without a server."""
    done = user.run(served, "search", "reed the contents", "--explain")
    nothing = user.run(served, "search", "read the contents", "--threshold", "1")

    for part in ("semantic", "keyword", "rank 1", "contents", "mode hybrid"):
        assert part in done.stdout
    assert nothing.returncode == 1
    assert "the closest is files__read_file with 0." in nothing.stdout


def test_filters_and_bad_values_reach_the_server(user: Cli, served: Path) -> None:
    """The server applies filters, and refuses invalid values with exit code 2."""
    answer = user.json(served, "search", "file", *ALL, "--kind", "skill")
    refused = user.run(served, "search", "file", "--limit", "5000")

    assert {hit["kind"] for hit in answer["results"]} == {"skill"}
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "limit" in refused.stderr


def test_a_configured_limit_is_cut_to_the_maximum_of_a_server(user: Cli, served: Path) -> None:
    """A configured limit above the server's maximum is reduced; a flag is refused."""
    configured = {"REPERTORY_SEARCH_LIMIT": "200"}
    done = user.run(served, "search", "file", **configured)
    explained = user.run(served, "explain", "file", "files__read_file", **configured)
    refused = user.run(served, "search", "file", "--limit", "200", **configured)

    assert (done.returncode, explained.returncode, refused.returncode) == (0, 0, 2)
    assert "a server returns at most 100" in refused.stderr


def test_a_device_other_than_the_servers_is_mentioned(user: Cli, served: Path) -> None:
    """If the server runs without a GPU flag, ``--device gpu`` only causes a notice."""
    done = user.run(served, "search", "file", "--device", "gpu")
    usual = user.run(served, "search", "file", "--device", "cpu")

    assert (done.returncode, usual.returncode) == (0, 0)
    assert "uses the device auto, so --device has no effect" in " ".join(done.stderr.split())
    assert "has no effect" not in usual.stderr


def test_items_are_listed_and_shown(user: Cli, served: Path) -> None:
    """Items are listed and shown through a server; an unknown id is exit code 2."""
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
    """`stats` shows the server, its sources with freshness, its model and its queue."""
    done = user.run(served, "stats")
    facts = user.json(served, "stats")

    for part in (
        "project",
        "ago",
        note_of(user, served).url,
        "repertory-encoder-4",
    ):
        assert part in done.stdout
    assert {source["name"]: source["items"] for source in facts["sources"]}["tools"] == 3
    assert facts["queue"] == {"saves": 0, "builds": 0, "taken": 0, "failed": 0}


def test_saved_files_are_found_without_a_command(user: Cli, served: Path) -> None:
    """Later searches reflect a new file and its deletion."""
    file = add_skill(served, "knots", "---\nname: knots\ndescription: Tie a bowline.\n---\n")
    until(lambda: "project/knots" in found(user, served, "bowline"))
    file.unlink()
    until(lambda: "project/knots" not in found(user, served, "bowline"))


def test_a_rebuild_can_be_waited_for(user: Cli, served: Path) -> None:
    """With --wait, a rebuild ends with the new collection active; without, it only starts."""
    before = user.json(served, "stats")["collection"]
    after = user.json(served, "rebuild", "--wait")
    begun = user.run(served, "rebuild")
    code, written = user.in_terminal(served, "rebuild", "--wait")

    assert after["stats"]["collection"] != before
    assert "`repertory rebuild --wait` waits for it" in begun.stdout
    assert code == 0
    assert "is searched now: 7 items." in written


def test_a_rebuild_with_errors_is_exit_code_3(user: Cli, served: Path) -> None:
    """A rebuild on a server that leaves out a broken skill is exit code 3."""
    file = add_skill(served, "broken", "---\nname: broken\n---\n")
    until(lambda: user.json(served, "stats")["errors"] == 1)
    done = user.run(served, "rebuild", "--wait")
    file.unlink()
    until(lambda: user.json(served, "stats")["errors"] == 0)

    assert (done.returncode, "is searched now: 7 items." in done.stdout) == (3, True)


def test_index_is_left_to_the_server(user: Cli, served: Path) -> None:
    """`index` leaves the work to the server; its paths become the server's catalogue."""
    done = user.run(served, "index", "tools")
    until(lambda: len(user.json(served, "items", "list")) == 3)
    user.run(served, "index")
    until(lambda: len(user.json(served, "items", "list")) >= 7)

    assert done.returncode == 0
    assert done.stdout.startswith(f"The server at {note_of(user, served).url} watches the sources")


def test_doctor_accepts_a_running_server(user: Cli, served: Path) -> None:
    """`doctor` does not report the server's open index as a problem."""
    done = user.run(served, "doctor")

    assert f"answers at {note_of(user, served).url}" in done.stdout
    assert "in use by process" not in done.stdout


def test_a_second_server_of_a_directory_is_refused(user: Cli, served: Path) -> None:
    """A directory has one server; the error names it and what to do."""
    done = user.run(served, "serve", "--port", "0")

    assert done.returncode == 4
    assert len(done.stderr.splitlines()) == 1
    assert f"at {note_of(user, served).url}" in done.stderr
    assert "--data-dir" in done.stderr
    assert user.run(served, "search", "read_file").returncode == 0


def test_another_directory_has_its_own_server(
    user: Cli, served: Path, project: Path, tmp_path: Path
) -> None:
    """The data directory is shared; each command uses the server of its directory."""
    add_skill(project, "knots", "---\nname: knots\ndescription: Tie a bowline.\n---\n")
    with Serve(user, project, tmp_path / "log"):
        assert "project/knots" in found(user, project, "bowline")
        assert "project/knots" not in found(user, served, "bowline")
        assert note_of(user, project).url != note_of(user, served).url


@pytest.mark.usefixtures("served")
def test_other_directories_do_not_use_the_server(user: Cli, project: Path) -> None:
    """Other directories do not use the server, but their own index."""
    done = user.run(project, "search", "bake bread")

    assert "items of 3 sources indexed" in done.stderr
    assert user.run(project, "queue", "list").returncode == 4


def test_a_command_for_another_index_does_not_use_the_server(user: Cli, served: Path) -> None:
    """With another model or configuration, or --no-cache, a command indexes by itself."""
    (served.parent / "other.toml").write_text('[[sources]]\ntype = "tools"\npath = "tools"\n')
    for arguments in (["--no-cache"], ["--config", "../other.toml"], ["--model", "unknown/none"]):
        done = user.run(served, "search", "read_file", *arguments)

        assert "indexed in" in done.stderr
        assert "files__read_file" in done.stdout or "../" in arguments[-1]


def test_the_model_of_the_server_may_be_named(user: Cli, served: Path) -> None:
    """A command may name the server's default model by any of its names."""
    for name in ("repertory", "repertory-encoder"):
        stats = user.json(served, "stats", "--model", name)
        assert stats["model"] == "repertory-encoder-4"
        assert stats["items"] == PROJECT_ITEMS
        done = user.run(served, "search", "read_file", REPERTORY_SEARCH_MODEL=name)
        assert done.returncode == 0
        assert "indexed in" not in done.stderr
        assert "files__read_file" in done.stdout


@pytest.mark.parametrize("numbers", [(signal.SIGTERM,), (signal.SIGHUP, signal.SIGHUP)])
def test_a_server_shuts_down_cleanly(
    own: Cli, project: Path, tmp_path: Path, numbers: tuple[signal.Signals, ...]
) -> None:
    """SIGTERM or SIGHUP, even twice, ends the server with exit code 0 and keeps its index.

    A closed terminal may send SIGHUP twice: from the system and from the shell.
    """
    with Serve(own, project, tmp_path / "log") as server:
        assert server.get("/search?q=bake+bread")["results"][0]["toolId"] == "project/bread-baking"
        for number in numbers:
            server.process.send_signal(number)
        code = server.process.wait(TIMEOUT_S)
    events = [json.loads(line)["event"] for line in server.log.read_text("utf-8").splitlines()]
    assert code == 0
    assert {"serving", "configuration_adopted", "collection_published", "request"} <= set(events)
    assert not note_file(own, project).exists()
    assert own.run(project, "search", "bake bread").returncode == 0


def test_a_server_ends_if_its_data_directory_is_removed(
    own: Cli, project: Path, tmp_path: Path
) -> None:
    """A server without its data directory ends and writes nothing into a new one."""
    with Serve(own, project, tmp_path / "log") as server:
        own.data.rename(tmp_path / "old")
        assert server.process.wait(TIMEOUT_S) == 4
    assert f"{own.data} was removed while its server ran" in server.log.read_text("utf-8")
    assert not (own.data / "keywords").exists()
    add_skill(project, "knots", "---\nname: knots\ndescription: Tie a bowline.\n---\n")
    assert "project/knots" in found(own, project, "bowline")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_index_of_an_ended_server_is_used(
    own: Cli, project: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """Commands use the index of a server that ended or was killed."""
    own.run(project, "index")
    with Serve(own, project, tmp_path / "log") as server:
        add_skill(project, "knots", "---\nname: knots\ndescription: Tie a bowline.\n---\n")
        until(lambda: "project/knots" in found(own, project, "bowline"))
        server.end(number)

    assert "project/knots" in found(own, project, "bowline")


def test_an_outdated_note_is_ignored(own: Cli, project: Path, tmp_path: Path) -> None:
    """After SIGKILL, commands ignore the note of the server, and another can be started."""
    with Serve(own, project, tmp_path / "log") as server:
        server.end(signal.SIGKILL)
    note = note_file(own, project)
    assert note.exists()
    assert own.run(project, "search", "bake bread").returncode == 0
    note.write_text(json.dumps(json.loads(note.read_bytes()) | {"pid": os.getpid()}))
    assert own.run(project, "search", "bake bread").returncode == 0
    note.write_bytes(b'{"url": 7')
    assert own.run(project, "search", "bake bread").returncode == 0

    with Serve(own, project, tmp_path / "log") as server:
        assert server.end(signal.SIGINT) == 130
    assert not note.exists()


def test_only_the_noted_server_gets_secrets(own: Cli, project: Path, tmp_path: Path) -> None:
    """Another program on the noted port gets neither token nor key, and is not used.

    The user's own server needs no key, also if only its URL is given.
    """
    key = {"REPERTORY_SERVER_API_KEY": "rpt_of_another_server"}
    asked: list[tuple[str, str | None]] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.append((request.path, request.headers["Authorization"]))
        request.send_response(200)
        request.end_headers()
        request.wfile.write(b'{"alive": true, "proof": "none"}')

    with Serve(own, project, tmp_path / "log") as server, serving(answer) as other:
        assert own.run(project, "stats", **key).returncode == 0
        named = {"REPERTORY_SERVER_URL": server.url}
        assert own.run(tmp_path, "search", "bake bread", **named).returncode == 0
        server.end(signal.SIGKILL)
        note = note_file(own, project)
        changed = json.loads(note.read_bytes()) | {"pid": os.getpid(), "url": other}
        note.write_text(json.dumps(changed), "utf-8")
        assert own.run(project, "search", "bake bread", **key).returncode == 0
        refused = own.run(tmp_path, "search", "bake", REPERTORY_SERVER_URL=other)
    assert (refused.returncode, "not the server of this data directory" in refused.stderr) == (
        4,
        True,
    )
    assert set(asked) == {("/healthz", None)}


def test_the_sign_in_address_is_shown_in_a_terminal_only(
    own: Cli, project: Path, tmp_path: Path
) -> None:
    """Redirected output does not have the token, as others may read the file."""
    with (tmp_path / "out").open("wb") as out:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--port", "0"],
            cwd=project,
            env=own.environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        until(lambda: b"repertory keys token" in (tmp_path / "out").read_bytes(), process)
        token = note_of(own, project).token
    finally:
        process.kill()
        process.wait()
    assert token not in (tmp_path / "out").read_text("utf-8")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [0.0, 0.3, 0.6, 0.9])
def test_a_server_can_be_stopped_while_it_starts(
    own: Cli, project: Path, after: float, number: signal.Signals
) -> None:
    """A signal at any moment of the start ends the server without a traceback."""
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN, "serve", "--port", "0"],
        cwd=project,
        env=own.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(after)
        process.send_signal(number)
        _, output = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode in {-number, 130 if number == signal.SIGINT else 0}
    assert "Traceback" not in output


@pytest.mark.parametrize("command", ["serve", "mcp"])
def test_no_signal_is_lost_while_modules_are_imported(
    own: Cli, project: Path, command: str
) -> None:
    """SIGINT during imports ends the process at once, also in a callback that hides exceptions."""
    done = subprocess.run(
        [sys.executable, "-c", SIGNAL_IN_IMPORT, command],
        cwd=project,
        env=own.environment,
        stdin=subprocess.PIPE,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )

    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def test_nohup_keeps_a_server_running(own: Cli, project: Path, tmp_path: Path) -> None:
    """Under nohup, a server ignores SIGHUP: it goes on to index files and to answer."""
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            ["nohup", *COMMAND, "serve", "--port", "0"],
            cwd=project,
            env=own.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        until(lambda: b"collection_published" in (tmp_path / "log").read_bytes(), process)
        process.send_signal(signal.SIGHUP)
        add_skill(project, "knots", "---\nname: knots\ndescription: Tie a bowline.\n---\n")
        until(lambda: "project/knots" in found(own, project, "bowline"), process)
        assert note_of(own, project).pid == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
    finally:
        process.kill()
        process.wait()


def test_commands_wait_for_a_starting_server(own: Cli, project: Path) -> None:
    """After the server wrote its note, other commands wait for it instead of indexing."""
    note = note_file(own, project)
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0"],
        cwd=project,
        env=own.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(note.exists, process)
        done = own.run(project, "search", "holidays")
    finally:
        process.kill()
        process.wait()
    # On a busy machine, the first index may be incomplete when the command stops waiting.
    is_said = "The server at" in done.stderr or "first index" in done.stderr
    assert done.returncode == 0 or is_said
    assert "indexed in" not in done.stderr


def test_a_port_in_use_is_an_error(own: Cli, project: Path) -> None:
    """A port in use is exit code 2 with a line that names the port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = own.run(project, "serve", "--port", str(port))

    assert done.returncode == 2
    assert f"port {port}: Address already in use; choose" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "environment", "message"),
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
def test_conflicting_settings_are_exit_code_2(
    own: Cli, project: Path, command: str, environment: dict[str, str], message: str
) -> None:
    """The line names the setting and what to do."""
    done = own.run(project, *command.split(), **environment)

    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert message in done.stderr


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


def test_a_terminal_gets_readable_lines(own: Cli, project: Path) -> None:
    """On a terminal, the server prints its URL, and its log is not JSON."""
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
        while b"The index is complete" not in written:
            assert select.select([ours], [], [], TIMEOUT_S)[0]
            written += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 130
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"Serving . at http://127.0.0.1:" in written
    assert b" Watching 3 sources" in written
    assert b'{"' not in written
