"""The Python API: embedded and through a server, sync and async."""

import asyncio
import gc
import inspect
import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import repertory
from repertory.catalogue.item import Kind
from repertory.errors import (
    CallsOffError,
    ConfigurationError,
    StoreError,
    UnknownItemError,
    UsageError,
)
from repertory.remote import running
from repertory.search.links import Links
from repertory.settings import load
from repertory.system.cancellation import when_given_up
from tests.support.command_line import Cli, make_project
from tests.support.mcp_servers import SERVERS
from tests.support.query_service import MODEL
from tests.support.server_process import Serve

SERVER = SERVERS / "sdk.py"
WEATHER = {"mcpServers": {"weather": {"command": sys.executable, "args": [str(SERVER), "stdio"]}}}

Opening = Callable[[], repertory.Session]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Opening:
    """Open a session of a project in this process."""
    folder = make_project(tmp_path_factory.mktemp("open") / "project")
    config = folder.parent / "mcp.json"
    config.write_text(json.dumps(WEATHER))
    data = str(folder.parent / "data")

    def opening() -> repertory.Session:
        return repertory.open(
            folder, data_dir=data, model=MODEL, mcp_config=[config], allow_calls=True
        )

    with opening() as session:
        session.index()  # searches do not ask the MCP server
    return opening


@pytest.fixture(scope="module")
def connected(user: Cli, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opening]:
    """Connect to a server of an equal project in another process."""
    folder = make_project(tmp_path_factory.mktemp("connect") / "project")
    config = folder.parent / "mcp.json"
    config.write_text(json.dumps(WEATHER))
    arguments = ("--model", MODEL, "--mcp-config", str(config), "--allow-calls")
    with Serve(user, folder, folder.parent / "log", *arguments) as server:
        server.wait_for_sources()
        yield lambda: repertory.connect(server.url, server.token)


@pytest.fixture(params=["embedded", "connected"])
def opening(request: pytest.FixtureRequest) -> Opening:
    """Open a session, embedded or connected."""
    found: Opening = request.getfixturevalue(request.param)
    return found


def test_a_search_gives_hits_with_confidence_and_reason(opening: Opening) -> None:
    """Hits have id, confidence and reason; limit and kinds are applied."""
    with opening() as session:
        answer = session.search("read_fil")
        assert (answer.hits[0].id, answer.mode) == ("files__read_file", "hybrid")
        assert answer.hits[0].confidence >= 0.85
        assert "read_fil" in answer.hits[0].reason
        assert len(session.search("file", limit=1, threshold=0).hits) == 1
        only = session.search("bread", kinds=["skill"], threshold=0, limit=9).hits
        assert {hit.kind for hit in only} == {Kind.SKILL}


def test_a_search_is_explained(opening: Opening) -> None:
    """A search is explained for one item with the options of the search."""
    with opening() as session:
        assert session.explain("read_fil", "files__read_file").rank == 1
        found = session.explain("read_fil", "read_file", kinds=["skill"], limit=1)
        assert found.verdict.startswith("Filtered out: its kind is tool, and skill was asked for")


def test_items_are_listed_and_shown_whole(opening: Opening) -> None:
    """A list takes the filters of a search; one item has its schema."""
    with opening() as session:
        ids = [entry.id for entry in session.items(servers=["weather"])]
        assert ids == ["weather__alerts", "weather__forecast"]
        schema = session.item("weather__forecast").input_schema
        assert schema is not None
        assert schema["required"] == ["city"]
        with pytest.raises(UnknownItemError, match="did you mean files__read_file"):
            session.item("files__read_fil")


def test_a_tool_is_called(opening: Opening) -> None:
    """With allowed calls, a tool is called at its MCP server."""
    with opening() as session:
        result = session.call("weather__forecast", {"city": "Oslo", "days": 2})
        assert not result.is_error
        assert result.content[0]["text"] == "Oslo: sun for 2 days"


