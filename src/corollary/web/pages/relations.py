"""The relations: a list of them, and the tuples of each with filters, order and proofs."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from corollary.analysis.bags import rows_name
from corollary.data_class import dataclass
from corollary.serve import requests
from corollary.web.pages.graph import describe_kind
from corollary.web.visit import Page, Visit
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
    found, graph = await visit.ask_all(
        requests.RelationsRequest(at=visit.at), requests.GraphRequest(at=visit.at)
    )
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
    relation = await visit.ask(requests.DescribeRequest(name, at=visit.at))
    context: dict[str, Any] = {
        "relation": relation,
        "kind": describe_kind(relation, is_recursive=relation["recursive"]),
        "change": (await visit.timeline()).changes.get(name),
        "reads": relation["reads"],
        "read_by": relation["read_by"],
        "columns": _columns(visit, relation),
        "show": visit.parameters.get("show", ""),
        "lineage": relation["lineage"],
        "column": visit.parameters.get("column", ""),
        "rules": relation["definition"],
        "plan": "",
        "cursor": None,
        "counts": None,
    }
    if relation["definition"] and context["show"] == "plan":
        context["plan"] = await _plan(visit, name)
    if visit.since is not None:
        context |= await _difference(visit, name, relation)
    else:
        context |= await _rows(visit, name, relation)
    return await visit.render("relation.html", **context)


async def _plan(visit: Visit, name: str) -> str:
    """Return the steps that evaluate a relation."""
    defined = {name, rows_name(name)}
    procedures = (await visit.ask(requests.ExplainRequest()))["procedures"]
    found = [
        line
        for heading, lines in procedures.items()
        if defined & {*heading.replace(",", " ").split()}
        for line in (f"procedure {heading}", *(f"    {each}" for each in lines), "")
    ]
    return "\n".join(found).rstrip() or "no steps of its own"


async def _rows(visit: Visit, name: str, relation: Mapping[str, Any]) -> dict[str, Any]:
    order = visit.parameters.get("sort", "")
    found = await visit.ask(
        requests.RelationRowsRequest(
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
    asked = requests.DifferenceRequest(
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
