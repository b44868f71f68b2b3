"""A caller gets the answers of a server without the sources that are hidden from it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from repertory.coordination.failures import Failure
from repertory.keys import Keys, Scope
from repertory_query.backend.visible_service import UNSURE
from tests.support.builders import write, write_skill
from tests.support.command_line import TOOLS
from tests.support.query_service import (
    RunningService,
    bearer,
    metrics,
    problem,
    rpc,
    settings_of,
    use_tool,
)

PAGE = {"Accept": "text/html"}
PAGES = ("/?", "/view", "/catalogue", "/connect", "/why", "/try")
OPEN = """
[[sources]]
type = "skills"
name = "open"
path = "open/skills"
[[sources]]
type = "documents"
name = "papers"
path = "papers"
[[sources]]
type = "tools"
name = "shared-tools"
path = "shared.json"
"""
VAULT = """
[[sources]]
type = "tools"
name = "vault-tools"
path = "vault.json"
visible_to = ["team-a", "team-b"]
[[sources]]
type = "skills"
name = "vault"
path = "vault/skills"
visible_to = ["team-a"]
[[sources]]
type = "skills"
name = "vault-gone"
path = "nowhere"
visible_to = ["team-a"]
"""
HIDDEN = (
    "vault/vault-rotation",
    "vault/key-rotation",
    "vault__read_secret",
    "vault__read_filez",
)


def project_in(folder: Path, configuration: str, *, with_vault: bool) -> Path:
    """A project with skills, documents and tools, optionally with the sources of the vault."""
    project = folder / "project"
    for name, text in (
        ("key-rotation", "Rotate API keys without downtime"),
        ("release-notes", "Write release notes from merged pull requests"),
    ):
        write_skill(project / "open", name, text)
    write(project / "papers" / "shop.md", "# Shop\n\nThe web shop and its checkout.\n")
    write(project / "shared.json", json.dumps(TOOLS))
    write(project / "open" / "skills" / "broken" / "SKILL.md", "---\nname: [\n---\n")
    write(project / "repertory.toml", configuration)
    if with_vault:
        write_skill(project / "vault", "vault-rotation", "Rotate the API keys of the vault")
        write_skill(project / "vault", "key-rotation", "Rotate API keys without downtime")
        for number in range(80):
            text = "Rotate API keys without downtime, and shop at a checkout"
            write_skill(project / "vault", f"keys-{number}", text)
        write(project / "vault" / "skills" / "broken" / "SKILL.md", "---\nname: [\n---\n")
        tools = [
            {"name": "read_secret", "description": "Read a secret", "inputSchema": {}},
            {"name": "read_filez", "description": "Read files", "inputSchema": {}},
            {"name": "read_file", "description": "Read it", "annotations": {"readOnlyHint": True}},
        ]
        write(project / "vault.json", json.dumps({"server": "vault", "tools": tools}))
    return project


@contextmanager
def served(folder: Path, configuration: str, *, with_vault: bool) -> Iterator[RunningService]:
    """A running server of such a project."""
    project = project_in(folder, configuration, with_vault=with_vault)
    named = project / "repertory.toml"
    with RunningService(project, config=named, allow_calls=True) as running:
        running.scan()
        yield running


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server of all sources; the vault comes first."""
    configuration = VAULT + OPEN
    with served(tmp_path_factory.mktemp("whole"), configuration, with_vault=True) as running:
        failures = running.parts.coordination.failures
        failed = {
            "f1": ["vault/vault-rotation"],
            "f2": ["open/key-rotation"],
            "f3": ["open/key-rotation", "vault/vault-rotation"],
            "f4": [],
        }
        for name, items in failed.items():
            failures.add(
                Failure(
                    id=name,
                    collection="c",
                    items=dict.fromkeys(items, ""),
                    error="It is odd.",
                    at=1.0,
                    attempts=3,
                )
            )
        yield running


