"""The active documents: the verdict of each view on them, and what they still wait for."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from corollary.serve.principals import AccessRole
from corollary.serve.requests import DocumentsRequest
from corollary.web.page import Page
from corollary.web.visit import Visit

DOCUMENTS_SHOWN, ANSWERS_SHOWN = 200, 5
VERDICTS = {1.0: "true", 0.5: "may become true", 0.0: "false for ever"}


async def show_documents(visit: Visit) -> Response:
    """List the documents, those that still wait first."""
    may_see = visit.who.role.includes(AccessRole.WRITE)
    found = (await visit.ask(DocumentsRequest()))["documents"] if may_see else []
    counts = dict.fromkeys(VERDICTS.values(), 0)
    for document in found:
        for view in document["views"].values():
            if view["value"] in VERDICTS:
                counts[VERDICTS[view["value"]]] += 1
    wanted = visit.parameters.get("q", "").strip().lower()
    listed = [_listed(each) for each in found if wanted in str(each["document"]).lower()]
    listed.sort(key=lambda each: (not each["is_open"], str(each["document"])))
    return await visit.render(
        "documents.html",
        documents=listed[:DOCUMENTS_SHOWN],
        total=len(listed),
        counts=counts,
        wanted=wanted,
        may_see=may_see,
    )


def _listed(document: Mapping[str, Any]) -> dict[str, Any]:
    views = [
        {
            "name": name,
            "verdict": VERDICTS.get(view["value"], "not known"),
            "is_open": view["value"] == 0.5,
            "waits_for": view["waits_for"],
            "answers": view["answers"][:ANSWERS_SHOWN],
            "more": max(0, len(view["answers"]) - ANSWERS_SHOWN),
        }
        for name, view in sorted(document["views"].items())
    ]
    return {
        "document": document["document"],
        "views": views,
        "is_open": any(each["is_open"] for each in views),
        "closed": document["closed"],
        "refused": document["refused"],
    }


PAGES = (Page("/documents", show_documents, "Documents", "g d"),)
