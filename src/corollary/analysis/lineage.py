"""Which columns each column of a view comes from, exactly as the rules say it.

| in a rule | the columns are |
|---|---|
| `p(x) :- q(x, _)` | `q.1` *identity* of `p.x` |
| `x = f(y)`, `x is y + z` | the sources of `y` and `z`, *transformation* |
| `x = if(t, y, z)` | those of `t`, *conditional* |
| `n = sum v : { q(g, v) }` | those of `v` *aggregation*; those of `g` *group by*, for all columns |
| a window | those of its arguments, *aggregation* or *transformation*; of its partition, *window* |
| `q(x), r(x)`; `q(x), r(y), x < y`; `!r(x)` | all of them *join*, for all columns |
| `q(x), x > 2`; `q(1)` | *filter*, for all columns |

A step is one rule; what relations that passes have made stand for is found by following steps, and
so is what goes through recursion. A value that joins is the same on both sides: it comes
from both.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from corollary.analysis.bags import counts_copies
from corollary.core.logic import (
    Aggregation,
    Condition,
    Constant,
    Expression,
    Functor,
    Rule,
    Variable,
    Windowing,
    variables_of,
)
from corollary.core.once import once_per_program
from corollary.core.program import NormalProgram
from corollary.core.windows import FRAMED_AGGREGATES
from corollary.data_class import dataclass


class Influence(StrEnum):
    """What a column does to another one, or to which rows there are."""

    IDENTITY = "identity"
    TRANSFORMATION = "transformation"
    AGGREGATION = "aggregation"
    CONDITIONAL = "conditional"
    JOIN = "join"
    FILTER = "filter"
    GROUP_BY = "group by"
    WINDOW = "window"
    SORT = "sort"

    @property
    def is_direct(self) -> bool:
        """Whether the value is made of it."""
        return self in DIRECT


DIRECT = (Influence.IDENTITY, Influence.TRANSFORMATION, Influence.AGGREGATION)
"""From the weakest to the strongest: of two steps in a row, the stronger one counts."""
_Column = tuple[str, int]


@dataclass(frozen=True, slots=True, order=True)
class ColumnSource:
    """A column that another one comes from, and how."""

    relation: str
    column: str
    influence: Influence

    def as_json(self) -> dict[str, str]:
        """Return it as `show --as lineage` prints it."""
        return {"relation": self.relation, "column": self.column, "how": str(self.influence)}


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a relation comes from.

    Attributes:
        columns: what each of its columns is made of, or depends on.
        rows: what decides which rows there are, and so all columns.
    """

    columns: Mapping[str, tuple[ColumnSource, ...]]
    rows: tuple[ColumnSource, ...]

    @property
    def relations(self) -> frozenset[str]:
        """The relations whose columns it comes from."""
        sources = (each for found in (*self.columns.values(), self.rows) for each in found)
        return frozenset(each.relation for each in sources)

    def as_json(self) -> dict[str, Any]:
        """Return it as `show --as lineage` prints it."""
        columns = {name: [each.as_json() for each in of] for name, of in self.columns.items()}
        return {"columns": columns, "rows": [each.as_json() for each in self.rows]}


def lineage_of(program: NormalProgram, name: str, *, is_whole: bool = True) -> Lineage:
    """Return the lineage of a declared relation: of a base relation, nothing.

    Args:
        program: in normal form.
        name: the relation.
        is_whole: whether to go on to base relations; if not, only to the declared relations that
            its rules read.
    """
    return _Walk(program, name, is_whole=is_whole).lineage()


def uses_of(program: NormalProgram, name: str) -> dict[str, tuple[ColumnSource, ...]]:
    """Return for each column of a relation the columns of views that come from it in one step.

    What decides on the rows of a view has no column there: its name is empty.
    """
    declared = program.declared_relations
    found: dict[str, list[ColumnSource]] = {each: [] for each in declared[name].columns}
    for view in declared:
        if view == name:
            continue
        lineage = lineage_of(program, view, is_whole=False)
        for column, sources in (*lineage.columns.items(), ("", lineage.rows)):
            for each in sources:
                if each.relation == name:
                    found[each.column].append(ColumnSource(view, column, each.influence))
    return {column: tuple(uses) for column, uses in found.items()}


