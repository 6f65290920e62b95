"""The advisor's report: which views are worth storing, by what was asked or by a log of SQL."""

from typing import Any
from urllib.parse import parse_qsl

from starlette.responses import Response

from corollary.database.access.principals import AccessRole
from corollary.serve.answers import ServiceError
from corollary.serve.requests import AdviceRequest
from corollary.web.visit import Page, Visit

BYTES_PER_MEGABYTE = 1_000_000


async def show_advice(visit: Visit) -> Response:
    """Show the report, and a form for a log."""
    context: dict[str, Any] = {
        "may_see": visit.who.role.includes(AccessRole.WRITE),
        "advice": None,
        "error": None,
        "is_log": False,
    }
    if context["may_see"]:
        try:
            context["advice"] = await visit.ask(AdviceRequest())
        except ServiceError as error:
            context["error"] = error
    return await visit.render("advice.html", **context)


async def advise_on_log(visit: Visit) -> Response:
    """Return the advice for the log of the form."""
    form = dict(parse_qsl((await visit.http.body()).decode("utf-8", "replace")))
    context: dict[str, Any] = {"advice": None, "error": None, "is_log": True}
    if form.get("log", "").strip():
        request = AdviceRequest(form["log"], _bytes(form.get("budget", "")), _names(form))
        try:
            context["advice"] = await visit.ask(request)
        except ServiceError as error:
            context["error"] = error
    return await visit.render("advice_log.html", **context)


def _bytes(megabytes: str) -> int | None:
    """Return the bytes of a budget; None where the field has no number."""
    try:
        return round(float(megabytes) * BYTES_PER_MEGABYTE)
    except (ValueError, OverflowError):
        return None


def _names(form: dict[str, str]) -> tuple[str, ...]:
    return tuple(form.get("names", "").replace(",", " ").split())


PAGES = (
    Page("/advice", show_advice, "Advice", "g v"),
    Page("/advice/log", advise_on_log, belongs_to="Advice", methods=("POST",)),
)
