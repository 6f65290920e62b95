"""The rules of a view under construction: names, declarations, clauses.

Rules have no types of their own: that of a `null` is inferred from what stands beside it. So a
functor that is null where an argument is becomes `null`, and one that skips nulls loses them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, fields, replace
from typing import assert_never

from corollary.analysis import traverse
from corollary.core import logic
from corollary.core.functors.catalog import HIGHER_ORDER, signature_of
from corollary.core.functors.spec import Nullness
from corollary.core.program import Column, Declaration, TypeName
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.errors import Diagnostic
from corollary.source import Span

NamedType = tuple[str, Type]


@dataclass(slots=True)
class ViewDraft:
    """What has been lowered so far of one view.

    Attributes:
        view: its name, with which the names of all its relations begin.
        is_materialized: whether the view is stored; its aggregates are then stored too.
        relation_names: the names of relations that are taken.
        span: the place of the query that is being lowered.
        place: the place of all rules, if it is that of a constraint.
        hints: the names of columns that variables are called after, by the variables' names.
        substitution: the variables that stand for others.
        rows: those of relations that are data of a question.
        kept: the relations that a stored view keeps: itself, groups, rows in their order.
    """

    view: str
    is_materialized: bool
    span: Span | None = None
    place: Span | None = None
    declarations: list[Declaration] = field(default_factory=list)
    clauses: list[logic.Clause] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    relation_names: set[str] = field(default_factory=set)
    hints: dict[str, str] = field(default_factory=dict)
    substitution: dict[str, logic.Variable] = field(default_factory=dict)
    rows: dict[str, tuple[tuple[logic.Value, ...], ...]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    # --- names ---------------------------------------------------------------------------------

    def relation(self, label: str, *, is_numbered: bool = True, of: str = "") -> str:
        """Return a new name of a relation: `v.some1`, or `v.each` where it needs no number.

        Args:
            label: what it is.
            is_numbered: whether the first one has a number too.
            of: the relation whose part it is; the view itself by default.
        """
        base = f"{of or self.view}.{label}"
        number = 1
        name = f"{base}1" if is_numbered else base
        while name in self.relation_names:
            number += 1
            name = f"{base}{number}"
        self.relation_names.add(name)
        return name

    def variable(self, hint: str, type_: Type) -> logic.Variable:
        """Return a new variable, called like a column, with a number if the name is taken."""
        name = base = hint if hint.strip("_") else "column"
        number = 1
        while name in self.hints:
            number += 1
            name = f"{base}{number}"
        self.hints[name] = base
        return logic.Variable(name, type_)

    def hint(self, variable: logic.Variable) -> str:
        """Return the name of the column that a variable is called after."""
        return self.hints[self.resolve(variable).name]

    def unify(self, variable: logic.Variable, by: logic.Variable) -> None:
        """Let a variable stand for another one from now on."""
        self.substitution[self.resolve(variable).name] = self.resolve(by)

    def resolve(self, variable: logic.Variable) -> logic.Variable:
        """Return the variable that stands for a variable."""
        while variable.name in self.substitution:
            variable = self.substitution[variable.name]
        return variable

    @contextmanager
    def placed(self, span: Span | None) -> Iterator[None]:
        """Let what is lowered meanwhile have a place, if there is one."""
        outside, self.span = self.span, span or self.span
        try:
            yield
        finally:
            self.span = outside

    # --- declarations and rules ----------------------------------------------------------------

    @property
    def storage(self) -> str:
        """How relations are stored that a stored view keeps."""
        return "stored" if self.is_materialized else "virtual"

    def storage_of(self, relation: str) -> str:
        """Return how the relation of a query is stored."""
        return self.storage if relation == self.view or relation in self.kept else "virtual"

    def columns_of(self, variables: Iterable[logic.Variable]) -> list[NamedType]:
        """Return columns for variables, with their names and types."""
        return [(self.hint(each), each.type or NUMBER) for each in variables]

    def declare(
        self,
        name: str,
        columns: Sequence[NamedType],
        *,
        storage: str = "virtual",
        is_bag: bool = False,
        span: Span | None = None,
    ) -> None:
        """Declare a relation; columns of one name get numbers."""
        named = unique_names([column for column, _ in columns])
        self.declarations.append(
            Declaration(
                name,
                tuple(
                    Column(column, TypeName.of(type_))
                    for column, (_, type_) in zip(named, columns, strict=True)
                ),
                storage=storage,
                is_bag=is_bag,
                span=span,
            )
        )

    def add(
        self,
        relation: str,
        arguments: Iterable[logic.Term],
        items: Iterable[logic.BodyItem],
        span: Span | None = None,
        *,
        is_whole: bool = False,
    ) -> None:
        """Add a rule; what it does not need is left out, unless it is whole as it is."""
        head = logic.Atom(relation, tuple(self.plain(each) for each in arguments))
        body = self.plain_items(items)
        place = self.place or span or self.span
        clause = logic.Clause((head,), body, place, is_null_safe=True)
        clause = clause if is_whole else tidy(clause)
        self.clauses.append(self._with_short_names(clause))

    def _with_short_names(self, clause: logic.Clause) -> logic.Clause:
        """Return a clause whose variables have the names of their columns, where they differ."""
        names = list(dict.fromkeys(_names(*clause.heads, *clause.body)))
        short = dict(zip(names, unique_names([self.hints[each] for each in names]), strict=True))

        def change(term: logic.Term) -> logic.Term:
            return logic.Variable(short[term.name]) if isinstance(term, logic.Variable) else term

        return traverse.map_clause(clause, change)

    # --- attempts ------------------------------------------------------------------------------

    def copy(self) -> "ViewDraft":
        """Return a draft with the same contents, for `restore`."""
        return replace(
            self,
            declarations=list(self.declarations),
            clauses=list(self.clauses),
            warnings=list(self.warnings),
            relation_names=set(self.relation_names),
            hints=dict(self.hints),
            substitution=dict(self.substitution),
            rows=dict(self.rows),
            kept=set(self.kept),
        )

    def restore(self, copy: "ViewDraft") -> None:
        """Forget all that came after a copy was made."""
        for each in fields(self):
            setattr(self, each.name, getattr(copy, each.name))

    # --- terms ---------------------------------------------------------------------------------

    def plain(self, term: logic.Term) -> logic.Term:
        """Return a term as a parser would make it: without types, all variables resolved."""
        return traverse.map_term(term, self._plain)

    def plain_items(self, items: Iterable[logic.BodyItem]) -> tuple[logic.BodyItem, ...]:
        """Return the items of a body in the same way."""
        return _fold_comparisons(traverse.map_body(tuple(items), self._plain))

    def _plain(self, term: logic.Term) -> logic.Term:
        match term:
            case logic.Variable():
                return logic.Variable(self.resolve(term).name)
            case logic.Constant(value=int(value), type=Type(is_interval=True)):
                return logic.Functor("to_months", (logic.Constant(value),))
            case logic.Constant(value=float(), type=Type(is_float32=True)):
                return logic.Functor("to_float32", (logic.Constant(term.value),))
            case logic.Constant(value=tuple()):  # of which nothing else may say the elements
                return term
            case logic.Constant(value=value):
                return logic.Constant(value)
            case logic.Functor(name=name, arguments=arguments):
                return fold_nulls(logic.Functor(name, arguments))
            case logic.AggregateTerm(operator=operator, target=target, body=body):
                return logic.AggregateTerm(operator, target, _fold_comparisons(body))
            case logic.Wildcard():
                return term
            case _:
                assert_never(term)


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names of which some are equal, all different.

    >>> unique_names(["a", "b", "a"])
    ['a', 'b', 'a2']
    """
    found: list[str] = []
    taken = set(names)
    for name in names:
        candidate, number = name or "column", 1
        while candidate in found or (number > 1 and candidate in taken):
            number += 1
            candidate = f"{name or 'column'}{number}"
        found.append(candidate)
    return found


