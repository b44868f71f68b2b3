"""The pages over HTTP on a real index: content, access and confinement."""

import hashlib
import html
import re
import shlex
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest
from starlette.testclient import TestClient

from repertory.errors import ModelError
from repertory.index.keywords.index import KeywordIndex
from repertory.keys import Keys, Scope
from repertory_query.access.callers import Owner
from repertory_query.access.cookies import COOKIE, new_value
from repertory_query.app import create_app
from repertory_query.pages.facets import FIELDS
from tests.support.builders import write_skill
from tests.support.query_service import RunningService, bearer, indexed_server

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server with three skills, two of them with the same name, and a document."""
    root = tmp_path_factory.mktemp("pages")
    project = root / "project"
    write_skill(project, "key-rotation", "Rotate API keys without downtime")
    write_skill(project, "release-notes", "Write release notes from merged pull requests")
    write_skill(project, "archive/release-notes", "Write release notes as they were once written")
    archived = project / "skills" / "archive" / "release-notes" / "SKILL.md"
    archived.write_text(
        archived.read_text().replace("name: archive/", "tags: history, old\nname: ")
    )
    (project / "README.md").write_text("# Shop\n\nThe web shop and its checkout.\n")
    with indexed_server(project, root / "home") as running:
        yield running


@pytest.fixture
def client(server: RunningService) -> TestClient:
    """A browser on the same machine; the server has no keys."""
    client = server.client()
    client.headers.update(HTML)
    return client


@pytest.fixture
def keys(tmp_path: Path) -> dict[Scope, str]:
    """A key of each scope in the test's ``keys.json``."""
    keys = Keys(tmp_path / "keys.json")
    return {scope: keys.create(scope.value, scope) for scope in Scope}


def browser(server: RunningService, tmp_path: Path, key: str = "") -> TestClient:
    """A browser on another machine; the server has keys. With a key, the browser is signed in."""
    client = server.client(
        host="tools.example", address="192.0.2.7", keys=str(tmp_path / "keys.json")
    )
    client.headers.update(HTML)
    client.follow_redirects = False
    if key:
        client.cookies.set(COOKIE, new_value(hashlib.sha256(key.encode()).hexdigest(), COOKIE))
    return client


def test_a_search_works_without_scripts(client: TestClient) -> None:
    """Each hit has its confidence with evidence, a reason, and a link to the item."""
    text = client.get("/?q=rotate+credentials&limit=&threshold=").text
    assert '<a class="hit" href="/view/project/key-rotation"' in text
    for part in ("Confidence", "Meaning", "Words", "Name"):
        assert re.search(rf"<dt>{part}</dt>\s*<dd>.*?<span class=\"number\">\d\.\d\d</span>", text)
    assert re.search(r"<dt>Probability</dt><dd><span class=\"number\">\d\.\d\d</span>", text)
    assert '<span class="reason"' in text
    assert re.search(r'href="/why\?q=rotate\+credentials&amp;item=project[^"]*">Explain', text)


@pytest.mark.parametrize("path", ["/?q=x", "/why?q=x&item=key-rotation", "/view/key-rotation"])
def test_a_search_is_written_in_the_direction_of_its_script(client: TestClient, path: str) -> None:
    """Punctuation in Arabic or Hebrew would otherwise be shown at the wrong end."""
    fields = re.findall(r'<input [^>]*type="search"[^>]*>', client.get(path).text)
    assert fields
    assert all(' dir="auto"' in field for field in fields)


@pytest.mark.parametrize(
    "path", ["/?q=release+notes", "/?kind=skill", "/view/project/archive/release-notes"]
)
def test_tags_are_shown_and_lead_to_their_items(client: TestClient, path: str) -> None:
    """Hits, listed items and the page of the item link each tag to its items."""
    text = client.get(path).text
    assert '<a href="/?tag=history" dir="auto">history</a>, <a href="/?tag=old"' in text
    assert 'href="/view/project/archive/release-notes"' in client.get("/?tag=history").text


