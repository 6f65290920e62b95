"""Bounds of columns, such as those of INT, VARCHAR(20) or CHECK (n > 0), checked on rows.

A constraint whose rules each compare one column of a base relation with a constant says which
values the column may have:

    .abort bad      bad(n) :- t(n, _), n < -128.      bad(n) :- t(n, _), n > 127.

Where all rows that come in keep the bounds, no rule is asked; otherwise the rules find out which
rows do not, and say so.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.logic import Condition, Constant, Functor, Rule, Variable
from corollary.core.once import once_per_program
from corollary.core.program import NormalProgram
from corollary.core.states import State
from corollary.core.types import NUMBER, SYMBOL
from corollary.database.writing.operations import Operation


class Bounds(NamedTuple):
    """The numbers that a column may have, or the lengths of its texts; None for any.

    Attributes:
        relation: the base relation.
        column: the number of the column.
    """

    relation: str
    column: int
    least: int | None
    greatest: int | None

    def holds(self, least: int, greatest: int) -> bool:
        """Whether numbers between two others keep the bounds."""
        is_low = self.least is not None and least < self.least
        return not is_low and (self.greatest is None or greatest <= self.greatest)


@once_per_program
def bounded_constraints(program: NormalProgram) -> dict[str, list[Bounds]]:
    """Return the relations that reactions wait for and that only rows outside of bounds fill."""
    waited = {each.relation for each in program.active.reactions} & program.relations.keys()
    found: dict[str, list[Bounds | None]] = {}
    for rule in program.rules:
        if rule.head.relation in waited:
            found.setdefault(rule.head.relation, []).append(_bounds_of(rule, program))
    for each in program.aggregations:
        found.pop(each.relation, None)
    return {
        name: [each for each in bounds if each is not None]
        for name, bounds in found.items()
        if None not in bounds
    }


@once_per_program
def _bounds_by_relation(program: NormalProgram) -> dict[str, list[Bounds]]:
    found: dict[str, list[Bounds]] = {}
    for bounds in bounded_constraints(program).values():
        for each in bounds:
            found.setdefault(each.relation, []).append(each)
    return found


def _bounds_of(rule: Rule, program: NormalProgram) -> Bounds | None:
    """Return the bounds that a row keeps for which a rule derives nothing; None if there are none.

    The relation gets its rows from outside, not by rules; a table with copies by one of its counts.
    """
    match rule.literals, rule.conditions:
        case (literal,), (
            Condition(operator=operator, left=left, right=Constant(value=int(limit))),
        ):
            pass
        case _:
            return None
    column: object = left
    wanted = NUMBER
    if isinstance(left, Functor) and left.name == "strlen":
        (column,), wanted = left.arguments, SYMBOL
    if not isinstance(column, Variable) or column not in literal.slots:
        return None
    at = literal.slots.index(column)
    relation = program.relations[literal.relation]
    if relation.types[at].logical_kind is not wanted.logical_kind or literal.negated:
        return None
    if relation.is_derived and relation.name not in program.bags:
        return None
    least, greatest = {
        "<": (limit, None),
        "<=": (limit + 1, None),
        ">": (None, limit),
        ">=": (None, limit - 1),
    }.get(operator, (None, None))
    if least is None and greatest is None:
        return None
    return Bounds(literal.relation, at, least, greatest)


def keep_bounds(operations: Iterable[Operation], program: NormalProgram) -> bool:
    """Whether all rows that operations insert certainly keep the bounds of their columns."""
    bounds = _bounds_by_relation(program)
    return all(
        _is_kept(operation.rows, each)
        for operation in operations
        if operation.sign is State.ADDED
        for each in bounds.get(operation.relation, ())
    )


def _is_kept(rows: Any, bounds: Bounds) -> bool:
    """Whether rows keep bounds; those of neither a list nor a table are not looked at."""
    if isinstance(rows, pa.Table):
        column = rows.column(bounds.column)
        sizes = column if pa.types.is_integer(column.type) else pc.utf8_length(column)
        found = pc.min_max(sizes).as_py()
        return found["min"] is None or bounds.holds(found["min"], found["max"])
    if not isinstance(rows, list):
        return False
    values = [row[bounds.column] for row in rows if row[bounds.column] is not None]
    if values and isinstance(values[0], str):
        values = list(map(len, values))
    return not values or bounds.holds(min(values), max(values))
