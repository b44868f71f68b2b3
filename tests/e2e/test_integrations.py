"""The adapters for LangChain and LlamaIndex, with the real libraries."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import repertory
from repertory.catalogue.item import Kind
from repertory.errors import StoreError, UsageError
from tests.support.command_line import Cli, make_project
from tests.support.mcp_servers import SERVERS
from tests.support.query_service import MODEL
from tests.support.server_process import Serve

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "integrations.md").read_text("utf-8")
FUNCTIONS = ["search_catalogue", "get_item", "call_tool"]
# Names of parameters that methods of the frameworks also have.
ODD = ["self", "config", "func", "input", "run_manager", "args", "kwargs", "callbacks"]
ODD_TOOL = {
    "name": "odd.one out",
    "description": f"Juggle porcelain plates. {'Slowly. ' * 300}",
    "inputSchema": {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ODD},
        "required": ODD,
    },
}

SAVED_TOOL = {"name": "add_two_numbers", "inputSchema": {"type": "object"}}  # belongs to no server


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A project and an MCP configuration of servers with tools to call."""
    folder = make_project(tmp_path_factory.mktemp("integrations") / "project")
    (folder / "tools" / "adder.json").write_text(json.dumps([SAVED_TOOL]), "utf-8")
    tools = folder.parent / "tools.json"
    tools.write_text(json.dumps([ODD_TOOL]), "utf-8")
    servers = {
        "callee": {"command": sys.executable, "args": [str(SERVERS / "callee.py"), "stdio"]},
        "odd": {"command": sys.executable, "args": [str(SERVERS / "declared.py"), str(tools)]},
    }
    config = folder.parent / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return folder, config


@pytest.fixture(scope="module", params=["embedded", "connected"])
def session(
    request: pytest.FixtureRequest, project: tuple[Path, Path], user: Cli
) -> Iterator[repertory.Session]:
    """A session of the project, in this process or through a server."""
    folder, config = project
    if request.param == "connected":
        flags = ("--model", MODEL, "--mcp-config", str(config), "--allow-calls")
        with Serve(user, folder, folder.parent / "log", *flags) as server:
            server.wait_for_sources()
            yield repertory.connect(server.url, server.token)
        return
    data = folder.parent / "data"
    with repertory.open(
        folder, data_dir=str(data), model=MODEL, mcp_config=[config], allow_calls=True
    ) as embedded:
        embedded.index()
        yield embedded


@pytest.fixture(scope="module")
def away() -> repertory.Session:
    """A session of a server that does not run."""
    return repertory.connect("http://127.0.0.1:9")


def is_declared(tool: dict[str, Any]) -> bool:
    """Whether model APIs accept the declaration of a tool."""
    function = tool["function"]
    return (
        re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"]) is not None
        and 0 < len(function["description"]) <= 1_024
        and function["parameters"]["type"] == "object"
    )


