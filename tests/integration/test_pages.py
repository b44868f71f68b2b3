"""The pages over HTTP, on a real index: what they show, to whom, and how they are confined."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from starlette.testclient import TestClient

from repertory.errors import ModelError
from repertory.keys import Keys, Scope
from repertory.search.engine import SearchEngine
from repertory_query.access import COOKIE
from repertory_query.pages.choices import Choice, Choices
from tests.support.query_service import RunningService, looked_at, skill

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server of three skills, two of them of one name, and a document."""
    root = tmp_path_factory.mktemp("pages")
    project = root / "project"
    skill(project, "key-rotation", "Rotate API keys without downtime")
    skill(project, "release-notes", "Write release notes from merged pull requests")
    skill(project, "archive/release-notes", "Write release notes as they were once written")
    archived = project / "skills" / "archive" / "release-notes" / "SKILL.md"
    archived.write_text(archived.read_text().replace("name: archive/", "name: "))
    (project / "README.md").write_text("# Shop\n\nThe web shop and its checkout.\n")
    with looked_at(project, root / "home") as running:
        yield running


@pytest.fixture
def client(server: RunningService) -> TestClient:
    """A browser on the same machine, of a server without keys."""
    client = server.client()
    client.headers.update(HTML)
    return client


@pytest.fixture
def keys(tmp_path: Path) -> dict[Scope, str]:
    """A key of each scope, in ``keys.json`` of the test's folder."""
    keys = Keys(tmp_path / "keys.json")
    return {scope: keys.create(scope.value, scope) for scope in Scope}


def browser(server: RunningService, tmp_path: Path, key: str = "") -> TestClient:
    """A browser from elsewhere, of a server with keys, which keeps one if it is given."""
    client = server.client(
        host="tools.example", address="192.0.2.7", keys=str(tmp_path / "keys.json")
    )
    client.headers.update(HTML)
    client.follow_redirects = False
    if key:
        client.cookies.set(COOKIE, key)
    return client


def test_a_search_is_a_page_without_any_script(client: TestClient) -> None:
    """With each hit's confidence and its parts in figures, the reason, and a link to the item."""
    text = client.get("/?q=rotate+credentials&limit=&threshold=").text
    assert '<a class="hit" href="/view/project/key-rotation"' in text
    for part in ("confidence", "semantic", "keyword", "name"):
        assert re.search(rf"<dt>{part}</dt>\s*<dd>.*?<span class=\"number\">\d\.\d\d</span>", text)
    assert '<p class="reason"' in text
    assert "hybrid search" in text


def test_only_the_results_are_sent_to_who_types(client: TestClient) -> None:
    """The same as they are on the whole page."""
    whole, part = client.get("/?q=rotate").text, client.get("/?q=rotate&part=true").text
    assert part.strip() in whole
    assert "<html" not in part


def test_what_can_be_chosen_is_what_is_indexed(client: TestClient) -> None:
    """With counts; a field of one value or none is not offered, a chosen value always is."""
    text = client.get("/").text
    assert re.search(r'value="skill"><span>skill <small>3</small>', text)
    assert 'name="server"' not in text
    text = client.get("/?server=gone&kind=skill").text
    assert 'name="server" value="gone" checked' in text
    assert 'value="skill" checked' in text
    assert "0 items" in text


