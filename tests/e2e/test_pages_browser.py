"""The search pages in a real browser: typing, filters, keyboard, items and hostile texts."""

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from repertory.catalogue.item import Item, Kind
from repertory.coordination.failures import Failure
from repertory.indexing.job import jobs
from repertory.keys import Keys, Scope
from tests.support.browser import CHROMIUM, MISSING, Visitor, chromium
from tests.support.builders import write, write_skill
from tests.support.listening import KEY, served
from tests.support.mcp_servers import SERVERS
from tests.support.query_service import RunningService, indexed_server

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)

ATTACK = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202egnp.exe"
RUNBOOK = """---
name: key-rotation
description: Rotate API keys without downtime, on schedule or after a leak.
tags: [security]
---
# Key rotation

{filler}

## Rolling back

If the new credential is refused by a service, restore the former one from the vault, and tell
everybody who waits for the switch that it is delayed.
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server with a few skills and tools, some of them by a hostile author."""
    root = tmp_path_factory.mktemp("pages")
    project = root / "project"
    for name, description in {
        "release-notes": "Write release notes from merged pull requests",
        "postmortem": "Write up an incident: timeline, causes, actions",
        "hostile": json.dumps(f"Hostile: {ATTACK}", ensure_ascii=False),
    }.items():
        write_skill(project, name, description)
    runbook = project / "skills" / "key-rotation" / "SKILL.md"
    write(runbook, RUNBOOK.format(filler="Keys are replaced in four moves. " * 60))
    hostile = project / "skills" / "hostile" / "SKILL.md"
    tag = json.dumps([ATTACK, "javascript:alert(3)"])
    text = hostile.read_text("utf-8").replace("---\nSteps", f"tags: {tag}\n---\n# {ATTACK}\nSteps")
    hostile.write_text(text, "utf-8")
    tools = {
        "server": "files",
        "tools": [
            {
                "name": "read_file",
                "description": "Read the contents of a file from disk.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"path": {"type": "string", "description": "Where it is."}},
                    "required": ["path"],
                },
            },
            {
                "name": f"hostile{ATTACK}",
                "description": f"Hostile tool: {ATTACK}",
                "inputSchema": {
                    "type": "object",
                    "properties": {ATTACK: {"enum": [ATTACK], "description": ATTACK}},
                },
            },
        ],
    }
    (project / "tools").mkdir()
    (project / "tools" / "files.json").write_text(json.dumps(tools), "utf-8")
    command = {"command": sys.executable, "args": [str(SERVERS / "callee.py"), "stdio"]}
    (project / "mcp.json").write_text(json.dumps({"mcpServers": {"desk": command}}), "utf-8")
    flags = {"mcp_config": [str(project / "mcp.json")], "allow_calls": True}
    with indexed_server(project, root / "home", **flags) as server:
        yield server


@pytest.fixture(scope="module")
def browser(running: RunningService) -> Iterator[Browser]:
    """One browser for all tests; it starts last, as its event loop stays in this thread."""
    assert running
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def url(running: RunningService) -> Iterator[str]:
    """The URL of the pages; the server has no keys."""
    with served(running, allow_calls=True) as url:
        yield url


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    """A desktop browser that fails the test on any error."""
    with Visitor(browser) as visitor:
        yield visitor


def test_results_follow_typing_and_have_a_url(visitor: Visitor, url: str) -> None:
    """Typing shows results, best first, and sets the URL; the back button works."""
    page = visitor.page
    page.goto(url)
    page.keyboard.type("rotate api keys", delay=5)
    first = page.locator("ol.hits > li").first
    expect(first).to_contain_text("key-rotation")
    expect(first.locator(".top .confidence .number")).to_have_text(re.compile(r"0\.\d\d"))
    expect(page.get_by_role("status")).to_have_text(re.compile(r"\d results?"))
    expect(page).to_have_url(f"{url}/?q=rotate+api+keys")
    expect(page).to_have_title("rotate api keys · Repertory")
    address = page.url
    page.go_back()
    expect(page.get_by_role("heading", name="Everything your agents can use")).to_be_visible()
    page.goto(address)
    expect(page.locator("ol.hits > li").first).to_contain_text("key-rotation")


