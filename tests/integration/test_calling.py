"""Calls of tools on real MCP servers, which behave well or badly."""

import errno
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from pathlib import Path
from typing import Any

import anyio
import pytest

from repertory.calling import servers, sessions
from repertory.calling.calls import Calls
from repertory.calling.sessions import Sessions
from repertory.catalogue.item import Item, Kind
from repertory.errors import (
    ArgumentsError,
    CallError,
    CallsOffError,
    CallTimeoutError,
    RepertoryError,
    UsageError,
)
from repertory.project.workspace import Workspace
from repertory.settings import load
from repertory.sources.configured import Catalogue
from repertory.sources.mcp import traffic
from repertory.sources.mcp.server import ServerConfig, Transport
from repertory.sources.tools import tool_items
from repertory.system.cancellation import waiting
from tests.support.builders import tool
from tests.support.mcp_servers import SERVERS, started
from tests.support.ports import free_port
from tests.support.waiting import TIMEOUT_S, until

SECRET = "s3cret-t0ken"
LONG = 600  # seconds, longer than any test


class Line:
    """Sessions and the server that is called through them."""

    def __init__(self, server: ServerConfig, shared: Sessions | None = None) -> None:
        self.sessions = shared or Sessions()
        self.server = server

    def __call__(self, tool: str, arguments: dict[str, Any] = {}, within: float = TIMEOUT_S) -> Any:  # noqa: ANN401, B006 - JSON, and never changed
        """Call a tool."""
        return self.sessions.call(self.server, tool, arguments, within)

    def text(self, tool: str, arguments: dict[str, Any] = {}) -> str:  # noqa: B006 - as above
        """Call a tool and return the first text of its result."""
        return str(self(tool, arguments)["content"][0]["text"])

    def failure(self, tool: str) -> str:
        """Return the message of a failed call."""
        with pytest.raises(CallError) as caught:
            self(tool)
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None
        return str(caught.value)

    def wait_in_vain(self) -> None:
        """Call a tool that exceeds its timeout."""
        with pytest.raises(CallTimeoutError) as caught:
            self("wait", {"seconds": LONG}, within=0.1)
        assert str(caught.value) == (
            "The MCP server lab did not answer the call of wait within 0.1 s."
        )


Lines = Callable[[ServerConfig], Line]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Opens lines and closes them after the test."""
    opened: list[Line] = []

    def open_line(server: ServerConfig) -> Line:
        opened.append(Line(server))
        return opened[-1]

    yield open_line
    for line in opened:
        line.sessions.close()
        line.sessions.close()  # a second call does nothing


def stdio(script: str, *arguments: str, **env: str) -> ServerConfig:
    """A server over stdio."""
    return ServerConfig(
        name="lab",
        command=sys.executable,
        args=(str(SERVERS / script), *arguments),
        env={"TOKEN": SECRET} | env,
        timeout=TIMEOUT_S,
    )


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The file in which the server of ``line`` records its starts and calls."""
    return tmp_path / "notes"


@pytest.fixture
def line(lines: Lines, notes: Path) -> Line:
    """A server whose tools are named after their behaviour."""
    return lines(stdio("raw.py", "callee", NOTES=str(notes)))


def is_running(process: str) -> bool:
    """Whether a process exists."""
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    return True


def test_a_lone_surrogate_in_an_answer_is_replaced(line: Line) -> None:
    """The tool has done its work, so the rest of its answer is kept."""
    assert line.text("halve") == "half \ufffd"


