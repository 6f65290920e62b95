"""Help: the keys, what the page shows, and other ways to ask the server."""

from starlette.responses import Response

from corollary.web.visit import Page, Visit

KEYS = (
    ("/", "ask: the name of a relation, a tuple, a goal, SQL"),
    ("j k", "the next row, the one before"),
    ("w", "why does it hold"),
    ("n", "why does it not hold"),
    ("x", "what if it went"),
    ("[ ]", "the commit before, the one after"),
    (".", "back to now"),
    ("Esc", "close what is open"),
    ("Ctrl Enter", "ask, in the console; try, in a change"),
    ("← → ↑ ↓", "in a proof: fold, unfold, move"),
    ("?", "this help"),
)


async def show_help(visit: Visit) -> Response:
    """Show the help."""
    return await visit.render("help.html", keys=KEYS, url=str(visit.http.base_url).rstrip("/"))


PAGES = (Page("/help", show_help),)
