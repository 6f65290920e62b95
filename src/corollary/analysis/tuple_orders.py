"""The order that clauses of subsumption say, if it can be read off them.

Columns in which both atoms have one variable are keys, the others values. The bodies compare the
values of both atoms, and nothing else:

| clauses | order |
|---|---|
| one, with a comparison for each value | componentwise: several best tuples for a key |
| the i-th has equal first i-1 values, and compares the i-th strictly | lexicographic |
"""

from collections.abc import Sequence

from corollary.core.logic import MIRRORED_OPERATORS, Atom, Clause, Comparison, Variable
from corollary.core.printer import print_body
from corollary.core.program import Relation, SubsumptionOrder, ValueColumn
from corollary.data_class import dataclass


@dataclass(frozen=True, slots=True)
class _ReadClause:
    """What a clause says: the columns that are equal, and the comparisons of others.

    Attributes:
        comparisons: for each compared column the operator, the dominating value on its left.
    """

    equal: frozenset[int]
    comparisons: tuple[tuple[int, str], ...]


def read_order(
    clauses: Sequence[Clause], relation: Relation
) -> tuple[SubsumptionOrder | None, str]:
    """Return the order that clauses say; if none can be read off, None and the reason."""
    found: list[_ReadClause] = []
    for clause in clauses:
        read = _read_clause(clause)
        if isinstance(read, str):
            return None, read
        if read not in found:
            found.append(read)
    order = _componentwise(found, relation) or _lexicographic(found, relation)
    if order is None:
        return None, "the clauses together compare neither each value nor one after another"
    for value in order.values:
        if relation.types[value.position].nullable:
            return None, f"the column `{relation.columns[value.position]}` may be null"
    return order, ""


def _read_clause(clause: Clause) -> _ReadClause | str:
    head, dominating, *rest = clause.body
    assert isinstance(head, Atom)
    assert isinstance(dominating, Atom)
    columns: dict[tuple[str, str], int] = {}
    equal: set[int] = set()
    names: list[str] = []
    for at, (one, other) in enumerate(zip(head.arguments, dominating.arguments, strict=True)):
        if not isinstance(one, Variable) or not isinstance(other, Variable):
            return "an argument of its two atoms is not a variable"
        if one == other:
            equal.add(at)
            names.append(one.name)
        else:
            columns[one.name, other.name] = at
            names += (one.name, other.name)
    if len(names) != len(set(names)):
        return "a variable of its two atoms stands for two columns"
    comparisons: list[tuple[int, str]] = []
    for item in rest:
        match item:
            case Comparison(
                operator=operator, left=Variable(name=left), right=Variable(name=right)
            ) if operator != "!=" and operator in MIRRORED_OPERATORS:
                if (right, left) in columns:
                    at = columns[right, left]
                elif (left, right) in columns:
                    at, operator = columns[left, right], MIRRORED_OPERATORS[operator]
                else:
                    return f"`{print_body((item,))}` does not compare two values of one column"
            case _:
                return f"`{print_body((item,))}` does not compare two values of one column"
        if operator == "=":
            equal.add(at)
        else:
            comparisons.append((at, operator))
    compared = [at for at, _ in comparisons]
    if len(compared) != len(set(compared)) or equal & set(compared):
        return "a column is compared twice"
    return _ReadClause(frozenset(equal), tuple(comparisons))


def _componentwise(found: Sequence[_ReadClause], relation: Relation) -> SubsumptionOrder | None:
    if len(found) != 1:
        return None
    (clause,) = found
    if len(clause.equal) + len(clause.comparisons) != relation.arity or not clause.comparisons:
        return None
    is_strict = any(operator in "<>" for _, operator in clause.comparisons)
    if is_strict and len(clause.comparisons) > 1:
        return None
    return SubsumptionOrder(tuple(_value(*each) for each in sorted(clause.comparisons)))


def _lexicographic(found: Sequence[_ReadClause], relation: Relation) -> SubsumptionOrder | None:
    ordered = sorted(found, key=lambda each: len(each.equal))
    if not ordered or any(len(each.comparisons) != 1 for each in ordered):
        return None
    values: list[ValueColumn] = []
    keys = ordered[0].equal
    for number, clause in enumerate(ordered):
        ((at, operator),) = clause.comparisons
        is_last = number == len(ordered) - 1
        if clause.equal != keys | {each.position for each in values}:
            return None
        if operator not in "<>" and not is_last:
            return None
        values.append(_value(at, operator))
    if len(keys) + len(values) != relation.arity:
        return None
    return SubsumptionOrder(tuple(values), is_lexicographic=len(values) > 1)


def _value(position: int, operator: str) -> ValueColumn:
    return ValueColumn(position, is_greater_better=operator.startswith(">"))
