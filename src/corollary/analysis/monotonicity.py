"""Monotone rules: from better premises they derive something at least as good.

A relation with an order has value columns, better if smaller (↓) or greater (↑). A variable in such
a column of a premise has its sign; `+`, `min`, `max`, conversions that keep the order, and `*` and
`/` by something that is not negative pass the sign on, `-` flips it. In a recursive rule such a
variable may stand

* in a value column of the head whose expression gets better with it; after the first column of a
  lexicographic order only if those before it are `v` or `v + e`,
* in a comparison that stays true: `d < 9` if smaller is better,

and nowhere else: not in a key, in another literal, in an equation that filters.
"""

from collections.abc import Iterator, Mapping, Sequence

from corollary.core import logic
from corollary.core.functors.catalog import FUNCTORS
from corollary.core.functors.spec import Monotone
from corollary.core.printer import print_condition, print_literal, print_term
from corollary.core.program import SubsumptionOrder, ValueColumn
from corollary.data_class import dataclass

_LESS = ("<", "<=")
_GREATER = (">", ">=")


@dataclass(frozen=True, slots=True)
class Premise:
    """A literal of a rule's own stratum with an order, and the variables of its values."""

    literal: logic.Literal
    order: SubsumptionOrder
    values: tuple[logic.Slot, ...]