def test_typing_requests_only_the_results(client: TestClient) -> None:
    """The requested part equals the same part of the whole page."""
    whole, part = client.get("/?q=rotate").text, client.get("/?q=rotate&part=true").text
    results, _, filters = part.partition('<template id="counted">')
    assert results.strip() in whole
    assert filters.removesuffix("</template>") in whole
    assert "<html" not in part


def test_filters_offer_the_indexed_values(client: TestClient) -> None:
    """Values have counts; a field with fewer than two values is not offered."""
    text = client.get("/").text
    assert re.search(r'value="skill"><span>skill <small>3</small>', text)
    assert 'name="server"' not in text
    assert 'value="skill" checked' in client.get("/?kind=skill").text
    gone = client.get("/?server=gone&kind=skill")
    assert gone.status_code == 404
    assert "There is no server" in gone.text


def test_filters_are_counted_once_per_index_version(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later requests reuse the counts."""
    count, counted = KeywordIndex.counts, list[str]()

    def counting(index: KeywordIndex, field: str) -> Counter[str]:
        counted.append(field)
        return count(index, field)

    monkeypatch.setattr(KeywordIndex, "counts", counting)
    for query in ("", "r", "ro", "rot"):
        client.get(f"/?q={query}")
    assert counted == [*FIELDS]


def test_without_a_query_the_catalogue_is_browsed(client: TestClient) -> None:
    """The page shows the number of items, or lists the items of the chosen filter."""
    assert "4 items. Describe" in client.get("/").text
    text = client.get("/?kind=document").text
    assert "1 item<" in text
    assert 'href="/view/documents/README.md"' in text


def test_a_search_without_hits_has_suggestions(client: TestClient) -> None:
    """The page names the closest item and its confidence, and links to weaker results."""
    text = client.get("/?q=zxqv+wobbly&kind=skill&threshold=0.9").text
    assert "Nothing fits well enough" in text
    closest = re.search(r'<a href="/view/(\S+)" dir="auto">\1</a> is closest', text)
    assert closest
    assert re.search(r"with a confidence of 0\.\d\d; a result needs at least 0\.90", text)
    assert client.get(f"/view/{closest[1]}").status_code == 200
    assert 'href="/?q=zxqv+wobbly&amp;threshold=0&amp;kind=skill"' in text
    assert 'href="/?q=zxqv+wobbly&amp;threshold=0.9"' in text


def test_filters_that_exclude_everything_are_named(client: TestClient) -> None:
    """Other words would find nothing either."""
    text = client.get("/?q=rotate+keys&kind=tool").text
    assert "Nothing passes the filters" in text
    assert "Search without filters" in text
    assert "Use other words" not in text
    assert "Nothing fits well enough" not in text


def test_a_degraded_answer_shows_the_reason(
    server: RunningService, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failed sources are not listed, because the notices name them already."""

    def failing() -> NoReturn:
        raise ModelError("The model is away.")

    monkeypatch.setitem(vars(server.live.engine), "_embedding", failing)
    monkeypatch.setitem(vars(server.live.engine), "_stale", ("documents",))
    text = client.get("/?q=notes&threshold=0").text
    assert "Found only by words. The model is away." in text
    assert "documents." not in text
    assert re.search(r"<dt>Meaning</dt>\s*<dd title=\"The meaning was not searched", text)


def test_the_home_page_and_the_catalogue_show_problems_of_sources(
    server: RunningService,
    client: TestClient,
    keys: dict[Scope, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They show the same notices as results; a reader sees no absolute path."""
    notice = "The source team could not be read: /srv/catalogue/team is missing."
    for one in (server.service, server.service.for_groups(frozenset())):
        monkeypatch.setitem(vars(one.engine), "notices", (notice,))
    for path in ("/", "/catalogue", "/?q=notes"):
        assert f'<p class="notice" dir="auto">{notice}</p>' in client.get(path).text
        reading = browser(server, tmp_path, keys[Scope.READ]).get(path).text
        assert "The source team could not be read: team is missing." in reading


def test_many_notices_take_two_lines(
    server: RunningService, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is shown, so that the results remain in view; the others can be opened."""
    notices = tuple(f"The source s{n} could not be read." for n in range(3))
    monkeypatch.setitem(vars(server.service.engine), "notices", notices)
    shown, closed = client.get("/?q=rotate").text.split('<details class="notice">')
    assert notices[0] in shown
    assert not [one for one in notices[1:] if one in shown]
    assert "<summary>2 more notices</summary>" in closed
    assert all(closed.count(one) == 1 for one in notices[1:])


def test_a_notice_appears_once_and_shows_commands_as_code(
    server: RunningService, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An explanation inside the results repeats no notice."""
    notice = "1 item is in quarantine (team); see `repertory trust review`."
    monkeypatch.setitem(vars(server.service.engine), "notices", (notice,))
    shown = notice.replace("`", "<code>", 1).replace("`", "</code>", 1)
    asked = "/why?q=rotate+keys&item=key-rotation"
    for path in ("/", "/?q=rotate+keys", asked):
        assert client.get(path).text.count(shown) == 1, path
    assert "quarantine" not in client.get(f"{asked}&part=true").text


def test_a_fetched_item_links_to_its_repository_or_archive(
    server: RunningService, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other locations are not links."""
    states = server.service.source_states()
    for location, link in (
        ("https://github.com/acme/skills.git (main)", "https://github.com/acme/skills.git"),
        ("javascript:alert(1)", ""),
        (states[0].location, ""),
    ):
        changed = [msgspec.structs.replace(one, location=location) for one in states]
        monkeypatch.setattr(server.service, "source_states", lambda changed=changed: changed)
        found = re.findall(r'from <a href="([^"]*)"', client.get("/view/project/key-rotation").text)
        assert found == ([link] if link else [])


def test_the_api_has_a_page_with_an_example_of_each_operation(client: TestClient) -> None:
    """The example of a search works unchanged."""
    text = html.unescape(client.get("/api").text)
    described = client.get("/openapi.json").json()["paths"]
    requests = re.findall(r'data-copy="request">(.*?)</pre>', text, re.DOTALL)
    assert len(requests) == sum(map(len, described.values()))
    for path, methods in described.items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in text
    search = next(one for one in requests if "/v1/search?" in one)
    target = shlex.split(search)[-1].removeprefix("http://localhost")
    assert client.get(target, headers={"Accept": "*/*"}).status_code == 200


def test_a_shadowed_skill_links_to_the_skill_that_shadows_it(client: TestClient) -> None:
    """Both skills have the same name."""
    text = client.get("/?q=release-notes&threshold=0").text
    (shadowing,) = re.findall(r'Shadowed by <a href="/view/([^"]+)"', text)
    assert "release-notes" in shadowing


def test_the_page_of_an_item_is_complete(client: TestClient) -> None:
    """It has the full text, and the path relative to the server's folder."""
    text = client.get("/view/project/key-rotation").text
    assert "Rotate API keys without downtime" in text
    assert "Steps follow." in text
    assert re.search(
        r'<code dir="auto" data-copy="path"[^>]*>skills/key-rotation/SKILL.md</code>', text
    )
    assert 'href="/v1/items/project/key-rotation"' in text


def test_an_unknown_item_is_a_page_with_suggestions(client: TestClient) -> None:
    """The page links to the item with a similar id."""
    response = client.get("/view/project/key-rotatoin")
    assert response.status_code == 404
    assert 'href="/view/project/key-rotation"' in response.text


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/?q=x&limit=0", 422, "limit: use a number of at least 1."),
        ("/?q=x&kind=spell", 422, "kind[0]"),
        ("/?q=" + "x" * 32_001, 422, "32,000 is the limit"),
        ("/nothing", 404, "There is nothing at this address"),
        ("/static/secret", 404, "There is nothing at this address"),
        ("/items/unknown", 404, "There is no item"),
        ("/search?q=%ff", 400, "not UTF-8"),
    ],
)
def test_browsers_get_errors_as_pages(
    client: TestClient, path: str, status: int, words: str
) -> None:
    """Programs get the same error as JSON."""
    response = client.get(path)
    assert response.status_code == status
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert words in response.text
    assert 'href="/status"' in response.text
    assert "openapi.json" not in response.text
    assert '<a href="/">Go to the search</a>' in response.text
    response = client.get(path, headers={"Accept": "*/*"})
    assert response.headers["content-type"] == "application/problem+json"
    assert words in response.json()["detail"]


def test_clients_of_the_api_never_get_error_pages(client: TestClient) -> None:
    """The default Accept header of Java clients, for example, includes HTML."""
    client.headers["Accept"] = "text/html, image/gif, image/jpeg, */*; q=.2"
    refused = [
        client.get("/v1/items/unknown"),
        client.post("/v1/search", json={"queries": []}),
        client.post("/search", json={"queries": []}),
        client.post("/rebuild", content="x", headers={"Content-Type": "text/x"}),
        client.get("/v1"),
        client.get("/mcp"),
        client.post("/mcp/skills", json={}, headers={"Host": "evil.example"}),
    ]
    assert {one.headers["content-type"] for one in refused} == {"application/problem+json"}
    assert client.get("/items/unknown").headers["content-type"] == "text/html; charset=utf-8"


def test_without_an_index_the_page_reloads_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status page says what is missing."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    with RunningService(tmp_path / "project") as running:
        client = running.client()
        response = client.get("/", headers=HTML)
        assert response.status_code == 503
        assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in response.text
        assert "run <code>repertory index</code>" in response.text
        assert 'value="keys"' in client.get("/?q=keys", headers=HTML).text
        status = client.get("/status", headers=HTML)
        assert status.status_code == 200
        assert "No index." in status.text


def test_an_empty_catalogue_says_what_to_do(tmp_path: Path) -> None:
    """The pages do not blame the query or the filters."""
    (tmp_path / "project").mkdir()
    with indexed_server(tmp_path / "project", tmp_path / "home") as running:
        client = running.client()
        pages = ("/", "/?q=keys", "/catalogue")
        start, found, catalogue = (client.get(path, headers=HTML).text for path in pages)
    assert "Nothing to search yet" in start
    assert "Nothing to search yet" in catalogue
    assert "these filters" not in catalogue
    assert "repertory add" in start
    assert "Nothing to search yet" in found
    assert "Nothing fits well enough" not in found


@pytest.mark.parametrize(
    "path",
    ["/", "/?q=x", "/view/project/key-rotation", "/view/no", "/status", "/api", "/no", "/login"],
)
def test_pages_are_confined(client: TestClient, path: str) -> None:
    """They load only their own files and scripts, and cannot be framed."""
    headers = client.get(path).headers
    policy = dict(
        part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
    )
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' data:",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"


@pytest.mark.usefixtures("keys")
def test_static_files_are_public_and_cached(server: RunningService, tmp_path: Path) -> None:
    """They need no key, and caches may keep them forever."""
    client = browser(server, tmp_path)
    files = re.findall(r'"(/static/[^"]+)"', client.get("/").text)
    assert {file.partition("?")[0].rpartition(".")[2] for file in files} == {"css", "js", "svg"}
    for file in files:
        response = client.get(file)
        assert response.status_code == 200
        assert "immutable" in response.headers["cache-control"]
        assert response.headers["x-content-type-options"] == "nosniff"


# Keys


@pytest.mark.usefixtures("keys")
def test_without_a_key_a_browser_gets_the_login_page(
    server: RunningService, tmp_path: Path
) -> None:
    """Afterwards it returns to its page, but not to the target of a form; programs get JSON."""
    client = browser(server, tmp_path)
    for path in ("/", "/?q=a&kind=skill", "/status", "/view/x", "/search?q=x"):
        response = client.get(path)
        assert response.status_code == 401
        assert f'name="target" value="{path.replace("&", "&amp;")}"' in response.text
        assert "is invalid" not in response.text
    program = client.get("/", headers={"Accept": "*/*"})
    assert program.headers["content-type"] == "application/problem+json"
    assert 'value="/"' in client.post("/status/retry", data={"a": "b"}).text


def test_the_login_sets_a_confined_cookie(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """Scripts cannot read it, other sites send it only with links, and HTTPS makes it secure."""
    client = browser(server, tmp_path)
    sent = {"key": f" {keys[Scope.READ]} ", "target": "/status"}
    origin = {"Origin": "http://tools.example"}
    response = client.post("/login", data=sent, headers=origin)
    assert (response.status_code, response.headers["location"]) == (303, "/status")
    cookie = response.headers["set-cookie"].lower()
    assert keys[Scope.READ].lower() not in cookie
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert response.headers["cache-control"] == "no-store"
    assert "secure" not in cookie
    assert client.get("/status").status_code == 200
    assert client.get("/search?q=x").status_code == 200
    gone = client.post("/logout", headers=origin)
    assert (gone.status_code, gone.headers["location"]) == (303, "/login")
    assert client.get("/status").status_code == 401
    proxied = server.client(host="tools.example", keys=str(tmp_path / "keys.json"))
    proxied.follow_redirects = False
    response = proxied.post("/login", data=sent, headers={"Origin": "https://tools.example"})
    assert "secure" in response.headers["set-cookie"].lower()


def test_an_invalid_key_is_reported(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """A key that was revoked after the login is reported too."""
    client = browser(server, tmp_path)
    for sent in ({}, {"key": ""}, {"key": "rpt_wrong", "target": "//evil.example"}):
        response = client.post("/login", data=sent)
        assert response.status_code == 401
        assert "is invalid" in response.text
        assert 'name="target" value="/"' in response.text
        assert "set-cookie" not in response.headers
    client = browser(server, tmp_path, keys[Scope.READ])
    assert client.get("/").status_code == 200
    Keys(tmp_path / "keys.json").revoke("read")
    assert "not valid" in client.get("/").text


def test_a_cookie_gives_other_sites_no_access(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """This includes sites on the same machine or domain, for which browsers send the cookie."""
    client = browser(server, tmp_path, keys[Scope.ADMIN])
    for path in ("/status/retry", "/queue/retry", "/rebuild", "/logout", "/login"):
        for origin in ("http://evil.example", "http://tools.example:81", "null"):
            assert client.post(path, headers={"Origin": origin}).status_code == 403
    assert client.post("/status/retry").status_code == 403  # all browsers send an Origin
    own = client.post("/status/retry", headers={"Origin": "http://tools.example"})
    assert (own.status_code, own.headers["location"]) == (303, "/status")
    loaded = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "image"}
    assert client.get("/search?q=x", headers=loaded).status_code == 403


def test_a_link_signs_nobody_in_with_a_key(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """Otherwise another caller's link could sign people in as this caller."""
    client = browser(server, tmp_path, keys[Scope.ADMIN])
    before = dict(client.cookies)
    sent = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    response = client.get(f"/login?token={keys[Scope.READ]}", headers=sent)
    assert response.status_code == 401
    assert dict(client.cookies) == before


def test_a_key_in_the_header_takes_precedence(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """A key in the header overrides the cookie; a header with another scheme is ignored."""
    client = browser(server, tmp_path, keys[Scope.ADMIN])
    wrong = client.get("/items", headers={"Authorization": "Bearer rpt_wrong"})
    assert wrong.status_code == 401
    assert client.get("/items", headers={"Authorization": "Basic eDp5"}).status_code == 200


def test_without_keys_there_is_no_login(client: TestClient) -> None:
    """The login redirects to the search, and no page offers a logout."""
    response = client.get("/login", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert "Sign out" not in client.get("/").text


def test_the_token_of_the_user_signs_a_browser_in(server: RunningService) -> None:
    """A link or the form has the token; the session survives a restart of the server."""

    def started(token: str) -> TestClient:
        app = create_app(server.service, server.settings, owner=Owner(token, "of browsers"))
        client = TestClient(app, "http://127.0.0.1:7700", follow_redirects=False)
        client.headers.update(HTML)
        return client

    first, second = started("one"), started("two")
    assert "repertory keys token" in first.get("/status").text
    assert first.get("/login?token=two").status_code == 401
    entered = first.get("/login?token=one")
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    ((name, value),) = first.cookies.items()
    assert not any(secret in name + value for secret in ("one", "browsers"))
    assert "Sign out" in first.get("/status").text
    program = bearer(value) | {"Cookie": ""}
    assert first.get("/items", headers=program).status_code == 401

    second.cookies.set(name, value)
    assert second.get("/status").status_code == 200
    own, foreign = {"Origin": "http://127.0.0.1:7700"}, {"Origin": "http://evil.example"}
    assert second.post("/status/retry").status_code == 403  # all browsers send an Origin
    assert second.post("/status/retry", headers=foreign).status_code == 403
    assert second.post("/status/retry", headers=own).status_code == 303
    second.cookies.clear()
    posted = second.post("/login", data={"key": "two", "target": "/status"}, headers=own)
    assert posted.headers["location"] == "/status"
    assert second.post("/logout", headers=own).status_code == 303
    assert second.get("/status").status_code == 401


@pytest.mark.usefixtures("keys")
def test_login_attempts_count_as_requests(server: RunningService, tmp_path: Path) -> None:
    """Static files do not."""
    client = server.client(keys=str(tmp_path / "keys.json"), requests_per_minute=3)
    client.headers.update(HTML)
    statuses = [client.post("/login", data={"key": "x"}).status_code for _ in range(4)]
    assert statuses == [401, 401, 401, 429]
    assert client.get("/static/style.css").status_code == 200


# The status


def test_the_status_shows_freshness(client: TestClient) -> None:
    """It shows sources, queue and index; the polled part equals that of the page."""
    text = client.get("/status").text
    for words in ("project", "documents", "fresh", "just now", "all-minilm-l6-v2", "Waiting"):
        assert words in text
    assert client.get("/status?part=true").text.strip() in text


def test_the_status_shows_activity_and_problems(server: RunningService, client: TestClient) -> None:
    """Builds, busy workers, failed sources and problems are shown with details."""
    board = server.parts.coordination.status
    watch = board.reports()["watch"]
    failing = watch["sources"][0] | {
        "error": "It is away.",
        "stale": 2,
        "seen": time.time() - 7_300,
    }
    problem = {"severity": "warning", "message": "Mend it.", "path": "a.md", "line": 3, "item": ""}
    building = {"collection": "next", "done": 3, "total": 1_200}
    board.report(
        "watch",
        watch
        | {"sources": [failing], "problems": [problem], "building": building, "pending": 5}
        | {"warnings": 1_240}
        | {"polling": {failing["name"]: "nfs4 reports no changes"}},
    )
    busy = {"queue": "saves", "items": 7, "since": time.time()}
    board.report("worker:host:1", {"model": "m", "device": "cpu", "busy": busy, "jobs": 1_500})
    try:
        text = client.get("/status").text
    finally:
        server.tick()
    assert "Scanned at intervals, because nfs4 reports no changes" in text
    for words in ("It is away.", "2 items kept", "2 hours ago", "a.md:3", "Mend it.", "1,500"):
        assert words in text
    assert '<progress id="building" value="3" max="1200">' in text
    assert "queue saves, items 7" in text
    assert "5 items pending" in text
    assert "And 1,239 more: <code>repertory doctor</code> lists them." in text


def test_recent_searches_are_for_administrators(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """They include searches of all interfaces; a reader sees none, and cannot retry jobs."""
    admin = browser(server, tmp_path, keys[Scope.ADMIN])
    reader = browser(server, tmp_path, keys[Scope.READ])
    admin.get("/?q=strange+wish")
    admin.get("/search?q=another+one&format=markdown")
    seen = admin.get("/status").text
    assert "strange wish" in seen
    assert "another one" in seen
    text = reader.get("/status").text
    assert "strange wish" not in text
    assert "Recent searches" not in text
    origin = {"Origin": "http://tools.example"}
    assert reader.post("/status/retry", headers=origin).status_code == 403
