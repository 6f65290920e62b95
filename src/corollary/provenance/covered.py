"""Tuples that are not there because another one is: as good and of its key, dominating, chosen.

A proof may need them: `v("b", 5)` was what another value came from, and `v("b", 7)` is there.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from corollary.core.logic import Constant, Literal, Rule, Wildcard
from corollary.core.printer import print_value
from corollary.core.program import Relation, SubsumptionOrder
from corollary.provenance.nodes import ProofKind, ProofNode, Row
from corollary.provenance.query_state import QueryState, matching_rows
from corollary.provenance.rule_query import tuples_there


def covering_row(asked: QueryState, relation: str, row: Row) -> Row | None:
    """Return a tuple that is there and keeps another one out; None if there is none."""
    order = asked.program.subsumption.get(relation)
    if order is not None:
        return _as_good(asked, relation, row, order)
    shape = asked.program.relations[relation]
    if shape.domains:
        return _chosen(asked, shape, row)
    return None if shape.dominated is None else _dominating(asked, relation, row, shape.dominated)


def cover_text(asked: QueryState, relation: str, row: Row, covering: Row) -> str:
    """Return how a tuple that is there keeps another one out."""
    shape = asked.program.relations[relation]
    if relation in asked.program.subsumption:
        return "is not among the best of its key"
    for domain in shape.domains:
        if all(row[at] == covering[at] for at in domain):
            columns = ", ".join(shape.columns[at] for at in domain)
            return f"agrees with another one in the choice domain ({columns})"
    return "is dominated"


def _chosen(asked: QueryState, shape: Relation, row: Row) -> Row | None:
    """Return a tuple that agrees with another one in a choice domain."""
    for domain in shape.domains:
        slots = tuple(
            Constant(row[at], type_) if at in domain else Wildcard()
            for at, type_ in enumerate(shape.types)
        )
        for each in matching_rows(asked, Literal(shape.name, slots)):
            return each
    return None


def _as_good(asked: QueryState, relation: str, row: Row, order: SubsumptionOrder) -> Row | None:
    types, keys = asked.program.relations[relation].types, order.keys(len(row))
    slots = tuple(
        Constant(row[at], type_) if at in keys else Wildcard() for at, type_ in enumerate(types)
    )
    rivals = matching_rows(asked, Literal(relation, slots))
    return next((each for each in rivals if _is_as_good(each, row, order)), None)


def _is_as_good(one: Row, other: Row, order: SubsumptionOrder) -> bool:
    """Whether a tuple covers another one of the same key."""
    for column in order.values:
        left: Any = one[column.position]
        right: Any = other[column.position]
        if (left < right) if column.is_greater_better else (left > right):
            return False
        if order.is_lexicographic and left != right:
            return True
    return True


def _dominating(asked: QueryState, relation: str, row: Row, dominated: str) -> Row | None:
    """Return a tuple for which a clause of subsumption says that it dominates another one.

    A relation of such pairs is asked: the clauses without the literal of the dominated tuple.
    """
    shape = asked.program.relations[relation]
    pairs = Relation(
        f"{dominated}.by",
        tuple(f"c{at}" for at in range(2 * shape.arity)),
        (*shape.types, *shape.types),
        is_derived=True,
        is_virtual=True,
        is_declared=False,
    )
    rules = tuple(
        _pair_rule(rule, pairs.name)
        for rule in asked.program.rules
        if rule.head.relation == dominated
    )
    program = replace(
        asked.program,
        relations={**asked.program.relations, pairs.name: pairs},
        rules=(*asked.program.rules, *rules),
    )
    one = tuple(map(Constant, row, shape.types))
    other = tuple(Wildcard() for _ in row)
    found = matching_rows(replace(asked, program=program), Literal(pairs.name, (*one, *other)))
    return found[0][shape.arity :] if found else None


def _pair_rule(rule: Rule, name: str) -> Rule:
    one, other, *rest = rule.literals
    head = Literal(name, (*one.slots, *other.slots))
    return replace(rule, head=head, literals=(other, *rest))


def name_covering(asked: QueryState, nodes: Sequence[ProofNode]) -> tuple[ProofNode, ...]:
    """Return nodes of a proof, those of tuples that are not there with the tuple that covers them.

    Their text reads `v("b", 5): n is at least 5 (now 7)`.
    """
    program, found = asked.program, list(nodes)
    places: dict[str, list[int]] = {}
    for place, node in enumerate(nodes):
        relation = program.relations.get(node.relation)
        if relation is None or node.kind not in (ProofKind.DERIVED, ProofKind.BASE):
            continue
        if relation.name in program.subsumption or relation.dominated is not None:
            places.setdefault(relation.name, []).append(place)
    for name, numbers in places.items():
        there = tuples_there(asked, name, [nodes[place].row for place in numbers])
        for place, is_there in zip(numbers, there, strict=True):
            if not is_there:
                now = covering_row(asked, name, nodes[place].row)
                text = f"{nodes[place].text}: {_bounds(asked, nodes[place], now)}"
                found[place] = replace(nodes[place], text=text, now=now)
    return tuple(found)


def _bounds(asked: QueryState, node: ProofNode, now: Row | None) -> str:
    """Return what a tuple says that is not there."""
    relation = asked.program.relations[node.relation]
    order = asked.program.subsumption.get(node.relation)
    if now is None:
        return "deleted"
    if order is None:
        return f"deleted (now {_row_text(relation, now)})"
    parts = []
    for column in order.values:
        at = column.position
        bound = "at least" if column.is_greater_better else "at most"
        value, top = (print_value(row[at], relation.types[at]) for row in (node.row, now))
        parts.append(f"{relation.columns[at]} is {bound} {value} (now {top})")
        if order.is_lexicographic and node.row[at] != now[at]:
            break
    return ", ".join(parts)


def _row_text(relation: Relation, row: Row) -> str:
    values = ", ".join(map(print_value, row, relation.types))
    return f"{relation.name}({values})"