class TestLangChain:
    """``repertory.integrations.langchain``."""

    module: Any
    declared: Any

    @pytest.fixture(autouse=True)
    def _module(self) -> None:
        pytest.importorskip("langchain_core", reason="the extra langchain is not installed")
        from langchain_core.utils import function_calling  # noqa: PLC0415 - see above

        from repertory.integrations import langchain  # noqa: PLC0415 - see above

        self.module, self.declared = langchain, function_calling.convert_to_openai_tool

    def test_a_retriever_gives_whole_texts(self, session: repertory.Session) -> None:
        """A retriever returns whole texts with metadata, also asynchronously."""
        asked = {"kinds": ["document"], "limit": 1}
        retriever = self.module.RepertoryRetriever(session=session, asked=asked)
        (document,) = retriever.invoke("how holidays are asked for")
        assert document.page_content.startswith("# Handbook\n\nHow holidays")
        assert document.metadata["kind"] == Kind.DOCUMENT
        assert document.metadata["path"].endswith("handbook.md")
        assert document.metadata["id"] == document.id
        assert 0.35 < document.metadata["confidence"] <= 1
        assert document.metadata["reason"]
        assert asyncio.run(retriever.ainvoke("how holidays are asked for")) == [document]

    def test_an_agent_can_search_read_and_call(self, session: repertory.Session) -> None:
        """An agent gets tools to search, read and call; without calls, only the first two."""
        toolkit = self.module.RepertoryToolkit(session=session, calls=True)
        search, get, call = toolkit.get_tools()
        assert [search.name, get.name, call.name] == FUNCTIONS
        assert all(is_declared(self.declared(one)) for one in (search, get, call))
        assert " callee__add(first, second): Add two" in search.invoke({"query": "add numbers"})
        assert "Handbook" in get.invoke({"item_id": "documents/handbook.md"})
        assert '"first"' in get.invoke({"item_id": "callee__add"})
        wanted = {"tool_id": "callee__add", "arguments": {"first": 2, "second": 3}}
        assert call.invoke(wanted) == asyncio.run(call.ainvoke(wanted)) == "5"
        careful = self.module.RepertoryToolkit(session=session).get_tools()
        assert [one.name for one in careful] == FUNCTIONS[:2]

    def test_found_tools_are_called(self, session: repertory.Session) -> None:
        """Found tools can be called; the artifact of a message has the structured content."""
        toolkit = self.module.RepertoryToolkit(session=session)
        assert session.search("add two numbers", kinds=["tool"]).hits[0].source == "tools"
        assert toolkit.find_tools("add two numbers", sources=["tools"]) == []
        add = toolkit.find_tools("add two numbers", limit=1)[0]
        assert add.name == "callee__add"
        assert add.args.keys() == {"first", "second"}
        request = {"type": "tool_call", "id": "1", "name": add.name}
        message = add.invoke({**request, "args": {"first": 2, "second": 3}})
        assert (message.content, message.status) == ("5", "success")
        assert message.artifact.structured_content == {"result": 5}
        assert asyncio.run(add.ainvoke({"first": 20, "second": 3})) == "23"

    def test_any_tool_can_be_declared_and_called(self, session: repertory.Session) -> None:
        """A tool with an unusual name, description and arguments can be declared and called."""
        toolkit = self.module.RepertoryToolkit(session=session)
        (odd,) = toolkit.find_tools("juggle porcelain plates", servers=["odd"])
        assert is_declared(self.declared(odd))
        assert odd.invoke(dict.fromkeys(ODD, "x")) == "called"
        assert asyncio.run(odd.ainvoke(dict.fromkeys(ODD, "x"))) == "called"

    def test_a_model_gets_errors_that_it_can_correct(
        self, session: repertory.Session, away: repertory.Session
    ) -> None:
        """Errors that a model can correct are returned to it; others are raised."""
        toolkit = self.module.RepertoryToolkit(session=session, calls=True)
        fail = toolkit.find_tools("fail with a reason", servers=["callee"], limit=1)[0]
        request = {"type": "tool_call", "id": "1", "name": fail.name}
        message = fail.invoke({**request, "args": {"reason": "no ink"}})
        assert message.status == "error"
        assert "no ink" in message.content
        assert "reason must be given" in fail.invoke({})
        _, get, call = toolkit.get_tools()
        assert "There is no item 'nothing'" in get.invoke({"item_id": "nothing"})
        refused = {"tool_id": "callee__fail", "arguments": {"reason": "no paper"}}
        assert "no paper" in call.invoke(refused)
        assert "item_id" in get.invoke({"id": "callee__fail"})
        assert "tool_id" in call.invoke({"arguments": {}})
        assert "reason must be given" in call.invoke({"tool_id": "callee__fail"})
        with pytest.raises(StoreError, match="cannot be reached"):
            self.module.RepertoryToolkit(session=away).get_tools()[0].invoke({"query": "x"})
        with pytest.raises(StoreError, match="cannot be reached"):
            self.module.RepertoryRetriever(session=away).invoke("x")
        asked = {"kinds": ["tol"]}
        with pytest.raises(UsageError, match="There is no kind 'tol'"):
            self.module.RepertoryRetriever(session=session, asked=asked).invoke("x")


