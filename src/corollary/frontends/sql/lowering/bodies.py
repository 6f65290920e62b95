"""Bodies under construction: what is known of the rows of a `FROM` and its conditions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from decimal import Decimal

from corollary.core.functors.catalog import signature_of
from corollary.core.logic import (
    EQUATIONS,
    Atom,
    BodyItem,
    Comparison,
    Constant,
    Disjunction,
    Functor,
    Negation,
    Term,
    Variable,
    variables_of,
)
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.frontends.sql.lowering.draft import ViewDraft, names_of
from corollary.frontends.sql.lowering.set_analysis import Dependencies
from corollary.frontends.sql.query_tree import Expression

ALTERNATIVES_MAX = 4
"""The maximum number of conjunctions that a body stands for; then it becomes a relation."""

NULL = Constant(None)
ONE = Constant(1)
TRUE = Constant(value=True)
FALSE = Constant(value=False)


@dataclass(slots=True)
class RuleBody:
    """A conjunction: each assignment of its variables is a row, as often as its counts say.

    Attributes:
        draft: the view.
        outer: the variables of queries around that it may use.
        is_set: whether nobody asks how often a row is there.
        make_outer: makes a literal that binds the outer variables.
        base: a body whose items hold too, if this one is a part of an alternative.
        can_unify: whether equal variables become one; a condition of an alternative stays one.
        is_side: whether it is a side of an outer join, whose columns are null elsewhere.
        counts: the variables with the number of copies of each source that is a bag.
        witnesses: variables that tell the rows apart, in order.
        values: variables that expressions made, such as the value of a subquery.
        terms: expressions of the query whose values are known, such as keys of groups.
        sources: the numbers of its sources.
        padded: the names of variables that an outer join makes null, whatever their types say.
    """

    draft: ViewDraft
    outer: tuple[Variable, ...] = ()
    is_set: bool = False
    make_outer: Callable[[], Atom] | None = None
    base: "RuleBody | None" = None
    can_unify: bool = True
    is_side: bool = False
    items: list[BodyItem] = field(default_factory=list)
    counts: list[Variable] = field(default_factory=list)
    witnesses: list[Variable] = field(default_factory=list)
    values: list[Variable] = field(default_factory=list)
    terms: dict[Expression, Term] = field(default_factory=dict)
    sources: list[int] = field(default_factory=list)
    padded: set[str] = field(default_factory=set)
    known: Dependencies = field(default_factory=Dependencies)
    alternatives: int = 1

    # --- what it says --------------------------------------------------------------------------

    def is_nullable(self, term: Term) -> bool:
        """Whether a term may be null in a row of this body."""
        match term:
            case Variable(name=name, type=type_):
                names = {name, self.draft.resolve(term).name}
                bodies = list(self._with_bases())
                if any(names & body.known.not_null for body in bodies):
                    return False
                is_padded = any(names & body.padded for body in bodies)
                return is_padded or type_ is None or type_.nullable
            case Constant(value=value):
                return value is None
            case Functor(arguments=arguments):
                spec = signature_of(term)
                are_nullable = [self.is_nullable(each) for each in arguments]
                return any(are_nullable) if spec is None else spec.may_be_null(are_nullable)
            case _:
                return True

    def _with_bases(self) -> "Iterator[RuleBody]":
        body: RuleBody | None = self
        while body is not None:
            yield body
            body = body.base

    def column_type(self, term: Term, type_: Type) -> Type:
        """Return the type of a column that holds a term."""
        return type_.with_null(self.is_nullable(term))

    @property
    def outer_names(self) -> set[str]:
        """The names of the outer variables."""
        return {each.name for each in self.outer}

    def all_items(self) -> list[BodyItem]:
        """Return its items after those of the body that it is a part of."""
        return [*(self.base.all_items() if self.base else ()), *self.items]

    def closed_items(self, needed: Iterable[Variable] = ()) -> list[BodyItem]:
        """Return the items, with a literal for outer variables that they do not bind."""
        items = self._live_items()
        resolved = {self.draft.resolve(each).name for each in (*self.outer, *needed)}
        outer = {self.draft.resolve(each).name for each in self.outer}
        bound = bound_names(self.draft.plain_items(items))
        if outer & resolved <= bound or self.make_outer is None:
            return items
        return [self.make_outer(), *items]

    def _live_items(self) -> list[BodyItem]:
        """Return all items, without alternatives that can never hold."""
        items = self.all_items()
        if not any(isinstance(item, Disjunction) for item in items):
            return items
        plain = [item for item in items if not isinstance(item, Disjunction)]
        present = {self.draft.resolve(Variable(name)).name for name in self.known.not_null}
        found: list[BodyItem] = []
        for item in items:
            if not isinstance(item, Disjunction):
                found.append(item)
                continue
            live = [each for each in item.alternatives if not self._is_dead(each, plain, present)]
            if len(live) > 1:
                found.append(Disjunction(tuple(live)))
            else:  # one that never holds still binds the variables of the head
                found += (live or item.alternatives)[0]
        return found

    def _is_dead(
        self, one: Iterable[BodyItem], other: Iterable[BodyItem], present: Iterable[str] = ()
    ) -> bool:
        """Whether items say together that a variable is null and that it is not.

        Args:
            one: some items.
            other: further ones.
            present: the names of variables that are not null anyway.
        """
        nulls: set[str] = set()
        compared = set(present)
        for item in (*one, *other):
            if isinstance(item, Comparison):
                sides = {
                    self.draft.resolve(each).name
                    for each in (item.left, item.right)
                    if isinstance(each, Variable)
                }
                if item.operator != "is":  # no other comparison holds for null
                    compared |= sides
                elif NULL in (item.left, item.right):
                    nulls |= sides
        return not nulls.isdisjoint(compared)

    def count_term(self) -> Term | None:
        """Return the number of copies of a row; None where each is there once."""
        product: Term | None = None
        for count in self.counts:
            product = count if product is None else Functor("*", (product, count))
        return product

    def visible(self, columns: Iterable[Term]) -> list[Variable]:
        """Return the variables that are needed later: those of columns, witnesses, values."""
        found: dict[str, Variable] = {}
        terms = (*columns, *self.terms.values())
        parts = [part for term in terms for part in variables_of(term)]
        for variable in (*parts, *self.witnesses, *self.counts, *self.values):
            resolved = self.draft.resolve(variable)
            type_ = variable.type if resolved.type is None else resolved.type
            found.setdefault(resolved.name, replace(resolved, type=type_))
        outer = {self.draft.resolve(each).name for each in self.outer}
        return [each for name, each in found.items() if name not in outer]

    def take_nulls(self, variables: Iterable[Variable], around: "RuleBody") -> None:
        """Note which variables of another body may be null."""
        for variable in variables:
            names = {variable.name, self.draft.resolve(variable).name}
            if around.is_nullable(variable):
                self.padded |= names
            else:
                self.known.not_null |= names

    def empty_copy(self, *, is_set: bool) -> "RuleBody":
        """Return an empty body for another part of the same query."""
        known = Dependencies(list(self.known.rules), set(self.known.not_null))
        return RuleBody(
            self.draft, self.outer, is_set, self.make_outer, known=known, padded=set(self.padded)
        )

    # --- how it grows --------------------------------------------------------------------------

    def include(self, other: "RuleBody") -> None:
        """Add all that another body has."""
        self.items += other.items
        self.counts += other.counts
        self.witnesses += other.witnesses
        self.values += other.values
        self.sources += other.sources
        self.padded |= other.padded
        self.known.include(other.known)
        self.alternatives *= other.alternatives

    def value(self, hint: str, type_: Type) -> Variable:
        """Return a new variable for the value of an expression."""
        variable = self.draft.variable(hint, type_)
        self.values.append(variable)
        return variable

    def bind(self, hint: str, term: Term, type_: Type) -> Variable:
        """Return a variable that has the value of a term."""
        if isinstance(term, Variable):
            return term
        variable = self.value(hint, self.column_type(term, type_))
        (term,) = typed_decimals((term,))
        self.items.append(Comparison("is", variable, term))
        self.determine(variable, term)
        if not self.is_nullable(term):
            self.known.not_null.add(variable.name)
        return variable

    def determine(self, variable: Variable, term: Term) -> None:
        """Note that a variable has the value of a term."""
        inside = names_of(term)
        self.known.add(inside, {variable.name})
        back = inverted(term)
        if back is not None:
            self.known.add({variable.name}, {back.name})

    def equate(self, left: Variable, right: Variable, *, is_null_safe: bool = False) -> bool:
        """Let two variables be one, if that is possible."""
        if not self.can_unify or _domain(left) != _domain(right):
            return False
        one, other = self.draft.resolve(left), self.draft.resolve(right)
        outer = {self.draft.resolve(each).name for each in self.outer}
        if one.name != other.name:
            both = {one.name, other.name}
            # Outer variables belong to other rules, too. And a row that a side pads keeps the outer
            # value, where the column of the side is null.
            if both <= outer or (self.is_side and both & outer):
                return False
            kept, gone = (one, other) if other.name not in outer else (other, one)
            both_nullable = self.is_nullable(left) and self.is_nullable(right)
            inner = right if one.name in outer else left if other.name in outer else None
            # What is known of an outer variable is not said by the literals of this body.
            needs_test = both_nullable or (inner is not None and self.is_nullable(inner))
            self.draft.unify(gone, kept)
            self.known.add({left.name}, {right.name})
            self.known.add({right.name}, {left.name})
            names = {left.name, right.name, kept.name, gone.name}
            self.known.add({kept.name}, names)
            self.known.add({gone.name}, {kept.name})
        else:
            both_nullable, names = self.is_nullable(left), {left.name, right.name, one.name}
            needs_test = both_nullable
        if not is_null_safe or not both_nullable:
            if needs_test:
                self.items.append(Comparison("=", left, left))
            self.known.not_null |= names
        return True

    def compare(self, operator: str, left: Term, right: Term) -> None:
        """Add a comparison that must hold."""
        if (
            operator in EQUATIONS
            and isinstance(left, Variable)
            and isinstance(right, Variable)
            and self.equate(left, right, is_null_safe=operator == "is")
        ):
            return
        left, right = typed_decimals((left, right))
        self.items.append(Comparison(operator, left, right))
        for one, other in ((left, right), (right, left)):
            if operator in EQUATIONS and isinstance(one, Variable):
                self.determine(one, other)
            if operator == "is":
                if isinstance(one, Variable) and not self.is_nullable(other):
                    if self.is_nullable(one):
                        self.items.append(Comparison("=", one, one))
                    self.known.not_null.add(one.name)
            elif isinstance(one, Variable):
                self.known.not_null.add(one.name)

    def require(self, term: Term) -> None:
        """Add that a condition is true."""
        self.items.append(Comparison("=", term, TRUE))

    def choose(
        self,
        alternatives: Sequence[Sequence[BodyItem]],
        cut: Callable[["RuleBody"], None],
        values: Iterable[Variable] = (),
        test: Atom | None = None,
    ) -> None:
        """Add alternatives that exclude each other; a body with too many becomes a relation first.

        Args:
            alternatives: the items of each.
            cut: makes the body a relation.
            values: the variables for values that all of them bind.
            test: a literal that holds where the first alternative does, and nowhere else.
        """
        if self._extend_alternatives(alternatives, test):
            self.values += values
            return
        # Each disjunction multiplies the rules that a body becomes.
        if len(alternatives) > 1 and self.alternatives * len(alternatives) > ALTERNATIVES_MAX:
            cut(self)
        self.values += values
        if len(alternatives) == 1:
            self.items += alternatives[0]
            return
        self.alternatives *= len(alternatives)
        self.items.append(Disjunction(tuple(tuple(each) for each in alternatives)))

    def _extend_alternatives(
        self, alternatives: Sequence[Sequence[BodyItem]], test: Atom | None
    ) -> bool:
        """Add alternatives to earlier ones, if some do not go together: a chain of outer joins.

        A join after a padded row pads again: each join of a chain adds one alternative.
        """
        negated = [] if test is None else [Negation(test)]
        for item in self.items:
            if not isinstance(item, Disjunction):
                continue
            live: list[tuple[BodyItem, ...]] = []
            for earlier in item.alternatives:
                further = [each for each in alternatives if not self._is_dead(earlier, each)]
                if alternatives[0] not in further:
                    further = [[part for part in each if part not in negated] for each in further]
                live += [(*earlier, *each) for each in further]
            if len(live) == len(item.alternatives) + 1:
                self.alternatives += self.alternatives // len(item.alternatives)
                self.items.remove(item)
                self.items.append(Disjunction(tuple(live)))
                return True
        return False


def typed_decimals(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Return terms that stand beside each other, of which one says that they are decimals.

    Rules infer types, and a number that is written with a point may be a float as well.
    """
    found = list(terms)
    at = next((at for at, term in enumerate(found) if _decimal_constant(term)), None)
    if at is not None and all(_decimal_constant(term) or not _is_decimal(term) for term in found):
        constant = found[at]
        assert isinstance(constant, Constant)
        assert constant.type is not None
        assert isinstance(constant.value, int | Decimal)
        arguments = (Constant(f"{Decimal(constant.value):f}"), Constant(constant.type.scale))
        found[at] = Functor("to_decimal", arguments, constant.type)
    return tuple(found)


