"""The form of changes: written or filled in, tried out first, then committed."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from starlette.responses import Response

from corollary.database.access.principals import AccessRole
from corollary.errors import InputError
from corollary.serve.answers import ServiceError
from corollary.serve.requests import ApplyRequest, RelationsRequest
from corollary.web.change_lines import json_lines_of
from corollary.web.page import Page
from corollary.web.visit import Visit
from corollary.web.wording import goal

ROWS_SHOWN, ROWS_FETCHED = 10, 100


async def show_change(visit: Visit) -> Response:
    """Show the form, with the changes of the URL."""
    relations = (await visit.ask(RelationsRequest()))["relations"]
    base = [each for each in relations if each["kind"] == "base"]
    chosen = visit.parameters.get("relation", "")
    relation = next((each for each in base if each["name"] == chosen), base[0] if base else None)
    return await visit.render(
        "change.html",
        base=base,
        relation=relation,
        changes=visit.parameters.get("changes", ""),
        can_change=visit.who.role.includes(AccessRole.WRITE),
        can_edit=visit.who.role.includes(AccessRole.ADMIN),
    )


async def make_change(visit: Visit) -> Response:
    """Try the changes of the form out, or commit them; return what happens."""
    form = dict(parse_qsl((await visit.http.body()).decode("utf-8", "replace")))
    text, is_dry = form.get("changes", ""), form.get("do") != "commit"
    context: dict[str, Any] = {"is_dry": is_dry, "error": None, "outcome": None, "changed": []}
    relations = (await visit.ask(RelationsRequest()))["relations"]
    types = {each["name"]: [column["type"] for column in each["columns"]] for each in relations}
    try:
        lines = json_lines_of(text, types)
        if not lines:
            return await visit.render("change_outcome.html", **context)
        request = ApplyRequest(lines, dry_run=is_dry, alone=not is_dry, max_rows=ROWS_FETCHED)
        outcome = await visit.ask(request)
    except InputError as error:
        context["error"] = ServiceError.with_findings(400, error.diagnostics)
        return await visit.render("change_outcome.html", **context)
    except ServiceError as error:
        return await visit.render("change_outcome.html", **context | {"error": error})
    context |= {"outcome": outcome, "changed": _changed(outcome["changes"], types)}
    return await visit.render("change_outcome.html", **context)


def _changed(
    changes: Mapping[str, Mapping[str, Any]], types: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """Return what is shown of each relation that changes."""
    found = []
    for name, change in changes.items():
        rows = [
            {"sign": sign, "goal": goal(name, row, types.get(name, [""] * len(row)))}
            for key, sign in (("added", "+"), ("removed", "-"))
            for row in change[key]
        ]
        counts = change.get("counts") or {key: len(change[key]) for key in ("added", "removed")}
        shown = rows[:ROWS_SHOWN]
        found.append(
            {
                "name": name,
                "added": counts["added"],
                "removed": counts["removed"],
                "rows": shown,
                "more": counts["added"] + counts["removed"] - len(shown),
            }
        )
    return found


PAGES = (
    Page("/change", show_change, "Change", "g e"),
    Page("/change/outcome", make_change, belongs_to="Change", methods=("POST",)),
)