def test_choices_are_counted_once_for_each_version_of_the_index(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A letter typed costs a search, no more."""
    count, counted = Choices.of, 0

    def counting(choices: Choices, engine: SearchEngine) -> list[Choice]:
        nonlocal counted
        counted += 1
        return count(choices, engine)

    monkeypatch.setattr(Choices, "of", counting)
    for query in ("", "r", "ro", "rot"):
        client.get(f"/?q={query}")
    assert counted == 1


def test_without_words_one_looks_through_what_there_is(client: TestClient) -> None:
    """All of it in numbers, or the items of what was chosen."""
    assert "4 items. Describe" in client.get("/").text
    text = client.get("/?kind=document").text
    assert "1 item<" in text
    assert 'href="/view/documents/README.md"' in text


def test_that_nothing_fits_is_said_with_what_to_try(client: TestClient) -> None:
    """How near the best came, and how to see it all the same."""
    text = client.get("/?q=zxqv+wobbly&kind=skill&threshold=0.9").text
    assert "Nothing fits well enough" in text
    assert re.search(r"reaches a confidence of\s+0\.\d\d; shown are those from 0\.90", text)
    assert 'href="/?q=zxqv+wobbly&amp;kind=skill&amp;threshold=0"' in text
    assert 'href="/?q=zxqv+wobbly&amp;threshold=0.9"' in text


def test_what_an_answer_lacks_is_said(
    server: RunningService, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that answer alone, and sources that may have gone on since."""

    def failing() -> NoReturn:
        raise ModelError("The model is away.")

    monkeypatch.setitem(vars(server.live.engine), "_embedding", failing)
    monkeypatch.setitem(vars(server.live.engine), "_stale", ("documents",))
    text = client.get("/?q=notes&threshold=0").text
    assert "Found by words alone. The model is away." in text
    assert "May be out of date: documents." in text
    assert re.search(r"<dt>semantic</dt>\s*<dd title=\"The meaning was not searched", text)


def test_a_skill_that_another_shadows_says_so(client: TestClient) -> None:
    """With a link to the one that is taken first."""
    text = client.get("/?q=release-notes&threshold=0").text
    (shadowing,) = re.findall(r'Shadowed by <a href="/view/([^"]+)"', text)
    assert "release-notes" in shadowing


def test_an_item_is_shown_whole(client: TestClient) -> None:
    """Its text as it is written, and its file as seen from where the server runs."""
    text = client.get("/view/project/key-rotation").text
    assert "Rotate API keys without downtime" in text
    assert "Steps follow." in text
    assert '<code dir="auto">skills/key-rotation/SKILL.md</code>' in text
    assert 'href="/items/project/key-rotation"' in text


def test_an_unknown_item_is_a_page_with_suggestions(client: TestClient) -> None:
    """In the same look as all others."""
    response = client.get("/view/project/key-rotatoin")
    assert response.status_code == 404
    assert 'href="/view/project/key-rotation"' in response.text


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/?q=x&limit=0", 422, "limit: Expected `int` "),
        ("/?q=x&kind=spell", 422, "kind[0]"),
        ("/?q=" + "x" * 4_001, 422, "4,000 is the limit"),
        ("/nothing", 404, "There is nothing at this address"),
        ("/static/secret", 404, "There is nothing at this address"),
        ("/items/nobody", 404, "There is no item"),
        ("/search?q=%ff", 400, "not UTF-8"),
    ],
)
def test_what_goes_wrong_is_told_as_a_page_to_who_reads_pages(
    client: TestClient, path: str, status: int, words: str
) -> None:
    """And as JSON to everybody else."""
    response = client.get(path)
    assert response.status_code == status
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert words in response.text
    assert 'href="/status"' in response.text
    response = client.get(path, headers={"Accept": "*/*"})
    assert response.headers["content-type"] == "application/problem+json"
    assert words in response.json()["detail"]


def test_before_there_is_an_index_the_page_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks again by itself; the status says what is missing."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    with RunningService(tmp_path / "project") as running:
        client = running.client()
        response = client.get("/", headers=HTML)
        assert response.status_code == 503
        assert '<meta http-equiv="refresh" content="2">' in response.text
        status = client.get("/status", headers=HTML)
        assert status.status_code == 200
        assert "No index." in status.text


@pytest.mark.parametrize(
    "path", ["/", "/?q=x", "/view/project/key-rotation", "/view/no", "/status", "/no", "/login"]
)
def test_pages_are_confined(client: TestClient, path: str) -> None:
    """They load nothing from elsewhere, run nothing but their script, and stand in no frame."""
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