@pytest.fixture(scope="module")
def lacking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server without the sources of the vault."""
    folder = tmp_path_factory.mktemp("lacking")
    with served(folder, OPEN, with_vault=False) as running:
        yield running


@contextmanager
def caller(
    running: RunningService, *groups: str, scope: Scope = Scope.CALL
) -> Iterator[TestClient]:
    """A client whose key has these groups."""
    file = running.project.parent / f"keys-{'-'.join((scope, *groups))}.json"
    keys = Keys(file)
    if keys.required:
        keys.reset()
    token = keys.create("someone", scope, groups)
    with running.client(address="192.0.2.7", keys=str(file)) as client:
        client.headers.update(bearer(token))
        yield client


def posted(client: TestClient, path: str, body: object) -> object:
    """The status and the body of the answer to a POST."""
    answer = client.post(path, json=body)
    return answer.status_code, answer.json()


def answers(client: TestClient) -> dict[str, object]:
    """The answers of all interfaces, without revisions and names of collections."""
    queries = [
        "q=rotate+API+keys&threshold=0&limit=100",
        "q=key-rotation&threshold=0",
        "q=key-rotation&source=vault",
        "q=key-rotation&server=vault",
        "q=key-rotation&tag=zq",
        "q=read_file&limit=50&threshold=0",
        "q=read+a+secret",
        "q=vualt",
        "q=commit+my+changes+to+git",
    ]
    paths = [
        *(f"/v1/search?{query}" for query in queries),
        *(f"/search?q=read&threshold=0&format={one}" for one in ("markdown", "mcp", "types")),
        *(f"/search?q=read&threshold=0&format={one}" for one in ("anthropic", "openai")),
        "/items",
        "/items?source=vault",
        "/items?source=vault-gone",
        "/runtime/tools.ts",
        "/runtime/tools.ts?filter=vault",
        "/?q=rotate+keys",
        "/?q=read&threshold=0",
        "/?q=rotate+keys&source=open&kind=skill",
        "/?source=vault",
        "/catalogue",
        "/catalogue?server=vault",
        "/connect",
        "/",
        *(f"/explain?q=rotate+keys&item={one}" for one in ("open/key-rotation", "key-rotation")),
    ]
    for one in (*HIDDEN, "open/key-rotation", "vault-rotation"):
        paths += [f"/items/{one}", f"/explain?q=rotate+keys&item={one}", f"/view/{one}"]
        paths += [f"/why?q=rotate+keys&item={one}", f"/try/{one}", f"/links/{one}"]
        paths += [f"/skills/file?item={one}&place=SKILL.md", f"/items?after={one}&limit=2"]
    sent: dict[str, object] = {}
    for path in paths:
        is_page = path.startswith(PAGES) or path == "/"
        answer = client.get(path, headers=PAGE if is_page else {})
        sent[path] = answer.status_code, answer.text
    ids = [*HIDDEN, "open/key-rotation"]
    sent["POST /items"] = posted(client, "/items", {"ids": ids})
    sent["POST /skills/files"] = posted(client, "/skills/files", {"ids": ids})
    sent["POST /search"] = posted(client, "/search", {"queries": [{"q": "rotate keys"}]})
    for one in ("vault__read_secret", "vault__nothing", "files__read_file"):
        sent[f"call {one}"] = posted(client, f"/tools/{one}", {})
        form = client.post(f"/try/{one}", headers=PAGE | {"Origin": "http://localhost"})
        sent[f"try {one}"] = form.status_code, form.text
        sent[f"MCP call {one}"] = use_tool(client, "call", tool=one).json()
    for name, arguments in (
        ("skill.discovery.search", {"query": "rotate keys"}),
        ("search", {"searchQuery": "keys", "fuzzySearch": True}),
        ("search", {"searchQuery": "team-a"}),
    ):
        sent[f"function {name} {arguments}"] = posted(client, f"/functions/{name}", arguments)
    sent["SearchSkills"] = sorted(
        one["path"]
        for one in json.loads(
            client.post("/functions/Vector.SearchSkills", json={"query": "Rotate keys"}).json()
        )
    )
    sent["MCP search"] = use_tool(client, "search", query="rotate keys", detail=True).json()
    sent["MCP get"] = [use_tool(client, "get", id=one).json() for one in ids]
    sent["MCP explain"] = use_tool(
        client, "explain", "/mcp/explain", query="rotate", item="vault-rotation"
    ).json()
    sent["MCP tools"] = rpc(client, "tools/list").json()
    sent["MCP resources"] = rpc(client, "resources/list").json()
    for one in HIDDEN[:2]:
        uri = f"skill://{one}/SKILL.md"
        sent[f"MCP resource {one}"] = rpc(client, "resources/read", uri=uri).json()
        sent[f"MCP skill {one}"] = rpc(client, "skills/get", uri=uri).json()
    sent["MCP skills"] = rpc(client, "skills/list").json()
    return {name: _without_revisions(value) for name, value in sent.items()}


def _without_revisions(value: object) -> object:
    text = json.dumps(value)
    return re.sub(r'(\\?"indexVersion\\?":\s*)\d+|repertory_\w+', r"\1", text)


def stats_of(client: TestClient) -> dict[str, Any]:
    """The statistics, without values that differ between processes or are hidden."""
    stats: dict[str, Any] = client.get("/stats").json()
    for name in ("indexVersion", "configuration", "collection", "points", "verification"):
        del stats[name]
    for name in ("workers", "counters", "queue"):
        del stats[name]
    for source in stats["sources"]:
        del source["seen"]
    for name in ("at", "pending", "saves"):
        del stats["watch"][name]
    return stats


def test_a_caller_gets_the_answers_of_a_server_without_hidden_sources(
    whole: RunningService, lacking: RunningService
) -> None:
    """This includes requests that name a hidden item."""
    with caller(whole) as client, caller(lacking) as other:
        sent, expected = answers(client), answers(other)
        for name, answer in expected.items():
            if not name.startswith("function search"):
                assert sent[name] == answer, name
        assert stats_of(client) == stats_of(other)
        assert "vault" not in client.get("/stats").text


def test_project_search_reads_only_the_catalogue_if_something_is_hidden(
    whole: RunningService,
) -> None:
    """The folder has files of hidden sources, and the configuration names their groups."""
    with caller(whole) as client, caller(whole, "team-a") as member:
        for text in ("team-a", "vault"):
            found = client.post("/functions/search", json={"searchQuery": text}).json()
            assert found["totalResults"] == 0
        found = client.post("/functions/search", json={"searchQuery": "downtime"}).json()
        assert found["totalResults"] == 1
        found = member.post("/functions/search", json={"searchQuery": "team-a"}).json()
        assert found["totalResults"] == 1  # nothing is hidden, so the configuration is searched too


def test_skill_files_of_hidden_sources_are_not_found(whole: RunningService) -> None:
    """The refusal of an update does not reveal whether the file exists."""
    path = "vault/skills/vault-rotation/SKILL.md"
    update, search = "/functions/Vector.VectorUpdate", "/functions/Vector.SearchSkills"
    with caller(whole) as client, caller(whole, "team-a") as member:
        assert member.post(update, json={"filepath": path}).json() == "OK"
        query = {"query": "Rotate the API keys of the vault"}
        assert path in member.post(search, json=query).json()
        assert "vault" not in client.post(search, json=query).json()
        refusals = [
            problem(client.post(update, json={"filepath": one}), 403)
            for one in (path, "vault/nothing", "open/nothing")
        ]
        assert len(set(refusals)) == 1


def test_a_skill_lacks_the_files_of_a_hidden_source_inside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subfolder of a skill may be a source that not everyone may see."""
    project = tmp_path / "project"
    write_skill(project / "team", "handbook", "How the team works")
    folder = project / "team" / "skills" / "handbook"
    write(folder / "board" / "merger.md", "# Merger\n\nIt is secret.\n")
    write(folder / "notes" / "open.md", "# Open\n\nIt is not.\n")
    config = write(
        project / "repertory.toml",
        """
[[sources]]
type = "skills"
name = "team"
path = "team/skills"
[[sources]]
type = "documents"
name = "board"
path = "team/skills/handbook/board"
visible_to = ["board"]
""",
    )
    skill, place = {"ids": ["team/handbook"]}, "item=team/handbook&place=board/merger.md"
    with RunningService(project, config=config) as running:
        running.scan()
        with caller(running) as client, caller(running, "board") as member:
            shown = [
                [one["place"] for one in files["files"]]
                for files in (
                    one.post("/skills/files", json=skill).json()["team/handbook"]
                    for one in (client, member)
                )
            ]
            assert shown == [["notes/open.md"], ["board/merger.md", "notes/open.md"]]
            assert client.get(f"/skills/file?{place}").status_code == 404
            assert member.get(f"/skills/file?{place}").status_code == 200
            assert client.get("/skills/file?item=team/handbook&place=notes/open.md").is_success
            # While the report cannot be read or lacks a place, the hidden folders are unknown.
            reported = running.service.source_states()
            unplaced = [msgspec.structs.replace(one, location="") for one in reported]
            for states in ([], [one for one in reported if one.name == "team"], unplaced):
                monkeypatch.setattr(running.service, "source_states", lambda states=states: states)
                files = client.post("/skills/files", json=skill).json()["team/handbook"]
                assert files == {"withheld": UNSURE}
                assert client.get(f"/skills/file?{place}").status_code == 404