class RuleValues:
    """The values of a recursive rule: its premises, its head's expressions, its conditions.

    Attributes:
        definitions: the expressions of the variables that equations compute.
        filters: the conditions that compute nothing.
    """

    def __init__(
        self, rule: logic.Rule, members: frozenset[str], orders: Mapping[str, SubsumptionOrder]
    ) -> None:
        self.rule = rule
        self.premises = [
            Premise(
                each, orders[each.relation], tuple(each.slots[v.position] for v in order.values)
            )
            for each in rule.literals
            if each.relation in members and not each.negated
            if (order := orders.get(each.relation)) is not None
        ]
        self.definitions: dict[str, logic.Expression] = {}
        self.filters: list[logic.Condition] = []
        known = {
            slot.name
            for each in rule.literals
            if not each.negated
            for slot in each.slots
            if isinstance(slot, logic.Variable)
        }
        waiting = list(rule.conditions)
        while waiting:
            for condition in waiting:
                if self._define(condition, known):
                    break
            else:
                self.filters = waiting
                break
            waiting.remove(condition)

    def _define(self, condition: logic.Condition, known: set[str]) -> bool:
        if condition.operator not in logic.EQUATIONS:
            return False
        for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
            is_open = isinstance(one, logic.Variable) and one.name not in known
            if is_open and {each.name for each in logic.variables_of(other)} <= known:
                assert isinstance(one, logic.Variable)
                self.definitions[one.name] = self.expand(other)
                known.add(one.name)
                return True
        return False

    def expand(self, term: logic.Expression) -> logic.Expression:
        """Return an expression with the computed variables as what computes them."""

        def expanded(part: logic.Term, arguments: tuple[logic.Term, ...]) -> logic.Term:
            match part:
                case logic.Variable(name=name):
                    return self.definitions.get(name, part)
                case logic.Functor(name="to_integer") if _is_integral(arguments[0]):
                    return arguments[0]  # where it has a value
                case logic.Functor(name=name, type=type_, span=span):
                    return logic.Functor(name, arguments, type_, span)
                case _:
                    return part

        made = logic.fold_term(term, expanded)
        assert isinstance(made, logic.Variable | logic.Constant | logic.Functor)
        return made

    def head_values(self, order: SubsumptionOrder) -> list[logic.Expression]:
        """Return the expressions of the head's value columns."""
        slots = logic.head_arguments(self.rule)
        return [self.expand(slots[each.position]) for each in order.values]

    # --- signs of expressions ------------------------------------------------------------------

    def is_not_negative(self, term: logic.Term) -> bool:
        """Whether an expression is known not to be negative."""
        if isinstance(term, logic.Variable | logic.Constant | logic.Functor):
            if term.type is not None and term.type.is_unsigned:
                return True
            if self._is_bounded(term, 0, _GREATER):
                return True
        match term:
            case logic.Constant(value=value):
                return _is_number(value) and value >= 0  # type: ignore[operator]
            case logic.Functor(name="+" | "*" | "/" | "min", arguments=arguments):
                return all(map(self.is_not_negative, arguments))
            case logic.Functor(name="max", arguments=arguments):
                return any(map(self.is_not_negative, arguments))
            case logic.Functor(name=name, arguments=(inner, *_)) if (
                _grows_with(name) is Monotone.FIRST
            ):
                return self.is_not_negative(inner)
            case _:
                return False

    def is_at_most_one(self, term: logic.Term) -> bool:
        """Whether an expression is known not to be greater than 1."""
        if isinstance(term, logic.Constant):
            return _is_number(term.value) and term.value <= 1  # type: ignore[operator]
        return self._is_bounded(term, 1, _LESS)

    def _is_bounded(self, term: logic.Term, bound: int, operators: tuple[str, ...]) -> bool:
        """Whether a condition compares an expression with a bound, or with a tighter one."""
        mirrored = _LESS if operators is _GREATER else _GREATER
        for condition in self.filters:
            left, right = self.expand(condition.left), self.expand(condition.right)
            for one, other, wanted in ((left, right, operators), (right, left, mirrored)):
                if condition.operator not in wanted or one != term:
                    continue
                if isinstance(other, logic.Constant) and _is_number(other.value):
                    value: float = other.value  # type: ignore[assignment]
                    if value >= bound if operators is _GREATER else value <= bound:
                        return True
        return False

    def direction(self, term: logic.Term, name: str) -> int | None:
        """Return how an expression moves with a variable: 1 with it, -1 against it, 0 not at all.

        None if that is not known.
        """
        if all(each.name != name for each in logic.variables_of(term)):
            return 0
        match term:
            case logic.Variable():
                return 1
            case logic.Functor(name=adding, arguments=arguments) if (
                _grows_with(adding) is Monotone.ALL
            ):
                return _common([self.direction(each, name) for each in arguments])
            case logic.Functor(name="-", arguments=(left, right)):
                return _common([self.direction(left, name), _flip(self.direction(right, name))])
            case logic.Functor(name="neg", arguments=(inner,)):
                return _flip(self.direction(inner, name))
            case logic.Functor(name="*", arguments=arguments):
                moved = [self.direction(each, name) for each in arguments]
                others = [
                    each
                    for at, each in enumerate(arguments)
                    if any(found != 0 for other, found in enumerate(moved) if other != at)
                ]
                return _common(moved) if all(map(self.is_not_negative, others)) else None
            case logic.Functor(name="/", arguments=(left, right)):
                is_fixed = self.direction(right, name) == 0 and self.is_not_negative(right)
                return self.direction(left, name) if is_fixed else None
            case logic.Functor(name=keeping, arguments=(inner, *rest)) if (
                _grows_with(keeping) is Monotone.FIRST
            ):
                is_numeric = not _is_text(inner)
                is_fixed = all(self.direction(each, name) == 0 for each in rest)
                return self.direction(inner, name) if is_numeric and is_fixed else None
            case _:
                return None

    def is_strict(self, term: logic.Term, name: str) -> bool:
        """Whether an expression is a variable, or something fixed added to it."""
        match term:
            case logic.Variable(name=own):
                return own == name
            case logic.Functor(name="+", arguments=arguments):
                moved = [each for each in arguments if self.direction(each, name) != 0]
                return len(moved) == 1 and self.is_strict(moved[0], name)
            case logic.Functor(name="-", arguments=(left, right)):
                return self.direction(right, name) == 0 and self.is_strict(left, name)
            case _:
                return False


def _grows_with(name: str) -> Monotone:
    """Return with which of its arguments a functor grows; nothing is known of a user's."""
    return FUNCTORS[name].monotone if name in FUNCTORS else Monotone.NONE


def _is_integral(term: logic.Term) -> bool:
    type_ = None if isinstance(term, logic.Wildcard) else term.type
    return type_ is not None and type_.is_integral