def test_calls_are_off_unless_they_are_allowed(tmp_path: Path) -> None:
    """The error says how to allow them."""
    folder = make_project(tmp_path / "project")
    with (
        repertory.open(folder, data_dir=str(tmp_path / "data"), model=MODEL) as session,
        pytest.raises(CallsOffError, match="REPERTORY_MCP_ALLOW_CALLS"),
    ):
        session.call("files__read_file")


def test_every_contract_is_a_method(opening: Opening) -> None:
    """The functions of all contracts are methods of a session."""
    with opening() as session:
        assert session.vector_update("handbook.md") == "OK"
        assert session.vector_update("../secret") != "OK"
        found = json.loads(session.search_skills("How holidays are asked for"))
        assert found[0]["path"] == "handbook.md"
        skills = session.discover_skills("bake sourdough bread", limit=1)["results"]
        assert [skill["name"] for skill in skills] == ["bread-baking"]
        files = session.search_project("holidays")
        assert files["totalResults"] == 1
        assert "Handbook" in files["content"]
        module = session.tools_module("weather")
        assert "forecast(" in module
        assert "read_file" not in module


def test_every_method_can_be_awaited(opening: Opening) -> None:
    """The asynchronous session has all methods, which can be awaited concurrently."""

    async def ask() -> None:
        async with opening() as session:
            answers = await asyncio.gather(*(session.search("read_file") for _ in range(8)))
            assert {answer.hits[0].id for answer in answers} == {"files__read_file"}
            assert (await session.item("files__read_file")).name == "read_file"
            task = asyncio.create_task(session.links("files__read_file"))  # takes coroutines only
            assert isinstance(await task, Links)

    asyncio.run(ask())
    awaited = vars(repertory.AsyncSession(opening()))
    methods = {name for name, _ in inspect.getmembers(repertory.Session, inspect.isfunction)}
    assert awaited.keys() == {name for name in methods if not name.startswith("_")} - {"close"}