def test_a_server_on_the_sdk(lines: Lines) -> None:
    """Its results arrive unchanged, its own requests are refused, and its progress is ignored."""
    good = lines(stdio("callee.py", "stdio"))
    assert good("add", {"first": 1, "second": 2})["structuredContent"] == {"result": 3}
    text, image = good("draw")["content"]
    assert text == {"type": "text", "text": "a dot"}
    assert image == {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    assert good.text("echo", {"value": {"a": [None, 1.5]}}) == "{'a': [None, 1.5]}"
    assert good.text("echo", {"value": None}) == "None"
    assert good.text("elicit") == "refused: Elicitation not supported"
    assert good.text("report") == "done"
    failed = good("fail", {"reason": "out of luck"})
    assert failed["isError"] is True
    assert "out of luck" in failed["content"][0]["text"]


@pytest.mark.usefixtures("newer_protocol")
def test_the_newer_protocol(lines: Lines) -> None:
    """A server without a handshake is called in the same way, and its calls can be cancelled."""
    good = lines(stdio("callee.py", "stdio"))
    assert good("add", {"first": 1, "second": 2})["structuredContent"] == {"result": 3}
    before = good.text("process")
    good.wait_in_vain()
    assert good.text("process") == before


def test_calls_share_a_session(line: Line, notes: Path) -> None:
    """Calls to one server reach one process and run concurrently."""
    with ThreadPoolExecutor(8) as threads:
        slow = threads.submit(
            line, "wait", {"seconds": LONG}, 5.0
        )  # a timeout that the other calls do not need
        found = [threads.submit(line.text, "process") for _ in range(7)]
        processes = {one.result() for one in found}
        assert not slow.done()
        assert isinstance(slow.exception(), CallTimeoutError)
    assert notes.read_text().split()[:2] == ["started", *processes]


def test_a_call_that_times_out_is_cancelled(line: Line, notes: Path) -> None:
    """The server is notified, and its session continues."""
    before = line.text("process")
    line.wait_in_vain()
    until(lambda: "cancelled" in notes.read_text())
    assert line.text("process") == before


def test_a_call_whose_caller_has_left_is_cancelled(line: Line, notes: Path) -> None:
    """The call runs on another thread; the server is notified, and its session continues."""
    before = line.text("process")
    with ThreadPoolExecutor(1) as threads:
        with waiting():
            call = threads.submit(copy_context().run, line, "wait", {"seconds": LONG})
            until(lambda: "waiting" in notes.read_text())
        with pytest.raises(UsageError, match="The call of wait was cancelled by its caller"):
            call.result()
    until(lambda: "cancelled" in notes.read_text())
    assert line.text("process") == before


def test_a_call_whose_caller_has_left_is_not_started(line: Line, notes: Path) -> None:
    """The caller may leave while the call waits for a thread."""
    with waiting():
        late = copy_context()
    with pytest.raises(UsageError, match="cancelled by its caller"):
        late.run(line, "wait", {"seconds": LONG})
    assert line.text("process")
    assert "waiting" not in notes.read_text()


def test_a_call_that_fails_with_too_many_open_files_can_be_repeated(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call fails at once and does not block the next one."""

    def exhausted(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(anyio, "run", exhausted)
        assert line.failure("process") == (
            "Tools cannot be called now: Too many open files; try again."
        )
    assert line.text("process")


def test_a_server_that_exits_during_a_call_is_restarted_for_the_next(
    line: Line, notes: Path
) -> None:
    """The call is not retried, since it may have run; the server's last output is reported."""
    assert line.failure("die") == (
        "The MCP server lab ended with exit code 3 before it answered; it wrote: fatal: out of "
        "luck, ***."
    )
    assert notes.read_text().count("started") == 1
    assert is_running(line.text("process"))


def test_a_server_killed_between_calls_is_restarted(line: Line) -> None:
    """The next call succeeds in a new process."""
    before = line.text("process")
    os.kill(int(before), 9)
    until(lambda: not line.sessions._sessions)  # until the end is noticed, a call may fail
    assert line.text("process") != before


def test_a_changed_configuration_starts_another_session(line: Line) -> None:
    """The old session ends after its pending calls, and the new one is kept."""
    before = line.text("process")
    old = line.sessions._sessions["lab"]
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(line.text, "wait", {"seconds": 1.5})
        until(lambda: old._pending_calls == 1)
        line.server = stdio("raw.py", "callee", COLOUR="blue")
        assert line.text("colour") == "blue"
        after = line.text("process")
        assert slow.result() == "done"
    until(lambda: not is_running(before) and old._ended.is_set())
    assert line.text("process") == after


def test_an_unused_session_is_closed(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its server exits some time after the last call and is started again by the next one."""
    monkeypatch.setattr(sessions, "IDLE_TIMEOUT_S", 0.05)
    before = line.text("process")
    until(lambda: not is_running(before))
    assert line.text("process") != before


def test_an_old_session_is_renewed(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its server's program may have been replaced; pending calls finish first."""
    monkeypatch.setattr(sessions, "IDLE_TIMEOUT_S", 0.05)
    monkeypatch.setattr(sessions, "MAX_AGE_S", 0.0)
    with ThreadPoolExecutor(1) as threads:
        before = line.text("process")
        slow = threads.submit(line.text, "wait", {"seconds": 0.3})
        until(lambda: line.text("process") != before)
        assert slow.result() == "done"


def test_closing_ends_the_servers(line: Line) -> None:
    """Pending calls fail, and new ones are refused."""
    process = line.text("process")
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(line, "wait", {"seconds": LONG})
        assert is_running(line.text("process"))  # so the slow call was sent
        line.sessions.close()
        assert "was ended" in str(slow.exception())
    assert not is_running(process)
    assert "can no longer be called" in line.failure("process")


def test_a_process_exits_without_closing_its_sessions() -> None:
    """The process does not hang, and the server exits too."""
    script = (
        "import sys; from tests.integration.test_calling import Line, stdio;"
        "print(Line(stdio('raw.py', 'callee')).text('process'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
        cwd=SERVERS.parent.parent.parent,
    )
    until(lambda: not is_running(done.stdout))


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        ("nonsense", "answered with an invalid result: content: "),
        ("refuse", "answered with an error: no ***[2J."),
        ("flood", "sent more than 32 MB, 50,000 lines or 1,000,000 JSON objects."),
        ("close", "closed the connection."),
    ],
)
def test_bad_answers(line: Line, tool: str, message: str) -> None:
    """Each kind of bad answer has its own message, and the next call succeeds."""
    assert line.failure(tool).startswith(f"The MCP server lab {message}")
    assert line("good") == {"content": [], "structuredContent": {"days": 3}, "unknown": [1]}


def test_the_limit_of_output_is_per_call(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long session may produce more output in total."""
    monkeypatch.setattr(traffic, "MAX_LINES", 500)
    process = line.text("process")
    assert [line.text("talk") for _ in range(3)] == ["done"] * 3
    assert line.text("process") == process


def test_a_server_that_hangs_is_restarted(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer a ping after a timed-out call is stopped."""
    monkeypatch.setattr(sessions, "PING_TIMEOUT_S", 0.1)
    process = line.text("process")
    with pytest.raises(CallTimeoutError):
        line("hang", within=0.1)
    until(lambda: not is_running(process))
    assert line.text("process") != process


def test_a_server_that_does_not_start_blocks_no_other(line: Line) -> None:
    """Calls of other servers succeed; its own calls fail with the reason."""
    silent = stdio("raw.py", "silent")
    mute = ServerConfig(name="mute", command=silent.command, args=silent.args, timeout=0.5)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(Line(mute, line.sessions).failure, "good")
        assert line("good")["content"] == []
        assert waiting.result() == "The MCP server mute did not answer within 0.5 s."


def test_calls_of_one_server_are_bounded(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow server cannot use up all threads."""
    monkeypatch.setattr(sessions, "MAX_CONCURRENT_CALLS", 2)
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(line.text, "wait", {"seconds": 0.3})
        assert is_running(line.text("process"))
        monkeypatch.setattr(sessions, "MAX_CONCURRENT_CALLS", 1)
        assert "is already answering 1 calls; call again" in line.failure("process")
        assert slow.result() == "done"
    assert is_running(line.text("process"))


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (
            ServerConfig(name="lab", command="no-such-command"),
            "could not be started: no-such-command was not found in its search path (PATH)",
        ),
        (
            ServerConfig(name="lab", command="/no/such-command"),
            "could not be started: No such file or directory: /no/such-command",
        ),
        (stdio("raw.py", "crash"), "ended with exit code 3 before it answered; it wrote: "),
        (
            ServerConfig(name="lab", command="x", env={"A": "${NO_SUCH_VARIABLE}"}),
            "needs the environment variable NO_SUCH_VARIABLE",
        ),
        (
            ServerConfig(name="lab", transport=Transport.HTTP, url="http://127.0.0.1:9/mcp"),
            "could not be queried: ",
        ),
    ],
    ids=["command", "path", "crash", "variable", "address"],
)
def test_servers_that_cannot_be_reached(lines: Lines, server: ServerConfig, message: str) -> None:
    """The error gives the reason without the secrets of the configuration."""
    assert lines(server).failure("good").startswith(f"The MCP server lab {message}")


class Web:
    """A server over HTTP that can be stopped and restarted on the same port."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._port = free_port()
        self._running = ExitStack()
        self.start()

    def start(self) -> None:
        """Start the server."""
        server = started("callee.py", self._kind, str(self._port))
        self.url = self._running.enter_context(server)

    def end(self) -> None:
        """Stop the server."""
        self._running.close()

    @property
    def config(self) -> ServerConfig:
        """The configuration of the server, with secrets."""
        return ServerConfig(
            name="lab",
            transport=Transport.HTTP,
            url=f"{self.url}?key={SECRET}",
            headers={"X-Key": SECRET},
            timeout=TIMEOUT_S,
        )


@pytest.fixture
def start_web() -> Iterator[Callable[[str], Web]]:
    """Starts servers over HTTP, which are stopped after the test."""
    started: list[Web] = []

    def start(kind: str) -> Web:
        started.append(Web(kind))
        return started[-1]

    yield start
    for web in started:
        web.end()


def test_over_http(
    lines: Lines, start_web: Callable[[str], Web], caplog: pytest.LogCaptureFixture
) -> None:
    """Calls, errors and timeouts work as over stdio; a restarted server is called again."""
    caplog.set_level(logging.DEBUG)
    web = start_web("http")
    remote = lines(web.config)
    assert remote("add", {"first": 1, "second": 2})["structuredContent"] == {"result": 3}
    assert remote.text("elicit") == "refused: Elicitation not supported"
    assert remote.text("report") == "done"
    before = remote.text("process")
    remote.wait_in_vain()
    assert remote.text("process") == before
    web.end()
    web.start()
    assert remote.text("process") != before
    assert "The MCP server lab " in remote.failure("die")
    assert "could not be queried: " in remote.failure("process")
    assert SECRET not in caplog.text


def test_too_much_over_http(
    lines: Lines, start_web: Callable[[str], Web], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A response that is too large is aborted, and the next call succeeds."""
    monkeypatch.setattr(traffic, "MAX_BYTES", 100_000)
    remote = lines(start_web("http").config)
    for _ in range(3):
        assert len(remote.text("echo", {"value": "x" * 60_000})) == 60_002
    with pytest.raises(CallError, match="sent more than"):
        remote("echo", {"value": "x" * 200_000})
    assert remote.text("report") == "done"


@pytest.mark.usefixtures("newer_protocol")
def test_the_newer_protocol_over_http(lines: Lines, start_web: Callable[[str], Web]) -> None:
    """A server may require arguments as headers too."""
    remote = lines(start_web("stateless").config)
    assert remote.text("region", {"name": "Österreich"}) == "Österreich"
    before = remote.text("process")
    remote.wait_in_vain()
    assert remote.text("process") == before


class Place:
    """A directory with an MCP configuration, from which calls are opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.config = self.folder / ".mcp.json"
        self._data = str(folder / "data")
        self.opened: list[Calls] = []
        self.write()

    def write(self, **settings: object) -> None:
        """Write the configuration of the server `lab`, with these members."""
        server = stdio("raw.py", "callee")
        entry = {"command": server.command, "args": server.args, **settings}
        self.config.write_text(json.dumps({"mcpServers": {"lab": entry}}))

    def open(self, *, named: bool = True, **flags: object) -> Calls:
        """Open calls; the configuration is named explicitly or discovered."""
        named_files = [str(self.config)] if named else []
        flags |= {"data_dir": self._data, "mcp_config": named_files}
        settings = load(flags, self.folder, {})
        self.opened.append(Calls(settings.values, Workspace(settings, self.folder)))
        return self.opened[-1]

    def trust(self, config: Path) -> None:
        """Trust the current configuration."""
        settings = load({"data_dir": self._data}, self.folder, {})
        Workspace(settings, self.folder).trust.trust(config)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A place whose server is not trusted."""
    monkeypatch.setenv("HOME", str(tmp_path))
    one = Place(tmp_path)
    yield one
    for calls in one.opened:
        calls.close()


def refusal(calls: Calls, item: Item, **arguments: object) -> RepertoryError:
    """Return the error of a refused call."""
    with pytest.raises(RepertoryError) as caught:
        calls.call(item, arguments)
    return caught.value


GOOD = tool("lab__good")


def test_only_trusted_servers_are_called(place: Place) -> None:
    """A discovered configuration must be trusted, and again after every change."""
    calls = place.open(named=False)
    error = refusal(calls, GOOD)
    assert isinstance(error, CallsOffError)
    assert f"run `repertory config trust {place.config}`" in str(error)
    place.trust(place.config)
    assert calls.call(GOOD, {}).structured_content == {"days": 3}
    place.write(cwd=str(place.folder))
    assert isinstance(refusal(calls, GOOD), CallsOffError)


def test_a_changed_configuration_is_active_at_once(place: Place) -> None:
    """The next call uses a new session. A broken configuration leaves the last one active."""
    calls = place.open()
    assert calls.call(tool("lab__colour"), {}).words == "none"
    place.write(env={"COLOUR": "green"})
    assert calls.call(tool("lab__colour"), {}).words == "green"
    place.config.write_text("{")
    assert calls.call(tool("lab__colour"), {}).words == "green"


def test_a_configuration_that_changes_while_it_is_read_is_read_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor may have written only a part of it."""
    calls = place.open()
    assert calls.call(tool("lab__colour"), {}).words == "none"
    read = Workspace.catalogue

    def slowly(workspace: Workspace) -> Catalogue:
        monkeypatch.setattr(Workspace, "catalogue", read)
        try:
            return read(workspace)
        finally:
            place.write(env={"COLOUR": "green"})

    place.config.write_text("{")
    monkeypatch.setattr(Workspace, "catalogue", slowly)
    assert calls.call(tool("lab__colour"), {}).words == "none"
    assert calls.call(tool("lab__colour"), {}).words == "green"


def test_calls_that_are_not_allowed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error gives the reason, and no server is started."""
    monkeypatch.setattr(servers, "RETRY_INTERVAL_S", 0.0)
    calls = place.open()
    place.write(excludeTools=["good"])
    error = refusal(calls, GOOD)
    assert isinstance(error, CallsOffError)
    assert "is left out by its configuration" in str(error)
    place.write(command="repertory", args=["mcp"])
    assert "is Repertory itself" in str(refusal(calls, GOOD))
    place.write(args=5)
    error = refusal(calls, GOOD)
    assert isinstance(error, CallError)
    assert "is invalid" in str(error)
    place.write(disabled=True)
    error = refusal(calls, GOOD)
    assert isinstance(error, CallsOffError)
    assert "to no MCP server or API that is configured where this runs" in str(error)
    skill = Item(id="team/a", kind=Kind.SKILL, name="a", source="team")
    assert type(refusal(calls, skill)) is UsageError
    place.config.write_text("{")
    assert "The configuration of MCP servers is invalid: " in str(refusal(place.open(), GOOD))


def test_arguments_are_validated_first(place: Place) -> None:
    """Invalid arguments are an error of the caller, and the server is not started."""
    place.write(command="no-such-command")
    calls = place.open()
    days = tool("lab__good", input_schema={"properties": {"days": {"type": "integer"}}})
    error = refusal(calls, days, days="1")
    assert isinstance(error, ArgumentsError)
    assert "days must be integer" in str(error)
    assert "could not be started" in str(refusal(calls, days, days=1))
    assert calls.outcomes == {"caller": 1, "server": 1}


def test_results_are_validated(place: Place) -> None:
    """A result that violates the tool's output schema is an error of the server."""
    calls = place.open()
    days = {"type": "object", "properties": {"days": {"type": "integer"}}}
    good = calls.call(tool("lab__good", output_schema=days), {})
    assert good.as_json() == {"content": [], "structuredContent": {"days": 3}, "isError": False}
    for name, wrong in (("lie", "days must be integer"), ("forget", "no structured content")):
        error = refusal(calls, tool(f"lab__{name}", output_schema=days))
        assert isinstance(error, CallError)
        assert str(error).startswith("The MCP server lab answered the call of ")
        assert wrong in str(error)
    assert calls.call(tool("lab__forget"), {}).as_json() == {"content": [], "isError": False}
    assert calls.call(tool("lab__fail", output_schema=days), {"a": 1}).is_error


def test_timeouts(place: Place) -> None:
    """The timeout in a server's configuration overrides the setting."""
    calls = place.open(call_timeout=0.2)
    assert "within 0.2 s" in str(refusal(calls, tool("lab__wait"), seconds=LONG))
    place.config.write_text("{}")
    codex = place.folder / ".codex" / "config.toml"
    codex.parent.mkdir()
    server = stdio("raw.py", "callee")
    codex.write_text(
        f'[mcp_servers.lab]\ncommand = "{server.command}"\nargs = {list(server.args)}\n'
        "tool_timeout_sec = 0.1\n"
    )
    place.trust(codex)
    calls = place.open(named=False, call_timeout=0.2)
    assert "within 0.1 s" in str(refusal(calls, tool("lab__wait"), seconds=LONG))
    assert calls.outcomes == {"timeout": 1}


def test_a_tool_with_a_cleaned_name_is_called_by_its_original_name(place: Place) -> None:
    """The server knows only its own name for the tool."""
    [item], _ = tool_items("lab", "lab", [{"name": "odd\tname"}], "")
    assert item.name == "odd name"
    assert place.open().call(item, {}).words == "by its own name"


def test_each_call_is_logged_without_its_data(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the tool, its server and the outcome, but never arguments or answers."""
    caplog.set_level(logging.DEBUG)
    calls = place.open()
    calls.call(GOOD, {"key": SECRET})
    assert SECRET in calls.call(tool("lab__fail"), {"key": SECRET}).words
    logged = [vars(one) for one in caplog.records if one.getMessage() == "tool_called"]
    assert [(one["tool"], one["server"], one["outcome"]) for one in logged] == [
        ("lab__good", "lab", "ok"),
        ("lab__fail", "lab", "tool"),
    ]
    assert SECRET not in str([vars(record) for record in caplog.records])
