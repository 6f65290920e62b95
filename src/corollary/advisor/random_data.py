"""Random tuples for the base relations of a program, few values, declared dependencies kept."""

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain

from corollary.analysis.traverse import parts, terms
from corollary.core.program import NormalProgram, Program, Relation
from corollary.core.terms import Constant, Value
from corollary.core.types import Kind, Type
from corollary.database.keys import Dependence, dependences

VALUES = 3
"""So many values of each type there are, beside the constants of the program."""
MOST = 12
"""So many tuples a relation has at most."""

Row = tuple[Value, ...]

_EVERY: dict[Kind, list[Value]] = {
    Kind.SYMBOL: ["a", "b", "c"],
    Kind.NUMBER: [0, 1, 2],
    Kind.UNSIGNED: [0, 1, 2],
    Kind.FLOAT: [0.0, 1.0, 2.5],
    Kind.DECIMAL: [Decimal(0), Decimal(1), Decimal(2)],
    Kind.BOOL: [False, True],
    Kind.DATE: [date(2026, 1, day) for day in (1, 2, 3)],
    Kind.TIMESTAMP: [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)],
}


def random_tables(
    program: Program, normal: NormalProgram, names: Iterable[str], dice: random.Random
) -> dict[str, list[Row]]:
    """Return random tuples for some base relations."""
    known = _constants(program)
    demands = list(dependences(program, normal))
    return {
        name: _rows(
            normal.relations[name],
            [each for each in demands if each.relation == name],
            known,
            dice,
        )
        for name in names
    }


def _constants(program: Program) -> dict[Kind, list[Value]]:
    found: dict[Kind, list[Value]] = {}
    for clause in program.clauses:
        for part in chain.from_iterable(parts(term) for term, _ in terms(clause)):
            if isinstance(part, Constant) and part.type is not None and part.value is not None:
                found.setdefault(part.type.kind, []).append(part.value)
    return found


def _rows(
    relation: Relation,
    demands: Sequence[Dependence],
    known: dict[Kind, list[Value]],
    dice: random.Random,
) -> list[Row]:
    rows: list[Row] = []
    for _ in range(dice.randint(0, MOST)):
        row = tuple(_value(type_, known, dice) for type_ in relation.types)
        if row not in rows and all(keeps(row, rows, each) for each in demands):
            rows.append(row)
    return rows


def keeps(row: Row, rows: Iterable[Row], demand: Dependence) -> bool:
    """Whether a row contradicts none of the others in a dependency."""
    return all(
        any(row[at] != other[at] for at in demand.determinants)
        or all(row[at] == other[at] for at in demand.dependents)
        for other in rows
    )


def _value(type_: Type, known: dict[Kind, list[Value]], dice: random.Random) -> Value:
    if type_.nullable and dice.random() < 0.2:
        return None
    every = _EVERY[type_.kind] + known.get(type_.kind, [])[:VALUES]
    return dice.choice(every)
