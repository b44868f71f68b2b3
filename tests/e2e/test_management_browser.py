"""The management pages in a real browser: without scripts, by keyboard, on a phone."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from repertory.search.query import query_of
from tests.support.browser import CHROMIUM, MISSING, Visitor, chromium
from tests.support.builders import write, write_skill
from tests.support.listening import served
from tests.support.query_service import RunningService, indexed_server

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)

ATTACK = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
POLICY = """
# Rotations.
[[policy]]
item = "key-rotation"  # by name
boost = 0.2 # for now

[[policy]]
item = '''</script><script>alert(1)</script>"'><img src=x onerror=alert(2)>'''
aliases = ["a-name-without-any-place-to-break-it-a-name-without-any-place-to-break-it"]
"""
WIDE_TABLES = """() => {
    const style = new CSSStyleSheet();
    style.replaceSync("#live table { width: 60rem }");
    document.adoptedStyleSheets.push(style);
}"""
PAGES = ["", "/history", "/insights", "/reviews", "/policies", "/policies/edit?at=1", "/keys"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server with a recorded hour of searches."""
    root = tmp_path_factory.mktemp("managed")
    project = root / "project"
    write_skill(project, "key-rotation", "Rotate API keys without downtime")
    with indexed_server(project, root / "home") as server:
        service, now = server.service, time.time()
        answer = service.search(query_of(server.settings.values, "rotate keys"))
        for minute in range(60):
            for number in range(minute % 7):
                service.recent.note(answer, 0.004 * number)
            counts = service.recent.counts()
            service.history.note(now - 60 * (59 - minute), counts, minute % 20, minute // 50)
        yield server


@pytest.fixture
def url(running: RunningService, tmp_path: Path) -> Iterator[str]:
    """The URL of the pages; the server has no keys at first."""
    write(running.project / "repertory.toml", POLICY)
    with served(running, keys=str(tmp_path / "keys.json")) as url:
        yield f"{url}/status"


def searched(running: RunningService, query: str) -> None:
    """Add a recent search."""
    service = running.service
    answer = service.search(query_of(running.settings.values, query))
    service.recent.note(answer, 0.001)


def width_of(page: Page) -> int:
    """The width of the page's content in pixels."""
    width: int = page.evaluate("document.documentElement.scrollWidth")
    return width


@pytest.mark.parametrize("dark", [False, True])
def test_every_page_fits_a_phone(browser: Browser, url: str, *, dark: bool, tmp_path: Path) -> None:
    """Pages fit a phone with long and hostile names; charts are drawn and described."""
    with Visitor(browser, width=390, dark=dark) as visitor:
        for path in PAGES:
            visitor.page.goto(url + path)
            assert width_of(visitor.page) <= 390, path
            visitor.page.screenshot(path=tmp_path / "phone.png", full_page=True)
        visitor.page.goto(f"{url}/policies")
        expect(visitor.page.locator("main")).to_contain_text(ATTACK)
        visitor.page.goto(url)
        charts = visitor.page.get_by_role("img", name=re.compile("At most"))
        expect(charts).to_have_count(6)
        bar = charts.first.locator("rect").first.bounding_box()
        assert bar is not None
        assert bar["height"] > 1


def test_a_policy_is_changed_without_scripts(
    browser: Browser, url: str, running: RunningService
) -> None:
    """A policy is edited in a form, shown as a diff, confirmed and written."""
    file = running.project / "repertory.toml"
    with Visitor(browser, scripts=False) as visitor:
        page = visitor.page
        page.goto(f"{url}/policies")
        page.get_by_role("link", name="Edit the policy of key-rotation").click()
        page.get_by_label("Boost").fill("0.5")
        page.get_by_label("Aliases").fill("key swap")
        page.get_by_role("button", name="Show the change").click()
        expect(page.locator("pre .added")).to_have_text(
            ["+boost = 0.5 # for now", '+aliases = ["key swap"]']
        )
        expect(page.locator("pre .removed")).to_have_text(["-boost = 0.2 # for now"])
        assert file.read_text() == POLICY
        page.get_by_role("button", name="Write repertory.toml").click()
        expect(page).to_have_url(f"{url}/policies")
        expect(page.get_by_role("row", name=re.compile("key-rotation"))).to_contain_text("key swap")
    changed = POLICY.replace(
        "boost = 0.2 # for now", 'boost = 0.5 # for now\naliases = ["key swap"]'
    )
    assert file.read_text() == changed


def test_keys_are_created_and_revoked_by_keyboard(browser: Browser, url: str) -> None:
    """The first key is needed to sign in; revoking a key takes two steps."""
    with Visitor(browser) as visitor:
        page = visitor.page
        page.goto(f"{url}/keys")
        page.get_by_label("Name").focus()
        page.keyboard.type("anna")
        page.keyboard.press("Tab")
        page.keyboard.press("a")  # the scope "admin"
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        token = page.locator("code.secret").inner_text()
        page.goto(f"{url}/keys")
        page.get_by_label("Key").fill(token)
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{url}/keys")
        expect(page.get_by_role("row", name=re.compile("anna you admin"))).to_be_visible()
        assert token not in page.content()
        page.get_by_label("Name").fill("ben")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="The key of ben")).to_be_visible()
        page.get_by_text("Revoke ben …").focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_role("row", name=re.compile("ben"))).to_have_count(0)
        expect(page.get_by_role("row", name=re.compile("anna"))).to_be_visible()
        visitor.troubles = [one for one in visitor.troubles if "401" not in one]