def test_the_pages_of_a_project_stay_below_its_prefix(visitor: Visitor, url: str) -> None:
    """Typing and all links of a project's pages stay below its prefix."""
    page, root = visitor.page, f"{url}/projects/{KEY}"
    page.goto(root)
    expect(page).to_have_url(f"{root}/")
    page.keyboard.type("rotate api keys", delay=5)
    expect(page).to_have_url(f"{root}/?q=rotate+api+keys")
    page.get_by_role("link", name="key-rotation").first.click()
    expect(page).to_have_url(re.compile(re.escape(f"{root}/view/project/key-rotation")))
    page.get_by_role("link", name="security").click()
    expect(page).to_have_url(f"{root}/?tag=security")
    expect(page.locator("ol.hits > li")).to_have_count(1)
    page.get_by_role("link", name="Status").click()
    expect(page).to_have_url(f"{root}/status")
    page.get_by_role("link", name="Repertory").click()
    expect(page).to_have_url(f"{root}/")


def test_an_older_answer_never_replaces_a_newer_one(visitor: Visitor, url: str) -> None:
    """A late answer to an earlier query is ignored."""
    page = visitor.page
    page.goto(url)
    held = visitor.hold("**/?q=release+notes&part=true")
    page.keyboard.type("release notes")
    page.wait_for_timeout(300)  # longer than the debounce of typing
    assert len(held) == 1
    page.locator("#q").fill("read_file")
    expect(page.locator("ol.hits > li").first).to_contain_text("read_file")
    held[0].fulfill(body="<h2>Old</h2>")
    page.wait_for_timeout(100)
    expect(page.locator("ol.hits > li").first).to_contain_text("read_file")


@pytest.mark.parametrize("status", [0, 429, 503])
def test_a_failed_search_is_repeated_by_enter(visitor: Visitor, url: str, status: int) -> None:
    """Enter repeats a search that failed (0: no answer), without a second history entry."""
    page = visitor.page
    page.goto(f"{url}/?q=write")

    def fail(route: Route) -> None:
        if status:
            route.fulfill(status=status, json={"detail": "Try again later."})
        else:
            route.abort()

    page.route("**/?q=release&part=true", fail)
    page.locator("#q").fill("release")
    failure = "Try again later." if status else "The server cannot be reached."
    expect(page.locator("#live")).to_have_text(failure)
    page.unroute("**/?q=release&part=true")
    page.keyboard.press("Enter")
    expect(page.locator("ol.hits > li").first).to_contain_text("release-notes")
    page.go_back()
    expect(page).to_have_url(f"{url}/?q=write")
    assert visitor.troubles
    visitor.troubles = [one for one in visitor.troubles if "Failed to load" not in one]


def test_previous_results_are_marked_during_a_slow_search(visitor: Visitor, url: str) -> None:
    """During a slow search, the previous results are marked as busy."""
    page = visitor.page
    page.goto(f"{url}/?q=write")
    held = visitor.hold("**/?q=release&part=true")
    page.locator("#q").fill("release")
    expect(page.locator("#live")).to_have_attribute("aria-busy", "true")
    expect(page.locator("#live")).to_have_css("opacity", "0.5")
    held[0].continue_()
    expect(page.locator("ol.hits > li").first).to_contain_text("release-notes")
    expect(page.locator("#live")).not_to_have_attribute("aria-busy", "true")


def test_the_back_button_after_a_skip_link(visitor: Visitor, url: str) -> None:
    """After a skip link and a search, the back button shows the start page."""
    page = visitor.page
    page.goto(url)
    page.get_by_role("link", name="Skip to the content").press("Enter")
    page.keyboard.press("/")
    page.keyboard.type("release")
    expect(page.locator("ol.hits > li").first).to_contain_text("release-notes")
    page.go_back()
    expect(page.get_by_role("heading", name="Everything your agents can use")).to_be_visible()
    expect(page.locator("#q")).to_have_value("")


def test_an_open_filter_closes_when_the_focus_leaves_it(visitor: Visitor, url: str) -> None:
    """An open filter closes when the focus leaves it, so it does not cover the results."""
    page = visitor.page
    page.goto(f"{url}/?q=write&threshold=0")
    panel = page.locator("details[data-field=tag]")
    panel.locator("summary").press("Enter")
    panel.get_by_role("checkbox").last.focus()
    expect(panel).to_have_attribute("open", "")
    page.keyboard.press("Tab")
    expect(panel).not_to_have_attribute("open", "")


