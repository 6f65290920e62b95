"""What if: dry runs of a change, and proofs as files."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from corollary.serve import requests
from corollary.serve.answers import ServiceError
from corollary.web.visit import NOT_KEPT, Page, Visit
from corollary.web.wording import goal

SAMPLE = 20
"""The number of tuples of each relation that are listed."""


async def show_what_if(visit: Visit) -> Response:
    """Try out the deletion of a base tuple, or its insertion if it is not there."""
    fact = visit.parameters.get("fact", "")
    return await _trial(visit, requests.WhatIfRequest(fact), fact, "")


async def show_try(visit: Visit) -> Response:
    """Try out some changes."""
    lines = visit.parameters.get("changes", "")
    return await _trial(visit, requests.ApplyRequest(lines, dry_run=True), "these changes", lines)


async def _trial(visit: Visit, request: requests.Request, what: str, lines: str) -> Response:
    context: dict[str, Any] = {
        "title": f"with {what}",
        "changes": [],
        "alerts": [],
        "came": [],
        "went": [],
        "lines": lines,
        "error": None,
    }
    try:
        found = await visit.ask(request)
    except ServiceError as error:
        return await visit.render("what_if.html", **context | {"error": error})
    relations = (await visit.ask(requests.RelationsRequest()))["relations"]
    types = {each["name"]: [column["type"] for column in each["columns"]] for each in relations}
    changes = []
    for name, change in found["changes"].items():
        rows = [
            {"sign": sign, "goal": goal(name, row, types[name])}
            for key, sign in (("removed", "-"), ("added", "+"))
            for row in change[key]
            if name in types
        ]
        counts = change.get("counts") or {key: len(change[key]) for key in ("added", "removed")}
        context["came"] += [row["goal"] for row in rows if row["sign"] == "+"]
        context["went"] += [row["goal"] for row in rows if row["sign"] == "-"]
        came, went = counts["added"], counts["removed"]
        shown = rows[:SAMPLE]
        changes.append(
            (name, {"counts": [came, went], "shown": shown, "more": came + went - len(shown)})
        )
    if not lines and isinstance(request, requests.WhatIfRequest):
        is_deleted = request.fact in context["went"]
        context["title"] = f"without {what}" if is_deleted else f"with {what}"
        context["lines"] = _change_of(request.fact, found["changes"], types, is_deleted=is_deleted)
    context |= {"changes": changes, "alerts": found.get("alerts", [])}
    return await visit.render("what_if.html", **context)


def _change_of(
    fact: str,
    changes: Mapping[str, Mapping[str, Any]],
    types: Mapping[str, Sequence[str]],
    *,
    is_deleted: bool,
) -> str:
    """Return the line of `apply --changes` that makes the change that was tried out."""
    key, op = ("removed", "delete") if is_deleted else ("added", "insert")
    for name, change in changes.items():
        for row in change[key]:
            if name in types and goal(name, row, types[name]) == fact:
                return json.dumps({"op": op, "relation": name, "row": row}, ensure_ascii=False)
    return ""


async def show_proof_json(visit: Visit) -> Response:
    """Return the answer of the drawer as JSON."""
    found = await visit.ask(_question(visit, "json"))
    text = json.dumps(found, ensure_ascii=False, indent=1)
    return Response(text, headers=NOT_KEPT, media_type="application/json")


async def show_proof_svg(visit: Visit) -> Response:
    """Return the answer of the drawer as a picture."""
    answer = await visit.site.service.call(visit.who, _question(visit, "svg"))
    return Response(answer.body, headers=NOT_KEPT, media_type="image/svg+xml")


def _question(visit: Visit, form: str) -> requests.Request:
    fact, ask = visit.parameters.get("goal", ""), visit.parameters.get("ask", "why")
    commit = visit.at if visit.parameters.get("at") else None
    match ask:
        case "why-added":
            return requests.WhyAddedRequest(fact, commit=commit, form=form)
        case "why-removed":
            return requests.WhyRemovedRequest(fact, commit=commit, form=form)
        case "why-not":
            return requests.WhyNotRequest(fact, at=commit, form=form)
        case _:
            return requests.WhyRequest(fact, at=commit, form=form)


PAGES = (
    Page("/ui/what-if", show_what_if),
    Page("/ui/try", show_try),
    Page("/ui/proof.json", show_proof_json),
    Page("/ui/proof.svg", show_proof_svg),
)
