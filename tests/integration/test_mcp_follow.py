"""Following MCP servers that are real processes."""

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from repertory.errors import SourceError
from repertory.sources.mcp import McpServer, client
from repertory.sources.mcp.server import ServerConfig, Transport

SERVERS = Path(__file__).parent.parent / "support" / "mcp_servers"
SECRET = "s3cret-t0ken"


class Place:
    """Where a changing server reads its tools, and notes that it was started."""

    def __init__(self, folder: Path) -> None:
        self.tools = folder / "tools"
        self.starts = folder / "starts"
        self.offer("first")

    def offer(self, *names: str) -> None:
        """Make the server offer other tools."""
        half = self.tools.with_suffix(".half")
        half.write_text("\n".join(names))
        half.replace(self.tools)

    @property
    def environment(self) -> dict[str, str]:
        """What the server needs to know."""
        return {"TOOLS": str(self.tools), "STARTS": str(self.starts)}

    @property
    def started(self) -> list[int]:
        """The ids of the processes that were started."""
        return [int(line) for line in self.starts.read_text().split()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place with one tool."""
    return Place(tmp_path)


class Following:
    """A source that is followed, and what its last scans found."""

    def __init__(self, config: ServerConfig, poll: float = 60) -> None:
        self.source = McpServer(config, trusted=True)
        self.changed = threading.Event()
        assert self.source.follow(self.changed.set, poll)

    def names(self) -> list[str]:
        """The tools that a scan finds."""
        return [item.name for item in self.source.scan().items]

    def wait_for(self, *names: str) -> None:
        """Wait until a scan finds these tools, looking whenever there is news."""
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(SourceError):
                if self.names() == list(names):
                    return
            assert time.monotonic() < deadline
            self.changed.wait(0.05)
            self.changed.clear()


Follow = Callable[..., Following]


@pytest.fixture
def follow() -> Iterator[Follow]:
    """Follows servers until the test is over."""
    followed = []

    def begin(config: ServerConfig, poll: float = 60) -> Following:
        followed.append(Following(config, poll))
        return followed[-1]

    yield begin
    for one in followed:
        one.source.leave()


def stdio(place: Place, **env: str) -> ServerConfig:
    """A changing server over stdio."""
    arguments = (str(SERVERS / "changing.py"), "stdio")
    return ServerConfig(
        name="lab", command=sys.executable, args=arguments, env=place.environment | env, timeout=20
    )


def test_a_change_is_listed_in_the_same_session(place: Place, follow: Follow) -> None:
    """A server over stdio that tells of changes is started once, and listed again and again."""
    lab = follow(stdio(place))
    lab.wait_for("first")
    place.offer("first", "second")
    lab.wait_for("first", "second")
    place.offer("third")
    lab.wait_for("third")
    assert len(place.started) == 1


def test_the_newer_protocol_tells_of_changes_too(
    place: Place, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no session is shaken hands on, changes are subscribed to."""
    monkeypatch.setattr(client, "_ways", lambda server: [(server.transport, "auto")])
    lab = follow(stdio(place))
    lab.wait_for("first")
    place.offer("second")
    lab.wait_for("second")
    assert len(place.started) == 1


def test_a_server_that_tells_of_no_changes_is_asked_again(place: Place, follow: Follow) -> None:
    """Each time it is started anew, and ends in between."""
    lab = follow(stdio(place, QUIET="1"), poll=0.2)
    lab.wait_for("first")
    place.offer("second")
    lab.wait_for("second")
    assert len(place.started) > 1


def test_a_server_that_was_killed_is_started_again(place: Place, follow: Follow) -> None:
    """Its tools stay as they were meanwhile: a lost line is no failure yet."""
    lab = follow(stdio(place))
    lab.wait_for("first")
    place.offer("second")
    os.kill(place.started[0], 9)
    lab.wait_for("second")
    assert len(place.started) == 2


def test_a_failure_is_told_and_got_over(place: Place, follow: Follow) -> None:
    """While a server cannot be listed a scan says why, without its secrets; then it recovers."""
    place.tools.unlink()
    lab = follow(stdio(place, TOKEN=SECRET), poll=0.5)
    with pytest.raises(SourceError, match="The MCP server lab ") as caught:
        lab.names()
    assert SECRET not in str(caught.value)
    place.offer("first")
    lab.wait_for("first")


def test_leaving_ends_the_server(place: Place, follow: Follow) -> None:
    """No process is left behind, and a scan launches the server itself again."""
    lab = follow(stdio(place))
    lab.wait_for("first")
    lab.source.leave()
    with pytest.raises(ProcessLookupError):
        os.kill(place.started[0], 0)
    assert lab.names() == ["first"]
    assert len(place.started) == 2


def test_over_http(place: Place, follow: Follow, caplog: pytest.LogCaptureFixture) -> None:
    """Changes come on the stream that the session holds open; the key is logged nowhere."""
    caplog.set_level(logging.DEBUG)
    process = subprocess.Popen(
        [sys.executable, str(SERVERS / "changing.py"), "http"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | place.environment,
    )
    try:
        assert process.stdout
        url = process.stdout.readline().strip()
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
        lab.source.leave()
    finally:
        process.kill()
        process.communicate()
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "config",
    [
        ServerConfig(name="lab", command="true"),
        ServerConfig(name="lab", fault="it is wrong"),
        ServerConfig(name="lab", command="repertory", args=("mcp",)),
    ],
)
def test_what_may_not_be_run_is_not_followed(config: ServerConfig) -> None:
    """A server nobody trusts, one that is set up wrong, and this program itself."""
    trusted = config.command != "true"
    assert not McpServer(config, trusted=trusted).follow(lambda: None, 60)
