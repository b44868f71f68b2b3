"""A headless browser for tests of the web pages: the installed Chromium."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Dialog,
    Page,
    Route,
    expect,
    sync_playwright,
)

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
MISSING = "no Chromium is installed: `apt-get install chromium`"
TIMEOUT_MS = 20_000.0  # only a hanging page reaches it


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser. ``CHROMIUM`` must not be None."""
    expect.set_options(timeout=TIMEOUT_MS)
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with (
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=CHROMIUM, args=as_root) as browser,
    ):
        yield browser


class Visitor:
    """A browser session with one page; leaving the context fails if the browser had errors.

    Attributes:
        page: The open page.
        troubles: Errors and warnings of the browser: failed scripts, violations of the content
            security policy, and unexpected dialogs.
    """

    def __init__(
        self,
        browser: Browser,
        *,
        width: int = 1280,
        dark: bool = False,
        scripts: bool = True,
    ) -> None:
        self._context = browser.new_context(
            viewport={"width": width, "height": 844},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
        )
        self._context.set_default_timeout(TIMEOUT_MS)
        self.page: Page = self._context.new_page()
        self.troubles: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", self._dismiss)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._context.close()
        if kind is None:
            assert self.troubles == [], self.troubles

    def hold(self, address: str) -> list[Route]:
        """Intercept requests to an address and leave them pending; the returned list grows."""
        held: list[Route] = []

        def add(route: Route) -> None:  # Playwright rejects built-in methods as handlers
            held.append(route)

        self.page.route(address, add)
        return held

    def _note(self, message: ConsoleMessage) -> None:
        # Other types are harmless notes, such as "Autofocus processing was blocked".
        if message.type in {"error", "warning"}:
            self.troubles.append(message.text)

    def _dismiss(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()
