"""Several projects in one server: a second ``serve`` or ``mcp`` joins the first."""

import asyncio
import contextlib
import http.client
import json
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from mcp import Client
from mcp_types import TextContent

from tests.support.command_line import COMMAND, Cli, add_skill, make_project
from tests.support.mcp_servers import SERVERS
from tests.support.mcp_sessions import http_session, stdio_session
from tests.support.query_service import bearer
from tests.support.server_process import Serve, ask, note_file, note_of
from tests.support.waiting import TIMEOUT_S, until

ALL = ("--threshold", "0", "--limit", "9")


class Joiner:
    """``repertory serve`` that joins a running server; a context manager.

    Attributes:
        said: The first line of its output.
    """

    def __init__(self, cli: Cli, folder: Path, *arguments: str) -> None:
        self._command = [*COMMAND, "serve", *arguments]
        self._folder = folder
        self._environment = cli.environment

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            self.said = self.line()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def line(self) -> str:
        """The next line of its output."""
        assert self.process.stdout
        assert select.select([self.process.stdout], [], [], TIMEOUT_S)[0], "it says nothing"
        return self.process.stdout.readline()


def pid_of(cli: Cli, folder: Path) -> int | None:
    """The process id of a folder's server, or None."""
    try:
        return note_of(cli, folder).pid
    except OSError:
        return None


def found(cli: Cli, folder: Path, *query: str) -> list[str]:
    """The ids that a search of a folder's server finds, once it has an index."""

    def answer() -> list[str] | None:
        done = cli.run(folder, "search", *query, *ALL, "--output", "json")
        assert "indexed in" not in done.stderr  # the server answers
        return (
            [hit["toolId"] for hit in json.loads(done.stdout)["results"]] if done.stdout else None
        )

    return until(answer) or []


def get(url: str | Request, token: str) -> bytes:
    """The content of a URL, requested with a token."""
    with ask(url, token) as response:
        content: bytes = response.read()
        return content


def collection(url: str, token: str) -> str:
    """The collection that a server searches."""
    return str(json.loads(get(f"{url}/stats", token))["collection"])


def ids_at(url: str, token: str, query: str) -> list[str]:
    """The ids that a search over HTTP finds; empty before the first index."""
    try:
        return [
            hit["toolId"] for hit in json.loads(get(f"{url}/search?q={query}", token))["results"]
        ]
    except HTTPError as error:
        error.close()
        return []