def test_the_files_of_pages_are_for_everybody_and_for_good(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """Without a key, and under another address as soon as they change."""
    client = browser(server, tmp_path)
    files = re.findall(r'"(/static/[^"]+)"', client.get("/").text)
    assert {file.partition("?")[0].rpartition(".")[2] for file in files} == {"css", "js", "svg"}
    for file in files:
        response = client.get(file)
        assert response.status_code == 200
        assert "immutable" in response.headers["cache-control"]
        assert response.headers["x-content-type-options"] == "nosniff"


# Keys


def test_without_a_key_a_browser_is_asked_for_one(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """At any address but a form's it leads on to that address; a program gets a problem."""
    client = browser(server, tmp_path)
    for path in ("/", "/?q=a&kind=skill", "/status", "/view/x", "/search?q=x"):
        response = client.get(path)
        assert response.status_code == 401
        assert f'name="target" value="{path.replace("&", "&amp;")}"' in response.text
        assert "not valid" not in response.text
    program = client.get("/", headers={"Accept": "*/*"})
    assert program.headers["content-type"] == "application/problem+json"
    assert 'value="/"' in client.post("/status/retry").text


def test_a_key_that_was_given_is_kept_by_the_browser_alone(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """No script sees it, from other sites only links send it, and over HTTPS nothing else does."""
    client = browser(server, tmp_path)
    sent = {"key": f" {keys[Scope.READ]} ", "target": "/status"}
    origin = {"Origin": "http://tools.example"}
    response = client.post("/login", data=sent, headers=origin)
    assert (response.status_code, response.headers["location"]) == (303, "/status")
    cookie = response.headers["set-cookie"].lower()
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


def test_a_wrong_key_is_said_to_be(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """Also one that was valid when the browser was given it."""
    client = browser(server, tmp_path)
    for sent in ({}, {"key": ""}, {"key": "rpt_wrong", "target": "//evil.example"}):
        response = client.post("/login", data=sent)
        assert response.status_code == 401
        assert "not valid" in response.text
        assert 'name="target" value="/"' in response.text
        assert "set-cookie" not in response.headers
    client = browser(server, tmp_path, keys[Scope.READ])
    assert client.get("/").status_code == 200
    Keys(tmp_path / "keys.json").revoke("read")
    assert "not valid" in client.get("/").text


def test_a_cookie_changes_nothing_for_a_page_of_another_site(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """Nor for one of the same machine or domain, where browsers send it along."""
    client = browser(server, tmp_path, keys[Scope.ADMIN])
    for path in ("/status/retry", "/queue/retry", "/rebuild", "/logout", "/login"):
        for origin in ("http://evil.example", "http://tools.example:81", "null"):
            assert client.post(path, headers={"Origin": origin}).status_code == 403
    assert client.post("/status/retry").status_code == 403  # every browser names the origin
    own = client.post("/status/retry", headers={"Origin": "http://tools.example"})
    assert (own.status_code, own.headers["location"]) == (303, "/status")
    loaded = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "image"}
    assert client.get("/search?q=x", headers=loaded).status_code == 403


def test_a_key_in_the_header_comes_first(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """A cookie beside it counts for nothing; other schemes are a proxy's own affair."""
    client = browser(server, tmp_path, keys[Scope.ADMIN])
    wrong = client.get("/items", headers={"Authorization": "Bearer rpt_wrong"})
    assert wrong.status_code == 401
    assert client.get("/items", headers={"Authorization": "Basic eDp5"}).status_code == 200


def test_without_keys_there_is_nothing_to_sign_in_to(client: TestClient) -> None:
    """The address leads to the search, and there is no way out either."""
    response = client.get("/login", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert "Sign out" not in client.get("/").text


def test_pages_are_counted_like_all_that_is_asked(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """Whoever tries keys is, too; the files of pages are not."""
    client = server.client(keys=str(tmp_path / "keys.json"), requests_per_minute=3)
    client.headers.update(HTML)
    statuses = [client.post("/login", data={"key": "x"}).status_code for _ in range(4)]
    assert statuses == [401, 401, 401, 429]
    assert client.get("/static/style.css").status_code == 200


# The status


def test_the_status_tells_how_fresh_everything_is(client: TestClient) -> None:
    """Sources, the queue, the index; the part that is looked at again is the same."""
    text = client.get("/status").text
    for words in ("project", "documents", "fresh", "just now", "all-minilm-l6-v2", "Waiting"):
        assert words in text
    assert client.get("/status?part=true").text.strip() in text


def test_the_status_tells_what_is_being_done_and_what_is_wrong(
    server: RunningService, client: TestClient
) -> None:
    """A build with its progress, workers with what they do, sources that fail, problems."""
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
        watch | {"sources": [failing], "problems": [problem], "building": building, "pending": 5},
    )
    busy = {"queue": "saves", "items": 7, "since": time.time()}
    board.report("worker:host:1", {"model": "m", "device": "cpu", "busy": busy, "jobs": 1_500})
    try:
        text = client.get("/status").text
    finally:
        server.tick()
    for words in ("It is away.", "2 items kept", "2 hours ago", "a.md:3", "Mend it.", "1,500"):
        assert words in text
    assert '<progress id="building" value="3" max="1200">' in text
    assert "queue saves, items 7" in text
    assert "5 items on the way" in text


def test_recent_searches_are_for_those_who_run_the_server(
    server: RunningService, keys: dict[Scope, str], tmp_path: Path
) -> None:
    """Whatever way they came by; a reader sees none, and cannot retry either."""
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
