"""Sign-in at a provider in a real browser, which applies the Content Security Policy."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.browser import CHROMIUM, MISSING, Visitor, chromium
from tests.support.builders import write_shop
from tests.support.openid_provider import openid_provider
from tests.support.query_service import RunningService, indexed_server
from tests.support.signing_in import signing_in

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningService]:
    """A server with a few skills."""
    project = tmp_path / "project"
    write_shop(project)
    (tmp_path / "home").mkdir()
    with indexed_server(project, tmp_path / "home") as running:
        yield running


def test_a_person_signs_in_without_scripts(running: RunningService) -> None:
    """Without scripts, a person signs in by a link to the provider and signs out by a button."""
    with (
        openid_provider() as provider,
        signing_in(running, provider) as url,
        chromium() as browser,
        Visitor(browser, scripts=False) as visitor,
    ):
        page = visitor.page
        page.goto(f"{url}/login")
        page.get_by_role("link", name="Sign in with").click()
        page.get_by_role("textbox").fill("anna")
        page.get_by_role("button").click()
        expect(page).to_have_url(f"{url}/")
        (cookie,) = page.context.cookies()
        assert cookie["name"] == "repertory_session"
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Lax"
        page.get_by_role("link", name="Status").click()
        page.get_by_role("button", name="Sign out").click()
        expect(page).to_have_url(f"{url}/login")
        assert page.context.cookies() == []
