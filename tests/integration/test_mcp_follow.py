"""Following changes of real MCP servers."""

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from repertory.errors import SourceError
from repertory.sources.mcp.process import run_process
from repertory.sources.mcp.server import ServerConfig, Transport
from repertory.sources.mcp.source import McpServer
from repertory.sources.mcp.traffic import Traffic
from repertory.sources.mcp.variables import fill_in
from tests.support.mcp_servers import SERVERS, started
from tests.support.waiting import until

SECRET = "s3cret-t0ken"
POLL_S = 64.0


class Place:
    """The files of a server that changes: its tools, and the ids of its processes."""

    def __init__(self, folder: Path) -> None:
        self.tools = folder / "tools"
        self.starts = folder / "starts"
        self.offer("first")

    def offer(self, *names: str) -> None:
        """Change the tools of the server."""
        half = self.tools.with_suffix(".half")
        half.write_text("\n".join(names))
        half.replace(self.tools)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the server."""
        return {"TOOLS": str(self.tools), "STARTS": str(self.starts)}

    @property
    def started(self) -> list[int]:
        """The process ids of all starts, in order."""
        return [int(line) for line in self.starts.read_text().split()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place whose server has one tool."""
    return Place(tmp_path)


class Following:
    """A source that is followed, and its scans."""

    def __init__(self, config: ServerConfig, poll: float = 60) -> None:
        self.source = McpServer(config, trusted=True)
        self.changed = threading.Event()
        stop = self.source.watch(self.changed.set, poll)
        assert stop
        self.stop = stop

    def names(self) -> list[str]:
        """Scan, and return the names of the tools."""
        return [item.name for item in self.source.scan().items]

    def wait_for(self, *names: str) -> None:
        """Wait until a scan finds these tools; rescan after each signal of a change."""

        def are_found() -> bool:
            self.changed.wait(0.05)
            self.changed.clear()
            with contextlib.suppress(SourceError):
                return self.names() == list(names)
            return False

        until(are_found)


Follow = Callable[..., Following]


@pytest.fixture
def follow() -> Iterator[Follow]:
    """Follows servers until the end of the test."""
    followed = []

    def begin(config: ServerConfig, poll: float = 60) -> Following:
        followed.append(Following(config, poll))
        return followed[-1]

    yield begin
    for one in followed:
        one.stop()


def stdio(place: Place, **env: str) -> ServerConfig:
    """Configure a changing server over stdio."""
    arguments = (str(SERVERS / "changing.py"), "stdio")
    return ServerConfig(
        name="lab", command=sys.executable, args=arguments, env=place.environment | env, timeout=20
    )


def test_a_change_is_listed_in_the_same_session(place: Place, follow: Follow) -> None:
    """A stdio server that reports changes is started once."""
    lab = follow(stdio(place))
    lab.wait_for("first")
    place.offer("first", "second")
    lab.wait_for("first", "second")
    place.offer("third")
    lab.wait_for("third")
    assert len(place.started) == 1


@pytest.mark.usefixtures("newer_protocol")
def test_the_newer_protocol_reports_changes_too(place: Place, follow: Follow) -> None:
    """A protocol without a handshake has a subscription for changes."""
    lab = follow(stdio(place))
    lab.wait_for("first")
    place.offer("second")
    lab.wait_for("second")
    assert len(place.started) == 1


def test_a_server_that_reports_no_changes_is_polled(place: Place, follow: Follow) -> None:
    """It is started for each listing and ends after it."""
    lab = follow(stdio(place, QUIET="1"), poll=0.2)
    lab.wait_for("first")
    place.offer("second")
    lab.wait_for("second")
    assert len(place.started) > 1


def test_a_server_that_was_killed_is_started_again(place: Place, follow: Follow) -> None:
    """A lost connection alone is no failure, so its tools are kept meanwhile."""
    lab = follow(stdio(place))
    lab.wait_for("first")
    place.offer("second")
    os.kill(place.started[0], 9)
    lab.wait_for("second")
    assert len(place.started) == 2