class _Steps:
    """What one rule or aggregation does, for all of a program.

    Attributes:
        columns: for a column, those that it comes from directly.
        rows: for a relation, the columns that decide on its rows.
        reads: for a relation, those that its rules read.
    """

    def __init__(self, program: NormalProgram) -> None:
        self.columns: dict[_Column, set[tuple[_Column, Influence]]] = {}
        self.rows: dict[str, set[tuple[_Column, Influence]]] = {}
        self.reads: dict[str, set[str]] = {}
        self._grouped = _grouped_relations(program)
        for rule in program.rules:
            self._add_rule(rule)
        for each in program.aggregations:
            self.reads.setdefault(each.relation, set()).add(each.body)
            if isinstance(each, Windowing):
                self._add_windowing(each, program.relations[each.body].arity)
            else:
                self._add_aggregation(each)
        for name, order in program.subsumption.items():
            self._decide(name, ((name, each.position) for each in order.values), Influence.SORT)

    def _come(self, column: _Column, sources: Iterable[tuple[_Column, Influence]]) -> None:
        self.columns.setdefault(column, set()).update(sources)

    def _decide(self, name: str, columns: Iterable[_Column], influence: Influence) -> None:
        self.rows.setdefault(name, set()).update((each, influence) for each in columns)

    def _add_rule(self, rule: Rule) -> None:
        name = rule.head.relation
        self.reads.setdefault(name, set()).update(each.relation for each in rule.literals)
        places = _places(rule)
        sources = {
            variable: {(column, Influence.IDENTITY) for _, column in found}
            for variable, found in places.items()
        }
        tests = list(_compute(rule, sources))
        for at, slot in enumerate(rule.head.slots):
            if isinstance(slot, Variable):
                self._come((name, at), sources.get(slot.name, ()))
        for found in places.values():
            joining = {(number, at) for number, at in found if at[0] not in self._grouped}
            if len({number for number, _ in joining}) > 1:
                self._decide(name, (at for _, at in joining), Influence.JOIN)
        for literal in rule.literals:
            is_compared = literal.negated and literal.relation not in self._grouped
            for at, slot in enumerate(literal.slots):
                column = (literal.relation, at)
                if isinstance(slot, Constant):
                    self._decide(name, [column], Influence.FILTER)
                elif is_compared and isinstance(slot, Variable):
                    met = (each for each, _ in sources.get(slot.name, ()))
                    self._decide(name, (column, *met), Influence.JOIN)
        for test in tests:
            named = {each.name for side in (test.left, test.right) for each in variables_of(side)}
            touched = {each for variable in named for each, _ in sources.get(variable, ())}
            read = {number for variable in named for number, _ in places.get(variable, ())}
            influence = Influence.JOIN if len(read) > 1 else Influence.FILTER
            self._decide(name, touched, influence)

    def _add_aggregation(self, aggregation: Aggregation) -> None:
        name, body = aggregation.relation, aggregation.body
        for at, group in enumerate(aggregation.groups):
            self._come((name, at), [((body, group), Influence.IDENTITY)])
        for at, each in enumerate(aggregation.accumulators, len(aggregation.groups)):
            self._come((name, at), [((body, of), Influence.AGGREGATION) for of in each.columns])
        if not counts_copies(name):
            groups = ((body, group) for group in aggregation.groups)
            self._decide(name, groups, Influence.GROUP_BY)

    def _add_windowing(self, windowing: Windowing, arity: int) -> None:
        name, body = windowing.relation, windowing.body
        for at in range(arity):
            self._come((name, at), [((body, at), Influence.IDENTITY)])
        ordering = [(body, each.column) for each in windowing.order]
        around = [*((body, at) for at in windowing.partition), *ordering]
        for at, each in enumerate(windowing.functions, arity):
            is_total = each.name in FRAMED_AGGREGATES
            influence = Influence.AGGREGATION if is_total else Influence.TRANSFORMATION
            self._come((name, at), [((body, of), influence) for of in each.arguments])
            self._come((name, at), [(of, Influence.WINDOW) for of in around])
        if windowing.top is not None:
            self._decide(name, ordering, Influence.SORT)


_steps_of = once_per_program(_Steps)


def _grouped_relations(program: NormalProgram) -> set[str]:
    """Return the aggregations and their projections, which rules join by the keys of the group."""
    found = {each.relation for each in program.aggregations if isinstance(each, Aggregation)}
    single = [each for each in program.rules if len(each.literals) == 1 and not each.conditions]
    for _ in range(2):
        found |= {
            rule.head.relation
            for rule in single
            if rule.literals[0].relation in found
            and not program.relations[rule.head.relation].is_declared
        }
    return found


def _places(rule: Rule) -> dict[str, list[tuple[int, _Column]]]:
    """Return for each variable the literals that have it, by number, and their columns."""
    found: dict[str, list[tuple[int, _Column]]] = {}
    for number, literal in enumerate(rule.literals):
        for at, slot in enumerate(literal.slots):
            if isinstance(slot, Variable) and not literal.negated:
                found.setdefault(slot.name, []).append((number, (literal.relation, at)))
    return found