def refusal(request: str | Request) -> int:
    """The status of a refused request."""
    with pytest.raises(HTTPError) as caught:
        urlopen(request, timeout=TIMEOUT_S)
    caught.value.close()
    return caught.value.code


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Another project, with one skill that the first does not have."""
    folder = make_project(tmp_path / "second")
    add_skill(folder, "knots", "---\nname: knots\ndescription: Tie a bowline.\n---\n")
    return folder


@pytest.fixture
def host(own: Cli, project: Path, tmp_path: Path) -> Iterator[Serve]:
    """A server of the first project."""
    with Serve(own, project, tmp_path / "log") as server:
        yield server


async def searched(client: Client, query: str) -> list[str]:
    """The ids that a search of a session finds; waits for the first index."""
    given = {"query": query, "threshold": 0, "limit": 9, "detail": True}
    end = time.monotonic() + TIMEOUT_S
    while (result := await client.call_tool("search", given)).is_error and time.monotonic() < end:
        assert "Nothing is indexed yet" in str(result.content)
    assert not result.is_error, result.content
    assert isinstance(result.content[0], TextContent)
    return [hit["toolId"] for hit in json.loads(result.content[0].text)["results"]]


def test_a_second_server_joins_the_first(
    own: Cli, project: Path, second: Path, host: Serve
) -> None:
    """One process serves two projects, each with its own items and saves."""
    with Joiner(own, second) as joiner:
        url = note_of(own, second).url

        assert joiner.said == f"Joined the server at {url} (process {host.process.pid}).\n"
        assert pid_of(own, project) == pid_of(own, second) == host.process.pid
        assert url.startswith(f"{host.url}/projects/")
        assert found(own, second, "bowline")[0] == "project/knots"
        assert "project/knots" not in found(own, project, "bowline")

        add_skill(second, "kites", "---\nname: kites\ndescription: Fly a kite.\n---\n")
        add_skill(project, "soup", "---\nname: soup\ndescription: Cook a goulash.\n---\n")
        until(lambda: "project/kites" in found(own, second, "fly a kite"))
        until(lambda: "project/soup" in found(own, project, "goulash"))
        assert "project/soup" not in found(own, second, "goulash")

        joiner.process.send_signal(signal.SIGINT)
        assert joiner.process.wait(TIMEOUT_S) == 130
        until(lambda: pid_of(own, second) is None)
    assert host.get("/readyz")["ready"]


def test_a_joined_project_works_below_its_prefix(own: Cli, second: Path, host: Serve) -> None:
    """Pages, API description, TypeScript module and MCP of a project stay below its prefix."""
    with Joiner(own, second):
        found(own, second, "bowline")
        url = note_of(own, second).url
        root = url.removeprefix(host.url)
        token = host.token
        page = get(f"{url}/?q=bowline", token).decode()
        addresses = [
            part.partition('"')[0]
            for name in ('href="', 'src="', 'action="')
            for part in page.split(name)[1:]
        ]

        assert f"{root}/view/project/knots" in page
        assert all(one.startswith((f"{root}/", "#")) for one in addresses)
        for address in {one for one in addresses if one.startswith("/") and "logout" not in one}:
            assert get(host.url + address.replace("&amp;", "&"), token)
        assert get(url, token) == get(f"{url}/", token)
        assert json.loads(get(f"{url}/openapi.json", token))["servers"] == [{"url": root}]
        assert f"{url}" in get(f"{url}/runtime/tools.ts", token).decode()
        assert f"{host.url}/tools" not in get(f"{url}/runtime/tools.ts", token).decode()

        async def over_mcp() -> None:
            async with http_session(f"{url}/mcp", token) as client:
                assert (await searched(client, "bowline"))[0] == "project/knots"

        asyncio.run(over_mcp())


def test_a_session_joins_a_server(own: Cli, project: Path, second: Path, host: Serve) -> None:
    """A stdio session joins a server and searches its own project, also with required keys."""

    async def ask() -> None:
        async with stdio_session(own, second, mode="legacy") as client:
            assert (await searched(client, "bowline"))[0] == "project/knots"
            assert pid_of(own, second) == host.process.pid
        async with stdio_session(own, project, mode="legacy") as client:
            assert "project/knots" not in await searched(client, "bowline")

    for folder in (project, second):
        assert own.run(folder, "keys", "create", "someone").returncode == 0
    asyncio.run(ask())
    until(lambda: pid_of(own, second) is None)
    assert pid_of(own, project) == host.process.pid


def test_each_project_has_its_own_keys(own: Cli, second: Path, host: Serve) -> None:
    """Keys and browser cookies of one project are not valid for another."""
    with Joiner(own, second):
        url = note_of(own, second).url
        root = url.removeprefix(host.url)
        key = own.run(second, "keys", "create", "someone").stdout.strip()
        server = http.client.HTTPConnection(host.url.removeprefix("http://"), timeout=TIMEOUT_S)

        assert refusal(f"{url}/stats") == 401
        assert host.get("/stats")
        assert get(f"{url}/stats", key)
        with pytest.raises(HTTPError):
            get(f"{host.url}/stats", key)
        with contextlib.closing(server):
            form = {"Origin": host.url, "Content-Type": "application/x-www-form-urlencoded"}
            server.request("POST", f"{root}/login", f"key={key}&target={root}/status", form)
            answer = server.getresponse()
            cookies = [one.partition(";")[0] for one in answer.headers.get_all("Set-Cookie", [])]
        name = f"repertory_key_{root.rpartition('/')[2]}="
        [cookie] = [one for one in cookies if one.startswith(name)]
        assert (answer.status, answer.headers["Location"]) == (303, f"{root}/status")
        with urlopen(Request(f"{url}/status", headers={"Cookie": cookie})) as page:
            assert page.status == 200


def test_a_project_ends_with_its_last_process(own: Cli, second: Path, host: Serve) -> None:
    """A project is served until the last process that joined for it ends, even if killed."""
    with Joiner(own, second) as one, Joiner(own, second) as other:
        assert one.said == other.said
        one.process.kill()
        one.process.wait(TIMEOUT_S)
        assert found(own, second, "bowline")[0] == "project/knots"
        url = note_of(own, second).url
        other.process.kill()
        until(lambda: pid_of(own, second) is None)
        own_token = bearer(host.token)
        assert refusal(Request(f"{url}/stats", headers=own_token)) == 404
    assert host.process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_session_takes_over_from_the_host(
    own: Cli, project: Path, second: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """After the host ended or was killed, one joined session serves all other sessions."""
    third = make_project(tmp_path / "third")

    async def ask(server: Serve) -> None:
        async with (
            stdio_session(own, second, mode="legacy") as one,
            stdio_session(own, third, mode="legacy") as other,
        ):
            assert (await searched(one, "bowline"))[0] == "project/knots"
            assert "project/knots" not in await searched(other, "bowline")
            assert await asyncio.to_thread(server.end, number) in (0, -number)
            assert (await searched(one, "bowline"))[0] == "project/knots"
            assert (await searched(other, "bake bread"))[0] == "project/bread-baking"
            assert pid_of(own, second) == pid_of(own, third) != server.process.pid

    with Serve(own, project, tmp_path / "log") as server:
        asyncio.run(ask(server))


def test_a_joined_server_takes_over(own: Cli, project: Path, second: Path, tmp_path: Path) -> None:
    """After the host ended, a joined `serve` serves its directory at the configured port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with (
        Serve(own, project, tmp_path / "log", "--port", port) as server,
        Joiner(own, second, "--port", port) as joiner,
    ):
        assert joiner.said.startswith("Joined the server")
        server.end(signal.SIGTERM)
        assert "repertory keys token" in joiner.line()
        assert joiner.line().startswith(f"Serving . at http://127.0.0.1:{port};")
        assert pid_of(own, second) == joiner.process.pid
        assert found(own, second, "bowline")[0] == "project/knots"


