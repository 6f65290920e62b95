"""Nullability: the variables of a clause that may be null when it holds.

A variable is null only if it comes from a nullable column and nothing tests it. It is tested by a
second body position (an atom, a negated atom, an aggregate's body) and by any comparison, since
those do not hold for null. Each position is a point of evidence, a test or a not-null column is
two, an alternative counts for what its weakest branch gives; with two points it is not null.

In a null-safe rule (`:=`) null joins null: two positions are no more evidence than one. `x is e` is
a test where `e` cannot be null, which depends on what is known of the variables in `e`.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import assert_never

from corollary.analysis import traverse
from corollary.analysis.phrases import related_spans, term_text
from corollary.analysis.resolution import ResolvedProgram
from corollary.core import logic
from corollary.core.functors.catalog import signature_of
from corollary.core.functors.spec import Nullness
from corollary.core.types import Type
from corollary.core.windows import WINDOW
from corollary.core.windows import may_be_null as window_may_be_null
from corollary.data_class import dataclass
from corollary.errors import Diagnostic

Nullability = Mapping[str, tuple[bool, ...]]
"""For each relation, which of its columns may be null."""

_NOT_NULL_POINTS = 2


def nullable_columns(resolved: ResolvedProgram) -> Nullability:
    """Return which columns may be null, those of undeclared event predicates included."""
    found = {
        name: tuple(type_ is not None and type_.nullable for type_ in schema.types)
        for name, schema in resolved.schemas.items()
    }
    undeclared = {name for name, schema in resolved.schemas.items() if schema.declaration is None}
    pending = deque(sorted({n for name in undeclared for n in resolved.definitions[name]}))
    readers: defaultdict[str, list[int]] = defaultdict(list)
    for number in pending:
        for use in resolved.uses[number]:
            readers[use.atom.relation].append(number)
    while pending:
        clause = resolved.clauses[pending.popleft()]
        nullable = nullable_variables(clause, found)
        for head in clause.heads:
            old = found.get(head.relation, ())
            if head.relation not in undeclared or len(old) != len(head.arguments):
                continue
            new = tuple(
                was or is_nullable(term, nullable)
                for was, term in zip(old, head.arguments, strict=True)
            )
            if new != old:
                found[head.relation] = new
                pending += readers[head.relation]
    return found


def functor_may_be_null(functor: logic.Functor, arguments: Sequence[bool]) -> bool:
    """Whether the value of a functor may be null, given which of its arguments may be."""
    if functor.name == WINDOW:
        return window_may_be_null(functor, arguments)
    signature = signature_of(functor)
    if signature is None or not signature.accepts(len(arguments)):
        return any(arguments)
    return signature.may_be_null(arguments)


def is_nullable(term: logic.Term, nullable: frozenset[str]) -> bool:
    """Whether a term may be null, given the variables that may."""

    def combine(part: logic.Term, inside: tuple[bool, ...]) -> bool:
        match part:
            case logic.Variable(name=name):
                return name in nullable
            case logic.Constant(value=value):
                return value is None
            case logic.Functor():
                return functor_may_be_null(part, inside)
            case _:
                return False

    return logic.fold_term(term, combine)


def _strict_variables(term: logic.Term) -> Iterator[str]:
    """Yield the variables of which none is null where a term is not."""
    stack = [term]
    while stack:
        part = stack.pop()
        if isinstance(part, logic.Variable):
            yield part.name
        elif isinstance(part, logic.Functor):
            signature = signature_of(part)
            if signature is None or signature.nullness is Nullness.STRICT:
                stack += part.arguments


def nullable_variables(clause: logic.Clause, columns: Nullability) -> frozenset[str]:
    """Return the variables that may be null when the clause holds, those of aggregates too."""
    nullable = frozenset(variable.name for variable in traverse.all_variables_in(clause.body))
    while True:  # what is found not to be null may make the right side of an `is` a value
        evidence = _Evidence(columns, clause.is_null_safe, nullable)
        points = evidence.of_body(clause.body)
        for head in clause.heads:
            for term in head.arguments:
                for aggregate in traverse.aggregates_in(term):
                    evidence.add_aggregate(points, aggregate)
        evidence.add_missing(points)
        found = frozenset(name for name, each in points.items() if each < _NOT_NULL_POINTS)
        if found == nullable:
            return found
        nullable = found


def _makes_null(functor: logic.Functor) -> bool:
    signature = signature_of(functor)
    return signature is not None and signature.nullness is Nullness.ALWAYS


def has_null_source(clause: logic.Clause) -> bool:
    """Whether `null`, or a functor that makes it of values, is written in a clause."""
    return any(
        (isinstance(part, logic.Constant) and part.value is None)
        or (isinstance(part, logic.Functor) and _makes_null(part))
        for term, _ in traverse.clause_terms(clause)
        for part in logic.subterms(term)
    )


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Counts the points of variables.

    Attributes:
        columns: which columns may be null.
        is_null_safe: whether null joins null.
        nullable: the variables that are not known to have a value.
        inside: the points that null-safe aggregates give. They hold for the variables of their own:
            a key may be null where the group is empty.
    """

    columns: Nullability
    is_null_safe: bool
    nullable: frozenset[str]
    inside: Counter[str] = field(default_factory=Counter)

    def add(self, points: Counter[str], further: Mapping[str, int]) -> None:
        """Add the points of a further position."""
        for name, count in further.items():
            points[name] = max(points[name], count) if self.is_null_safe else points[name] + count

    def add_aggregate(self, points: Counter[str], aggregate: logic.AggregateTerm) -> None:
        """Add the points of an aggregate's body to those of the body it stands in."""
        if not self.is_null_safe:
            self.add(points, self.of_body(aggregate.body))
            return
        nested = replace(self, inside=Counter())
        found = nested.of_body(aggregate.body)
        nested.add_missing(found)
        self.add(self.inside, found)

    def add_missing(self, points: Counter[str]) -> None:
        """Add the points of variables that occur in aggregates only."""
        points.update({name: n for name, n in self.inside.items() if name not in points})

    def of_body(self, items: Iterable[logic.BodyItem]) -> Counter[str]:
        """Return the points that a conjunction gives to its variables."""
        points: Counter[str] = Counter()
        partial: dict[str, int] = {}
        equal: list[tuple[logic.Term, logic.Term]] = []
        for item in items:
            match item:
                case logic.Atom():
                    self.add(points, self._of_atom(item, _NOT_NULL_POINTS))
                case logic.Negation(atom=atom):
                    self.add(points, self._of_atom(atom, 1))
                case logic.Comparison(operator=operator, left=left, right=right):
                    for term in (left, right):
                        self.add(points, self._of_term(term, operator != "is"))
                    if operator == "is":
                        equal += [(left, right), (right, left)]
                case logic.Disjunction(alternatives=alternatives):
                    branches = [self.of_body(branch) for branch in alternatives]
                    for name in {name for branch in branches for name in branch}:
                        least = min(branch[name] for branch in branches if name in branch)
                        if all(name in branch for branch in branches):
                            self.add(points, {name: least})
                        else:
                            partial[name] = least
                case logic.Truth():
                    pass
                case _:
                    assert_never(item)
        # A variable that occurs in some branches only, and nowhere else, belongs to them.
        points.update({name: least for name, least in partial.items() if name not in points})
        self._add_equal(points, equal)
        return points

    def _add_equal(
        self, points: Counter[str], equal: Iterable[tuple[logic.Term, logic.Term]]
    ) -> None:
        """Add the points of what `is` something that has a value, here or in the whole clause."""
        size = -1
        while size != (size := sum(points.values())):
            tested = {name for name, count in points.items() if count >= _NOT_NULL_POINTS}
            for term, other in equal:
                # The least value of nothing is null, if it is asked for with `is`.
                is_extreme = (
                    isinstance(other, logic.AggregateTerm)
                    and other.operator not in logic.ZERO_IF_EMPTY
                )
                if not (is_extreme or is_nullable(other, self.nullable - tested)):
                    for name, count in self._of_term(term, True).items():
                        points[name] = max(points[name], count)

    def _of_atom(self, atom: logic.Atom, not_null: int) -> Counter[str]:
        points: Counter[str] = Counter()
        nullable = self.columns.get(atom.relation, ())
        for position, term in enumerate(atom.arguments):
            if isinstance(term, logic.Variable):
                may_be_null = position < len(nullable) and nullable[position]
                self.add(points, {term.name: 1 if may_be_null else not_null})
            else:
                self.add(points, self._of_term(term, not self.is_null_safe))
        return points

    def _of_term(self, term: logic.Term, is_value: bool) -> Counter[str]:
        """Return the evidence of a term that is compared; all variables of a value have one."""
        points: Counter[str] = Counter()
        inner = list(traverse.aggregates_in(term))
        for aggregate in inner:
            self.add_aggregate(points, aggregate)
        if not isinstance(term, logic.AggregateTerm):
            inside = {v.name for aggregate in inner for v in traverse.all_variables(aggregate)}
            names = [v.name for v in traverse.all_variables(term) if v.name not in inside]
            strict = set(_strict_variables(term)) if is_value else set()
            self.add(points, {name: _NOT_NULL_POINTS if name in strict else 0 for name in names})
        return points


