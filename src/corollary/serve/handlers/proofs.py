"""Why a tuple holds or does not, came or went; what would follow if one were not there."""

from dataclasses import replace
from typing import TYPE_CHECKING

from corollary.database.access.principals import Principal
from corollary.errors import InputError
from corollary.provenance.limits import ProofLimits
from corollary.serve import requests
from corollary.serve.answers import Answer
from corollary.serve.handlers.context import HandlerContext

if TYPE_CHECKING:
    from corollary.provenance.proof import Absence, ChangeExplanation, Proof

SVG_TYPE, TEXT_TYPE = "image/svg+xml", "text/plain; charset=utf-8"
WhyAnyRequest = (
    requests.WhyRequest
    | requests.WhyNotRequest
    | requests.WhyAddedRequest
    | requests.WhyRemovedRequest
)


def answer_why(context: HandlerContext, who: Principal, request: requests.WhyRequest) -> Answer:
    """Prove a tuple; of one that does not hold, say what it lacks first."""
    database, commit = context.view(who)
    limits = _limits(request)
    proof = database.why(request.fact, at=request.at, limits=limits)
    if proof.holds or proof.answers is not None:
        return _answer(request, commit, proof)
    absence = database.why_not(request.fact, at=request.at, limits=limits)
    return _answer(request, commit, replace(absence, attempts=absence.attempts[:1]))


def answer_why_not(
    context: HandlerContext, who: Principal, request: requests.WhyNotRequest
) -> Answer:
    """Say what a tuple lacks."""
    database, commit = context.view(who)
    limits = _limits(request)
    found = database.why_not(
        request.fact, at=request.at, insertions=request.insertions, limits=limits
    )
    return _answer(request, commit, found)


def answer_why_added(
    context: HandlerContext, who: Principal, request: requests.WhyAddedRequest
) -> Answer:
    """Say which changes have added a tuple."""
    database, commit = context.view(who)
    found = database.why_added(request.fact, request.commit, limits=_limits(request))
    return _answer(request, commit, found)


def answer_why_removed(
    context: HandlerContext, who: Principal, request: requests.WhyRemovedRequest
) -> Answer:
    """Say which changes have removed a tuple."""
    database, commit = context.view(who)
    found = database.why_removed(request.fact, request.commit, limits=_limits(request))
    return _answer(request, commit, found)


def answer_what_if(
    context: HandlerContext, who: Principal, request: requests.WhatIfRequest
) -> Answer:
    """Try out the deletion of a base tuple, or its insertion."""
    database = context.owned(who, "change data")
    outcome = database.what_if(request.fact)
    return Answer.of(database.commits, outcome.as_json(request.max_rows))


def _limits(request: WhyAnyRequest) -> ProofLimits:
    """Return how much work a question may take."""
    default = ProofLimits()
    given = {
        name: value
        for name, value in (
            ("nodes", request.limit_nodes),
            ("expanded", request.limit_expanded),
            ("dry_runs", request.limit_dry_runs),
        )
        if value is not None
    }
    for name, value in given.items():
        if value < 0 or value > getattr(default, name):
            text = f"`limit_{name}` is not between 0 and {getattr(default, name):,}."
            raise InputError.of("C1606", text, None, "leave it out, or give a smaller number")
    return replace(default, **given)


def _answer(
    request: WhyAnyRequest, commit: int, found: "Proof | Absence | ChangeExplanation"
) -> Answer:
    match request.form:
        case "json":
            return Answer.of(commit, found.to_json())
        case "svg":
            return Answer(commit, found.to_svg().encode(), media_type=SVG_TYPE)
        case "text":
            text = found.to_text(request.depth).encode("utf-8", "surrogatepass")
            return Answer(commit, text, media_type=TEXT_TYPE)
        case _:
            raise unknown_form(request.form, "json, text, svg")


def unknown_form(form: str, forms: str) -> InputError:
    """Return the error of an answer that cannot be written like that."""
    return InputError.of("C1606", f"There is no form `{form}`.", None, f"choose one of {forms}")
