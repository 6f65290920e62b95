"""The advisor's report: which views are worth storing, by the questions that are asked."""

from typing import Any

from starlette.responses import Response

from corollary.serve.answers import ServiceError
from corollary.serve.principals import AccessRole
from corollary.serve.requests import AdviceRequest
from corollary.web.page import Page
from corollary.web.visit import Visit


async def show_advice(visit: Visit) -> Response:
    """Show the report."""
    context: dict[str, Any] = {
        "may_see": visit.who.role.includes(AccessRole.WRITE),
        "advice": None,
        "error": None,
    }
    if context["may_see"]:
        try:
            context["advice"] = await visit.ask(AdviceRequest())
        except ServiceError as error:
            context["error"] = error
    return await visit.render("advice.html", **context)


PAGES = (Page("/advice", show_advice, "Advice", "g v"),)