def test_a_cancelled_method_cancels_what_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelling an awaited method cancels the call that it waits for."""
    begun, given_up = threading.Event(), threading.Event()

    def call(*_: object) -> None:
        when_given_up(given_up.set)
        begun.set()
        given_up.wait(10)

    async def ask(session: repertory.Session) -> None:
        task = asyncio.create_task(repertory.AsyncSession(session).call("desk__wait", {}))
        assert await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        assert await asyncio.to_thread(given_up.wait, 5)

    with repertory.connect("http://127.0.0.1:9") as session:
        monkeypatch.setattr(session, "call", call)
        asyncio.run(ask(session))


def test_errors_of_wrong_use_name_the_value(tmp_path: Path) -> None:
    """Errors of wrong use name the invalid value."""
    with pytest.raises(UsageError, match="There is no directory"):
        repertory.open(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="There is no setting 'modle'"):
        repertory.open(tmp_path, modle="x")  # type: ignore[call-arg]  # that is the mistake
    with pytest.raises(ConfigurationError, match="alpha is 2"):
        repertory.open(tmp_path, alpha=2)
    for wrong in ("~no-such-user/x", 5):
        with pytest.raises(UsageError, match="There is no directory"):
            repertory.open(wrong)  # type: ignore[arg-type]  # a number is the mistake
    with pytest.raises(UsageError, match="url is 5; it must be a text"):
        repertory.connect(5)  # type: ignore[arg-type]  # as above
    with pytest.raises(ConfigurationError, match="must look like http"):
        repertory.connect("localhost:7700")
    with repertory.connect("http://127.0.0.1:9") as session:
        with pytest.raises(StoreError, match="cannot be reached"):
            session.search("x")
        with pytest.raises(UsageError, match="no parameter 'lmit'; there are "):
            session.search("x", lmit=5)  # type: ignore[call-arg]  # that is the mistake
        with pytest.raises(UsageError, match="no parameter 'knd'"):
            session.explain("x", "y", knd=["skill"])  # type: ignore[call-arg]  # as above
        with pytest.raises(UsageError, match="no parameter 'limit'; there are kinds, "):
            session.items(limit=5)  # type: ignore[call-arg]  # as above


def test_warnings_are_not_shown_without_logging() -> None:
    """Without configured logging, warnings of the library are not written to stderr."""
    warn = "import logging, repertory; repertory.open; logging.getLogger('repertory.a').warning(1)"
    done = subprocess.run([sys.executable, "-c", warn], capture_output=True, check=True)
    assert done.stderr == b""


def test_a_deleted_working_directory_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deleted working directory is a ``UsageError``; a named directory still opens."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UsageError, match="current directory has been deleted"):
        repertory.open()
    with pytest.raises(UsageError, match="current directory has been deleted"):
        repertory.connect("http://127.0.0.1:9")
    repertory.open(tmp_path, data_dir=str(tmp_path / "data")).close()


def test_one_mcp_configuration_needs_no_list(tmp_path: Path) -> None:
    """``mcp_config`` may be one string or path, and ``data_dir`` a path."""
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps(WEATHER))
    data = tmp_path / "data"
    for one in (str(config), config):
        with repertory.open(tmp_path, data_dir=data, model=MODEL, mcp_config=one) as session:
            session.index()
            assert [entry.id for entry in session.items(servers=["weather"])]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_session_cannot_be_used_after_a_fork(embedded: Opening) -> None:
    """A session raises in a forked process, which lacks its threads; the parent's still works."""
    with embedded() as session:
        session.search("read_file")
        reading, writing = os.pipe()
        if not (child := os.fork()):
            signal.alarm(30)  # ends the process if it waits for ever
            try:
                session.search("read_file")
            except UsageError as error:
                os.write(writing, str(error).encode())
            session.close()
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as pipe:
            assert "before this process was forked; open another one" in pipe.read()
        os.waitpid(child, 0)
        assert session.search("read_file").hits[0].id == "files__read_file"


def test_a_second_session_of_a_directory_is_degraded(tmp_path: Path) -> None:
    """A second session of a directory is degraded and advises to share the first."""
    folder = make_project(tmp_path / "project")
    data = str(tmp_path / "data")
    with (
        repertory.open(folder, data_dir=data, model=MODEL) as first,
        repertory.open(folder, data_dir=data, model=MODEL) as second,
    ):
        assert first.search("read_file").degraded == ""
        degraded = second.search("read_file").degraded
        assert "already open in this program: share that session" in degraded


def test_a_replaced_session_is_closed(embedded: Opening) -> None:
    """A replaced session is closed at once, as no reference cycle keeps it alive."""
    gc.disable()
    try:
        session = embedded()
        session.search("read_file")
        session = embedded()
        assert session.search("read_file").degraded == ""
        session.close()
    finally:
        gc.enable()


def test_several_items_are_read_in_one_call(opening: Opening) -> None:
    """Several items are read in order without missing ids; ids must be a list."""
    with opening() as session:
        ids = [entry.id for entry in session.items(kinds=["skill"])]
        assert [*session.items_by_id([*ids, "no/such"])] == ids
        with pytest.raises(UsageError, match="ids is a string; give a list"):
            session.items_by_id(ids[0])