def test_a_failed_explanation_is_requested_again(visitor: Visitor, url: str) -> None:
    """A failed explanation shows the error and is requested again on reopening."""
    page = visitor.page
    page.goto(f"{url}/?q=release")
    page.route("**/why?*", lambda route: route.fulfill(status=503, json={"detail": "Run `it`."}))
    summary = page.locator("details.why summary").first
    panel = page.locator("details.why .explained").first
    summary.click()
    expect(panel).to_have_text("Run it.")
    expect(panel.locator("code")).to_have_text("it")
    page.unroute("**/why?*")
    summary.click()
    summary.click()
    expect(panel.get_by_role("region", name="Words of the query")).to_be_visible()
    visitor.troubles = [one for one in visitor.troubles if "Failed to load" not in one]


def test_a_waiting_page_keeps_typed_text(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that waits for the index reloads when ready, but not while the box has text."""
    monkeypatch.setenv("HOME", str(tmp_path))
    write_skill(tmp_path / "project", "release-notes", "Write release notes")
    with (
        RunningService(tmp_path / "project") as running,
        served(running) as url,
        Visitor(browser) as visitor,
    ):
        page = visitor.page
        page.goto(url)
        page.locator("#q").fill("release")
        running.scan()
        with page.expect_response(lambda response: response.status == 200):
            pass
        page.wait_for_timeout(200)
        expect(page.locator("#q")).to_have_value("release")
        page.locator("#q").fill("")
        expect(page.get_by_role("heading", name="Everything your agents can use")).to_be_visible()
        visitor.troubles = [one for one in visitor.troubles if "Failed to load" not in one]


def test_filters_apply_at_once(visitor: Visitor, url: str) -> None:
    """A filter applies at once and is in the URL; removing filters restores all results."""
    page = visitor.page
    page.goto(f"{url}/?q=read+write&threshold=0")
    everything = page.locator("ol.hits > li").count()
    page.get_by_text("tool", exact=False).filter(has=page.locator("small")).first.click()
    expect(page).to_have_url(re.compile("kind=tool"))
    expect(page.locator("ol.hits .kind.skill")).to_have_count(0)
    expect(page.locator("ol.hits .kind.tool").first).to_be_visible()
    page.get_by_role("link", name="clear filters").click()
    expect(page.locator("ol.hits > li")).to_have_count(everything)


def test_the_keyboard_is_enough(visitor: Visitor, url: str) -> None:
    """Skip link, `/`, arrows, Enter and Escape reach the search box and the results."""
    page = visitor.page
    page.goto(f"{url}/status")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("write")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{url}/?q=write")
    page.goto(f"{url}/?q=write&threshold=0")
    hits = page.locator("a.hit")
    page.locator("#q").focus()
    page.keyboard.press("ArrowDown")
    expect(hits.nth(0)).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("ArrowDown")
    expect(hits.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/view/"))
    page.go_back()
    expect(page.locator("#q")).to_have_value("write")


def test_a_hit_links_to_its_section(visitor: Visitor, url: str) -> None:
    """A hit by a section opens the item with this section marked and visible."""
    page = visitor.page
    page.goto(f"{url}/?q=new+credential+refused,+restore+the+former+one+from+the+vault&threshold=0")
    page.locator("a.hit", has_text="key-rotation").click()
    matched = page.locator("#matched")
    expect(matched).to_contain_text("Rolling back")
    expect(matched).to_be_in_viewport()


def test_a_tool_is_shown_with_its_parameters(visitor: Visitor, url: str) -> None:
    """A tool's parameters are a table, with the schema below."""
    page = visitor.page
    page.goto(f"{url}/view/files__read_file")
    row = page.get_by_role("row", name=re.compile("path"))
    expect(row).to_contain_text("required")
    expect(row).to_contain_text("Where it is.")
    page.get_by_text("Schema", exact=True).first.click()
    expect(page.locator("pre").first).to_contain_text('"required": [')


def test_pages_follow_the_colours_of_the_system(browser: Browser, url: str) -> None:
    """The background is light or dark as the system prefers."""
    grounds = []
    for dark in (False, True):
        with Visitor(browser, dark=dark) as visitor:
            visitor.page.goto(f"{url}/?q=write")
            colour = visitor.page.evaluate("getComputedStyle(document.body).backgroundColor")
            grounds.append(sum(map(int, re.findall(r"\d+", colour))))
    assert grounds[0] > 700
    assert grounds[1] < 100


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/?q=write&threshold=0",
        "/?q=zxqv",
        "/view/files__read_file",
        "/view/desk__add",
        "/view/project/key-rotation",
        "/status",
        "/no",
    ],
)
def test_nothing_is_wider_than_a_phone(
    browser: Browser, url: str, path: str, tmp_path: Path
) -> None:
    """Pages fit a phone, also with long hostile words."""
    with Visitor(browser, width=390) as visitor:
        visitor.page.goto(url + path)
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
        visitor.page.screenshot(path=tmp_path / "phone.png", full_page=True)
        visitor.troubles = [one for one in visitor.troubles if "404" not in one]


