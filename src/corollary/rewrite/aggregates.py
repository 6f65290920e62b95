"""Aggregates become relations of their own.

`h(x, n) :- p(x), n = count : { q(x, y), r(y) }.` becomes

    h.body1(x, y)       :- q(x, y), r(y).
    h.aggregate1(x, n)  counts the tuples of h.body1 for each x
    h(x, n)             :- p(x), h.aggregate1(x, n).
    h(x, n)             :- p(x), !h.aggregate1(x, _), n = 0.

The last rule stands for empty groups: `count` and `sum` have a value there, the others have none.
A body that is a relation as it stands is aggregated directly. Alternatives with different
variables are kept apart by one more column, since their assignments differ. Where the body needs
the outer variables to be safe (`y < x`), or may have expressions without a value, it starts with
a literal `h.keys1(x)` that holds the outer bindings of all alternatives of the clause.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace

from corollary.core.functors import TOTAL
from corollary.core.program import Relation
from corollary.core.rules import Aggregation, Atom, BodyItem, Comparison, Negation, terms_of
from corollary.core.terms import (
    Aggregate,
    Constant,
    Functor,
    Term,
    Variable,
    Wildcard,
    variables_of,
)
from corollary.core.types import NUMBER, Kind, Type
from corollary.errors import InputError
from corollary.rewrite.conjunction import (
    Conjunction,
    Names,
    deep_variables,
    has_aggregate,
    outer_variables,
    unused,
)
from corollary.rewrite.disjunctions import disjunctions
from corollary.rewrite.scope import bound_by, has_fault, independent

DEFAULT_ZERO = ("count", "sum")

Source = tuple[str, tuple[int, ...], int | None]
"""The relation to aggregate, its group columns and its value column."""


@dataclass(frozen=True, slots=True)
class _Lifted:
    """An aggregate and the relation that was made of it."""

    aggregate: Aggregate
    relation: str
    number: int
    keys: tuple[Variable, ...]
    result: Variable


class Lifting:
    """Lifts the aggregates of a program's clauses; collects the relations it makes."""

    def __init__(
        self,
        types_of: Callable[[str], tuple[Type, ...]],
        is_recursive: Callable[[str, Iterable[str]], bool],
        taken: Container[str],
    ) -> None:
        self._taken = taken
        self._types_of = types_of
        self._is_recursive = is_recursive
        self._counts: dict[str, int] = {}
        self._lifted: dict[int, _Lifted] = {}
        self._guards: dict[str, Atom] = {}
        self.relations: dict[str, Relation] = {}
        self.aggregations: list[Aggregation] = []
        self.bodies: list[Conjunction] = []

    def lift(self, conjunction: Conjunction) -> Iterator[Conjunction]:
        """Yield the conjunctions, without aggregates, that together say the same."""
        work = [conjunction]
        while work:
            current = work.pop()
            place = next(_places(current), None)
            if place is None:
                yield current
            else:
                work.extend(reversed(list(self._lift_one(current, place))))

    def _lift_one(self, conjunction: Conjunction, aggregate: Aggregate) -> Iterator[Conjunction]:
        lifted = self._lifted.get(id(aggregate)) or self._relation(conjunction, aggregate)
        rest = _replaced(conjunction, aggregate, lifted.result)
        if lifted.relation in self._guards:
            self._collect_keys(lifted, rest)
        keys, result = lifted.keys, lifted.result
        read: tuple[BodyItem, ...] = (Atom(lifted.relation, (*keys, result)),)
        if aggregate.operator == "sum" and _type(aggregate).kind is not Kind.FLOAT:
            total = conjunction.names.fresh(aggregate.type)
            value = Functor(TOTAL, (total,), aggregate.type)
            read = (Atom(lifted.relation, (*keys, total)), Comparison("=", result, value))
        yield rest.with_items((*rest.items, *read), "aggregates")
        if aggregate.operator in DEFAULT_ZERO:
            zero = Comparison("=", result, Constant(0, aggregate.type))
            none = Negation(Atom(lifted.relation, (*keys, Wildcard())))
            yield rest.with_items((*rest.items, none, zero), "aggregates")

    def _relation(self, conjunction: Conjunction, aggregate: Aggregate) -> "_Lifted":
        """Make the relation of an aggregate; a clause in several alternatives makes it once."""
        name = conjunction.head.relation
        number = self._counts[name] = self._counts.get(name, 0) + 1
        result = _result(conjunction, aggregate)
        rest = _replaced(conjunction, aggregate, result)
        target = unused(f"{name}.aggregate{number}", self._taken)
        lifted = _Lifted(aggregate, target, number, _keys(rest, aggregate), result)
        body = _direct(lifted) or self._body(lifted, rest)
        types = self._columns_of(body[0])
        keys = (Variable(k.name, types[at]) for k, at in zip(lifted.keys, body[1], strict=True))
        self._declare(target, (*keys, result))
        self.aggregations.append(
            Aggregation(target, aggregate.operator, *body, conjunction.origin.by("aggregates"))
        )
        self._lifted[id(aggregate)] = lifted
        return lifted

    def _columns_of(self, relation: str) -> tuple[Type, ...]:
        made = self.relations.get(relation)
        return self._types_of(relation) if made is None else made.types

    def _body(self, lifted: "_Lifted", rest: Conjunction) -> Source:
        """Make the relation of the body's assignments, and say how to aggregate it."""
        keys, target = lifted.keys, lifted.aggregate.target
        alternatives = [
            _named(items, rest.names, self._types_of)
            for items in disjunctions(lifted.aggregate.body)
        ]
        every = (variable for items in alternatives for variable in outer_variables(items))
        columns = list(dict.fromkeys((*keys, *every)))
        slots = [
            Variable(column.name, _column_type(column, alternatives, keys)) for column in columns
        ]
        value = columns.index(target) if isinstance(target, Variable) else None
        arguments: list[Term] = [*columns]
        if target is not None and value is None:
            value = len(columns)
            arguments.append(target)
            slots.append(Variable("value", _type(target)))
        shapes = list(dict.fromkeys(frozenset(outer_variables(items)) for items in alternatives))
        if len(shapes) > 1:
            slots.append(Variable("alternative", NUMBER))
        guard = self._guard(lifted, rest, alternatives)
        relation = unused(f"{rest.head.relation}.body{lifted.number}", self._taken)
        self._declare(relation, tuple(slots))
        for items in alternatives:
            shape = frozenset(outer_variables(items))
            bound = {*shape, *outer_variables(guard)}
            filled = [
                Constant(None, slot.type)
                if isinstance(each, Variable) and each not in bound
                else each
                for each, slot in zip(arguments, slots, strict=False)
            ]
            if len(shapes) > 1:
                filled.append(Constant(shapes.index(shape), NUMBER))
            tests = (Comparison("=", key, key) for key in keys if self._is_nullable(key, items))
            body = (*guard, *items, *tests)
            head = Atom(relation, tuple(filled))
            self.bodies.append(Conjunction(head, body, rest.origin.by("aggregates"), rest.names))
        return relation, tuple(range(len(keys))), value

    def _is_nullable(self, key: Variable, items: tuple[BodyItem, ...]) -> bool:
        """Whether a key may be null in the body: it stands outside too, so it must not be."""
        return any(
            argument == key and type_.nullable
            for item in items
            if isinstance(item, Atom)
            for argument, type_ in zip(item.arguments, self._types_of(item.relation), strict=True)
        )

    def _guard(
        self, lifted: "_Lifted", rest: Conjunction, alternatives: list[tuple[BodyItem, ...]]
    ) -> tuple[BodyItem, ...]:
        """Return the literal that holds the outer bindings, where the body needs one."""
        keys, name = lifted.keys, rest.head.relation
        outer = independent(rest.items, lifted.result)
        is_unsafe = any(not {key.name for key in keys} <= bound_by(each) for each in alternatives)
        below = (item.relation for item in outer if isinstance(item, Atom))
        is_recursive = self._is_recursive(name, below)
        if not outer or not (is_unsafe or (has_fault(lifted.aggregate) and not is_recursive)):
            return ()
        if is_recursive:
            raise InputError.of(
                "C0503",
                f"An aggregate in a recursive rule of `{name}` needs values that the recursion "
                "makes.",
                lifted.aggregate.span,
                "bind its keys by a positive literal inside the braces",
            )
        relation = unused(f"{name}.keys{lifted.number}", self._taken)
        self._declare(relation, keys)
        atom = self._guards[lifted.relation] = Atom(relation, keys)
        return (atom,)

    def _collect_keys(self, lifted: "_Lifted", rest: Conjunction) -> None:
        """Add the outer bindings of one alternative of the clause to the keys."""
        outer = independent(rest.items, lifted.result)
        atom = self._guards[lifted.relation]
        origin = rest.origin.by("aggregates")
        self.bodies.append(Conjunction(atom, outer, origin, rest.names, is_lenient=True))

    def _declare(self, name: str, columns: tuple[Variable, ...]) -> None:
        self.relations[name] = Relation(
            name,
            tuple(column.name for column in columns),
            tuple(_type(column) for column in columns),
            is_derived=True,
            is_declared=False,
        )


