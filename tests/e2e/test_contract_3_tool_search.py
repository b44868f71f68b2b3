"""Contract 3, hybrid tool search, tested embedded and through a running server.

Most docstrings quote the sentence of the contract that their test checks.

Calls of tools are in ``test_contract_3_calling.py``, downloads of models in
``integration/test_embedding_hub.py``, and compiling the types of arbitrary tools in
``integration/test_typescript_compiles.py``.
"""

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request

import msgspec
import pytest

from repertory.embedding import load as loading
from repertory.embedding.load import load_engine
from repertory.embedding.models import DEFAULT, known
from repertory.errors import ModelError
from repertory.local.one_shot import Repertory
from repertory.search.query import query_of
from repertory.settings import load
from repertory.stats import Run
from repertory.values import Values
from tests.support.command_line import Cli, make_project
from tests.support.mcp_servers import SERVERS
from tests.support.model_folders import write_model
from tests.support.query_service import RunningService, settings_of
from tests.support.server_process import Serve
from tests.support.server_process import ask as sent
from tests.support.typescript import compile_strictly, compiler

pytestmark = pytest.mark.usefixtures("own_home")  # only the test's own files are found

WEATHER = SERVERS / "sdk.py"

Answer = dict[str, Any]
# Runs a search with options, which are named like the parameters of the URL.
Ask = Callable[..., Answer]


def server_entry(*tools: str) -> dict[str, Any]:
    """A real MCP server with two tools, optionally filtered."""
    entry = {"command": sys.executable, "args": [str(WEATHER), "stdio"]}
    return entry | ({"includeTools": list(tools)} if tools else {})


def write_servers(file: Path, **servers: Any) -> Path:  # noqa: ANN401 - as hosts write them
    """Write an MCP configuration."""
    file.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return file


def write_tools(folder: Path, **descriptions: str) -> None:
    """Write a tool file."""
    tools = [{"name": name, "description": text} for name, text in descriptions.items()]
    (folder / "tools").mkdir(parents=True, exist_ok=True)
    file = folder / "tools" / "files.json"
    file.write_text(json.dumps({"server": "files", "tools": tools}), "utf-8")