@pytest.mark.parametrize("width", [360, 1280])
def test_the_counts_of_the_start_page_stay_whole(browser: Browser, url: str, width: int) -> None:
    """Counts are not wrapped beside long names."""
    with Visitor(browser, width=width) as visitor:
        visitor.page.goto(url)
        entry = visitor.page.locator(".overview li").first
        entry.locator("a").evaluate("link => (link.textContent = 'long-name-'.repeat(9))")
        count = entry.locator("small")
        count.evaluate("count => (count.textContent = '1')")
        height = count.evaluate("count => count.offsetHeight")
        count.evaluate("count => (count.textContent = '71,000')")
        assert count.evaluate("count => count.offsetHeight") == height


def test_a_phone_shows_the_state_of_each_source(browser: Browser, url: str) -> None:
    """On a phone, the table of sources fits the width, also with a long error."""
    with Visitor(browser, width=390) as visitor:
        visitor.page.goto(f"{url}/status")
        table = visitor.page.get_by_role("region", name="Sources")
        table.locator("tbody th").first.evaluate(
            "cell => cell.insertAdjacentHTML('beforeend', `<p>${'/folder'.repeat(20)}</p>`)"
        )
        assert table.evaluate("table => table.scrollWidth <= table.clientWidth")


def test_without_scripts_the_search_is_a_plain_form(browser: Browser, url: str) -> None:
    """Without scripts, a button sends the query and the filters."""
    with Visitor(browser, scripts=False) as visitor:
        page = visitor.page
        page.goto(url)
        page.locator("#q").fill("write")
        page.locator("input[name=kind][value=skill]").check(force=True)
        page.get_by_role("button", name="Search").click()
        expect(page.locator("ol.hits > li").first).to_be_visible()
        expect(page.locator("input[name=kind][value=skill]")).to_be_checked()
        assert "kind=skill" in page.url


def test_texts_of_hostile_authors_are_shown_as_text(visitor: Visitor, url: str) -> None:
    """In results, lists, filters, items, unknown ids and queries, no script or dialog runs.

    Characters that change the direction of a text are shown as symbols.
    """
    page = visitor.page
    page.goto(f"{url}/?q=hostile&threshold=0&limit=100")
    expect(page.locator("ol.hits")).to_contain_text("<img src=x onerror=alert(2)>")
    assert "\u202e" not in page.locator("body").inner_text()
    ids = [hit.get_attribute("href") for hit in page.locator("a.hit").all()]
    shown = 0
    for address in filter(None, ids):
        assert address.startswith("/view/")
        page.goto(url + address)
        text = page.locator("main").inner_text()
        shown += "<script>alert(1)</script>" in text
        assert "\u202e" not in text
        for details in page.locator("main details summary").all():
            details.click()
    assert shown >= 2
    for path in ("/?kind=skill&kind=tool", "/status"):
        page.goto(url + path)
        expect(page.locator("main")).not_to_be_empty()
    page.goto(url)
    page.locator("#q").fill(ATTACK)
    expect(page.locator("#live h2")).to_have_text(re.compile("result|Nothing"))
    page.get_by_role("button", name="Search").click()
    page.reload()
    assert page.locator("#q").input_value() == ATTACK
    page.goto(url)
    tag = page.locator(".overview a", has_text="javascript:alert(3)")
    tag.click()
    expect(page.locator("ol.hits")).to_contain_text("hostile")
    assert page.locator("a[href^=javascript]").count() == 0
    assert visitor.troubles == []
    page.goto(f"{url}/view/{ATTACK}")
    expect(page.locator("main")).to_contain_text("No such item")
    visitor.troubles = [one for one in visitor.troubles if "404" not in one]