def _type(term: Term | None) -> Type:
    assert term is not None
    assert not isinstance(term, Wildcard)
    assert term.type is not None
    return term.type


def _places(conjunction: Conjunction) -> Iterator[Aggregate]:
    """Yield the aggregates whose keys do not wait for another aggregate, outermost ones only."""
    waiting: set[str] = set()
    found: list[Aggregate] = []
    for item in (*conjunction.items, conjunction.head):
        for term in terms_of(item):  # type: ignore[arg-type]
            found.extend(_outermost(term))
            if isinstance(item, Comparison) and item.operator == "=" and has_aggregate(term):
                waiting |= {v.name for side in terms_of(item) for v in variables_of(side)}
    bound = {
        variable.name
        for item in conjunction.items
        if isinstance(item, Atom)
        for variable in outer_variables((item,))
    }
    waiting -= bound
    plain = [item for item in conjunction.items if isinstance(item, Comparison)]
    size = -1
    while size != len(waiting):
        size = len(waiting)
        for item in plain:
            names = {variable.name for variable in outer_variables((item,))}
            if item.operator == "=" and names & waiting:
                waiting |= names - bound
    outside = {variable.name for variable in outer_variables(conjunction.items)}
    for aggregate in found:
        inner = {variable.name for variable in deep_variables(aggregate)}
        if not inner & outside & waiting:
            yield aggregate


