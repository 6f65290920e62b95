"""Aggregates become relations: `n = count : { q(x, _) }` is a literal `h.aggregate1(x, n)`.

`h(x, n) :- p(x), n = count : { q(x, y), r(y) }.` becomes

    h.body1(x, y)       :- q(x, y), r(y).
    h.aggregate1(x, n)  counts the tuples of h.body1 for each x
    h(x, n)             :- p(x), h.aggregate1(x, n).
    h(x, n)             :- p(x), !h.aggregate1(x, _), n = 0.

The last rule is for empty groups: `count` and `sum` have a value there, the others have none.
With `n is max y : { … }` it is null, and so it is for groups of nulls.
A body that is just a relation is aggregated directly. Alternatives with different
variables are distinguished by one more column, since their assignments differ. Where the body needs
the outer variables to be safe (`y < x`), or may have expressions without a value, it starts with
a literal `h.keys1(x)` that holds the outer bindings of all alternatives of the clause.

An aggregate over its own stratum always has such a literal, and the key of the head's group among
its keys; `h.reads` holds which groups read which (`rewrite/clauses/group_reads.py`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from corollary.analysis.grouped_recursion import grouped_recursion
from corollary.analysis.traverse import all_variables, replace_part, replace_terms
from corollary.core import logic
from corollary.core.functors.conversions import CHECKED_SUM
from corollary.core.functors.holistic import HOLISTIC
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.rewrite.clauses import bindings
from corollary.rewrite.clauses.disjunctions import alternatives
from corollary.rewrite.clauses.group_reads import GroupReads
from corollary.rewrite.translation_unit import Conjunction, TranslationUnit, outer_variables

AggregationInput = tuple[str, tuple[int, ...], tuple[int, ...]]
"""The relation to aggregate, its group columns and its value columns."""


def aggregates(unit: TranslationUnit) -> None:
    """Lift the aggregates out of all conjunctions.

    Conjunctions are made one by one while the next pass reads them, so that the fresh variables of
    both passes are numbered in the order of the text.
    """
    unit.conjunctions = _Lifting(unit).lift_all(unit.conjunctions)


@dataclass(frozen=True, slots=True)
class _LiftedAggregate:
    """An aggregate and the relation that was made of it."""

    aggregate: logic.AggregateTerm
    relation: str
    number: int
    keys: tuple[logic.Variable, ...]
    result: logic.Variable
    is_recursive: bool
    is_nullable: bool


class _Lifting:
    """What has been lifted so far; the relations and aggregations made go to the unit."""

    def __init__(self, unit: TranslationUnit) -> None:
        self._unit = unit
        self._is_recursive = bindings.recursion_test(unit.clauses)
        self._groups = GroupReads(unit, grouped_recursion(unit.clauses))
        self._counts: dict[str, int] = {}
        # By identity: the alternatives of a clause share their aggregates, while two equal
        # aggregates of the text become two relations.
        self._lifted: dict[int, _LiftedAggregate] = {}
        self._guards: dict[str, logic.Atom] = {}
        self._bodies: list[Conjunction] = []

    def lift_all(self, conjunctions: Iterable[Conjunction]) -> Iterator[Conjunction]:
        """Yield the conjunctions without aggregates, each followed by those of its bodies."""
        for conjunction in conjunctions:
            yield from self._lift(conjunction)
            while self._bodies:  # a body may have aggregates of its own, which add to the list
                yield from self._lift(self._bodies.pop(0))

    def _lift(self, conjunction: Conjunction) -> Iterator[Conjunction]:
        """Yield the conjunctions, without aggregates, that together say the same."""
        work = [self._groups.with_key_variables(conjunction)]
        while work:
            current = work.pop()
            aggregate = self._groups.next_aggregate(current)
            if aggregate is None:
                yield current
            else:
                work.extend(reversed(list(self._lift_one(current, aggregate))))

    def _lift_one(
        self, conjunction: Conjunction, aggregate: logic.AggregateTerm
    ) -> Iterator[Conjunction]:
        lifted = self._lifted.get(id(aggregate)) or self._make_relation(conjunction, aggregate)
        rest = _substitute(conjunction, aggregate, lifted.result)
        if lifted.relation in self._guards:
            self._collect_keys(lifted, rest)
        keys, result = lifted.keys, lifted.result
        read: tuple[logic.BodyItem, ...] = (logic.Atom(lifted.relation, (*keys, result)),)
        if aggregate.operator == "sum" and not _type(aggregate).stores_floats:
            total = conjunction.fresh.variable(aggregate.type)
            value = logic.Functor(CHECKED_SUM, (total,), aggregate.type)
            read = (
                logic.Atom(lifted.relation, (*keys, total)),
                logic.Comparison("=", result, value),
            )
        yield rest.with_items((*rest.items, *read), "aggregates")
        may_be_empty = aggregate.operator in logic.ZERO_IF_EMPTY or lifted.is_nullable
        if may_be_empty and not _has_member(lifted, rest):
            default = logic.Constant(None if lifted.is_nullable else 0, result.type)
            zero = logic.Comparison("is" if lifted.is_nullable else "=", result, default)
            none = logic.Negation(logic.Atom(lifted.relation, (*keys, logic.Wildcard())))
            yield rest.with_items((*rest.items, none, zero), "aggregates")

    def _make_relation(
        self, conjunction: Conjunction, aggregate: logic.AggregateTerm
    ) -> _LiftedAggregate:
        """Make the relation of an aggregate; a clause in several alternatives makes it once."""
        name = conjunction.head.relation
        number = self._counts[name] = self._counts.get(name, 0) + 1
        is_nullable = aggregate.operator not in logic.ZERO_IF_EMPTY and any(
            isinstance(item, logic.Comparison)
            and item.operator == "is"
            and (item.left is aggregate or item.right is aggregate)
            for item in conjunction.items
        )
        result = _result(conjunction, aggregate)
        if is_nullable:
            result = conjunction.fresh.variable(_type(aggregate).with_null(True))
        rest = _substitute(conjunction, aggregate, result)
        target = self._unit.unused_name(f"{name}.aggregate{number}")
        is_recursive = self._groups.is_recursive(rest, aggregate)
        key = self._groups.key_of(rest) if is_recursive else ()
        keys = tuple(dict.fromkeys((*key, *_keys(rest, aggregate))))
        lifted = _LiftedAggregate(
            aggregate, target, number, keys, result, is_recursive, is_nullable
        )
        if is_recursive:
            self._groups.relations.add(target)
        body = (None if is_recursive else _direct(lifted)) or self._make_body(lifted, rest)
        types = self._types_of(body[0])
        slots = (
            logic.Variable(k.name, types[at]) for k, at in zip(lifted.keys, body[1], strict=True)
        )
        self._declare(target, (*slots, result))
        relation, groups, values = body
        keeps_null = is_nullable and aggregate.operator != "mean"
        accumulator = _accumulator(aggregate, values, keeps_null)
        origin = conjunction.origin.with_pass("aggregates")
        self._unit.aggregations.append(
            logic.Aggregation(target, relation, groups, (accumulator,), origin)
        )
        self._lifted[id(aggregate)] = lifted
        return lifted

    def _make_body(self, lifted: _LiftedAggregate, rest: Conjunction) -> AggregationInput:
        """Make the relation of the body's assignments, and say how to aggregate it."""
        keys, targets = lifted.keys, _targets(lifted.aggregate)
        bodies = [self._without_wildcards(e, rest) for e in alternatives(lifted.aggregate.body)]
        variable_sets = [frozenset(outer_variables(items)) for items in bodies]
        every = (variable for items in bodies for variable in outer_variables(items))
        columns = list(dict.fromkeys((*keys, *every)))
        slots = [
            logic.Variable(column.name, _column_type(column, variable_sets, keys))
            for column in columns
        ]
        values: list[int] = []
        arguments: list[logic.Term] = [*columns]
        for target in targets:
            if isinstance(target, logic.Variable):
                values.append(columns.index(target))
                continue
            values.append(len(arguments))
            arguments.append(target)
            slots.append(logic.Variable("value", _type(target)))
        # Assignments to different variables are different: one more column distinguishes them.
        distinct = list(dict.fromkeys(variable_sets))
        if len(distinct) > 1:
            slots.append(logic.Variable("alternative", NUMBER))
        guard = self._guard(lifted, rest, bodies)
        relation = self._unit.unused_name(f"{rest.head.relation}.body{lifted.number}")
        self._declare(relation, slots)
        if lifted.is_recursive:
            self._unit.recursive_bodies.add(relation)
            self._bodies += self._groups.reads(rest, bodies, guard)
        for items, own in zip(bodies, variable_sets, strict=True):
            bound = {*own, *outer_variables(guard)}
            filled = [
                logic.Constant(None, slot.type)
                if isinstance(each, logic.Variable) and each not in bound
                else each
                for each, slot in zip(arguments, slots, strict=False)
            ]
            if len(distinct) > 1:
                filled.append(logic.Constant(distinct.index(own), NUMBER))
            tests = (
                logic.Comparison("=", key, key)
                for key in keys
                if self._is_nullable(key, items)
                if not (rest.is_null_safe and _type(key).nullable)
            )
            body = (*guard, *items, *tests)
            head = logic.Atom(relation, tuple(filled))
            origin, is_null_safe = rest.origin.with_pass("aggregates"), rest.is_null_safe
            self._bodies.append(
                Conjunction(head, body, origin, rest.fresh, is_null_safe=is_null_safe)
            )
        return relation, tuple(range(len(keys))), tuple(values)

    def _without_wildcards(
        self, items: tuple[logic.BodyItem, ...], rest: Conjunction
    ) -> tuple[logic.BodyItem, ...]:
        """Return a body with every `_` of a positive atom as a variable: each counts on its own."""
        result: list[logic.BodyItem] = []
        for item in items:
            if isinstance(item, logic.Atom):
                types = self._types_of(item.relation)
                arguments = tuple(
                    rest.fresh.variable(type_) if isinstance(each, logic.Wildcard) else each
                    for each, type_ in zip(item.arguments, types, strict=True)
                )
                result.append(replace(item, arguments=arguments))
            else:
                result.append(item)
        return tuple(result)

    def _is_nullable(self, key: logic.Variable, items: tuple[logic.BodyItem, ...]) -> bool:
        """Whether a key may be null in the body: it occurs outside too, so it must not be."""
        return any(
            argument == key and type_.nullable
            for item in items
            if isinstance(item, logic.Atom)
            for argument, type_ in zip(item.arguments, self._types_of(item.relation), strict=True)
        )

    def _guard(
        self, lifted: _LiftedAggregate, rest: Conjunction, bodies: list[tuple[logic.BodyItem, ...]]
    ) -> tuple[logic.BodyItem, ...]:
        """Return the literal that holds the outer bindings, where the body needs one."""
        keys, name = lifted.keys, rest.head.relation
        if lifted.is_recursive:
            return (self._make_guard(lifted, name),)
        outer = bindings.independent(rest.items)
        is_unsafe = any(
            not {key.name for key in keys} <= bindings.bound_by(each) for each in bodies
        )
        below = (item.relation for item in outer if isinstance(item, logic.Atom))
        is_recursive = self._is_recursive(name, below)
        is_fallible = bindings.may_have_no_value(lifted.aggregate)
        if not outer or not (is_unsafe or (is_fallible and not is_recursive)):
            return ()
        if is_recursive:
            raise InputError.of(
                "C0503",
                f"An aggregate in a recursive rule of `{name}` needs values that the recursion "
                "makes.",
                lifted.aggregate.span,
                "bind its keys by a positive literal inside the braces",
            )
        return (self._make_guard(lifted, name),)

    def _make_guard(self, lifted: _LiftedAggregate, head: str) -> logic.Atom:
        """Make the relation of the outer bindings, and return its literal."""
        relation = self._unit.unused_name(f"{head}.keys{lifted.number}")
        self._declare(relation, lifted.keys)
        atom = self._guards[lifted.relation] = logic.Atom(relation, lifted.keys)
        return atom

    def _collect_keys(self, lifted: _LiftedAggregate, rest: Conjunction) -> None:
        """Add the outer bindings of one alternative of the clause to the keys."""
        outer = bindings.independent(self._groups.lower_items(rest.items))
        atom = self._guards[lifted.relation]
        origin = rest.origin.with_pass("aggregates")
        self._bodies.append(Conjunction(atom, outer, origin, rest.fresh, True, rest.is_null_safe))

    def _declare(self, name: str, columns: Sequence[logic.Variable]) -> None:
        self._unit.declare(name, [c.name for c in columns], [_type(c) for c in columns])

    def _types_of(self, relation: str) -> tuple[Type, ...]:
        return self._unit.relations[relation].types