def _decimal_constant(term: Term) -> bool:
    return isinstance(term, Constant) and term.value is not None and _is_decimal(term)


def _is_decimal(term: Term) -> bool:
    type_ = term.type if isinstance(term, Constant | Variable | Functor) else None
    return type_ is not None and type_.is_decimal


def _domain(variable: Variable) -> object:
    return None if variable.type is None else variable.type.domain


def inverted(term: Term) -> Variable | None:
    """Return the variable that the value of a term determines: `x`, `x + 1`, `1 - x`, `-x`."""
    match term:
        case Variable():
            return term
        case Functor(name="+" | "-", arguments=(Variable() as variable, Constant())):
            return variable if _is_exact(variable) else None
        case Functor(name="+" | "-", arguments=(Constant(), Variable() as variable)):
            return variable if _is_exact(variable) else None
        case Functor(name="neg", arguments=(Variable() as variable,)):
            return variable
        case Functor(name="to_integer", arguments=(inner, _)):
            found = inverted(inner)
            return found if found is not None and _is_exact(found) else None
        case _:
            return None


def _is_exact(variable: Variable) -> bool:
    """Whether sums with a constant are exact: floats round."""
    return variable.type is not None and variable.type.domain == NUMBER.domain


def bound_names(items: Iterable[BodyItem], given: Iterable[str] = ()) -> set[str]:
    """Return the names of the variables that a body binds.

    Args:
        items: the body.
        given: variables that are bound anyway.
    """
    parts = list(items)
    bound = set(given)
    while True:
        size = len(bound)
        for item in parts:
            match item:
                case Atom(arguments=arguments):
                    bound |= {each.name for each in arguments if isinstance(each, Variable)}
                case Comparison(operator=operator, left=left, right=right) if operator in EQUATIONS:
                    for one, other in ((left, right), (right, left)):
                        if isinstance(one, Variable) and names_of(other) <= bound:
                            bound.add(one.name)
                case Disjunction(alternatives=alternatives):
                    found = [bound_names(each, bound) for each in alternatives]
                    if found:
                        bound |= set.intersection(*found)
                case _:
                    pass
        if len(bound) == size:
            return bound
