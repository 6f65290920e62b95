"""All pages in one place.

A page is added in three steps: a module in `web/pages` whose `PAGES` name its paths and the
functions that answer visits; a template that extends `base.html`; its line in `PAGES` below. A
function asks by `Visit.ask` with `at=visit.at`, makes links by `Visit.url`, and ends with
`Visit.render`. Errors of the service become pages by themselves.
"""

from starlette.routing import BaseRoute

from corollary.serve.service import Service
from corollary.web.page import Page
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
from corollary.web.site import site_routes

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


def routes(service: Service, warehouse: str) -> list[BaseRoute]:
    """Return the routes of the page.

    Args:
        service: answers requests.
        warehouse: the name of the warehouse, which the page shows.
    """
    return site_routes(service, warehouse, PAGES)