@pytest.mark.parametrize("place", ["team/skills/handbook", "team/skills", "team"])
def test_a_hidden_source_at_the_folder_of_a_skill_hides_its_files(
    tmp_path: Path, place: str
) -> None:
    """A hidden source at a folder that contains all skills hides none of their files."""
    project = tmp_path / "project"
    write_skill(project / "team", "handbook", "How the team works")
    write(project / "team" / "skills" / "handbook" / "notes.md", "# Notes\n\nThey are secret.\n")
    sources = (
        '[[sources]]\ntype = "skills"\nname = "team"\npath = "team/skills"\n'
        f'[[sources]]\ntype = "tools"\nname = "board"\npath = "{place}"\nvisible_to = ["board"]\n'
    )
    config = write(project / "repertory.toml", sources)
    with RunningService(project, config=config) as running:
        running.scan()
        with caller(running) as client:
            found = client.post("/skills/files", json={"ids": ["team/handbook"]}).json()
            shown = [one["place"] for one in found["team/handbook"].get("files", ())]
            assert shown == ([] if place.endswith("handbook") else ["notes.md"])


def test_groups_decide_which_sources_a_member_sees(whole: RunningService) -> None:
    """Team-b sees one of the hidden sources; team-a and administrators see all of them."""
    with (
        caller(whole, "team-b") as some,
        caller(whole, "team-a") as member,
        caller(whole, scope=Scope.ADMIN) as admin,
        whole.client() as local,
    ):
        ids = "/items?limit=1000"
        seen = [
            {one["id"] for one in client.get(ids).json()["items"]}.intersection(HIDDEN)
            for client in (some, member, admin, local)
        ]
        assert seen == [{*HIDDEN[2:]}, {*HIDDEN}, {*HIDDEN}, {*HIDDEN}]
        names = [
            {one["name"]: one["visibleTo"] for one in client.get("/stats").json()["sources"]}
            for client in (some, member, admin)
        ]
        assert names[0].keys() == {"vault-tools", "open", "papers", "shared-tools"}
        assert names[1].keys() == names[2].keys()
        assert names[1]["vault"] == []  # only administrators see which groups may see a source
        assert names[2]["vault"] == ["team-a"]


