"""The relations of a database: what they are, how large, and which commit changed them last."""

from typing import Any

from corollary.analysis.bags import rows_name
from corollary.analysis.lineage import lineage_of, uses_of
from corollary.core.printer import print_clause
from corollary.core.program import NormalProgram, Program, Relation, sql_texts
from corollary.database.access.principals import Principal
from corollary.database.database import state_of, warehouse_of
from corollary.database.reading.read_access import ReadAccess
from corollary.database.reading.reader import Reader
from corollary.explain.dependency_graph import graph_as_json
from corollary.serve.answers import Answer
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.requests import DescribeRequest, RelationsRequest


def answer_relations(context: HandlerContext, who: Principal, request: RelationsRequest) -> Answer:
    """List the relations that somebody may see; how SQL defines them is not for readers."""
    database, commit = context.view(who, request.at)
    last = _last_changes(context, commit)
    written = {} if isinstance(database, Reader) else sql_texts(state_of(database).program)
    found = [
        relation_as_json(database, name, relation)
        | {"last_change": last.get(name), "definition": written.get(name)}
        for name, relation in visible_relations(database).items()
    ]
    return Answer.of(commit, {"relations": found, "commit": commit})


def answer_describe(context: HandlerContext, who: Principal, request: DescribeRequest) -> Answer:
    """Describe a relation; what it is computed from is not for readers."""
    database, commit = context.view(who, request.at)
    name = request.relation
    shape = database.relation(name).shape
    found = relation_as_json(database, name, shape) | {
        "last_change": _last_changes(context, commit).get(name),
        "recursive": False,
        "reads": {},
        "read_by": {},
        "definition": [],
        "lineage": {"columns": {}, "rows": [], "uses": {}},
        "commit": commit,
    }
    if not isinstance(database, Reader):
        state = state_of(database)
        graph = graph_as_json(state.loaded.normal)
        found |= {
            "recursive": any(each["recursive"] for each in graph["nodes"] if each["name"] == name),
            "reads": _neighbours(graph, "to", "from", name),
            "read_by": _neighbours(graph, "from", "to", name),
            "definition": _definition(state.program, name),
            "lineage": _lineage(state.loaded.normal, name),
        }
    return Answer.of(commit, found)


def _lineage(program: NormalProgram, name: str) -> dict[str, Any]:
    """Return which columns a relation's come from, and which come from them, in one step each."""
    uses = {
        column: [each.as_json() for each in found]
        for column, found in uses_of(program, name).items()
    }
    return lineage_of(program, name, is_whole=False).as_json() | {"uses": uses}


def _neighbours(graph: dict[str, Any], own: str, other: str, name: str) -> dict[str, list[str]]:
    """Return the relations at the other end of a relation's arrows, with the kinds of these."""
    found: dict[str, list[str]] = {}
    for each in graph["edges"]:
        if each[own] == name and each[other] != name:
            found.setdefault(each[other], []).append(each["kind"])
    return found


def _definition(program: Program, name: str) -> list[str]:
    """Return the statement or the rules that define a relation, as they are written."""
    written = sql_texts(program).get(name)
    if written is not None:
        return [written]
    defined = {name, rows_name(name)}
    return [
        print_clause(each)
        for each in program.clauses
        if each.body and any(head.relation in defined and not head.sign for head in each.heads)
    ]


def visible_relations(database: ReadAccess) -> dict[str, Relation]:
    """Return the declared relations that may be seen, in the order of the program."""
    every = state_of(database).loaded.normal.declared_relations
    if not isinstance(database, Reader):
        return every
    return {name: each for name, each in every.items() if name in database.granted}


def relation_as_json(database: ReadAccess, name: str, relation: Relation) -> dict[str, Any]:
    """Return what a relation is."""
    state = state_of(database)
    normal = state.loaded.normal
    holder = normal.holder_of(name)
    tuples = None
    if holder.is_stored:
        with state.lock:
            tuples = state.engine.size(holder.name)
    return {
        "name": name,
        "columns": [
            {"name": column, "type": str(type_)}
            for column, type_ in zip(relation.columns, relation.types, strict=True)
        ],
        "kind": normal.kind_of(name),
        "copies": name in normal.bags,
        "tuples": tuples,
        "key": list(_key(state.program, name)),
    }


def _key(program: Program, name: str) -> tuple[str, ...]:
    """Return the columns whose values tell the tuples of a relation apart, if it has a key."""
    declared = (each.key for each in program.declarations if each.name == name)
    return tuple(next(declared, ()))


def _last_changes(context: HandlerContext, commit: int) -> dict[str, dict[str, int]]:
    """Return for each relation the last kept commit that has changed it, and by how much.

    What the commits up to the last request have changed is known: only later ones are asked for.
    """
    warehouse = warehouse_of(context.database)
    if warehouse is None:
        return {}
    oldest = int(warehouse.catalog.meta("oldest"))
    known = context.last_changes
    if known is None or not oldest - 1 <= known[0] <= commit:
        known = oldest - 1, {}
    found = dict(known[1])
    if known[0] < commit:
        for number, name, added, removed in warehouse.catalog.change_counts(known[0], commit):
            found[name] = {"commit": number, "added": added, "removed": removed}
    if commit == context.commit:
        context.last_changes = commit, found
    kept = {name: each for name, each in found.items() if each["commit"] >= oldest}
    bags = state_of(context.database).loaded.normal.bags
    return kept | {bag: kept[rows] for bag, rows in bags.items() if rows in kept}