def test_a_server_with_another_port_does_not_join(
    own: Cli, second: Path, host: Serve, tmp_path: Path
) -> None:
    """A server with another port does not join, and prints the reason."""
    with Serve(own, second, tmp_path / "other"):
        assert pid_of(own, second) != host.process.pid
        assert found(own, second, "bowline")[0] == "project/knots"
    assert "--port asks for port" in (tmp_path / "other").read_text("utf-8")


def test_a_second_server_names_its_ignored_settings(own: Cli, project: Path, host: Serve) -> None:
    """A second server of a directory joins the first and warns about its ignored flags."""
    with Joiner(own, project, "--allow-calls", "--limit", "1") as joiner:
        assert joiner.said == f"Joined the server at {host.url} (process {host.process.pid}).\n"
        assert joiner.process.stderr
        assert "have no effect: --allow-calls, --limit." in joiner.process.stderr.readline()
    with Joiner(own, project) as joiner:
        joiner.process.terminate()
        assert joiner.process.stderr
        assert "have no effect" not in joiner.process.stderr.read()


def test_only_the_users_own_processes_add_projects(own: Cli, second: Path, host: Serve) -> None:
    """Adding a project needs the secret of a private file, and is refused to web pages."""
    file = note_file(own, second).with_name("host.json")
    secret = json.loads(file.read_bytes())["secret"]
    body = json.dumps({"directory": str(second), "flags": {}, "environment": {}}).encode()

    def refused(**headers: str) -> int:
        return refusal(Request(f"{host.url}/projects", body, headers))

    assert file.stat().st_mode & 0o777 == 0o600
    assert refused() == 403
    assert refused(Authorization="Bearer other") == 403
    assert refused(Authorization=f"Bearer {secret}", Origin="http://evil.example") == 403
    assert pid_of(own, second) is None


def test_a_project_keeps_its_own_environment(
    own: Cli, second: Path, host: Serve, tmp_path: Path
) -> None:
    """Settings and MCP servers of a project use the environment of the joining process."""
    server = {"command": sys.executable, "args": [str(SERVERS / "sdk.py"), "${MODE}"]}
    file = second / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"weather": server}}), "utf-8")
    user = Cli(tmp_path / "home", tmp_path / "data")
    user.environment |= {"MODE": "stdio", "REPERTORY_SEARCH_LIMIT": "1"}

    with Joiner(user, second, "--mcp-config", "servers.json"):
        url = note_of(own, second).url
        ids = until(lambda: ids_at(url, host.token, "forecast&threshold=0&server=weather"))
        assert ids[0].startswith("weather__")
        assert len(ids) == 1
        assert len(ids_at(host.url, host.token, "bread&threshold=0")) > 1


def test_projects_with_the_same_sources_have_separate_indexes(own: Cli, tmp_path: Path) -> None:
    """Two projects with the same sources have separate indexes and both find new files."""
    shared = make_project(tmp_path / "shared")
    text = f'[[sources]]\ntype = "skills"\npath = "{shared / "skills"}"\n'
    folders = [tmp_path / name for name in ("first", "other")]
    for folder in folders:
        folder.mkdir()
        (folder / "repertory.toml").write_text(text, "utf-8")
        assert own.run(folder, "config", "trust", "repertory.toml").returncode == 0
    first, other = folders

    with Serve(own, first, tmp_path / "log") as server, Joiner(own, other) as joiner:
        url = note_of(own, other).url
        until(lambda: collection(url, server.token) and collection(server.url, server.token))
        assert collection(url, server.token) != collection(server.url, server.token)
        add_skill(shared, "knots", "---\nname: knots\ndescription: Tie a bowline.\n---\n")
        token = server.token
        until(
            lambda: (
                ids_at(url, token, "bowline")[:1] == ids_at(server.url, token, "bowline")[:1] != []
            )
        )
        joiner.process.send_signal(signal.SIGTERM)
        assert joiner.process.wait(TIMEOUT_S) == 0
        until(lambda: pid_of(own, other) is None)
        add_skill(shared, "kites", "---\nname: kites\ndescription: Fly a kite.\n---\n")
        until(lambda: any("kites" in one for one in ids_at(server.url, token, "fly+a+kite")))
