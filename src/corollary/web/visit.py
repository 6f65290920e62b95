"""A visit: one request of a browser, what it looks at, and what it asks; pages, which answer it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, RedirectResponse, Response

from corollary.data_class import dataclass
from corollary.database.access.principals import AccessRole, Principal
from corollary.serve.answers import ServiceError
from corollary.serve.requests import CommitsRequest, Request
from corollary.web.frame import PageFrame
from corollary.web.pictures.timeline import Timeline, timeline_of

TICKS_MAX = 300
"""The number of commits, the newest ones, that have a tick on the slider."""

NOT_KEPT = {"Cache-Control": "no-store", "Vary": "HX-Target"}
"""Pages are never kept; parts of them have the URL of the whole."""

HISTORY_PARAMETERS = ("at", "from")
"""What every link of the page keeps: the point in history."""

WHOLE = frozenset({"", "page", "body"})
"""Of the page: targets for which all of it is rendered."""


@dataclass(frozen=True, slots=True)
class Drawer:
    """What the drawer beside a page shows.

    Attributes:
        template: of its content.
        context: what the template needs.
    """

    template: str
    context: Mapping[str, Any]


@dataclass(slots=True)
class Visit:
    """One request of a browser.

    Attributes:
        site: what all pages share.
        http: the request.
        who: whose session it is.
        title: of the page that is visited, or that it belongs to.
        drawer: what is beside the page, if anything.
    """

    site: PageFrame
    http: HttpRequest
    who: Principal
    title: str = ""
    drawer: Drawer | None = None
    _timeline: Timeline | None = field(default=None, repr=False)

    @property
    def parameters(self) -> Mapping[str, str]:
        """The query of the URL; of a parameter that is repeated, the last one."""
        return self.http.query_params

    @property
    def can_write(self) -> bool:
        """Whether the session may change data; it sees all of it then."""
        return self.who.role.includes(AccessRole.WRITE)

    @property
    def at(self) -> int | None:
        """The commit that the page shows; None: the latest."""
        return _number(self.parameters.get("at"))

    @property
    def since(self) -> int | None:
        """The commit that the shown one is compared with, if any."""
        found = _number(self.parameters.get("from"))
        return None if found is None or (self.at is not None and found >= self.at) else found

    @property
    def wanted(self) -> str:
        """The id of the element that a script wants to fill; empty if a browser loads the page."""
        return self.http.headers.get("HX-Target", "").rpartition("#")[2]

    async def ask(self, request: Request) -> dict[str, Any]:
        """Return the answer to a request as JSON.

        Raises:
            ServiceError: the request was refused.
        """
        answer = await self.site.service.call(self.who, request)
        found: dict[str, Any] = answer.json
        return found

    async def ask_all(self, *requests: Request) -> list[dict[str, Any]]:
        """Return the answers to several requests, which are asked at the same time."""
        return list(await asyncio.gather(*(self.ask(each) for each in requests)))

    async def timeline(self) -> Timeline:
        """Return the commits that the slider shows, oldest first."""
        if self._timeline is None:
            found = await self.ask(CommitsRequest(limit=TICKS_MAX))
            self._timeline = timeline_of(found["commits"], self.at, self.since)
        return self._timeline

    def url(self, path: str | None = None, **changed: object) -> str:
        """Return a URL of the page: of this one with parameters changed, or of another.

        Another one keeps the point in history. A parameter that is None or empty is left out;
        `since` is the URL's `from`.
        """
        if path is None:
            path, query = quote(self.http.url.path), dict(self.parameters)
        else:
            kept = self.parameters
            query = {name: kept[name] for name in HISTORY_PARAMETERS if name in kept}
        for name, value in changed.items():
            query["from" if name == "since" else name] = "" if value is None else str(value)
        text = urlencode({name: value for name, value in query.items() if value})
        return f"{path}?{text}" if text else path

    def relation_url(self, relation: str, **parameters: object) -> str:
        """Return the URL of a relation's page."""
        return self.url(f"/relations/{quote(relation, safe='')}", **parameters)

    async def render(self, template: str, /, status: int = 200, **context: object) -> Response:
        """Return a template as the answer; every one has `visit`, `site`, `timeline`, `drawer`."""
        text = self.site.templates.get_template(template).render(
            visit=self,
            site=self.site,
            timeline=await self.timeline(),
            drawer=self.drawer,
            **context,
        )
        return HTMLResponse(text, status, headers=NOT_KEPT)

    async def fail(self, error: ServiceError) -> Response:
        """Return the page of an error; without the slider, if there is none to be had."""
        try:
            await self.timeline()
        except ServiceError:
            self._timeline = timeline_of([], None, None)
        template = "error.html" if self.wanted in WHOLE else "error_part.html"
        return await self.render(template, error.status, error=error)

    def redirect(self, url: str) -> Response:
        """Return an answer that leads elsewhere."""
        return RedirectResponse(url, 303)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() else None


Show = Callable[[Visit], Awaitable[Response]]
"""Answers a visit."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page, or a part of one that scripts fetch.

    Attributes:
        path: as starlette writes it, such as `/relations/{relation}`.
        show: answers a visit.
        title: in the navigation; empty if it has no place there.
        keys: what takes one there from the keyboard, such as `g m`.
        belongs_to: the title of the page whose place in the navigation is marked; its own if empty.
        methods: of HTTP.
    """

    path: str
    show: Show
    title: str = ""
    keys: str = ""
    belongs_to: str = ""
    methods: tuple[str, ...] = ("GET",)