def _is_text(term: logic.Term) -> bool:
    type_ = None if isinstance(term, logic.Wildcard) else term.type
    return type_ is not None and type_.is_symbol


def _is_number(value: object) -> bool:
    return not isinstance(value, bool | str) and value is not None and hasattr(value, "__ge__")


def _common(found: Sequence[int | None]) -> int | None:
    moved = {each for each in found if each != 0}
    return next(iter(moved), 0) if len(moved) <= 1 else None


def _flip(direction: int | None) -> int | None:
    return None if direction is None else -direction


def _wanted(value: ValueColumn) -> int:
    """Return where a value moves when it gets better."""
    return 1 if value.is_greater_better else -1


# --- the check ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Misuse:
    """A value that a rule uses where a better one may derive less.

    Attributes:
        where: the part of the rule that uses it.
    """

    rule: logic.Rule
    slot: logic.Slot
    is_greater_better: bool
    where: str


def find_misuses(
    rules: Sequence[logic.Rule],
    components: Mapping[str, frozenset[str]],
    orders: Mapping[str, SubsumptionOrder],
) -> Iterator[Misuse]:
    """Yield where a better premise may derive less.

    Args:
        rules: of the program in normal form.
        components: for each recursive relation, the relations of its stratum.
        orders: the orders of relations of which only the best tuples count.
    """
    for rule in rules:
        members = components.get(rule.head.relation, frozenset())
        if orders.keys() & members:
            yield from _misuses_of(RuleValues(rule, members, orders), orders)


def _misuses_of(values: RuleValues, orders: Mapping[str, SubsumptionOrder]) -> Iterator[Misuse]:
    for premise in values.premises:
        for number, column in enumerate(premise.order.values):
            slot = premise.literal.slots[column.position]
            where = None
            if isinstance(slot, logic.Constant):
                where = print_literal(premise.literal)
            elif isinstance(slot, logic.Variable):
                where = _misuse(values, premise, number, slot.name, orders)
            if where is not None:
                yield Misuse(values.rule, slot, column.is_greater_better, where)


def _misuse(
    values: RuleValues,
    premise: Premise,
    number: int,
    name: str,
    orders: Mapping[str, SubsumptionOrder],
) -> str | None:
    """Return where a value is used that a better one may make false or worse; None for nowhere."""
    rule, column = values.rule, premise.order.values[number]
    is_tail = premise.order.is_lexicographic and number > 0
    for literal in rule.literals:
        held = [slot for slot in literal.slots if _holds(values, slot, name)]
        if len(held) > (1 if literal is premise.literal else 0):
            return print_literal(literal)
    for condition in values.filters:
        left = values.direction(values.expand(condition.left), name)
        right = values.direction(values.expand(condition.right), name)
        if left == 0 and right == 0:
            continue
        better = _wanted(column)
        grows = 1 if condition.operator in _GREATER else -1
        is_order = condition.operator in (*_LESS, *_GREATER)
        if is_tail or not is_order or left is None or right is None:
            return print_condition(condition)
        if left * better * grows < 0 or right * better * grows > 0:
            return print_condition(condition)
    order = orders.get(rule.head.relation)
    slots = logic.head_arguments(rule)
    targets = () if order is None else order.values
    compared = {each.position for each in targets}
    for at, slot in enumerate(slots):
        if at not in compared and values.direction(values.expand(slot), name) != 0:
            return print_literal(rule.head)
    if order is None:
        return None
    heads = values.head_values(order)
    for at, (target, term) in enumerate(zip(targets, heads, strict=True)):
        moved = values.direction(term, name)
        if moved == 0:
            continue
        if moved is None or moved * _wanted(column) * _wanted(target) < 0:
            return (
                print_literal(rule.head) if isinstance(term, logic.Variable) else print_term(term)
            )
        if order.is_lexicographic and not _is_led(values, premise, heads[:at]):
            return print_term(term)
        is_led = order.is_lexicographic and _follows(values, premise, number, heads[:at])
        if is_tail and not is_led:
            return print_term(term)
    return None


def _holds(values: RuleValues, slot: logic.Slot, name: str) -> bool:
    if isinstance(slot, logic.Wildcard):
        return False
    return values.direction(values.expand(slot), name) != 0