def test_a_double_press_creates_one_key(browser: Browser, url: str) -> None:
    """Pressing Enter twice sends one request, as a second answer would replace the key."""
    with Visitor(browser) as visitor:
        page = visitor.page
        page.goto(f"{url}/keys")
        held = visitor.hold("**/status/keys")
        page.get_by_label("Name").fill("dora")
        page.get_by_label("Scope").select_option("admin")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        assert len(held) == 1
        held[0].continue_()
        expect(page.locator("code.secret")).to_be_visible()


@pytest.mark.parametrize("width", [320, 360, 700])
def test_the_bar_fits_every_width(browser: Browser, url: str, width: int) -> None:
    """The header has at most two rows, and the longest key name does not widen the page."""
    with Visitor(browser, width=width) as visitor:
        page = visitor.page
        page.goto(f"{url}/keys")
        page.get_by_label("Name").fill("a" * 64)
        page.get_by_label("Scope").select_option("admin")
        page.get_by_role("button", name="Create the key").click()
        token = page.locator("code.secret").inner_text()
        page.goto(f"{url}/keys")
        page.get_by_label("Key").fill(token)
        page.keyboard.press("Enter")
        expect(page.get_by_role("row", name=re.compile("you admin"))).to_be_visible()
        bar = page.locator("header").bounding_box()
        assert bar is not None
        assert bar["height"] <= 110
        expect(page.get_by_role("link", name="Repertory", exact=True)).to_be_visible()
        assert width_of(page) <= width
        visitor.troubles = [one for one in visitor.troubles if "401" not in one]


def test_updates_keep_the_chosen_time_range(browser: Browser, url: str) -> None:
    """A chosen time range is kept by updates and by the table view."""
    with Visitor(browser) as visitor:
        page = visitor.page
        page.goto(url)
        page.get_by_role("link", name="6 h").click()
        expect(page).to_have_url(f"{url}?hours=6")
        with page.expect_response(re.compile("part=true")):
            pass
        expect(page.get_by_role("heading", name="The last 6 hours")).to_be_visible()
        page.get_by_role("link", name="Show as a table").click()
        expect(page).to_have_url(f"{url}/history?hours=6")
        rows = page.get_by_role("row").count()
        assert 12 <= rows <= 15  # an hour in spans of five minutes, and the head


def test_updates_keep_selection_and_scroll_position(
    browser: Browser, url: str, running: RunningService
) -> None:
    """Updates keep the selected text and the scroll position of a table."""
    with Visitor(browser, width=360) as visitor:
        page = visitor.page
        page.goto(url)
        heading = page.get_by_role("heading", name="Recent searches")
        heading.evaluate("element => getSelection().selectAllChildren(element)")
        for _ in range(2):
            with page.expect_response(re.compile("part=true")):
                searched(running, "rotate")
        assert page.evaluate("String(getSelection())") == "Recent searches"
        page.evaluate("getSelection().empty()")
        page.evaluate(WIDE_TABLES)
        table = page.get_by_role("region", name="Sources")
        table.evaluate("table => { table.scrollLeft = 30; table.dataset.old = 'true'; }")
        expect(page.locator("#live [data-old]")).to_have_count(0)
        assert table.evaluate("table => table.scrollLeft") == 30


def test_a_long_search_does_not_widen_the_table(
    browser: Browser, url: str, running: RunningService
) -> None:
    """A search text of one long word does not widen its table."""
    searched(running, "a" * 120)
    with Visitor(browser, width=360) as visitor:
        visitor.page.goto(url)
        table = visitor.page.get_by_role("region", name="Recent searches")
        assert table.evaluate("table => table.scrollWidth <= table.clientWidth")


def test_a_button_rebuilds_the_index(browser: Browser, url: str) -> None:
    """The rebuild button leads back to the status page."""
    with Visitor(browser) as visitor:
        page = visitor.page
        page.goto(url)
        page.get_by_role("button", name="Rebuild the index").click()
        expect(page).to_have_url(url)
        expect(page.get_by_role("heading", name="Status")).to_be_visible()
