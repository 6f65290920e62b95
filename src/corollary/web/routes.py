"""All pages, the routes of pages and static files, and how a visit is answered.

A page is added in three steps: a module in `web/pages` whose `PAGES` name its paths and the
functions that answer visits; a template that extends `base.html`; its line in `PAGES` below. A
function asks by `Visit.ask` with `at=visit.at`, makes links by `Visit.url`, and ends with
`Visit.render`. Errors of the service become pages by themselves.
"""

from collections.abc import Awaitable, Callable

from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from corollary.serve.answers import ServiceError
from corollary.serve.service import Service
from corollary.web.drawer import open_drawer
from corollary.web.frame import NavigationEntry, PageFrame, StaticFile
from corollary.web.pages import (
    advice,
    alerts,
    ask,
    change,
    commits,
    console,
    documents,
    graph,
    help_page,
    live,
    quarantine,
    relations,
    trials,
)
from corollary.web.visit import NOT_KEPT, Page, Visit

PAGES: tuple[Page, ...] = (
    *graph.PAGES,
    *relations.PAGES,
    *console.PAGES,
    *commits.PAGES,
    *alerts.PAGES,
    *change.PAGES,
    *documents.PAGES,
    *advice.PAGES,
    *quarantine.PAGES,
    *help_page.PAGES,
    *ask.PAGES,
    *live.PAGES,
    *trials.PAGES,
)
"""In the order of the navigation."""

KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}
"""A static file is kept for good: another content has another URL."""

Endpoint = Callable[[HttpRequest], Awaitable[Response]]


def routes(service: Service, warehouse: str) -> list[BaseRoute]:
    """Return the routes of the static files and of all pages.

    Args:
        service: answers requests.
        warehouse: the name of the warehouse, which the page shows.
    """
    entries = [NavigationEntry(each.path, each.title, each.keys) for each in PAGES if each.title]
    frame = PageFrame(service, warehouse, entries)
    return [
        *(Route(path, _send(file)) for path, file in frame.files.items()),
        *(Route(each.path, _show(frame, each), methods=list(each.methods)) for each in PAGES),
    ]


def _send(file: StaticFile) -> Endpoint:
    async def answer(_: HttpRequest) -> Response:
        return Response(file.content, headers=KEPT, media_type=file.media_type)

    return answer


def _show(frame: PageFrame, page: Page) -> Endpoint:
    async def answer(http: HttpRequest) -> Response:
        who = getattr(http.state, "principal", None)
        if who is None:
            text = frame.templates.get_template("sign_in.html").render(site=frame)
            return HTMLResponse(text, headers=NOT_KEPT)
        visit = Visit(frame, http, who, page.belongs_to or page.title)
        try:
            if "X-Live" not in http.headers:  # a page that renews itself keeps its drawer
                visit.drawer = await open_drawer(visit)
            if visit.wanted == "drawer":
                return await visit.render("drawer.html")
            return await page.show(visit)
        except ServiceError as error:
            return await visit.fail(error)

    return answer
