"""The active documents: the verdict of each view on them, and what they still wait for."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from corollary.database.access.principals import AccessRole
from corollary.serve.requests import DocumentsRequest
from corollary.web.visit import Page, Visit

DOCUMENTS_SHOWN, ANSWERS_SHOWN, ANSWERS_SHOWN_OF_ONE = 200, 5, 500
OPEN = 0.5
VERDICTS = {1.0: "true", OPEN: "may become true", 0.0: "false for ever"}


async def show_documents(visit: Visit) -> Response:
    """List the documents, those that still wait first."""
    may_see = visit.who.role.includes(AccessRole.WRITE)
    found = (await visit.ask(DocumentsRequest(at=visit.at)))["documents"] if may_see else []
    counts = dict.fromkeys(VERDICTS.values(), 0)
    for document in found:
        for view in document["views"].values():
            if view["value"] in VERDICTS:
                counts[VERDICTS[view["value"]]] += 1
    wanted = visit.parameters.get("q", "").strip().lower()
    listed = [
        _listed(each, ANSWERS_SHOWN) for each in found if wanted in str(each["document"]).lower()
    ]
    listed.sort(key=lambda each: (not each["is_open"], str(each["document"])))
    return await visit.render(
        "documents.html",
        documents=listed[:DOCUMENTS_SHOWN],
        total=len(listed),
        counts=counts,
        wanted=wanted,
        may_see=may_see,
    )


async def show_document(visit: Visit) -> Response:
    """Show one document: what is sure and what is possible, and which streams to ask first."""
    name = visit.http.path_params["document"]
    found = (await visit.ask(DocumentsRequest(at=visit.at)))["documents"]
    document = next((each for each in found if str(each["document"]) == name), None)
    shown = None if document is None else _listed(document, ANSWERS_SHOWN_OF_ONE)
    status = 200 if shown is not None else 404
    return await visit.render("document.html", status, name=name, document=shown)


def _listed(document: Mapping[str, Any], answers: int) -> dict[str, Any]:
    views = [
        {
            "name": name,
            "verdict": VERDICTS.get(view["value"], "not known"),
            "is_open": view["value"] == OPEN,
            "waits_for": [
                {"name": each, "since": view["since"].get(each, "")} for each in view["waits_for"]
            ],
            "answers": view["answers"][:answers],
            "more": max(0, len(view["answers"]) - answers),
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


PAGES = (
    Page("/documents", show_documents, "Documents", "g d"),
    Page("/documents/{document:path}", show_document, belongs_to="Documents"),
)