def index(folder: Path, environment: Mapping[str, str] | None = None, **flags: object) -> Run:
    """Index a folder."""
    with Repertory(settings_of(folder, environment, **flags), folder) as repertory:
        return repertory.index(lambda *_: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of three tools, not indexed yet."""
    folder = tmp_path / "project"
    write_tools(folder, read_file="Read a file.", send_mail="Send a mail.", play="Play music.")
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with tools in files and a real MCP server."""
    project = make_project(tmp_path_factory.mktemp("tools") / "project")
    write_servers(project / "servers.json", weather=server_entry())
    return project


@pytest.fixture(scope="module")
def server(user: Cli, project: Path) -> Iterator[Serve]:
    """A running server of the project."""
    with Serve(user, project, project.parent / "log", "--mcp-config", "servers.json") as server:
        server.wait_for_sources()
        yield server


@pytest.fixture(scope="module")
def embedded(project: Path) -> Iterator[Repertory]:
    """The project's index in this process."""
    settings = settings_of(project, mcp_config=[project / "servers.json"])
    with Repertory(settings, project) as repertory:
        repertory.index(lambda *_: None)
        yield repertory


@pytest.fixture(params=["embedded", "server"])
def ask(request: pytest.FixtureRequest, server: Serve, embedded: Repertory) -> Ask:
    """Search without a server and through one."""
    if request.param == "server":
        return lambda query, **more: server.get("/search?" + urlencode({"q": query, **more}))
    return lambda query, **more: msgspec.to_builtins(
        embedded.search(query_of(Values(), query, **more))
    )


# Sources


def test_tools_are_listed_over_the_protocol(ask: Ask) -> None:
    """The servers' tools are listed over the protocol; a tool's id is ``server__tool``."""
    first = ask("what will the weather be in a city")["results"][0]
    assert (first["toolId"], first["serverName"], first["toolName"]) == (
        "weather__forecast",
        "weather",
        "forecast",
    )


def test_configurations_are_merged_in_order(folder: Path) -> None:
    """Several configuration files can be given and are merged in order, later wins."""
    one = write_servers(folder / "1.json", a=server_entry(), b=server_entry("forecast"))
    two = write_servers(folder / "2.json", b=server_entry("alerts"), c=server_entry())
    settings = settings_of(folder, mcp_config=[one, two])
    catalogue = Repertory(settings, folder).workspace.catalogue()
    servers = {one.name: one.identity() for one in catalogue.sources if one.type == "mcp"}
    assert list(servers) == ["a", "b", "c"]
    assert servers["b"]["include"] == [["alerts"], []]


def test_a_toolscript_configuration_is_read(folder: Path) -> None:
    """``.toolscript.json`` is read like ``.mcp.json``."""
    write_servers(folder / ".toolscript.json", echo=server_entry())
    catalogue = Repertory(settings_of(folder), folder).workspace.catalogue()
    assert "echo" in [source.name for source in catalogue.sources]


# Ranking


def test_results_have_confidences_and_reasons(ask: Ask) -> None:
    """Confidence in 0…1; results sorted by it; each has a human reason."""
    results = ask("read the contents of a file", threshold=0, limit=5)["results"]
    confidences = [one["confidence"] for one in results]
    assert len(results) == 5
    assert confidences == sorted(confidences, reverse=True)
    assert all(0 <= one <= 1 for one in confidences)
    assert all(one["reason"] for one in results)
    assert results[0]["reason"].startswith("Semantic similarity (")


def test_confidence_is_weighted_by_alpha(ask: Ask) -> None:
    """``confidence = alpha * semantic + (1 - alpha) * keyword``, so it is between the two."""

    def confidences(alpha: float) -> dict[str, float]:
        found = ask("the text of a document", alpha=alpha, threshold=0, limit=9)["results"]
        return {one["toolId"]: one["confidence"] for one in found}

    words, both, meaning = confidences(0), confidences(0.7), confidences(1)
    assert words != both != meaning
    for name in words.keys() & meaning.keys():
        least, most = sorted((words[name], meaning[name]))
        assert least <= both[name] <= most


def test_alpha_limit_and_threshold_have_defaults() -> None:
    """``alpha`` 0.7, ``limit`` 3 and ``threshold`` 0.35 by default."""
    assert (Values().alpha, Values().limit, Values().threshold) == (0.7, 3, 0.35)


@pytest.mark.parametrize("name", ["alpha", "limit", "threshold"])
def test_flags_win_over_variables_and_new_names_over_old(folder: Path, name: str) -> None:
    """``--limit/--threshold``, then ``REPERTORY_SEARCH_LIMIT/_THRESHOLD``.

    Every ``TOOLSCRIPT_*`` variable keeps working as an alias, and the ``REPERTORY_*`` one wins.
    """
    old, new = f"TOOLSCRIPT_SEARCH_{name.upper()}", f"REPERTORY_SEARCH_{name.upper()}"

    def value(environment: Mapping[str, str], **flags: object) -> object:
        return getattr(settings_of(folder, environment, **flags).values, name)

    assert value({old: "1"}) == 1
    assert value({old: "1", new: "0"} if name != "limit" else {old: "1", new: "2"}) != 1
    assert value({old: "0", new: "0"}, **{name: 1}) == 1


def test_limit_and_threshold_bound_the_results(ask: Ask) -> None:
    """``limit`` bounds the number of results, ``threshold`` their confidence."""
    query = "file"
    assert len(ask(query, threshold=0)["results"]) == 3
    assert len(ask(query, threshold=0, limit=2)["results"]) == 2
    every, sure = (ask("read_file", threshold=one)["results"] for one in (0, 0.6))
    assert sure == [one for one in every if one["confidence"] >= 0.6]
    assert 0 < len(sure) < len(every)


def test_a_misspelt_name_is_first(ask: Ask) -> None:
    """``read_fil`` finds ``read_file`` first, by fuzzy match.

    The confidence says how good the match was.
    """
    first = ask("read_fil")["results"][0]
    assert first["toolId"] == "files__read_file"
    assert first["reason"].startswith("Fuzzy name match (read_fil → read_file)")
    assert ask("read_file")["results"][0]["confidence"] > first["confidence"] > 0.8
    assert first["confidence"] > ask("reed_fil")["results"][0]["confidence"]


def test_a_shell_is_inferred_for_git(ask: Ask) -> None:
    """``commit my changes to git`` finds a shell/terminal tool when there is no git tool.

    It does so by capability inference, and the reason names it.
    """
    first = ask("commit my changes to git")["results"][0]
    assert first["toolId"] == "files__run_command"
    assert first["reason"] == "Capability inference (shell → git operations)"


def test_a_code_search_is_found_by_what_it_does(ask: Ask) -> None:
    """``find files containing specific text`` finds ``search_code`` / ``grep``-like tools."""
    found = ask("find files containing specific text")["results"]
    assert found[0]["toolId"] == "files__search_code"


def test_nothing_above_the_threshold(cli: Cli, indexed: Path) -> None:
    """Nothing above the threshold: ``No tools found matching query``.

    The message suggests other words or a lower ``--threshold``.
    """
    done = cli.run(indexed, "search", "purple elephant quantum yodel")
    first, advice = done.stdout.splitlines()
    assert first == "No tools found matching query"
    assert advice.startswith("Try other words, or a --threshold lower than 0.35")


# Model


def test_the_default_model(folder: Path) -> None:
    """Default ``Xenova/bge-small-en-v1.5`` (the same weights as ``BAAI/bge-small-en-v1.5``)."""
    assert DEFAULT.id == "Xenova/bge-small-en-v1.5"
    assert known("BAAI/bge-small-en-v1.5") == DEFAULT
    assert load({}, folder, {}).values.model is None


def test_the_model_is_chosen_by_flag_then_variable(folder: Path) -> None:
    """``--model``, then ``REPERTORY_SEARCH_MODEL``."""
    environment = {"REPERTORY_SEARCH_MODEL": "a", "TOOLSCRIPT_SEARCH_MODEL": "b"}
    assert load({}, folder, environment).values.model == "a"
    assert load({"model": "c"}, folder, environment).values.model == "c"


@pytest.mark.parametrize("name", ["Xenova/all-MiniLM-L6-v2", "a folder"])
def test_other_models_work(folder: Path, tmp_path: Path, name: str) -> None:
    """``Xenova/all-MiniLM-L6-v2`` and any compatible sentence-embedding model work."""
    model = str(write_model(tmp_path / "own-model")) if name == "a folder" else name
    report = index(folder, model=model)
    assert report.embedded == 3


def test_an_incompatible_model_is_refused(cli: Cli, project: Path, tmp_path: Path) -> None:
    """An incompatible model is refused with a clear message that says why."""
    config = {"architectures": ["LlamaForCausalLM"]}
    model = write_model(tmp_path / "chatty", config=config)
    done = cli.run(project, "index", "--model", model)
    assert done.returncode == 4
    assert re.fullmatch(r"repertory: .*chatty.* decoder that generates text.*\n", done.stderr)


def test_the_prefix_of_bge_is_for_queries_only() -> None:
    """BGE models get their prefix on queries only."""
    assert DEFAULT.query_prefix == "Represent this sentence for searching relevant passages: "
    other = known("Xenova/all-MiniLM-L6-v2")
    assert other is not None
    assert other.query_prefix == ""


def test_the_requested_device_is_used_and_logged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """``auto`` falls back to the CPU; ``gpu`` without a GPU is an error.

    The actual device is logged at debug level.
    """
    monkeypatch.setattr(loading, "accelerators", lambda **_: iter(()))
    model = str(write_model(tmp_path / "encoder"))
    caplog.set_level(logging.DEBUG, "repertory.embedding.load")
    assert load_engine(model, "auto", tmp_path).device == "cpu"
    assert [(one.message, one.levelname) for one in caplog.records] == [
        ("embedding_device_taken", "DEBUG")
    ]
    with pytest.raises(ModelError, match="There is no GPU"):
        load_engine(model, "gpu", tmp_path)


def test_without_a_model_keywords_answer(cli: Cli, folder: Path) -> None:
    """If no model can be loaded, search answers from keywords alone and says it is degraded."""
    done = cli.run(folder, "search", "mail", "--model", "unknown/none", "--output", "json")
    answer = json.loads(done.stdout)
    assert answer["results"][0]["toolId"] == "files__send_mail"
    assert answer["mode"] == "keyword"
    assert answer["degraded"].startswith("No model was available")
    assert "degraded" in done.stderr


# Persistence


def test_a_configuration_has_a_hash(folder: Path) -> None:
    """The hash is the first 16 hex digits of a SHA-256 over the sorted server list."""

    def configuration(*names: str) -> str:
        servers = {name: {"command": f"run-{name}"} for name in names}
        file = write_servers(folder / "servers.json", **servers)
        settings = settings_of(folder, mcp_config=[file])
        return Repertory(settings, folder).workspace.catalogue().hash

    assert re.fullmatch("[0-9a-f]{16}", configuration("a", "b"))
    assert configuration("a", "b") == configuration("b", "a") != configuration("a")


def test_each_configuration_has_its_collection(folder: Path) -> None:
    """A new server means a new collection; going back finds the old one intact."""
    servers = write_servers(folder.parent / "servers.json", weather=server_entry())
    before, other, back = index(folder), index(folder, mcp_config=[servers]), index(folder)
    assert before.stats.collection == back.stats.collection != other.stats.collection
    assert (before.embedded, other.embedded, back.embedded) == (3, 2, 0)
    assert back.unchanged == 3


def test_only_changed_items_are_embedded_again(folder: Path) -> None:
    """Each item has a hash: only items whose hash changed are embedded again."""
    index(folder)
    write_tools(folder, read_file="Read a file.", send_mail="Send a letter.", play="Play music.")
    report = index(folder)
    assert (report.embedded, report.changed, report.unchanged) == (1, 1, 2)


def test_another_model_invalidates_the_store(folder: Path, tmp_path: Path) -> None:
    """A changed model or embedding recipe invalidates what is stored."""
    first, model = index(folder), write_model(tmp_path / "other")
    second = index(folder, model=str(model))
    assert second.embedded == 3
    assert second.stats.collection != first.stats.collection


def test_a_corrupt_store_is_rebuilt(folder: Path) -> None:
    """A corrupt store invalidates what is stored and says so."""
    collection = folder.parent / "data" / "collections" / index(folder).stats.collection
    for file in collection.rglob("*"):
        if file.is_file() and file.suffix != ".lock":
            file.write_bytes(b"garbage")
    report = index(folder)
    assert report.added == 3
    assert any("corrupt" in one or "damaged" in one for one in report.notices), report.notices


def test_the_data_directory_follows_the_order_and_is_created(folder: Path, tmp_path: Path) -> None:
    """``--data-dir``, then ``REPERTORY_DATA_DIR``, then the platform's; created when missing."""
    flag, variable = str(tmp_path / "a" / "b"), str(tmp_path / "c")
    environment = {"REPERTORY_DATA_DIR": variable, "TOOLSCRIPT_DATA_DIR": "old"}
    assert settings_of(folder, environment, data_dir=flag).data_dir == Path(flag)
    assert settings_of(folder, environment, data_dir=None).data_dir == Path(variable)
    assert settings_of(folder, data_dir=None).data_dir.name == "repertory"
    index(folder, data_dir=flag)
    assert Path(flag, "collections").is_dir()


def test_no_cache_keeps_nothing(folder: Path) -> None:
    """``REPERTORY_SEARCH_NO_CACHE=true``: load nothing, recompute, persist nothing."""
    environment = {"REPERTORY_SEARCH_NO_CACHE": "true"}
    assert [index(folder, environment).embedded for _ in range(2)] == [3, 3]
    assert not (folder.parent / "data" / "collections").exists()


# CLI


def test_a_search_prints_a_table(cli: Cli, indexed: Path) -> None:
    """``repertory search`` prints a table (Tool, Confidence to two decimals, Reason)."""
    done = cli.run(indexed, "search", "read file contents", "--kind", "tool")
    header, first, *_ = done.stdout.splitlines()
    assert re.fullmatch(r"Tool +Confidence +Reason", header)
    assert re.fullmatch(r"files__read_file +[01]\.\d\d  \S.*", first)


def test_the_output_is_a_table_json_or_types(cli: Cli, folder: Path) -> None:
    """``--output table | json | types``; another value is refused with the known ones."""
    done = cli.run(folder, "search", "mail", "--output", "nonsense")
    assert done.returncode == 2
    assert all(one in done.stderr for one in ("table", "json", "types"))


# HTTP


def test_http_answers_in_the_form_of_the_contract(server: Serve) -> None:
    """``GET /search?q=find+files&limit=5[&threshold=]`` → the agreed JSON."""
    answer = server.get("/search?q=find+files&limit=5&threshold=0.1")
    assert answer["query"] == "find files"
    assert answer["threshold"] == 0.1
    assert answer["totalResults"] == len(answer["results"]) > 1
    for one in answer["results"]:
        assert isinstance(one["confidence"], float)
        for name in ("toolId", "serverName", "toolName", "reason", "description"):
            assert isinstance(one[name], str)


def test_http_says_503_while_not_ready(folder: Path) -> None:
    """503 with a message while the engine is not ready."""
    with RunningService(folder) as running:
        response = running.client().get("/search?q=find+files&limit=5")
    assert response.status_code == 503
    assert "index" in response.json()["detail"]


# Types


@pytest.fixture
def module(server: Serve) -> str:
    """The module of all tools of one server and one tool of another."""
    return fetched(server, "/runtime/tools.ts?filter=weather,files__read_file")


def fetched(server: Serve, target: str) -> str:
    """The module at a path of the server."""
    with sent(server.url + target, server.token) as response:
        assert response.headers["content-type"] == "application/typescript; charset=utf-8"
        assert response.headers["cache-control"] == "no-store"
        return str(response.read().decode())


def refused(server: Serve, target: str, body: bytes | None = None) -> tuple[int, str]:
    """The status of a refused request and the problem's detail."""
    with pytest.raises(HTTPError) as caught:
        sent(Request(server.url + target, body, {"Content-Type": "application/json"}), server.token)
    with caught.value as response:
        return caught.value.code, json.load(response)["detail"]


def test_a_module_has_two_interfaces_per_tool(module: str) -> None:
    """All tools of the named servers and the named tools: a ``…Params`` and a ``…Result`` each.

    They follow the tool's schemas; a missing one is ``[key: string]: unknown``.
    """
    interfaces = dict(re.findall(r"export interface (\w+) (\{.*?\})\n\n", module, re.DOTALL))
    assert interfaces == {
        "FilesReadFileParams": "{\n  path?: string;\n}",
        "FilesReadFileResult": "{ [key: string]: unknown }",
        "WeatherAlertsParams": "{\n  region: string;\n}",
        "WeatherAlertsResult": "{\n  result: string[];\n}",
        "WeatherForecastParams": "{\n  city: string;\n  days?: number;\n}",
        "WeatherForecastResult": "{\n  result: string;\n}",
    }


def test_a_module_has_methods_that_call_the_gateway(server: Serve, module: str) -> None:
    """A ``tools`` object: ``tools.<serverCamelCase>.<tool>(params)``, its description above it.

    The methods POST to ``<gateway>/tools/<tool id>``; ``test_contract_3_calling.py`` runs them.
    """
    assert module.endswith(
        "export const tools = {\n"
        "  files: {\n"
        "    /** Read the contents of a file from disk. */\n"
        "    read_file(params?: FilesReadFileParams): Promise<FilesReadFileResult> {\n"
        '      return call("files__read_file", params, false);\n'
        "    },\n"
        "  },\n"
        "  weather: {\n"
        "    /** List the storm warnings of a region. */\n"
        "    alerts(params: WeatherAlertsParams): Promise<WeatherAlertsResult> {\n"
        '      return call("weather__alerts", params, true);\n'
        "    },\n\n"
        "    /** Say what the weather will be in a city. */\n"
        "    forecast(params: WeatherForecastParams): Promise<WeatherForecastResult> {\n"
        '      return call("weather__forecast", params, true);\n'
        "    },\n"
        "  },\n"
        "};\n"
    )
    assert f'export const gateway = {{ url: "{server.url}", apiKey: "" }};\n' in module


def test_a_module_compiles_strictly(
    pytestconfig: pytest.Config, server: Serve, module: str, tmp_path: Path
) -> None:
    """The module compiles under ``tsc --strict``."""
    everything = fetched(server, "/runtime/tools.ts")
    assert len(re.findall(r"export interface \w+Params", everything)) == 5
    for name, text in (("some", module), ("all", everything)):
        (tmp_path / f"{name}.ts").write_text(text, "utf-8")
    compile_strictly(compiler(pytestconfig), tmp_path / "some.ts", tmp_path / "all.ts")


def test_a_module_of_unknown_names_is_refused(server: Serve) -> None:
    """The error lists the unknown names."""
    status, words = refused(server, "/runtime/tools.ts?filter=weather,unknown,files__none")
    assert status == 404
    assert words == "There is no server and no tool 'unknown' or 'files__none'."


def test_types_are_printed_as_markdown(cli: Cli, indexed: Path) -> None:
    """``--output types``: a table, the module in a ``typescript`` fence, a usage example."""
    options = ("--kind", "tool", "--limit", "2", "--output", "types")
    done = cli.run(indexed, "search", "read the contents of a file", *options)
    table, module, usage = re.fullmatch(
        r"(.*?)\n\n```typescript\n(.*?)```\n\n.*?\n\n```typescript\n(.*?)```\n",
        done.stdout,
        re.DOTALL,
    ).groups()  # type: ignore[union-attr]  # it matches, or the test fails
    assert table.splitlines()[:2] == ["| Tool | Confidence | Reason |", "| --- | --- | --- |"]
    assert re.fullmatch(r"\| `files__read_file` \| 0\.\d\d \| .+ \|", table.splitlines()[2])
    assert 'url: "http://127.0.0.1:7700"' in module
    assert "export interface FilesReadFileParams {" in module
    assert "const result = await tools.files.read_file();" in usage


def test_calls_are_off_unless_switched_on(server: Serve) -> None:
    """Calling tools is off unless it is switched on."""
    status, words = refused(server, "/tools/weather__alerts", b'{"region": "north"}')
    assert status == 403
    assert "switch it on" in words
