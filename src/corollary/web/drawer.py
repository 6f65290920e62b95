"""The drawer beside every page: why a tuple holds, what one lacks, what a commit did to it."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from corollary.data_class import dataclass
from corollary.serve import requests
from corollary.serve.answers import ServiceError
from corollary.web.proof_tree import ProofTree, TreeLine
from corollary.web.visit import Drawer, Visit
from corollary.web.wording import number

INSERTIONS = 2
"""The maximum size of the sets of base tuples that would make a tuple true."""

QUESTIONS = ("why", "why-not", "why-added", "why-removed")


@dataclass(slots=True)
class ProofView:
    """What the drawer shows of an answer.

    Attributes:
        goal: the tuple.
        question: one of `QUESTIONS`.
        trees: with their headings: one, or before and after a commit.
        summary: a line below them.
        causes: of `why-added` and `why-removed`, the changes that did it.
        insertions: of `why-not`, sets of changes that would make it true.
        base: the relations whose tuples can be tried out.
        can_try: whether one may ask what if.
        commit: the state that was asked.
        error: why there is no answer.
    """

    goal: str
    question: str
    trees: list[tuple[str, list[TreeLine]]] = field(default_factory=list)
    summary: str = ""
    causes: list[dict[str, Any]] = field(default_factory=list)
    insertions: list[list[dict[str, Any]]] = field(default_factory=list)
    base: frozenset[str] = frozenset()
    can_try: bool = False
    commit: int = 0
    error: ServiceError | None = None


async def open_drawer(visit: Visit) -> Drawer | None:
    """Return what the URL's `tuple` asks for; None if it asks for nothing."""
    goal = visit.parameters.get("tuple", "").strip()
    if not goal:
        return None
    question = visit.parameters.get("ask") or "why"
    if question not in QUESTIONS:
        question = "why"
    is_now = visit.at is None and visit.since is None
    shown = ProofView(goal, question, can_try=is_now and visit.can_write)
    try:
        await _answer(visit, shown)
        relations = (await visit.ask(requests.RelationsRequest(at=visit.at)))["relations"]
        shown.base = frozenset(each["name"] for each in relations if each["kind"] == "base")
    except ServiceError as error:
        shown.error = error
    return Drawer("proof.html", {"proof": shown})


async def _answer(visit: Visit, shown: ProofView) -> None:
    """Ask, and fill in the answer; `why` of what does not hold becomes `why-not`."""
    goal, at = shown.goal, visit.at
    if at is None and visit.parameters.get("commit"):  # an alert is proved at its commit
        at = _changing_commit(visit)
    if shown.question == "why":
        proof = await visit.ask(requests.WhyRequest(goal, at=at))
        if proof["holds"]:
            shown.trees = [("", ProofTree(proof).lines())]
            shown.summary, shown.commit = proof_summary(proof), proof["commit"]
            return
        shown.question = "why-not"
    if shown.question == "why-not":
        insertions = INSERTIONS if shown.can_try else 0
        absence = await visit.ask(requests.WhyNotRequest(goal, at=at, insertions=insertions))
        shown.trees = [("", ProofTree(absence).lines())]
        shown.commit = absence["commit"]
        found = absence["insertions"]
        shown.insertions = found["sets"] if found else []
        return
    commit = _changing_commit(visit)
    is_added = shown.question == "why-added"
    request = (
        requests.WhyAddedRequest(goal, commit=commit)
        if is_added
        else requests.WhyRemovedRequest(goal, commit=commit)
    )
    change = await visit.ask(request)
    number_ = change["commit"]
    proof, absence = (
        (change["after"], change["before"]) if is_added else (change["before"], change["after"])
    )
    titles = (f"after commit {number_}", f"before commit {number_}")
    proved, lacking = titles if is_added else titles[::-1]
    shown.trees = [
        (f"the proof {proved}", ProofTree(proof, "p").lines()),
        (f"what it lacks {lacking}", ProofTree(absence, "a").lines()),
    ]
    shown.causes, shown.commit = change["cause"], number_


def _changing_commit(visit: Visit) -> int | None:
    """Return the commit that a change is asked of: the one shown, or the last that did it."""
    asked = visit.parameters.get("commit", "")
    if asked.isascii() and asked.isdecimal():
        return int(asked)
    if visit.at is not None and visit.since == visit.at - 1:
        return visit.at
    return None


def proof_summary(proof: Mapping[str, Any]) -> str:
    """Return a line about a proof: its height, its size, and whether there is a lower one."""
    size = proof["size"]
    tuples = "1 tuple" if size == 1 else f"{number(size)} tuples"
    claim = (
        "no proof is lower"
        if proof["minimal"]
        else f"every proof has height {proof['height_at_least']} or more"
        if proof["height_at_least"]
        else "there may be a lower one"
    )
    if proof["height"] is None:
        return f"it holds, but no proof was found within the limits; {claim}"
    return f"height {proof['height']}, {tuples}; {claim}"