def _is_led(values: RuleValues, premise: Premise, before: Sequence[logic.Expression]) -> bool:
    """Whether each column before is strictly monotone in a value of the same premise."""
    own = [slot.name for slot in premise.values if isinstance(slot, logic.Variable)]
    return all(any(values.is_strict(term, name) for name in own) for term in before)


def _follows(
    values: RuleValues, premise: Premise, number: int, before: Sequence[logic.Expression]
) -> bool:
    """Whether the values before one of a lexicographic premise come strictly before it."""
    return all(
        isinstance(slot, logic.Variable)
        and any(values.is_strict(term, slot.name) for term in before)
        for slot in premise.values[:number]
    )


def only_adds(
    rule: logic.Rule, members: frozenset[str], orders: Mapping[str, SubsumptionOrder]
) -> bool:
    """Whether a rule adds something to each value of each premise, or hands it on."""
    order = orders.get(rule.head.relation)
    values = RuleValues(rule, members, orders)
    if order is None or not values.premises:
        return False
    heads = values.head_values(order)
    return all(
        isinstance(slot, logic.Variable)
        and any(values.is_strict(term, slot.name) for term in heads)
        for premise in values.premises
        for slot in premise.values
    )


# --- ranks by value -----------------------------------------------------------------------------


def is_ranked_by_value(
    rules: Sequence[logic.Rule],
    members: frozenset[str],
    orders: Mapping[str, SubsumptionOrder],
    kinds: Mapping[str, Sequence[object]],
) -> bool:
    """Whether no head of a stratum is better than a premise, so that values are ranks.

    All relations have one value column of one type and direction.

    Args:
        rules: of the stratum.
        members: its relations.
        orders: their orders.
        kinds: for each relation the types of its columns.
    """
    if not members <= orders.keys():
        return False
    columns = {name: orders[name].values for name in members}
    if any(len(values) != 1 for values in columns.values()):
        return False
    if len({values[0].is_greater_better for values in columns.values()}) != 1:
        return False
    if len({kinds[name][values[0].position] for name, values in columns.items()}) != 1:
        return False
    return all(_is_never_better(RuleValues(rule, members, orders), orders) for rule in rules)


def _is_never_better(values: RuleValues, orders: Mapping[str, SubsumptionOrder]) -> bool:
    order = orders[values.rule.head.relation]
    (term,) = values.head_values(order)
    is_greater_better = order.values[0].is_greater_better
    return all(
        isinstance(slot, logic.Variable)
        and _is_no_better(values, term, slot.name, is_greater_better)
        for premise in values.premises
        for slot in premise.values
    )


def _is_no_better(values: RuleValues, term: logic.Term, name: str, is_greater_better: bool) -> bool:
    """Whether an expression is never better than a variable."""

    def is_no_better(part: logic.Term) -> bool:
        return _is_no_better(values, part, name, is_greater_better)

    worse, better = ("min", "max") if is_greater_better else ("max", "min")
    match term:
        case logic.Variable(name=own):
            return own == name
        case logic.Functor(name="+", arguments=(left, right)):
            moves = values.is_not_negative if not is_greater_better else _is_not_positive
            return (is_no_better(left) and moves(right)) or (is_no_better(right) and moves(left))
        case logic.Functor(name="-", arguments=(left, right)) if is_greater_better:
            return is_no_better(left) and values.is_not_negative(right)
        case logic.Functor(name="*", arguments=(left, right)) if is_greater_better:
            return any(
                is_no_better(one)
                and values.is_not_negative(one)
                and values.is_not_negative(other)
                and values.is_at_most_one(other)
                for one, other in ((left, right), (right, left))
            )
        case logic.Functor(name=found, arguments=arguments) if found == worse:
            return any(map(is_no_better, arguments))
        case logic.Functor(name=found, arguments=arguments) if found == better:
            return all(map(is_no_better, arguments))
        case _:
            return False


def _is_not_positive(term: logic.Term) -> bool:
    return isinstance(term, logic.Constant) and _is_number(term.value) and term.value <= 0  # type: ignore[operator]