def _type(term: logic.Term | None) -> Type:
    assert term is not None
    assert not isinstance(term, logic.Wildcard)
    assert term.type is not None
    return term.type


def _result(conjunction: Conjunction, aggregate: logic.AggregateTerm) -> logic.Variable:
    """Return the variable that holds the aggregate's value: `n` in `n = count : { … }`."""
    inner = {variable.name for variable in all_variables(aggregate)}
    for item in conjunction.items:
        if isinstance(item, logic.Comparison) and item.operator == "=":
            for one, other in ((item.left, item.right), (item.right, item.left)):
                if other is aggregate and isinstance(one, logic.Variable) and one.name not in inner:
                    return one
    return conjunction.fresh.variable(aggregate.type)


def _substitute(
    conjunction: Conjunction, aggregate: logic.AggregateTerm, by: logic.Variable
) -> Conjunction:
    def swap(term: logic.Term) -> logic.Term:
        return replace_part(term, aggregate, by)

    head = replace_terms(conjunction.head, swap)
    trivial = logic.Comparison("=", by, by)
    items = (replace_terms(each, swap) for each in conjunction.items)
    return replace(conjunction, head=head, items=tuple(each for each in items if each != trivial))


def _has_member(lifted: _LiftedAggregate, rest: Conjunction) -> bool:
    """Whether a literal beside an aggregate says that its group is not empty, null or not.

    Without this, n aggregates of SQL would be 2^n conjunctions, of which all but one are dropped
    later (`rewrite/clauses/implied.py`).
    """
    body, keys = lifted.aggregate.body, {key.name for key in lifted.keys}
    if not rest.is_null_safe or len(body) != 1 or not isinstance(body[0], logic.Atom):
        return False
    member = body[0]
    names = [each.name for each in member.arguments if isinstance(each, logic.Variable)]
    free = {name for name in names if name not in keys and names.count(name) == 1}

    def agrees(asked: logic.Term, given: logic.Term) -> bool:
        is_free = isinstance(asked, logic.Variable) and asked.name in free
        return is_free or isinstance(asked, logic.Wildcard) or asked == given

    return any(
        isinstance(item, logic.Atom)
        and (item.relation, item.state, item.sign) == (member.relation, member.state, member.sign)
        and all(map(agrees, member.arguments, item.arguments))
        for item in rest.items
    )