def null_heads(
    resolved: ResolvedProgram, clauses: Iterable[logic.Clause], nullability: Nullability
) -> Iterator[Diagnostic]:
    """Yield the arguments of typed heads that may be null where the column is not nullable."""
    for clause in clauses:
        for head in clause.heads:
            yield from _nulls_in(resolved, head, nullability)


def null_literals(
    resolved: ResolvedProgram, clauses: Iterable[logic.Clause], nullability: Nullability
) -> Iterator[Diagnostic]:
    """Yield the literals `null` that bodies ask for in columns that are not nullable."""
    for clause in clauses:
        for use in traverse.atom_uses(clause):
            arguments = tuple(
                term if isinstance(term, logic.Constant) else logic.Wildcard()
                for term in use.atom.arguments
            )
            yield from _nulls_in(resolved, replace(use.atom, arguments=arguments), nullability)


def _nulls_in(
    resolved: ResolvedProgram, atom: logic.Atom, nullability: Nullability
) -> Iterator[Diagnostic]:
    schema = resolved.schema_of(atom)
    if schema is None:
        return
    for position, term in enumerate(atom.arguments):
        column, type_ = schema.columns[position], schema.types[position]
        if nullability[schema.name][position] or type_ is None:
            continue
        what = "may be null"
        match term:
            case logic.Constant(value=None):
                what = "is null"
                cure = f"declare it nullable: `{column}: {type_}?`"
            case (logic.Variable(type=Type(nullable=True))) | logic.Functor(
                type=Type(nullable=True)
            ):
                cure = "test it, as in `x = x`, or declare the column nullable with `?`"
            case _:
                continue
        declared = schema.declaration.columns[position].span if schema.declaration else None
        yield Diagnostic(
            "C0307",
            f"`{term_text(term)}` {what}, but column `{column}` of `{schema.name}` "
            "is not nullable.",
            term.span,
            cure,
            related_spans((declared, f"`{column}` is declared here")),
        )
