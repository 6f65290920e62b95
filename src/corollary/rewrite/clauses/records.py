"""Records leave the rules: patterns become field accesses, and other records are computed.

    p(x) :- q([x, [_, y]]), y > 1.
    p(x) :- q(r), x = field 1 of r, s = field 2 of r, y = field 2 of s, y > 1.

A field of a record that has another branch, or is nil, is null, and no equation holds for null: so
each access tests the branch as well. Where no field is asked for, the branch itself is compared.
`r = [x, y]` takes `r` apart where something else binds `r`, and makes it otherwise. A negated atom
with `_` inside a record is a count of zero, as `_` stands for any value of the field.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from corollary.analysis.patterns import equated_terms, has_record, pattern_terms
from corollary.analysis.traverse import all_variables_in, replace_terms
from corollary.core import logic
from corollary.core.records.record_terms import BRANCH_OF, FIELD_OF, RECORD_OF, is_record_term
from corollary.core.types import NUMBER, SYMBOL, Type
from corollary.data_class import dataclass
from corollary.rewrite.translation_unit import Conjunction, FreshVariables, TranslationUnit

_FALSE = logic.Comparison("=", logic.Constant(0, NUMBER), logic.Constant(1, NUMBER))


def records(unit: TranslationUnit) -> None:
    """Replace the records of all conjunctions."""
    unit.conjunctions = [
        _rewrite(each) if _has_records(each) else each for each in unit.conjunctions
    ]


def _has_records(conjunction: Conjunction) -> bool:
    items = (conjunction.head, *conjunction.items)
    return any(
        _is_in_term(term) for item in logic.literals_of(items) for term in logic.terms_of(item)
    )


def _is_in_term(term: logic.Term) -> bool:
    for part in logic.subterms(term):
        if is_record_term(part):
            return True
        if isinstance(part, logic.AggregateTerm):
            target = () if part.target is None else (part.target,)
            inner = (term for item in logic.literals_of(part.body) for term in logic.terms_of(item))
            if any(map(_is_in_term, (*target, *inner))):
                return True
    return False


def _rewrite(conjunction: Conjunction) -> Conjunction:
    patterns = _Patterns(conjunction.fresh)
    items = patterns.body(conjunction.items, set())
    head = replace(
        conjunction.head,
        arguments=tuple(patterns.value(term) for term in conjunction.head.arguments),
    )
    return replace(conjunction.with_items(items, "records"), head=head)


@dataclass(slots=True)
class _Patterns:
    """Replaces the records of one conjunction.

    Attributes:
        bound: the variables that have a value in what is being rewritten.
    """

    fresh: FreshVariables
    bound: set[str] = field(default_factory=set)

    # --- bodies ---------------------------------------------------------------------------------

    def body(self, items: Sequence[logic.BodyItem], given: set[str]) -> tuple[logic.BodyItem, ...]:
        """Return a conjunction without records."""
        outer, self.bound = self.bound, set(given)
        found: list[logic.BodyItem] = []
        equations: list[tuple[str, logic.Term, logic.Term]] = []
        later: list[logic.BodyItem] = []
        for item in items:
            match item:
                case logic.Atom():
                    found += self._atom(item)
                case logic.Comparison(operator=operator, left=left, right=right) if (
                    operator in logic.EQUATIONS
                ):
                    equations += [(operator, *pair) for pair in equated_terms(left, right)]
                case _:
                    later.append(item)
        found += self._equations(equations)
        inner = self.bound | {variable.name for variable in all_variables_in(tuple(items))}
        found += [made for item in later for made in self._item(item, inner)]
        self.bound = outer
        return tuple(self._inside(item, inner) for item in found)

    def _atom(self, atom: logic.Atom) -> Iterator[logic.BodyItem]:
        arguments: list[logic.Term] = []
        conditions: list[logic.BodyItem] = []
        for term in atom.arguments:
            if isinstance(term, logic.Functor) and is_record_term(term):
                variable = self.fresh.variable(term.type)
                self.bound.add(variable.name)
                arguments.append(variable)
                conditions += self._take_apart(variable, term)
            else:
                arguments.append(self.value(term))
                self.bound |= {term.name} if isinstance(term, logic.Variable) else set()
        yield replace(atom, arguments=tuple(arguments))
        yield from conditions

    def _equations(
        self, equations: list[tuple[str, logic.Term, logic.Term]]
    ) -> Iterator[logic.BodyItem]:
        """Yield equations, each once one of its sides has a value, which the other gets then."""
        waiting = equations
        while waiting:
            left_over = []
            for equation in waiting:
                made = self._equation(*equation)
                if made is None:
                    left_over.append(equation)
                else:
                    yield from made
            if len(left_over) == len(waiting):
                for operator, left, right in left_over:
                    yield logic.Comparison(operator, self.value(left), self.value(right))
                return
            waiting = left_over

    def _equation(
        self, operator: str, left: logic.Term, right: logic.Term
    ) -> list[logic.BodyItem] | None:
        """Return an equation without records; None while no side has a value."""
        if isinstance(left, logic.Wildcard) or isinstance(right, logic.Wildcard):
            return []
        if is_record_term(left) and is_record_term(right):
            return [_FALSE]  # two branches: those of one branch are equated field by field
        for whole, pattern in ((left, right), (right, left)):
            if not self._has_value(whole):
                continue
            if not (isinstance(pattern, logic.Functor) and is_record_term(pattern)):
                if isinstance(pattern, logic.Variable):
                    self.bound.add(pattern.name)
                return [logic.Comparison(operator, self.value(left), self.value(right))]
            made: list[logic.BodyItem] = []
            if not isinstance(whole, logic.Variable):
                variable = self.fresh.variable(pattern.type)
                made.append(logic.Comparison("=", variable, self.value(whole)))
                whole = variable
            return [*made, *self._take_apart(whole, pattern)]
        return None

    def _has_value(self, term: logic.Term) -> bool:
        names = {variable.name for variable in logic.variables_of(term)}
        has_wildcard = any(isinstance(part, logic.Wildcard) for part in logic.subterms(term))
        return names <= self.bound and not has_wildcard

    def _item(self, item: logic.BodyItem, given: set[str]) -> Iterator[logic.BodyItem]:
        match item:
            case logic.Negation(atom=atom) if any(map(_has_inner_wildcard, atom.arguments)):
                counted = logic.AggregateTerm("count", None, (atom,), NUMBER, item.span)
                yield logic.Comparison("=", counted, logic.Constant(0, NUMBER), item.span)
            case logic.Negation() | logic.Comparison():
                yield replace_terms(item, self.value)
            case logic.Disjunction(alternatives=alternatives):
                made = tuple(self.body(each, given) for each in alternatives)
                yield replace(item, alternatives=made)
            case _:
                yield item

    def _inside(self, item: logic.BodyItem, given: set[str]) -> logic.BodyItem:
        """Return an item with the bodies of its aggregates rewritten."""

        def entered(term: logic.Term, arguments: tuple[logic.Term, ...]) -> logic.Term:
            match term:
                case logic.AggregateTerm(target=target, body=body) if _is_in_term(term):
                    made = self.body(body, given)
                    aim = None if target is None else self.value(target)
                    return replace(term, target=aim, body=made)
                case logic.Functor():
                    return replace(term, arguments=arguments)
                case _:
                    return term

        def each(term: logic.Term) -> logic.Term:
            return logic.fold_term(term, entered)

        return item if isinstance(item, logic.Disjunction) else replace_terms(item, each)

    # --- terms ----------------------------------------------------------------------------------

    def _take_apart(
        self, record: logic.Variable, pattern: logic.Functor
    ) -> Iterator[logic.BodyItem]:
        """Yield the conditions under which a record that has a value is as a pattern says."""
        pending = [(record, pattern)]
        while pending:
            whole, form = pending.pop(0)
            branch = form.name.removeprefix("$")
            name = logic.Constant(branch, SYMBOL)
            is_tested = False
            for at, (term, type_) in enumerate(zip(form.arguments, _types(form), strict=True)):
                if isinstance(term, logic.Wildcard):
                    continue
                is_tested = True
                number = logic.Constant(at, NUMBER)
                value = logic.Functor(FIELD_OF, (whole, name, number), type_.with_null(True))
                if isinstance(term, logic.Functor) and is_record_term(term):
                    inner = self.fresh.variable(type_)
                    pending.append((inner, term))
                    yield logic.Comparison("=", inner, value)
                elif isinstance(term, logic.Variable):
                    self.bound.add(term.name)
                    yield logic.Comparison("=", term, value)
                else:
                    yield logic.Comparison("=", value, self.value(term))
            if not is_tested:
                yield logic.Comparison("=", logic.Functor(BRANCH_OF, (whole,), SYMBOL), name)

    def value(self, term: logic.Term) -> logic.Term:
        """Return a term in which records are computed."""
        return logic.fold_term(term, _computed) if has_record(term) else term


def _types(form: logic.Functor) -> tuple[Type, ...]:
    assert form.type is not None
    assert form.type.record is not None
    return form.type.record.branches[form.name.removeprefix("$")].types


def _has_inner_wildcard(term: logic.Term) -> bool:
    is_inner = isinstance(term, logic.Functor) and is_record_term(term)
    return is_inner and any(isinstance(part, logic.Wildcard) for part in pattern_terms(term))


def _computed(term: logic.Term, arguments: tuple[logic.Term, ...]) -> logic.Term:
    if not isinstance(term, logic.Functor):
        return term
    if not is_record_term(term):
        return replace(term, arguments=arguments)
    branch = logic.Constant(term.name.removeprefix("$"), SYMBOL)
    return replace(term, name=RECORD_OF, arguments=(branch, *arguments))