@pytest.mark.parametrize("scope", Scope)
def test_a_caller_learns_whether_it_may_call_and_change(
    whole: RunningService, scope: Scope
) -> None:
    """A program can then offer an agent only tools that its key may use."""
    may = scope is not Scope.READ
    with caller(whole, "team-a", scope=scope) as member, caller(whole, scope=scope) as client:
        for one in (member, client):
            contents = one.get("/contents").json()
            assert contents["callsAllowed"] is one.get("/stats").json()["callsAllowed"] is may
            # Callers who may not see every source may not change files of the sandbox.
            changes = may and (one is member or scope is Scope.ADMIN)
            assert contents["changesAllowed"] is changes
            tools = rpc(one, "tools/list", "/mcp/skills").json()["result"]["tools"]
            assert ("Vector.VectorUpdate" in {tool["name"] for tool in tools}) is changes


def test_cached_answers_are_not_shared_between_groups(whole: RunningService) -> None:
    """Neither the answer cache nor the MCP tool lists mix callers of different groups."""
    file = whole.project.parent / "several.json"
    keys = Keys(file)
    tokens = {
        name: keys.create(name or "none", Scope.READ, [name] if name else [])
        for name in ("", "team-a", "team-b")
    }
    query = "/search?q=rotate+the+keys+of+the+vault&threshold=0"
    with whole.client(address="192.0.2.7", keys=str(file)) as client:
        for _ in range(2):
            for name, expected in (("team-a", True), ("", False), ("team-b", False)):
                client.headers.update(bearer(tokens[name]))
                assert ("vault/vault-rotation" in client.get(query).text) is expected
                listed = str(rpc(client, "tools/list").json())
                assert ("85 skills" in listed or "84 skills" in listed) is expected
                assert ("vault-tools" in listed) is bool(name)


def test_metrics_and_jobs_cover_only_visible_sources(whole: RunningService) -> None:
    """Numbers that also count hidden items are left out."""
    with caller(whole) as client, caller(whole, "team-a") as member:
        numbers = metrics(client)
        assert numbers["repertory_items"] == 6
        assert not [name for name in numbers if "vault" in name]
        left_out = ("queue_", "failed_jobs", "pending_items", "save_", "events", "calls", "worker")
        assert not [
            name for name in numbers if name.removeprefix("repertory_").startswith(left_out)
        ]
        assert metrics(member)["repertory_items"] == 6 + 82 + 3
        assert 'repertory_source_items{"source": "vault"}' in metrics(member)
        jobs = client.get("/queue").json()
        assert [one["id"] for one in jobs["failed"]] == ["f2"]
        assert (jobs["waiting"], jobs["taken"], jobs["running"]) == ({}, None, [])
        assert [one["id"] for one in member.get("/queue").json()["failed"]] == [
            "f1",
            "f2",
            "f3",
            "f4",
        ]
        page = client.get("/status", headers=PAGE).text
        assert "vault" not in page


