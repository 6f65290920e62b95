"""The relations: a list of them, and the tuples of each with filters, order and proofs."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from corollary.analysis.bags import rows_name
from corollary.core.printer import print_clause
from corollary.core.program import sql_texts
from corollary.data_class import dataclass
from corollary.frontends.datalog.parser import parse
from corollary.serve.requests import (
    DifferenceRequest,
    ExplainRequest,
    GraphRequest,
    ProgramRequest,
    RelationRowsRequest,
    RelationsRequest,
)
from corollary.source import SourceFile
from corollary.web.page import Page
from corollary.web.pages.graph import describe_kind
from corollary.web.visit import Visit
from corollary.web.wording import goal

ROWS_SHOWN = 100
"""The number of tuples on a page; a link leads to the next ones."""

DIFFERENCE_SHOWN = 500
"""The number of tuples of a difference on the page."""


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A tuple of the table.

    Attributes:
        values: as JSON has them.
        goal: the tuple as one writes it.
        sign: of a difference, `+` or `-`.
        url: opens its proof.
    """

    values: Sequence[Any]
    goal: str
    sign: str
    url: str


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of the table.

    Attributes:
        filter: what its field holds.
        order: `ascending`, `descending` or empty.
        sort_url: orders by it, or the other way round.
        is_figure: whether its values are numbers.
    """

    name: str
    type: str
    filter: str
    order: str
    sort_url: str
    is_figure: bool


async def show_relations(visit: Visit) -> Response:
    """List the relations."""
    found, graph = await visit.ask_all(RelationsRequest(at=visit.at), GraphRequest(at=visit.at))
    on_map = {each["name"]: each for each in graph["nodes"]}
    wanted = visit.parameters.get("q", "").strip().lower()
    relations = [
        each | {"kind_words": _kind(each, on_map.get(each["name"]))}
        for each in found["relations"]
        if wanted in each["name"].lower()
    ]
    return await visit.render(
        "relations.html", relations=relations, wanted=wanted, total=len(found["relations"])
    )


def _kind(relation: Mapping[str, Any], on_map: Mapping[str, Any] | None) -> str:
    return describe_kind(relation, is_recursive=bool(on_map and on_map["recursive"]))


async def show_relation(visit: Visit) -> Response:
    """Show a relation: its tuples, or what changed in it between two commits."""
    name = visit.http.path_params["relation"]
    found, graph = await visit.ask_all(RelationsRequest(at=visit.at), GraphRequest(at=visit.at))
    relation = next((each for each in found["relations"] if each["name"] == name), None)
    on_map = next((each for each in graph["nodes"] if each["name"] == name), None)
    if relation is None:  # an error with a suggestion
        await visit.ask(RelationRowsRequest(name, at=visit.at, limit=1))
        relation = {"name": name, "kind": "derived", "copies": False, "columns": [], "tuples": None}
    context: dict[str, Any] = {
        "relation": relation,
        "kind": _kind(relation, on_map),
        "change": (await visit.timeline()).changes.get(name),
        "reads": _neighbours(graph, "to", "from", name),
        "read_by": _neighbours(graph, "from", "to", name),
        "columns": _columns(visit, relation),
        "show": visit.parameters.get("show", ""),
        "rules": [],
        "plan": "",
        "cursor": None,
        "counts": None,
    }
    if relation["kind"] != "base" and visit.can_write:
        context |= await _definition(visit, name)
    if visit.since is not None:
        context |= await _difference(visit, name, relation)
    else:
        context |= await _rows(visit, name, relation)
    return await visit.render("relation.html", **context)


def _neighbours(graph: Mapping[str, Any], own: str, other: str, name: str) -> dict[str, bool]:
    """Return the relations at the other end of a relation's arrows, and which are only negated."""
    found: dict[str, bool] = {}
    for each in graph["edges"]:
        if each[own] == name and each[other] != name:
            is_negated = each["kind"] == "negative"
            found[each[other]] = found.get(each[other], True) and is_negated
    return found