def test_a_failure_is_reported_and_overcome(place: Place, follow: Follow) -> None:
    """A scan gives the reason without secrets; later the server recovers."""
    place.tools.unlink()
    lab = follow(stdio(place, TOKEN=SECRET), poll=0.5)
    with pytest.raises(SourceError, match="The MCP server lab ") as caught:
        lab.names()
    assert SECRET not in str(caught.value)
    place.offer("first")
    lab.wait_for("first")


def test_a_listing_resets_the_pause_after_failures(
    place: Place, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes a polled server: its next failure is retried as fast as the first."""
    waits: list[float] = []

    def noted(seconds: float) -> float:
        is_last = seconds < POLL_S and POLL_S in waits  # so it stops in a wait, not at a start
        if seconds <= POLL_S:  # a longer time is the length of a session
            waits.append(seconds)
        return POLL_S if is_last else 0.01

    monkeypatch.setattr("repertory.sources.mcp.follow.jittered", noted)
    place.tools.unlink()
    follow(stdio(place, QUIET="1"), poll=POLL_S)
    until(lambda: len(waits) > 1)
    place.offer("first")
    until(lambda: POLL_S in waits)
    place.tools.unlink()
    until(lambda: waits[-1] != POLL_S)
    assert (waits[:2], waits[-1]) == ([1, 2], 1)


def test_an_unexpected_error_is_reported(
    tmp_path: Path, follow: Follow, caplog: pytest.LogCaptureFixture
) -> None:
    """Here, reading the sign-in fails because of a lone surrogate in the URL."""
    url = "http://127.0.0.1:9/\ud800"
    config = ServerConfig(name="lab", transport=Transport.HTTP, url=url, sign_ins=str(tmp_path))
    lab = follow(config)
    with pytest.raises(SourceError, match="lab could not be queried: UnicodeEncodeError"):
        lab.names()
    assert "follow_failed" in caplog.text


def test_stopping_ends_the_server(place: Place, follow: Follow) -> None:
    """No process is left behind, and the next scan starts the server itself."""
    lab = follow(stdio(place))
    lab.wait_for("first")
    lab.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(place.started[0], 0)
    assert lab.names() == ["first"]
    assert len(place.started) == 2


@pytest.mark.parametrize("is_started", [False, True])
def test_stopping_at_a_start_ends_the_server(
    place: Place, monkeypatch: pytest.MonkeyPatch, *, is_started: bool
) -> None:
    """A server is not started after a stop, and one that is starting then is ended properly."""
    start = asyncio.BaseEventLoop.subprocess_exec
    starts: list[object] = []
    ended: list[asyncio.SubprocessTransport] = []

    async def run() -> None:
        async def starting(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - passed on
            starts.append(args)
            scope.cancel()
            process, protocol = await start(*args, **options)
            ended.append(process)
            return process, protocol

        monkeypatch.setattr(asyncio.BaseEventLoop, "subprocess_exec", starting)
        with anyio.CancelScope() as scope:
            if not is_started:  # the cancellation waits in the loop, as from another thread
                asyncio.get_running_loop().call_soon(scope.cancel)
            async with run_process(fill_in(stdio(place)), Traffic()):
                await anyio.sleep_forever()

    anyio.run(run)
    assert (len(starts), len(ended)) == (is_started, is_started)
    assert all(process.get_returncode() is not None for process in ended)


def test_over_http(place: Place, follow: Follow, caplog: pytest.LogCaptureFixture) -> None:
    """Changes arrive on the session's open stream; the key is never logged."""
    caplog.set_level(logging.DEBUG)
    with started("changing.py", "http", **place.environment) as url:
        config = ServerConfig(
            name="lab",
            transport=Transport.HTTP,
            url=f"{url}?key={SECRET}",
            headers={"X-Key": SECRET},
            timeout=20,
        )
        lab = follow(config)
        lab.wait_for("first")
        place.offer("second")
        lab.wait_for("second")
        lab.stop()
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "config",
    [
        ServerConfig(name="lab", command="true"),
        ServerConfig(name="lab", fault="it is wrong"),
        ServerConfig(name="lab", command="repertory", args=("mcp",)),
    ],
)
def test_servers_that_may_not_run_are_not_followed(config: ServerConfig) -> None:
    """They are an untrusted server, an invalid one, and Repertory itself."""
    trusted = config.command != "true"
    assert McpServer(config, trusted=trusted).watch(lambda: None, 60) is None