def test_a_login_is_needed_once(browser: Browser, running: RunningService, tmp_path: Path) -> None:
    """Signing in returns to the requested page and lasts until signing out."""
    file = tmp_path / "keys.json"
    key = Keys(file).create("reader", Scope.READ)
    with served(running, keys=str(file)) as url, Visitor(browser) as visitor:
        page = visitor.page
        page.goto(f"{url}/?q=release")
        page.get_by_label("Key").fill("rpt_wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("is invalid")
        page.get_by_label("Key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(f"{url}/?q=release")
        expect(page.locator("ol.hits > li").first).to_contain_text("release-notes")
        page.locator("#q").fill("rotate keys")
        expect(page.locator("ol.hits > li").first).to_contain_text("key-rotation")
        assert page.evaluate("document.cookie") == ""
        page.goto(f"{url}/status")
        expect(page.get_by_role("heading", name="Recent searches")).to_have_count(0)
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Key")).to_be_visible()
        page.goto(f"{url}/status")
        expect(page.get_by_label("Key")).to_be_visible()
        visitor.troubles = [one for one in visitor.troubles if "401" not in one]


def test_a_failure_is_retried_by_a_button(
    visitor: Visitor, url: str, running: RunningService
) -> None:
    """A failed job appears on the open status page, and a button retries it."""
    page = visitor.page
    page.goto(f"{url}/status")
    expect(page.get_by_role("heading", name="Sources")).to_be_visible()
    item = Item(id="project/poison", kind=Kind.SKILL, name="poison", source="project")
    (job,) = jobs("elsewhere", 1, [item], [])
    running.parts.coordination.failures.add(
        Failure(
            id=job.id,
            collection=job.collection,
            items={item.id: item.metadata_hash()},
            error=f"It cannot be embedded: {ATTACK}",
            at=time.time(),
            attempts=3,
        )
    )
    failure = page.get_by_role("row", name=re.compile("poison"))
    expect(failure).to_contain_text("<script>")
    failure.get_by_role("button", name="Retry").click()
    expect(page).to_have_url(f"{url}/status")
    expect(page.get_by_role("heading", name="Failures")).to_have_count(0)


def test_updates_keep_the_focus(visitor: Visitor, url: str) -> None:
    """Updates of the page keep the focus, also on a link without an id."""
    page = visitor.page
    page.goto(f"{url}/status")
    link = page.locator("#live a").last
    link.focus()
    page.evaluate("document.querySelector('#live').firstElementChild.dataset.old = 'true'")
    expect(page.locator("#live [data-old]")).to_have_count(0)
    expect(page.locator("#live a").last).to_be_focused()


def test_the_counts_follow_the_query(visitor: Visitor, url: str) -> None:
    """Counts of filters follow the query; an open filter stays open and focused."""
    page = visitor.page
    page.goto(f"{url}/?threshold=0")
    page.keyboard.type("write release notes", delay=5)
    expect(page.locator("ol.hits > li").first).to_contain_text("release-notes")
    assert page.locator("template").count() == 0
    panel = page.locator("details[data-field=source]")
    panel.locator("summary").click()
    box = panel.locator("input[value=project]")
    count = int(
        panel.locator("label", has=page.locator("input[value=project]"))
        .locator("small")
        .inner_text()
    )
    box.focus()
    page.keyboard.press("Space")
    expect(page).to_have_url(re.compile("source=project"))
    expect(page.locator("ol.hits > li")).to_have_count(count)
    expect(panel.locator("input:checked")).to_have_count(1)
    expect(panel.locator("input:checked")).to_be_focused()
    expect(page.locator("input[name=kind][value=tool] + span small")).to_have_text("0")


def test_every_action_works_by_keyboard(visitor: Visitor, url: str) -> None:
    """Explaining a hit, calling a tool and copying its id work by keyboard."""
    page = visitor.page
    page.goto(f"{url}/?q=add+two+numbers")
    page.locator("a.hit", has_text="add").first.focus()
    page.keyboard.press("Tab")  # the server
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".explained").first).to_contain_text("Shown, at place 1")
    page.keyboard.press("Enter")
    expect(page.locator(".explained").first).to_be_hidden()

    page.goto(f"{url}/view/desk__add")
    page.get_by_label("first").focus()
    page.keyboard.type("20")
    page.keyboard.press("Tab")
    page.keyboard.type("22/")  # `/` is no shortcut in a field
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    expect(page.locator("#tried pre").first).to_have_text("42")
    expect(page).to_have_url(f"{url}/view/desk__add")
    page.get_by_label("first").fill("")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("first must be given")
    visitor.troubles = [one for one in visitor.troubles if "422" not in one]

    copy = page.get_by_role("button", name="Copy the id")
    copy.focus()
    page.keyboard.press("Enter")
    expect(copy).to_have_text("Copied")
    page.locator("#q").focus()
    page.keyboard.press("Control+V")
    expect(page.locator("#q")).to_have_value("desk__add")