class TestLlamaIndex:
    """``repertory.integrations.llamaindex``."""

    module: Any

    @pytest.fixture(autouse=True)
    def _module(self) -> None:
        pytest.importorskip("llama_index.core", reason="the extra llamaindex is not installed")
        from repertory.integrations import llamaindex  # noqa: PLC0415 - see above

        self.module = llamaindex

    def test_a_retriever_gives_whole_texts(self, session: repertory.Session) -> None:
        """A retriever returns whole texts with the confidence as score, also asynchronously."""
        retriever = self.module.RepertoryRetriever(session, kinds=["document"], limit=1)
        (found,) = retriever.retrieve("how holidays are asked for")
        assert found.text.startswith("# Handbook\n\nHow holidays")
        assert found.metadata["kind"] == Kind.DOCUMENT
        assert found.metadata["id"] == found.node_id
        assert found.score == found.metadata["confidence"] > 0.35
        (awaited,) = asyncio.run(retriever.aretrieve("how holidays are asked for"))
        assert awaited.node_id == found.node_id

    def test_an_agent_can_search_read_and_call(self, session: repertory.Session) -> None:
        """An agent gets tools to search, read and call; without calls, only the first two."""
        search, get, call = self.module.RepertoryToolSpec(session, calls=True).to_tool_list()
        names = [one.metadata.name for one in (search, get, call)]
        assert names == FUNCTIONS
        assert all(is_declared(one.metadata.to_openai_tool()) for one in (search, get, call))
        assert " callee__add(first, second): Add two" in search(query="add numbers").content
        assert "Handbook" in get(item_id="documents/handbook.md").content
        wanted = {"tool_id": "callee__add", "arguments": {"first": 2, "second": 3}}
        assert call(**wanted).content == asyncio.run(call.acall(**wanted)).content == "5"
        assert call(tool_id="callee__echo").content == "None"
        for missing in (get(item_id="nothing"), asyncio.run(get.acall(item_id="nothing"))):
            assert missing.is_error
            assert "There is no item 'nothing'" in missing.content
        refused = call(tool_id="callee__fail", arguments={"reason": "no paper"})
        assert (refused.is_error, "no paper" in refused.content) == (True, True)
        assert len(self.module.RepertoryToolSpec(session).to_tool_list()) == 2

    def test_found_tools_are_called(self, session: repertory.Session) -> None:
        """Found tools can be called with the library's own functions for agents."""
        from llama_index.core.tools.calling import (  # noqa: PLC0415 - as above
            acall_tool,
            call_tool,
        )

        spec = self.module.RepertoryToolSpec(session)
        (add,) = spec.find_tools("add two numbers", limit=1)
        output = call_tool(add, {"first": 2, "second": 3})
        assert (output.content, output.is_error) == ("5", False)
        assert output.raw_output.structured_content == {"result": 5}
        assert asyncio.run(acall_tool(add, {"first": 20, "second": 3})).content == "23"
        (echo,) = spec.find_tools("echo", servers=["callee"], limit=1)
        assert call_tool(echo, {"value": "hi"}).content == "'hi'"
        assert call_tool(echo, {}).content == "None"

    def test_any_tool_can_be_declared_and_called(self, session: repertory.Session) -> None:
        """A tool with an unusual name, description and arguments can be declared and called."""
        spec = self.module.RepertoryToolSpec(session)
        (odd,) = spec.find_tools("juggle porcelain plates", servers=["odd"])
        assert is_declared(odd.metadata.to_openai_tool())
        assert json.loads(odd.metadata.fn_schema_str)["required"] == ODD
        assert odd(**dict.fromkeys(ODD, "x")).content == "called"
        assert asyncio.run(odd.acall(**dict.fromkeys(ODD, "x"))).content == "called"

    def test_a_model_gets_errors_that_it_can_correct(
        self, session: repertory.Session, away: repertory.Session
    ) -> None:
        """Errors that a model can correct are returned as errors; others are raised."""
        spec = self.module.RepertoryToolSpec(session)
        (fail,) = spec.find_tools("fail with a reason", servers=["callee"], limit=1)
        failed = fail(reason="no ink")
        assert failed.is_error
        assert "no ink" in failed.content
        wrong = fail(reasons="no ink")
        assert wrong.is_error
        assert "reason must be given" in wrong.content
        (add,) = spec.find_tools("add two numbers", limit=1)
        with pytest.raises(UsageError, match="arguments by name: first, second"):
            add(2)
        with pytest.raises(StoreError, match="cannot be reached"):
            self.module.RepertoryRetriever(away).retrieve("x")
        with pytest.raises(UsageError, match="There is no kind 'tol'"):
            self.module.RepertoryRetriever(session, kinds=["tol"]).retrieve("x")


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A copy of examples/, and the environment variables of a new user."""
    home = tmp_path_factory.mktemp("guide")
    shutil.copytree(ROOT / "examples", home / "examples")
    return (
        home / "examples",
        {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # as if activated
            "HOME": str(home),
            "HF_HUB_OFFLINE": "1",
            "REPERTORY_DATA_DIR": str(home / "data"),
        },
    )


@pytest.mark.parametrize("module", ["langchain", "llamaindex"])
def test_the_example_of_the_guide_runs(module: str, examples: tuple[Path, dict[str, str]]) -> None:
    """The example code runs unchanged in a copy of examples/."""
    pytest.importorskip({"langchain": "langchain_core", "llamaindex": "llama_index.core"}[module])
    (code,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
        if f"integrations.{module} " in block
    )
    folder, environment = examples
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, functions, called = done.stdout.split("\n", 2)
    assert re.match(r"skills/rotating-api-keys 0\.\d+ \d{3,}", found)
    assert functions == str(FUNCTIONS)
    assert called.startswith("notes__add_note {")
    assert "Buy oats" in called


@pytest.mark.parametrize(
    ("module", "package"), [("langchain", "langchain_core"), ("llamaindex", "llama_index")]
)
def test_a_missing_library_is_named_with_its_extra(module: str, package: str) -> None:
    """The error ends with the command that installs the missing extra."""
    code = f"import sys; sys.modules[{package!r}] = None; import repertory.integrations.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith(f"; run: pip install 'repertory[{module}]'")
