"""A visitor of the page: a browser, signed in and watched; and the warehouse of the tests."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import corollary
from corollary.database.database import state_of
from corollary.database.intake.change_files import parse_changes
from corollary.database.intake.pipeline import Inputs, run
from corollary.database.program.loaded_program import read_programs
from corollary.web.pages.change import json_lines_of
from support.paths import TESTS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

    from support.processes.page_server import PageServer

WAREHOUSE = TESTS / "web" / "warehouse"
PATIENCE_MS = 20_000
TYPES = {"document_value": ("symbol", "symbol", "float")}


def make_city(place: Path) -> Path:
    """Make the warehouse of the tests: a commit for each block of `changes.txt`."""
    with corollary.open(place, engine="local") as database:
        run(database, read_programs([WAREHOUSE / "city.dl"]), Inputs(WAREHOUSE))
        for block in (WAREHOUSE / "changes.txt").read_text("utf-8").split("\n\n"):
            lines = json_lines_of(block, TYPES).encode()
            with database.transaction() as transaction:
                parse_changes(lines, "changes", state_of(database).loaded.normal).apply_to(
                    transaction
                )
    return place


@dataclass
class Visitor:
    """Opens pages of a server, signed in, and watches them."""

    browser: Browser
    server: PageServer
    state: dict[str, Any] | None = None
    is_offline_expected: bool = False
    troubles: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    def open(
        self, path: str = "/", *, scheme: str = "light", width: int = 1280, **options: Any
    ) -> Page:
        """Open a page in a new window of its own."""
        context = self.browser.new_context(
            storage_state=self.state,
            color_scheme=scheme,
            viewport={"width": width, "height": 800},
            **options,
        )
        self.contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        self._watch(page)
        response = page.goto(self.server.url + path)
        assert response is not None
        assert response.status < 500, response.text()
        return page

    def _watch(self, page: Page) -> None:
        def note(text: str) -> None:
            if not self.is_offline_expected:
                self.troubles.append(text)

        def noted(message: Any) -> None:
            if message.type in {"error", "warning"}:
                note(f"console: {message.text}")

        def requested(request: Any) -> None:
            if not request.url.startswith((self.server.url, "data:", "blob:")):
                self.troubles.append(f"a request to {request.url}")

        def dialog(found: Any) -> None:
            self.troubles.append(f"a dialog: {found.message}")
            found.dismiss()

        page.on("console", noted)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("request", requested)
        page.on("dialog", dialog)

    def sign_in(self) -> None:
        """Sign in by the address that the server has printed, and keep the session."""
        context = self.browser.new_context()
        page = context.new_page()
        page.goto(self.server.page)
        page.wait_for_selector("nav.pages", timeout=PATIENCE_MS)
        assert "key" not in page.url
        self.state = context.storage_state()
        context.close()

    def close(self) -> None:
        """Close all windows; fail if one of them had trouble."""
        for context in self.contexts:
            context.close()
        self.contexts.clear()
        troubles, self.troubles[:] = [*self.troubles], []
        assert not troubles, "\n".join([*troubles, *self.server.errors()])


def keep_screenshot(page: Page, name: str) -> None:
    """Keep a picture, if somebody wants to look at it."""
    if directory := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(directory) / f"{name}.png")
