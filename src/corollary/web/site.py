"""The routes of static files and pages, and how a visit is answered."""

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from corollary.serve.answers import ServiceError
from corollary.serve.service import Service
from corollary.web.drawer import open_drawer
from corollary.web.frame import NavigationEntry, PageFrame, StaticFile
from corollary.web.page import Page
from corollary.web.visit import NOT_KEPT, Visit

KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}
"""A static file is kept for good: another content has another URL."""

Endpoint = Callable[[HttpRequest], Awaitable[Response]]


def site_routes(service: Service, warehouse: str, pages: Sequence[Page]) -> list[BaseRoute]:
    """Return the routes of the static files and of all pages."""
    entries = [NavigationEntry(each.path, each.title, each.keys) for each in pages if each.title]
    frame = PageFrame(service, warehouse, entries)
    return [
        *(Route(path, _send(file)) for path, file in frame.files.items()),
        *(Route(each.path, _show(frame, each), methods=list(each.methods)) for each in pages),
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
