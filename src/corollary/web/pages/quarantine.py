"""The quarantine: records of sources that were malformed, and what is wrong with each."""

from typing import Any

from starlette.responses import Response

from corollary.database.access.principals import AccessRole
from corollary.serve.requests import QuarantineRequest
from corollary.web.visit import Page, Visit

ROWS_SHOWN = 100


async def show_quarantine(visit: Visit) -> Response:
    """List the malformed records."""
    may_see = visit.who.role.includes(AccessRole.WRITE)
    cursor = visit.parameters.get("cursor") or None
    found: dict[str, Any] = {"columns": [], "rows": [], "cursor": None}
    if may_see:
        found = await visit.ask(QuarantineRequest(limit=ROWS_SHOWN, cursor=cursor, at=visit.at))
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    return await visit.render("quarantine.html", rows=rows, cursor=found["cursor"], may_see=may_see)


PAGES = (Page("/quarantine", show_quarantine, "Quarantine", "g q"),)