def _keys(rest: Conjunction, aggregate: logic.AggregateTerm) -> tuple[logic.Variable, ...]:
    outside = {variable.name for variable in outer_variables(rest.items)}
    keys: dict[str, logic.Variable] = {}
    for variable in all_variables(aggregate):
        if variable.name in outside:
            keys.setdefault(variable.name, variable)
    return tuple(keys.values())


def _direct(lifted: _LiftedAggregate) -> AggregationInput | None:
    """Return the relation itself, if the body is just a relation."""
    aggregate, keys = lifted.aggregate, lifted.keys
    if len(aggregate.body) != 1 or not isinstance(aggregate.body[0], logic.Atom):
        return None
    atom = aggregate.body[0]
    names = [each.name for each in atom.arguments if isinstance(each, logic.Variable)]
    is_plain = all(isinstance(each, logic.Variable | logic.Wildcard) for each in atom.arguments)
    if not is_plain or len(names) != len(set(names)) or not {k.name for k in keys} <= set(names):
        return None
    place = {
        each.name: at for at, each in enumerate(atom.arguments) if isinstance(each, logic.Variable)
    }
    groups = tuple(place[key.name] for key in keys)
    targets = [each.name for each in _targets(aggregate) if isinstance(each, logic.Variable)]
    if len(targets) < len(_targets(aggregate)) or not set(targets) <= set(place):
        return None
    return atom.relation, groups, tuple(place[name] for name in targets)


