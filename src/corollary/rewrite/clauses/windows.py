"""Rules with window functions become windowings: the tuples of a relation, with their values.

`h(x, r) :- p(x), r = window("rank() over (order by $1)", x).` becomes

    h(x, r)             the tuples of p, ranked

Functions over different partitions or orders are in a relation each, which reads the one before. A
sum may be too large for its type: then it is null, and the rule that reads it decides.

    h.window1(x, y, s)  the tuples of p, with sums
    h(x, y, s) :- h.window1(x, y, s), s = checked s.

Where users do not see `h`, the rules that read it do so, and `h` has the sums.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from corollary.analysis.traverse import atom_uses
from corollary.core import logic
from corollary.core.functors.conversions import CHECKED_SUM
from corollary.core.types import Type
from corollary.core.windows import has_window, window_equations, window_of
from corollary.data_class import dataclass
from corollary.rewrite.translation_unit import Conjunction, TranslationUnit


def windows(unit: TranslationUnit) -> None:
    """Take the conjunctions with window functions out; the check `windows` has seen their form."""
    if not any(has_window(clause) for clause in unit.clauses):
        return
    conjunctions = list(unit.conjunctions)
    unseen = _unseen(conjunctions, unit)
    sums: dict[str, list[int]] = {}
    made = [each for whole in conjunctions for each in _without_windows(whole, unit, unseen, sums)]
    unit.conjunctions = [_with_checks(each, sums) for each in made]


def _unseen(conjunctions: Sequence[Conjunction], unit: TranslationUnit) -> set[str]:
    """Return the relations that nothing but positive literals of rules can read."""
    found = {name for name, each in unit.relations.items() if not each.is_declared}
    for conjunction in conjunctions:
        for use in atom_uses(logic.Clause((conjunction.head,), conjunction.items)):
            terms = use.atom.arguments
            is_plain = all(isinstance(each, logic.Variable | logic.Wildcard) for each in terms)
            if use.is_negated or use.is_aggregated or not is_plain:
                found.discard(use.atom.relation)
    return found


def _without_windows(
    conjunction: Conjunction, unit: TranslationUnit, unseen: set[str], sums: dict[str, list[int]]
) -> Iterator[Conjunction]:
    clause = logic.Clause((conjunction.head,), conjunction.items)
    if not has_window(clause):
        yield conjunction
        return
    (row,) = (item for item in conjunction.items if isinstance(item, logic.Atom))
    equations = list(window_equations(clause))
    parts = _parts(row, equations)
    every = [value for part in parts for value in part.values]
    checked = [
        value.variable
        for value in every
        if value.function.name == "sum" and not value.type.is_float
    ]
    name, is_in_order = (
        conjunction.head.relation,
        [e.variable for e in every] == [e.left for e in equations],
    )
    if is_in_order and (name in unseen or not checked):
        _define(conjunction, row.relation, parts, unit, has_rule=False)
        sums[name] = [at for at, each in enumerate(conjunction.head.arguments) if each in checked]
        return
    body = _define(conjunction, row.relation, parts, unit, has_rule=True)
    values = (each.variable for each in every)
    yield conjunction.with_items(
        (logic.Atom(body, (*row.arguments, *values)), *map(_check, checked)), "windows"
    )


def _check(value: logic.Variable) -> logic.Comparison:
    return logic.Comparison("=", value, logic.Functor(CHECKED_SUM, (value,), value.type))


def _with_checks(conjunction: Conjunction, sums: Mapping[str, Sequence[int]]) -> Conjunction:
    """Return a conjunction that checks the sums which it reads."""
    read = [
        item.arguments[at]
        for item in conjunction.items
        if isinstance(item, logic.Atom)
        for at in sums.get(item.relation, ())
    ]
    checks = [_check(each) for each in dict.fromkeys(read) if isinstance(each, logic.Variable)]
    return (
        conjunction.with_items((*conjunction.items, *checks), "windows") if checks else conjunction
    )


@dataclass(frozen=True, slots=True)
class _Value:
    """A function, and the variable that has its value."""

    variable: logic.Variable
    function: logic.WindowFunction

    @property
    def type(self) -> Type:
        """The type of the value."""
        assert self.variable.type is not None
        return self.variable.type


@dataclass(frozen=True, slots=True)
class _Part:
    """The functions over one partition and order."""

    partition: tuple[int, ...]
    order: tuple[logic.OrderColumn, ...]
    values: list[_Value] = field(default_factory=list)


def _parts(row: logic.Atom, equations: list[logic.Comparison]) -> list[_Part]:
    """Return the window functions of a rule by partition and order."""
    at = {each: number for number, each in enumerate(row.arguments)}
    found: dict[object, _Part] = {}
    for equation in equations:
        window, term = window_of(equation.right), equation.right
        assert window is not None
        assert isinstance(term, logic.Functor)
        assert isinstance(equation.left, logic.Variable)
        columns = [at[each] for each in term.arguments[1:]]
        placed = window.renumbered(columns.__getitem__)
        key = placed.partition, placed.order
        part = found.setdefault(key, _Part(*key))
        part.values.append(_Value(equation.left, placed.function))
    return list(found.values())


def _define(
    conjunction: Conjunction,
    body: str,
    parts: list[_Part],
    unit: TranslationUnit,
    *,
    has_rule: bool,
) -> str:
    """Make a relation for each part; return the last one, the head's own unless it has a rule."""
    name, origin = conjunction.head.relation, conjunction.origin.with_pass("windows")
    columns, types = list(unit.relations[body].columns), list(unit.relations[body].types)
    for number, part in enumerate(parts, 1):
        columns += [each.variable.name for each in part.values]
        types += [each.type for each in part.values]
        target = name
        if has_rule or number < len(parts):
            target = unit.unused_name(f"{name}.window{number}")
            unit.declare(target, columns, types)
        functions = tuple(each.function for each in part.values)
        unit.aggregations.append(
            logic.Windowing(target, body, part.partition, part.order, functions, origin)
        )
        body = target
    return body