def _compute(rule: Rule, sources: dict[str, set[tuple[_Column, Influence]]]) -> Iterator[Condition]:
    """Add the sources of variables that conditions compute; yield the conditions that test."""
    waiting = list(rule.conditions)
    while waiting:
        left = []
        for each in waiting:
            for one, other in ((each.left, each.right), (each.right, each.left)):
                is_free = isinstance(one, Variable) and one.name not in sources
                if is_free and all(of.name in sources for of in variables_of(other)):
                    assert isinstance(one, Variable)
                    sources[one.name] = _sources(other, sources)
                    break
            else:
                left.append(each)
        if len(left) == len(waiting):
            break
        waiting = left
    # `x = x` only says that x is not null, as every join does.
    yield from (each for each in waiting if each.left != each.right)


def _sources(
    term: Expression, sources: Mapping[str, set[tuple[_Column, Influence]]]
) -> set[tuple[_Column, Influence]]:
    """Return the columns that a term is computed from."""
    found: set[tuple[_Column, Influence]] = set()
    stack: list[tuple[Expression, Influence]] = [(term, Influence.IDENTITY)]
    while stack:
        part, influence = stack.pop()
        match part:
            case Variable(name=name):
                found |= {(at, _chain(influence, each)) for at, each in sources[name]}
            case Functor(name=name, arguments=arguments):
                inner = _chain(influence, Influence.TRANSFORMATION)
                for at, each in enumerate(arguments):
                    is_test = name == "if" and at == 0
                    assert isinstance(each, Variable | Constant | Functor)
                    stack.append((each, Influence.CONDITIONAL if is_test else inner))
            case Constant():
                pass
    return found


def _chain(one: Influence, other: Influence) -> Influence:
    """Return what two steps in a row are together.

    >>> str(_chain(Influence.IDENTITY, Influence.AGGREGATION))
    'aggregation'
    """
    for each in (one, other):
        if not each.is_direct:
            return each
    return max(one, other, key=DIRECT.index)


class _Walk:
    """Follows steps from one relation to those that count."""

    def __init__(self, program: NormalProgram, name: str, *, is_whole: bool) -> None:
        self._program = program
        self._steps: _Steps = _steps_of(program)
        self._start = name
        self._is_whole = is_whole
        self._shown = {rows: bag for bag, rows in program.bags.items()} | {
            base: of for of, base in program.bases.items()
        }

    def lineage(self) -> Lineage:
        """Return the lineage of the relation."""
        relation = self._program.declared_relations[self._start]
        columns = {
            column: self._shorten(self._follow((self._start, at), Influence.IDENTITY))
            for at, column in enumerate(relation.columns)
        }
        rows: set[ColumnSource] = set()
        seen, stack = {self._start}, [self._start]
        while stack:
            each = stack.pop()
            for column, influence in self._steps.rows.get(each, ()):
                rows |= self._follow(column, influence)
            for below in self._steps.reads.get(each, set()) - seen:
                seen.add(below)
                if not self._is_end(below):
                    stack.append(below)
        return Lineage(columns, tuple(sorted(rows)))

    def _is_end(self, name: str) -> bool:
        if name == self._start or name == self._program.bags.get(self._start):
            return False
        shown = self._shown.get(name, name)
        if shown in self._program.declared_relations and not self._is_whole:
            return True
        return not self._program.relations[name].is_derived

    def _follow(self, column: _Column, influence: Influence) -> set[ColumnSource]:
        """Return the columns at the end that a column comes from."""
        found: set[ColumnSource] = set()
        seen, stack = {(column, influence)}, [(column, influence)]
        while stack:
            (name, at), so_far = stack.pop()
            if self._is_end(name):
                shown = self._shown.get(name, name)
                relation = self._program.declared_relations.get(shown)
                if relation is not None and at < relation.arity:
                    found.add(ColumnSource(shown, relation.columns[at], so_far))
                continue
            for source, each in self._steps.columns.get((name, at), ()):
                state = (source, _chain(so_far, each))
                if state not in seen:
                    seen.add(state)
                    stack.append(state)
        return found

    def _shorten(self, found: set[ColumnSource]) -> tuple[ColumnSource, ...]:
        """Leave out conditions on what the value is made of anyway."""
        made = {(each.relation, each.column) for each in found if each.influence.is_direct}
        return tuple(
            each
            for each in sorted(found)
            if each.influence.is_direct or (each.relation, each.column) not in made
        )
