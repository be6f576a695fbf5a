"""The system's Chromium, for tests of pages; where there is none, what to install."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, expect, sync_playwright

from support.doors.gateway_live import TOKEN
from support.paths import DATA

WAIT_MS = 60_000
"""So long is waited for what comes in a moment on a quiet machine: on a busy one a browser gets a fraction of a processor."""
_AXE = (DATA / "axe" / "axe.min.js").read_text(encoding="utf-8")
_TELLS_VIOLATIONS = """addEventListener('securitypolicyviolation', event =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`))"""
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "needs a Chromium: `apt install chromium`, or `playwright install chromium` in this environment; "
    "then these tests run by themselves"
)


@contextmanager
def chromium() -> Generator[Browser]:
    """Start the system's Chromium, else Playwright's own. Skips where there is neither, and fails in CI."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    with sync_playwright() as playwright:
        executable = found or playwright.chromium.executable_path
        if not os.path.exists(executable):  # noqa: PTH110 - a path as Playwright gives it
            if os.environ.get("CI"):
                pytest.fail(MISSING)
            pytest.skip(MISSING)
        browser = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


def found_by_axe(page: Page) -> list[str]:
    """Return what axe finds on a page as it stands, in both colour schemes."""
    found: list[str] = []
    page.evaluate(_AXE)
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        answer: Any = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
        found += [
            f"{scheme} {one['id']}: {one['help']} {[node['html'][:160] for node in one['nodes'][:3]]}"
            for one in answer["violations"]
        ]
    return found


def come_in(page: Page, address: str | None = None, token: str = TOKEN) -> None:
    """Give the token that is asked for, at an address or where the page is."""
    if address is not None:
        page.goto(address)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Come in").click()


class Tab:
    """A page that takes down whatever it should not have done: faults, refused content, calls to elsewhere."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.wrong: list[str] = []
        self.address = address
        self.page: Page = context.new_page()
        self.page.add_init_script(_TELLS_VIOLATIONS)
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("pageerror", lambda error: self.wrong.append(f"fault: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("console", self._said)
        self.page.on("request", lambda asked: self._asked(asked.url, address))

    def _dialog(self, dialog: Dialog) -> None:
        self.wrong.append("a script ran")
        dialog.dismiss()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.wrong.append(f"{message.type}: {message.text} {message.location}")

    def _asked(self, url: str, address: str) -> None:
        if not url.startswith(address):
            self.wrong.append(f"asked {url}")

    def come_in(self) -> None:
        """Open the pages as the operator, and wait for the runs."""
        come_in(self.page, self.address)
        expect(self.page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
        self.wrong.clear()  # the browser says so itself where it is not let in yet

    def check(self) -> None:
        """Fail where something was taken down."""
        assert not self.wrong, self.wrong