def _outermost(term: Term) -> Iterator[Aggregate]:
    match term:
        case Aggregate():
            yield term
        case Functor(arguments=arguments):
            for argument in arguments:
                yield from _outermost(argument)
        case _:
            return


def _result(conjunction: Conjunction, aggregate: Aggregate) -> Variable:
    """Return the variable that the aggregate's value goes to: `n` in `n = count : { … }`."""
    inner = {variable.name for variable in deep_variables(aggregate)}
    for item in conjunction.items:
        if isinstance(item, Comparison) and item.operator == "=":
            for one, other in ((item.left, item.right), (item.right, item.left)):
                if other is aggregate and isinstance(one, Variable) and one.name not in inner:
                    return one
    return conjunction.names.fresh(aggregate.type)


def _replaced(conjunction: Conjunction, aggregate: Aggregate, by: Variable) -> Conjunction:
    def swap(term: Term) -> Term:
        if term is aggregate:
            return by
        if isinstance(term, Functor):
            return replace(term, arguments=tuple(swap(each) for each in term.arguments))
        return term

    def swap_item(item: BodyItem) -> BodyItem:
        match item:
            case Atom():
                return replace(item, arguments=tuple(swap(each) for each in item.arguments))
            case Negation(atom=atom):
                changed = replace(atom, arguments=tuple(swap(each) for each in atom.arguments))
                return replace(item, atom=changed)
            case Comparison():
                return replace(item, left=swap(item.left), right=swap(item.right))
            case _:
                return item

    head = swap_item(conjunction.head)
    assert isinstance(head, Atom)
    trivial = Comparison("=", by, by)
    items = (swap_item(each) for each in conjunction.items)
    return replace(conjunction, head=head, items=tuple(each for each in items if each != trivial))


def _keys(rest: Conjunction, aggregate: Aggregate) -> tuple[Variable, ...]:
    outside = {variable.name for variable in outer_variables(rest.items)}
    keys: dict[str, Variable] = {}
    for variable in deep_variables(aggregate):
        if variable.name in outside:
            keys.setdefault(variable.name, variable)
    return tuple(keys.values())


def _direct(lifted: _Lifted) -> Source | None:
    """Return the relation itself, where the body is a relation as it stands."""
    aggregate, keys = lifted.aggregate, lifted.keys
    if len(aggregate.body) != 1 or not isinstance(aggregate.body[0], Atom):
        return None
    atom = aggregate.body[0]
    names = [each.name for each in atom.arguments if isinstance(each, Variable)]
    is_plain = all(isinstance(each, Variable | Wildcard) for each in atom.arguments)
    if not is_plain or len(names) != len(set(names)) or not {k.name for k in keys} <= set(names):
        return None
    place = {each.name: at for at, each in enumerate(atom.arguments) if isinstance(each, Variable)}
    groups = tuple(place[key.name] for key in keys)
    match aggregate.target:
        case None:
            return atom.relation, groups, None
        case Variable(name=name) if name in place:
            return atom.relation, groups, place[name]
        case _:
            return None


def _named(
    items: tuple[BodyItem, ...], names: Names, types_of: Callable[[str], tuple[Type, ...]]
) -> tuple[BodyItem, ...]:
    """Return a body with every `_` of a positive atom as a variable: each counts on its own."""
    result: list[BodyItem] = []
    for item in items:
        if isinstance(item, Atom):
            types = types_of(item.relation)
            arguments = tuple(
                names.fresh(type_) if isinstance(each, Wildcard) else each
                for each, type_ in zip(item.arguments, types, strict=True)
            )
            result.append(replace(item, arguments=arguments))
        else:
            result.append(item)
    return tuple(result)


def _column_type(
    column: Variable, alternatives: list[tuple[BodyItem, ...]], keys: tuple[Variable, ...]
) -> Type:
    everywhere = column in keys or all(
        column in set(outer_variables(items)) for items in alternatives
    )
    return _type(column) if everywhere else _type(column).with_null(True)