def test_a_call_keeps_the_focus_on_its_button(visitor: Visitor, url: str) -> None:
    """The call button keeps the focus during and after a call; a double press calls once."""
    page = visitor.page
    page.goto(f"{url}/view/desk__add")
    page.get_by_label("first").fill("20")
    page.get_by_label("second").fill("22")
    held = visitor.hold("**/try/**")
    button = page.get_by_role("button", name="Call")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#tried")).to_have_text("Calling…")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_timeout(100)
    assert len(held) == 1
    held[0].continue_()
    expect(page.locator("#tried pre").first).to_have_text("42")
    expect(button).to_be_focused()


def test_a_call_after_signing_out_keeps_the_arguments(visitor: Visitor, url: str) -> None:
    """A call after signing out shows a message and keeps the arguments."""
    page = visitor.page
    page.goto(f"{url}/view/desk__add")
    page.get_by_label("first").fill("20")
    page.route("**/try/**", lambda route: route.fulfill(status=401, json={"detail": "A header"}))
    page.get_by_role("button", name="Call").click()
    expect(page.locator("#tried")).to_contain_text("You are no longer signed in.")
    expect(page.get_by_label("first")).to_have_value("20")
    visitor.troubles = [one for one in visitor.troubles if "Failed to load" not in one]


def test_everything_works_without_scripts(browser: Browser, url: str) -> None:
    """Without scripts, calls, explanations and the catalogue work, without copy buttons."""
    with Visitor(browser, scripts=False) as visitor:
        page = visitor.page
        page.goto(f"{url}/catalogue")
        page.locator("nav.index").get_by_role("link", name="desk").click()
        page.get_by_role("link", name="add", exact=True).click()
        page.get_by_label("first").fill("20")
        page.get_by_label("second").fill("22")
        page.get_by_role("button", name="Call").click()
        expect(page.locator("#tried pre").first).to_have_text("42")
        expect(page.get_by_label("first")).to_have_value("20")
        assert page.get_by_role("button", name=re.compile("Copy")).count() == 0
        page.get_by_label("Which searches find it?").fill("sum of two numbers")
        page.get_by_role("button", name="Explain").click()
        expect(page.locator(".explained")).to_contain_text("place")
        page.get_by_role("link", name="Show the results").click()
        page.locator("details.why summary").first.click()
        page.get_by_role("link", name="Explain this result").first.click()
        expect(page).to_have_url(re.compile("/why"))


def test_a_long_filter_is_narrowed_by_typing(browser: Browser, tmp_path: Path) -> None:
    """A filter with many values has a box to narrow it, which keeps its text after a choice."""
    project = tmp_path / "project"
    for number in range(14):
        write_skill(project, f"skill-{number}", "Write release notes")
        file = project / "skills" / f"skill-{number}" / "SKILL.md"
        file.write_text(file.read_text().replace("---\nSteps", f"tags: [tag-{number}]\n---\nSteps"))
    (project / "README.md").write_text("# Shop\n\nThe web shop.\n")
    with (
        indexed_server(project, tmp_path / "home") as server,
        served(server) as url,
        Visitor(browser) as visitor,
    ):
        page = visitor.page
        page.goto(f"{url}/?q=write&threshold=0&limit=100")
        page.locator("details[data-field=source] summary").click()
        panel = page.locator("details[data-field=tag]")
        panel.locator("summary").click()
        expect(page.locator(".narrow")).to_have_count(1)
        panel.get_by_label("Type to narrow the list").fill("G-13")
        expect(panel.locator("label:visible")).to_have_count(1)
        panel.get_by_text("tag-13").click()
        expect(page).to_have_url(re.compile("tag=tag-13"))
        expect(page.locator("ol.hits > li")).to_have_count(1)
        expect(panel.locator("label:visible")).to_have_count(1)
        expect(panel.get_by_label("Type to narrow the list")).to_have_value("G-13")


@pytest.mark.parametrize(
    "path", ["/api", "/catalogue", "/why?q=write&item=desk__add", "/connect", "/status/insights"]
)
def test_pages_obey_their_content_security_policy(browser: Browser, url: str, path: str) -> None:
    """Pages with all panels open violate no Content Security Policy and fit a phone."""
    with Visitor(browser, width=390) as visitor:
        page = visitor.page
        page.goto(url + path)
        page.locator("main details").evaluate_all("all => all.forEach(one => (one.open = true))")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert visitor.troubles == []
        # Proof that the check can fail: an inline style is reported.
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">')")
        assert "Content Security Policy" in "".join(visitor.troubles)
        visitor.troubles.clear()