def _targets(aggregate: logic.AggregateTerm) -> list[logic.Term]:
    """Return what is aggregated of each assignment."""
    found = logic.aggregated_terms(aggregate)
    if aggregate.operator not in HOLISTIC:
        return list(found)
    return [each for each in found if not isinstance(each, logic.Constant)]


def _accumulator(
    aggregate: logic.AggregateTerm, values: tuple[int, ...], keeps_null: bool
) -> logic.Accumulator:
    """Return the accumulator of an aggregate of some columns."""
    operator = aggregate.operator
    if operator not in HOLISTIC:
        return logic.Accumulator(operator, values[0] if values else None, keeps_null)
    terms = logic.aggregated_terms(aggregate)
    parameters = tuple(each.value for each in terms if isinstance(each, logic.Constant))
    count = len(values) if HOLISTIC[operator].is_open else HOLISTIC[operator].columns
    others, weights = values[1:count], values[count:]
    return logic.Accumulator(operator, values[0], keeps_null, others, weights, parameters)


def _column_type(
    column: logic.Variable,
    bodies: list[frozenset[logic.Variable]],
    keys: tuple[logic.Variable, ...],
) -> Type:
    """Return the type of a body's column: nullable if some alternative does not bind it."""
    is_bound = column in keys or all(column in variables for variables in bodies)
    return _type(column) if is_bound else _type(column).with_null(True)