# --- tidying -------------------------------------------------------------------------------------


def tidy(clause: logic.Clause) -> logic.Clause:
    """Return a clause with `_` for variables that occur once, and without repeated items."""
    body = clause.body
    outside: Counter[str] = Counter()
    for head in clause.heads:
        outside.update(_names(head))
    while True:
        changed = _without_unused(body, outside)
        if changed == body:
            break
        body = changed
    return replace(clause, body=body or (logic.Truth(value=True),))


def _without_unused(
    body: tuple[logic.BodyItem, ...], outside: Counter[str]
) -> tuple[logic.BodyItem, ...]:
    """Return a conjunction without what neither it nor anything outside of it uses."""
    uses = [_item_uses(item) for item in body]
    total = sum(uses, outside)
    unused = {name for name, number in total.items() if number == 1}
    found: list[logic.BodyItem] = []
    for item, own in zip(body, uses, strict=True):
        cleaned = _clean(item, unused, total - own)
        if cleaned is not None and cleaned not in found:
            found.append(cleaned)
    return tuple(found)


def _item_uses(item: logic.BodyItem) -> Counter[str]:
    """Return how often an item uses variables; alternatives count as one place."""
    if not isinstance(item, logic.Disjunction):
        return Counter(_names(item))
    uses: Counter[str] = Counter()
    for alternative in item.alternatives:
        uses |= sum((_item_uses(each) for each in alternative), Counter())
    return uses