def test_only_administrators_see_the_error_of_the_configuration(
    whole: RunningService,
) -> None:
    """The error may name a hidden source."""
    board = whole.parts.coordination.status
    before = board.reports()["watch"]
    try:
        error = "Two sources are named 'vault'."
        board.report("watch", {**before, "configurationError": error, "error": ""})
        with caller(whole) as client, whole.client() as local:
            assert "vault" not in client.get("/stats").text
            assert "The configuration is invalid. The last valid" in client.get("/stats").text
            assert error in local.get("/stats").text
    finally:
        board.report("watch", before)


def test_a_caller_learns_only_how_visible_sources_are_watched(whole: RunningService) -> None:
    """The report of the watch service names all sources."""
    board = whole.parts.coordination.status
    before = board.reports()["watch"]
    names = ["vault", "vault-tools", "open"]
    try:
        watched = {"watching": names, "polling": dict.fromkeys(names, "It has no events.")}
        board.report("watch", {**before, **watched})
        with caller(whole) as client, caller(whole, "team-a") as member:
            for one, seen in ((client, ["open"]), (member, names)):
                watch = one.get("/stats").json()["watch"]
                assert (watch["watching"], [*watch["polling"]]) == (seen, seen)
    finally:
        board.report("watch", before)


def test_statistics_follow_a_report_that_is_newer_than_the_index(
    lacking: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first report that hides a source may be read before the search knows of it."""
    stats = lacking.service.stats()
    sources = [
        msgspec.structs.replace(one, visible_to=("team-a",) if one.name == "papers" else ())
        for one in stats.sources
    ]
    newer = msgspec.structs.replace(stats, sources=sources)
    monkeypatch.setattr(lacking.service, "stats", lambda: newer)
    with caller(lacking) as client, caller(lacking, "team-a") as member:
        shown = [one.get("/stats").json() for one in (client, member)]
    names = [[one["name"] for one in known["sources"]] for known in shown]
    assert names == [["open", "shared-tools"], ["open", "papers", "shared-tools"]]
    assert [bool(known["configuration"]) for known in shown] == [False, True]


def test_a_caller_learns_only_problems_of_visible_sources_and_of_the_server(
    whole: RunningService,
) -> None:
    """A problem without sources may name a hidden file or item, unless it has neither."""
    board = whole.parts.coordination.status
    before = board.reports()["watch"]
    about: dict[str, dict[str, object]] = {
        "open": {"sources": ["open"], "path": "/srv/open/a"},
        "both": {"sources": ["open", "vault"]},
        "path": {"path": "/srv/vault/a"},
        "item": {"item": "vault/a"},
        "server": {},
    }
    given = [{"severity": "error", "message": name, **one} for name, one in about.items()]
    given += [{"severity": "warning", "message": "policy"}]
    try:
        board.report("watch", {**before, "problems": given, "errors": 5, "warnings": 1})
        with caller(whole) as client, caller(whole, "team-a") as member:
            for one, seen in ((client, ["open", "server"]), (member, [*about, "policy"])):
                stats = one.get("/stats").json()
                messages = [problem["message"] for problem in stats["problems"]]
                assert [message for message in messages if message in {*about, "policy"}] == seen
                assert stats["errors"] + stats["warnings"] == len(messages)
    finally:
        board.report("watch", before)


def test_callers_wait_until_the_sources_are_known(tmp_path: Path) -> None:
    """Until then, it is unknown who may see a source, so only an administrator gets answers."""
    project = project_in(tmp_path, OPEN, with_vault=False)
    settings = settings_of(project, config=project / "repertory.toml")
    with RunningService(project, config=project / "repertory.toml") as running:
        running.scan()
    (settings.data_dir / "status").rename(settings.data_dir / "lost")
    with RunningService(project, config=project / "repertory.toml") as running:
        assert running.live.wait(10)
        with caller(running) as client, running.client() as local:
            assert "not known yet" in problem(client.get("/search?q=rotate"), 503)
            assert client.get("/items").status_code == 503
            assert "open" not in client.get("/stats").text
            assert local.get("/search?q=rotate").status_code == 200
