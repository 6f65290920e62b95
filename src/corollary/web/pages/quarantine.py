"""The quarantine: sources, how far they were read, and which of their records were malformed."""

from typing import Any

from starlette.responses import Response

from corollary.database.access.principals import AccessRole
from corollary.serve.requests import QuarantineRequest, StatusRequest
from corollary.web.visit import Page, Visit

ROWS_SHOWN = 100


async def show_quarantine(visit: Visit) -> Response:
    """List the malformed records, and the sources."""
    may_see = visit.who.role.includes(AccessRole.WRITE)
    cursor = visit.parameters.get("cursor") or None
    found: dict[str, Any] = {"columns": [], "rows": [], "cursor": None}
    if may_see:
        found = await visit.ask(QuarantineRequest(limit=ROWS_SHOWN, cursor=cursor, at=visit.at))
    sources = (await visit.ask(StatusRequest()))["sources"] if may_see else {}
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    return await visit.render(
        "quarantine.html", rows=rows, cursor=found["cursor"], may_see=may_see, sources=sources
    )


PAGES = (Page("/quarantine", show_quarantine, "Quarantine", "g q"),)