def test_a_key_is_sent_only_to_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of the environment is for the server named there, never for the user's own."""
    team, other, own = (f"http://{name}.example:7700" for name in ("team", "other", "own"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPERTORY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("REPERTORY_SERVER_API_KEY", "secret")
    settings = load({}, tmp_path)
    running.announce(settings, tmp_path, own, "token")
    assert [running.key_for(url, settings) for url in (team, own)] == ["secret", None]
    monkeypatch.setenv("REPERTORY_SERVER_URL", team)
    settings = load({}, tmp_path)
    assert [running.key_for(url, settings) for url in (team, other)] == ["secret", None]


def test_an_invalid_query_is_refused(opening: Opening) -> None:
    """Empty queries and parameters of a wrong type or range are refused."""
    with opening() as session:
        with pytest.raises(UsageError, match="empty"):
            session.search(" ")
        with pytest.raises(UsageError, match="threshold"):
            session.search("x", threshold=2)
        right: Any = 1  # equals True
        wrong: Any
        for wrong in (10**400, 10**5_000, math.nan, math.inf, True, "1", [1], {}):
            for name in ("threshold", "alpha"):
                session.search("x", **{name: right})
                with pytest.raises(UsageError, match=f"{name} is .{{1,100}}; it must be"):
                    session.search("x", **{name: wrong})
        for wrong in (None, 5):
            for ask in (session.search, session.item, session.links, session.call):
                with pytest.raises(UsageError, match=f"is {wrong}; it must be a text"):
                    ask(wrong)
            with pytest.raises(UsageError, match="query is"):
                session.explain(wrong, "x")
        with pytest.raises(UsageError, match=r"name is \['weather'\]; it must be a text"):
            session.tools_module(cast("str", ["weather"]))


def test_filters_that_would_match_nothing_are_refused(opening: Opening) -> None:
    """An unknown kind and a filter that is no list of strings are refused."""
    with opening() as session:
        with pytest.raises(UsageError, match="skill, tool, document"):
            session.search("x", kinds=["tol"])
        with pytest.raises(UsageError, match=r"tags=\['x'\]"):
            session.items(tags="x")
        wrong: Any
        for wrong in (None, 5, [5], [None]):
            for name in ("kinds", "sources", "servers", "tags"):
                with pytest.raises(UsageError, match=f"{name} is .*; it must be a list of strings"):
                    session.search("x", **{name: wrong})


def test_arguments_must_be_json(opening: Opening) -> None:
    """Invalid arguments are errors of Repertory or the contract, embedded and with a server."""
    with opening() as session:
        wrong: Any
        for wrong in (10**400, 10**5_000, math.nan, math.inf, True, "1", None, [1]):
            assert set(session.search_project("key", threshold=wrong)) == {"error"}
            if wrong != 10**400:  # means all results
                assert set(session.search_project("key", max_results=wrong)) == {"error"}
        assert set(session.search_project("key", max_results=0)) == {"error"}
        with pytest.raises(UsageError):
            session.search_skills("half \ud800")
        with pytest.raises(UsageError, match="limit must be 1 or more"):
            session.discover_skills("key", limit=0)


def test_a_closed_session_raises_usage_errors(opening: Opening) -> None:
    """Methods of a closed session raise a ``UsageError``; closing twice is allowed."""
    session = opening()
    session.close()
    session.close()
    for method in (session.search, session.search_skills, session.vector_update):
        with pytest.raises(UsageError, match="closed"):
            method("x")


def test_a_relative_sandbox_starts_at_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative sandbox is relative to the directory of the session."""
    folder = make_project(tmp_path / "project")
    (folder / "drafts").mkdir()
    (folder / "drafts" / "polish.md").write_text("Polish brass candlesticks.")
    monkeypatch.chdir(tmp_path)
    data = str(tmp_path / "data")
    with repertory.open("project", data_dir=data, model=MODEL, sandbox="drafts") as session:
        assert session.vector_update("polish.md") == "OK"
        assert json.loads(session.search_skills("polish brass"))[0]["path"] == "polish.md"


def test_public_names_can_be_completed() -> None:
    """``dir(repertory)`` has the names that are imported on first use."""
    assert {"open", "connect", "Session"} <= set(dir(repertory))


def test_the_import_is_light() -> None:
    """Importing ``repertory`` loads no large library."""
    code = "import sys, repertory; print({'numpy', 'msgspec', 'mcp'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