async def _definition(visit: Visit, name: str) -> dict[str, Any]:
    """Return the rules of a relation as they are written, and the steps that evaluate it."""
    text = (await visit.ask(ProgramRequest(at=visit.at)))["program"]
    program = parse(SourceFile("program", text))
    defined = {name, rows_name(name)}
    rules = [
        print_clause(each)
        for each in program.clauses
        if each.body and any(head.relation in defined and not head.sign for head in each.heads)
    ]
    written = sql_texts(program).get(name)
    rules = rules if written is None else [written]
    if visit.parameters.get("show") != "plan":
        return {"rules": rules}
    procedures = (await visit.ask(ExplainRequest()))["procedures"]
    found = [
        line
        for heading, lines in procedures.items()
        if defined & {*heading.replace(",", " ").split()}
        for line in (f"procedure {heading}", *(f"    {each}" for each in lines), "")
    ]
    return {"rules": rules, "plan": "\n".join(found).rstrip() or "no steps of its own"}


async def _rows(visit: Visit, name: str, relation: Mapping[str, Any]) -> dict[str, Any]:
    order = visit.parameters.get("sort", "")
    found = await visit.ask(
        RelationRowsRequest(
            name,
            at=visit.at,
            where=_conditions(visit, relation),
            sort=(order,) if order else (),
            cursor=visit.parameters.get("cursor") or None,
            limit=ROWS_SHOWN,
        )
    )
    return {
        "rows": [_row(visit, relation, row, "") for row in found["rows"]],
        "cursor": found["cursor"],
    }


async def _difference(visit: Visit, name: str, relation: Mapping[str, Any]) -> dict[str, Any]:
    asked = DifferenceRequest(
        relation=name, since=visit.since or 0, at=visit.at, limit=DIFFERENCE_SHOWN
    )
    changes = (await visit.ask(asked))["changes"].get(name, {"added": [], "removed": []})
    rows = [_row(visit, relation, row, "+") for row in changes["added"]]
    rows += [_row(visit, relation, row, "-") for row in changes["removed"]]
    rows.sort(key=lambda each: str(each.values))
    return {"rows": rows, "counts": changes.get("counts", [0, 0])}


def _conditions(visit: Visit, relation: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the conditions of the fields under the table.

    A field may begin with a comparison; a text that ends with `…` or `*` is looked for inside.
    """
    found = []
    for column in relation["columns"]:
        text = visit.parameters.get(f"where.{column['name']}", "").strip()
        if not text:
            continue
        operators = ("!=", "<=", ">=", "<", ">", "=", "~")
        operator = next((each for each in operators if text.startswith(each)), "")
        value = text.removeprefix(operator).strip()
        found.append(f"{column['name']}{operator or '='}{value}")
    return tuple(found)


def _row(visit: Visit, relation: Mapping[str, Any], row: Sequence[Any], sign: str) -> ShownRow:
    types = [column["type"] for column in relation["columns"]]
    text = goal(relation["name"], row, types)
    asked = {"+": "why-added", "-": "why-removed"}.get(sign, "")
    return ShownRow(row, text, sign, visit.url(tuple=text, ask=asked))


def _columns(visit: Visit, relation: Mapping[str, Any]) -> list[ShownColumn]:
    name, _, direction = visit.parameters.get("sort", "").partition(" ")
    found = []
    for column in relation["columns"]:
        is_sorted = column["name"] == name
        is_down = is_sorted and direction == "desc"
        turned = f"{column['name']} desc" if is_sorted and not is_down else column["name"]
        found.append(
            ShownColumn(
                column["name"],
                column["type"],
                visit.parameters.get(f"where.{column['name']}", ""),
                "descending" if is_down else "ascending" if is_sorted else "",
                visit.url(sort=turned, cursor=None),
                column["type"].startswith(("number", "unsigned", "float", "decimal")),
            )
        )
    return found


PAGES = (
    Page("/relations", show_relations, "Relations", "g r"),
    Page("/relations/{relation:path}", show_relation, belongs_to="Relations"),
)