def _clean(item: logic.BodyItem, unused: set[str], outside: Counter[str]) -> logic.BodyItem | None:
    match item:
        case logic.Atom():
            return _open(item, unused)
        case logic.Negation(atom=atom):
            return logic.Negation(_open(atom, unused))
        case logic.Comparison(operator="is", left=logic.Variable(name=name)) if name in unused:
            return None
        case logic.Disjunction(alternatives=alternatives):
            return cleaned_disjunction(
                tuple(
                    _without_unused(each, outside) or (logic.Truth(value=True),)
                    for each in alternatives
                )
            )
        case _:
            return item


def cleaned_disjunction(alternatives: tuple[tuple[logic.BodyItem, ...], ...]) -> logic.BodyItem:
    """Return a disjunction without alternatives that are the same."""
    return logic.Disjunction(tuple(dict.fromkeys(alternatives)))


def _open(atom: logic.Atom, unused: set[str]) -> logic.Atom:
    arguments = tuple(
        logic.Wildcard() if isinstance(each, logic.Variable) and each.name in unused else each
        for each in atom.arguments
    )
    return replace(atom, arguments=arguments)


def _names(*parts: logic.BodyItem | logic.Term) -> Iterator[str]:
    """Yield the names of variables in items and terms, aggregates too, with repetitions."""
    for part in parts:
        if isinstance(
            part, logic.Atom | logic.Negation | logic.Comparison | logic.Disjunction | logic.Truth
        ):
            yield from (each.name for each in traverse.all_variables_in((part,)))
        else:
            yield from (each.name for each in traverse.all_variables(part))


def names_of(*parts: logic.BodyItem | logic.Term) -> set[str]:
    """Return the names of the variables in items and terms."""
    return set(_names(*parts))


# --- null ----------------------------------------------------------------------------------------


_NULL = logic.Constant(None)


def fold_nulls(functor: logic.Functor) -> logic.Term:
    """Return a term of the same value; the arguments are folded already.

    >>> fold_nulls(logic.Functor("+", (logic.Constant(1), logic.Constant(None))))
    Constant(value=None, type=None)
    >>> fold_nulls(logic.Functor("coalesce", (logic.Constant(None), logic.Constant(1))))
    Constant(value=1, type=None)
    """
    arguments = functor.arguments
    if not any(map(_is_null, arguments)) and functor.name != "if":
        return functor
    match functor.name, arguments:
        case "is_null", _:
            return logic.Constant(value=True)
        case "same", (one, other):
            return fold_nulls(logic.Functor("is_null", (other if _is_null(one) else one,)))
        case "if", (logic.Constant(value=condition), then, otherwise):
            return then if condition is True else otherwise
        case "if", (_, then, otherwise):
            return _NULL if _is_null(then) and _is_null(otherwise) else functor
        case "null_if", (one, _):
            return one
        case "coalesce" | "greatest" | "least", _:
            known = tuple(each for each in arguments if not _is_null(each))
            if len(known) < 2:
                return known[0] if known else _NULL
            return logic.Functor(functor.name, known, functor.type)
        case "try", _:
            return _NULL
        case _:
            signature = signature_of(functor)
            is_strict = signature is not None and signature.nullness is Nullness.STRICT
            if signature is not None and functor.name in HIGHER_ORDER:
                is_strict = any(map(_is_null, arguments[: signature.operands or 1]))
            return _NULL if is_strict else functor


def _fold_comparisons(items: Iterable[logic.BodyItem]) -> tuple[logic.BodyItem, ...]:
    """Return items with the truth of comparisons of nulls, whose types nothing says."""

    def folded(item: logic.BodyItem) -> logic.BodyItem:
        match item:
            case logic.Comparison(operator=operator, left=left, right=right):
                is_untyped = _is_null(left) and _is_null(right)
                return logic.Truth(value=operator == "is") if is_untyped else item
            case logic.Disjunction(alternatives=alternatives):
                return logic.Disjunction(tuple(map(_fold_comparisons, alternatives)))
            case _:
                return item

    return tuple(map(folded, items))


def _is_null(term: logic.Term) -> bool:
    return isinstance(term, logic.Constant) and term.value is None
