"""A browser, and a server whose page it visits; without Chromium these tests are skipped.

Every page is watched: an error or warning in its console, a request to another place, a dialog, or
a script that fails, and the test fails. `SCREENSHOTS=DIR` keeps a picture of each screen.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from support.processes.page_server import PageServer
from support.serve.page_visitor import PATIENCE_MS, Visitor, make_city

AXE = Path(__file__).parent / "vendor" / "axe.min.js"

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser; Debian's package, or another one on the path.

    While Playwright runs, its event loop does, and other tests could start none: so it ends with
    the module.
    """
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if found is None:
        pytest.skip("there is no Chromium here")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """A server that the tests of a module share; they may commit, but take back what they do."""
    directory = tmp_path_factory.mktemp("city")
    server = PageServer(make_city(directory / "city"), directory / "log").start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def signed_in(chromium: Browser, city: PageServer) -> Visitor:
    """Somebody who has signed in."""
    visitor = Visitor(chromium, city)
    visitor.sign_in()
    return visitor


@pytest.fixture
def visitor(signed_in: Visitor) -> Iterator[Visitor]:
    """The same; at the end of a test its windows are closed."""
    yield signed_in
    signed_in.close()


@pytest.fixture(scope="session")
def axe() -> Callable[[Page], list[str]]:
    """A function that returns what is hard to use for some, as axe-core finds it on a page."""
    script = AXE.read_text("utf-8")

    def check(page: Page) -> list[str]:
        page.evaluate(script)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
            for each in found["violations"]
            for node in each["nodes"]
        ]

    return check
