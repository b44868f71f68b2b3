"""Pages beside the search: trying a tool, explanations, filter counts, the catalogue, labels."""

import html
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from repertory.audit import Audit
from repertory.keys import Keys, Scope
from repertory.search.engine import SearchEngine
from repertory_query.access.callers import Owner
from repertory_query.app import create_app
from repertory_query.pages import catalogue, rendering
from tests.support.builders import write, write_skill
from tests.support.mcp_servers import SERVERS
from tests.support.query_service import RunningService, bearer, indexed_server, settings_of

ORIGIN = {"Origin": "http://localhost"}
PAGE = {"Accept": "text/html"}
BODY = """
# Key rotation

{filler}

## Rolling back

<b>Restore</b> the former *credential* from the [vault](https://example.com/vault).
"""
TOOLS = [
    {"name": "wipe_disk", "description": "Wipe a disk", "annotations": {"destructiveHint": True}},
    {"name": "list_disks", "description": "List the disks", "annotations": {"readOnlyHint": True}},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server with skills, tools of a file, and tools of an MCP server that may be called."""
    root = tmp_path_factory.mktemp("actions")
    project = root / "project"
    write_skill(project, "release-notes", "Write release notes from merged pull requests")
    body = BODY.format(filler="Keys are replaced in four moves. " * 60)
    write_skill(project, "key-rotation", "Rotate API keys without downtime", body)
    write(project / "tools" / "disks.json", json.dumps({"server": "disks", "tools": TOOLS}))
    command = {"command": sys.executable, "args": [str(SERVERS / "callee.py"), "stdio"]}
    write(project / "mcp.json", json.dumps({"mcpServers": {"desk": command}}))
    flags = {"mcp_config": [str(project / "mcp.json")], "allow_calls": True}
    with indexed_server(project, root / "home", **flags) as running:
        yield running


@pytest.fixture
def client(server: RunningService) -> TestClient:
    """A browser on the same machine; the server has no keys."""
    client = server.client(allow_calls=True)
    client.headers.update(PAGE | ORIGIN)
    return client


def tried(client: TestClient, tool: str, **sent: str) -> tuple[int, str]:
    """The status and the text of the answer to the form that calls a tool."""
    answer = client.post(f"/try/{tool}?part=true", data=sent)
    return answer.status_code, html.unescape(answer.text)


# Calls


def test_a_form_calls_a_tool(client: TestClient) -> None:
    """Its fields follow the schema; without scripts, the answer appears on the page of the item."""
    text = client.get("/view/desk__add").text
    assert re.search(r'<input id="argument-1" name="argument:first" inputmode="decimal"', text)
    assert '<form method="post" action="/try/desk__add#try"' in text
    sent = {"argument:first": "2", "argument:second": "3"}
    answer = client.post("/try/desk__add", data=sent)
    assert answer.status_code == 200
    assert '<pre tabindex="0" dir="auto">5</pre>' in answer.text
    assert 'name="argument:first" inputmode="decimal" value="2"' in answer.text
    status, part = tried(client, "desk__add", json='{"first": 4, "second": 5}')
    assert (status, "<html" in part, ">9</pre>" in part) == (200, False, True)


def test_a_refused_or_failed_call_shows_the_reason(client: TestClient) -> None:
    """Invalid arguments, failures of the tool and unknown tools have different statuses."""
    status, text = tried(client, "desk__add", **{"argument:first": "2"})
    assert (status, "second must be given" in text) == (422, True)
    assert 'role="alert"' in text
    status, text = tried(client, "desk__add", **{"argument:first": "many"})
    assert (status, "first must be JSON" in text) == (422, True)
    status, text = tried(client, "desk__fail", **{"argument:reason": "<b>no</b>"})
    assert (status, "The tool reports a failure" in text, "<b>no</b>" in text) == (502, True, True)
    assert "&lt;b&gt;" in client.post("/try/desk__fail", data={"argument:reason": "<b>"}).text
    assert tried(client, "desk__unknown")[0] == 404
    assert tried(client, "project/key-rotation")[0] == 422
    assert "[image/png, 3 bytes]" in tried(client, "desk__draw")[1]


def test_a_destructive_call_needs_a_confirmation(client: TestClient) -> None:
    """Both the form and the server require it."""
    text = client.get("/view/disks__wipe_disk").text
    assert '<input type="checkbox" name="confirmed" value="yes" required>' in text
    status, answer = tried(client, "disks__wipe_disk")
    assert (status, "Tick the box" in answer) == (422, True)
    status, answer = tried(client, "disks__wipe_disk", confirmed="yes")
    assert (status, "Tick the box" in answer) == (
        403,
        False,
    )  # the server of this tool is not configured
    assert "confirmed" not in client.get("/view/disks__list_disks").text


def test_pages_of_other_sites_cannot_call_a_tool(
    server: RunningService, client: TestClient
) -> None:
    """A form from another origin, or without an Origin, is refused."""
    sent = {"argument:first": "2", "argument:second": "3"}
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
    ):
        answer = client.post("/try/desk__add", data=sent, headers=headers)
        assert answer.status_code == 403
    program = server.client(allow_calls=True)
    assert program.post("/try/desk__add", data=sent).status_code == 403


def test_the_form_is_for_callers_who_may_call(server: RunningService, tmp_path: Path) -> None:
    """Other callers see why it is missing, and their calls are refused."""
    file = tmp_path / "keys.json"
    keys = Keys(file)
    shown = {}
    for scope in (Scope.READ, Scope.CALL):
        client = server.client(keys=str(file), allow_calls=True)
        key = keys.create(scope.value, scope)
        client.headers.update(bearer(key) | PAGE | ORIGIN)
        shown[scope] = client.get("/view/desk__add").text
        status, _ = tried(client, "desk__add", **{"argument:first": "2", "argument:second": "3"})
        assert status == (200 if scope is Scope.CALL else 403)
    assert 'action="/try/' not in shown[Scope.READ]
    assert "only with the scope call" in shown[Scope.READ]
    assert 'action="/try/' in shown[Scope.CALL]
    assert "/v1/tools/" not in shown[Scope.READ]
    call = 'curl --oauth2-bearer "$REPERTORY_SERVER_API_KEY" http://localhost/v1/tools/desk__add'
    assert call in html.unescape(shown[Scope.CALL])


def test_a_server_without_calls_has_no_form(tmp_path: Path) -> None:
    """The page says that calls are off, and the server refuses them."""
    project = tmp_path / "project"
    write(project / "tools" / "disks.json", json.dumps({"server": "disks", "tools": TOOLS}))
    with indexed_server(project, tmp_path / "home") as running:
        client = running.client()
        client.headers.update(PAGE | ORIGIN)
        text = client.get("/view/disks__list_disks").text
        assert 'action="/try/' not in text
        assert "off on this server" in text
        assert tried(client, "disks__list_disks")[0] == 403


def test_a_call_by_a_form_is_in_the_audit_log(server: RunningService, tmp_path: Path) -> None:
    """The line names the page as its face, and has the outcome."""
    folder = str(tmp_path)
    with server.client(audit_folder=folder, allow_calls=True) as client:
        client.headers.update(PAGE | ORIGIN)
        tried(client, "desk__add", **{"argument:first": "2"})
        tried(client, "desk__add", **{"argument:first": "2", "argument:second": "3"})
        Audit(settings_of(server.project, audit_folder=folder), server.project).file.flush()
    file = next(tmp_path.glob("audit.jsonl*"))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    found = [(one["action"], one["face"], one["what"], one["outcome"]) for one in lines]
    call = ("call", "page", ["desk__add"])
    assert found == [(*call, "refused"), (*call, "ok")]


# Texts


def test_a_text_is_rendered_or_shown_as_written(client: TestClient) -> None:
    """The matched section is marked; HTML in the text is escaped."""
    text = client.get("/view/project/key-rotation?section=%23%23+Rolling+back").text
    matched = text.partition('<div class="rendered matched" dir="auto" id="matched">')[2]
    assert matched.startswith("<h4>Rolling back</h4>")
    assert "&lt;b&gt;Restore&lt;/b&gt; the former <em>credential</em>" in matched
    written = client.get("/view/project/key-rotation?raw").text
    assert "## Rolling back" in written
    assert "<h4>" not in written
    assert 'href="?">rendered</a>' in written


def test_a_text_that_is_too_long_is_shown_as_written(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page gives the reason."""
    monkeypatch.setattr(rendering, "MAX_LENGTH", 100)
    text = client.get("/view/project/key-rotation").text
    assert "too long to be rendered" in text
    assert "## Rolling back" in text


def test_results_have_marked_words_and_an_excerpt(client: TestClient) -> None:
    """The excerpt comes from the matched section."""
    text = client.get("/?q=restore+the+former+credential+from+the+vault&threshold=0").text
    assert re.search(
        r'section=%23%23\+Rolling\+back#matched">Rolling back</a> '
        r"&lt;b&gt;<mark>Restore</mark>&lt;/b&gt; the <mark>former</mark>",
        text,
    )
    assert "<mark>keys</mark>" in client.get("/?q=rotate+keys&threshold=0").text


def test_a_result_is_explained(client: TestClient) -> None:
    """An explanation has its own page and can be part of the results, also for a hidden item."""
    text = client.get("/why?q=rotate+kyes&item=project/key-rotation").text
    assert "Shown, at place 1" in text
    assert re.search(r"kyes</th>\s*<td dir=\"auto\"><mark>keys</mark></td>", text)
    part = client.get("/why?q=zxqv&item=disks__wipe_disk&part=true").text
    assert "<html" not in part
    assert "Hidden: " in part
    asking = client.get("/why?item=disks__wipe_disk")
    assert (asking.status_code, "Type a search" in asking.text) == (200, True)
    assert client.get("/why?q=a&item=unknown").status_code == 404
    assert client.get("/why?q=a").status_code == 422


# Counts and the catalogue


def counts(text: str) -> dict[str, int]:
    """The counts of a page, by the value of the filter."""
    pairs = re.findall(
        r'value="([^"]*)"[^>]*><span[^>]*>(?:\w+ )?(?:[^<]*</span> )?<small>(\d+)', text
    )
    return {value: int(count) for value, count in pairs}


def test_filters_count_the_results_of_the_query(client: TestClient) -> None:
    """The counts cover all results, and a field's own filter does not change its counts."""
    everything = counts(client.get("/?q=disk+keys+notes&threshold=0").text)
    hits = client.get("/search?q=disk+keys+notes&threshold=0&limit=100").json()["results"]
    for kind in ("skill", "tool", "document"):
        assert everything.get(kind, 0) == sum(hit["kind"] == kind for hit in hits)
    assert everything["disks"] == sum(hit["serverName"] == "disks" for hit in hits)
    assert counts(client.get("/?q=disk+keys+notes&threshold=0&limit=1").text) == everything
    filtered = counts(client.get("/?q=disk+keys+notes&threshold=0&kind=skill").text)
    assert filtered["tool"] == everything["tool"]
    assert "disks" not in filtered
    chosen = counts(client.get("/?q=disk+keys&threshold=0&kind=skill&server=disks").text)
    assert chosen["disks"] == 0


def test_a_page_that_is_not_full_needs_one_search(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts are computed from its hits; a filter needs further searches."""
    searched = []
    search = SearchEngine.search

    def counting(engine: SearchEngine, query: object) -> object:
        searched.append(query)
        return search(engine, query)  # type: ignore[arg-type]  # any query

    monkeypatch.setattr(SearchEngine, "search", counting)
    client.get("/?q=wipe+the+disk+now")
    assert len(searched) == 1
    client.get("/?q=wipe+the+disk+now&kind=tool")
    assert len(searched) == 3  # one for the results, one without the filter


def test_the_catalogue_is_paged_by_server(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages are linked, share one order, and together list every item once."""
    monkeypatch.setattr(catalogue, "PAGE_SIZE", 3)
    first = client.get("/catalogue").text
    assert re.search(r'<small>server</small> <a href="/catalogue\?server=desk"', first)
    assert '<a rel="next" href="/catalogue?page=2">' in first
    pages, text = 1, first
    found = re.findall(r'class="hit" href="/view/([^"]+)"', first)
    while following := re.search(r'rel="next" href="([^"]+)"', text):
        text = client.get(html.unescape(following[1])).text
        found += re.findall(r'class="hit" href="/view/([^"]+)"', text)
        pages += 1
    listed = client.get("/items?limit=1000").json()["items"]
    assert sorted(found) == sorted(one["id"] for one in listed)
    assert pages == -(-len(listed) // 3)
    assert ", continued</small>" in client.get("/catalogue?page=2").text
    disks = client.get("/catalogue?server=disks").text
    assert (disks.count('class="hit"'), 'rel="next' in disks) == (2, False)
    assert client.get("/catalogue?page=0").status_code == 422
    assert client.get("/catalogue?page=999").status_code == 200


# Labels, and how to connect


def test_tools_are_labelled_by_their_annotations(client: TestClient) -> None:
    """Results, the catalogue and the page of the item show the labels."""
    for path in ("/?q=wipe_disk", "/catalogue?server=disks", "/view/disks__wipe_disk"):
        text = client.get(path).text
        assert re.search(r'<span class="label bad" title="[^"]+">destructive</span>', text)
    assert ">read-only</span>" in client.get("/view/disks__list_disks").text
    assert 'class="label' not in client.get("/view/desk__add").text


def test_an_item_that_changed_since_its_approval_is_labelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new item has a label too."""
    monkeypatch.setenv("HOME", str(tmp_path))
    project = tmp_path / "project"
    write_skill(project, "bake", "Bake bread")
    trust = '[[sources]]\ntype = "skills"\npath = "skills"\nname = "team"\ntrust = "review"\n'
    write(project / "repertory.toml", trust)
    with RunningService(project) as running:
        running.scan()
        client = running.client()
        client.headers.update(PAGE)
        paths = ("/?q=bake", "/catalogue", "/view/team/bake")
        assert not any('class="label' in client.get(path).text for path in paths)
        write_skill(project, "bake", "Bake bread and cakes")
        write_skill(project, "cook", "Cook a meal")
        running.scan()
        for path in paths:
            text = client.get(path).text
            assert re.search(r'<span class="label warn" title="[^"]+">changed</span>', text)
        assert ">new</span>" in client.get("/view/team/cook").text


def test_each_agent_host_has_its_entry(server: RunningService, tmp_path: Path) -> None:
    """The entry has the address of the server, and the variable of the key if one is needed."""
    client = server.client()
    text = html.unescape(client.get("/connect", headers=PAGE).text)
    for words in (
        "repertory connect cursor --url http://localhost",
        '"url": "http://localhost/mcp"',
        '[mcp_servers.repertory]\nurl = "http://localhost/mcp"',
    ):
        assert words in text
    assert "REPERTORY_SERVER_API_KEY" not in text
    app = create_app(server.service, server.settings, owner=Owner("token", "of browsers"))
    own = TestClient(app, "http://127.0.0.1:7700", headers=PAGE)
    own.headers["Authorization"] = "Bearer token"
    text = html.unescape(own.get("/connect").text)
    data = json.dumps(str(server.settings.data_dir))
    assert re.search(rf'"args": \[\s*"mcp",\s*"--data-dir",\s*{re.escape(data)}\s*\]', text)
    assert "--url" not in text
    read = 'curl --oauth2-bearer "$(repertory keys token)" http://127.0.0.1:7700/v1/items/'
    assert read in html.unescape(own.get("/view/desk__add").text)
    file = tmp_path / "keys.json"
    key = Keys(file).create("reader", Scope.READ)
    keyed = server.client(host="tools.example", keys=str(file))
    answer = keyed.get("/connect", headers=PAGE | bearer(key))
    text = html.unescape(answer.text)
    assert '"url": "http://tools.example/mcp"' in text
    assert "Bearer ${REPERTORY_SERVER_API_KEY}" in text
    assert key not in text
