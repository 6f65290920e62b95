"""Every screen: light, dark, on a phone; usable by everybody; asking no other place."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from support.selection import sampled
from support.serve.page_visitor import Visitor, keep_screenshot

SCREENS = {
    "map": "/",
    "map-compared": "/?from=2&at=3",
    "relations": "/relations",
    "relation": '/relations/link?tuple=link("airport",+"zoo")',
    "why-not": '/relations/link?tuple=link("zoo",+"airport")&at=3',
    "console": "/console",
    "console-answer": '/console?q=link("airport",+y)',
    "console-sql": "/console?q=SELECT+src,+COUNT(*)+AS+n+FROM+link+GROUP+BY+src",
    "console-error": "/console?q=lnik(x)",
    "commits": "/commits",
    "commit": "/commits/3",
    "alerts": "/alerts",
    "change": "/change",
    "documents": "/documents",
    "document": "/documents/south",
    "advice": "/advice",
    "quarantine": "/quarantine",
    "help": "/help",
    "missing": "/relations/nothing",
}
LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 360)}
CASES = [(screen, look) for screen in SCREENS for look in LOOKS]
ALWAYS = [("commit", "light"), ("change", "dark"), ("console-answer", "phone")]


@pytest.mark.parametrize(("screen", "look"), sampled(CASES, 12, ALWAYS))
def test_a_screen_is_for_everybody(
    visitor: Visitor, axe: Callable[[Page], list[str]], screen: str, look: str
) -> None:
    scheme, width = LOOKS[look]
    visitor.is_offline_expected = screen == "missing"  # the browser notes the status
    page = visitor.open(SCREENS[screen], scheme=scheme, width=width, reduced_motion="reduce")
    expect(page.locator("main h1, main .error").first).to_be_visible()
    expect(page.locator("#live .word")).to_have_text("live")
    keep_screenshot(page, f"{screen}-{look}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe(page) == []
    visitor.is_offline_expected = False


def test_who_has_no_session_sees_nothing_but_the_way_in(visitor: Visitor) -> None:
    state, visitor.state = visitor.state, None
    try:
        page = visitor.open("/relations/link")
        expect(page.locator("body")).to_contain_text("corollary")
        assert "airport" not in page.content()
    finally:
        visitor.state = state
