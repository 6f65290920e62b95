"""The program with the type of every variable, constant, functor and aggregate written into it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from corollary.analysis.infer import Inference, type_of
from corollary.analysis.literals import convert
from corollary.analysis.nulls import Nullability, is_nullable, nullable_variables
from corollary.analysis.scopes import plain
from corollary.analysis.wording import text_of
from corollary.core.rules import (
    Atom,
    BodyItem,
    Clause,
    Comparison,
    Disjunction,
    Negation,
    Truth,
)
from corollary.core.terms import Aggregate, Constant, Functor, Term, Variable, Wildcard
from corollary.core.types import MAXIMAL_PRECISION, Kind, Type
from corollary.errors import Diagnostic
from corollary.source import Span


@dataclass(slots=True)
class Annotation:
    """Annotates one clause; `findings` tells of literals that do not fit and unknown types."""

    inference: Inference
    variables: dict[str, int]
    nodes: Iterator[int]
    loose: frozenset[str]
    findings: list[Diagnostic]
    unknown: set[str]

    def clause(self, clause: Clause) -> Clause:
        """Return the clause with types; the body comes first, as in inference."""
        body = self._body(clause.body)
        return replace(clause, body=body, heads=tuple(self._atom(head) for head in clause.heads))

    def _body(self, items: tuple[BodyItem, ...]) -> tuple[BodyItem, ...]:
        return tuple(self._item(item) for item in items)

    def _item(self, item: BodyItem) -> BodyItem:
        match item:
            case Atom():
                return self._atom(item)
            case Negation(atom=atom):
                return Negation(self._atom(atom), item.span)
            case Comparison(operator=operator, left=left, right=right):
                return Comparison(operator, self._term(left), self._term(right), item.span)
            case Truth():
                return item
            case Disjunction(alternatives=alternatives):
                return Disjunction(tuple(self._body(b) for b in alternatives), item.span)
            case _:
                assert_never(item)

    def _atom(self, atom: Atom) -> Atom:
        return Atom(
            atom.relation,
            tuple(self._term(term) for term in atom.arguments),
            atom.sign,
            atom.state,
            atom.span,
        )

    def _term(self, term: Term) -> Term:
        match term:
            case Variable(name=name):
                type_ = self._type(self.variables[name])
                self._know(term, type_, term.span)
                nullable = name in self.loose
                return Variable(
                    plain(name), type_.with_null(nullable) if type_ else None, term.span
                )
            case Wildcard():
                return term
            case Constant():
                return self._constant(term)
            case Functor(name=name, arguments=arguments):
                loose = is_nullable(term, self.loose)
                inside = tuple(self._term(argument) for argument in arguments)
                type_ = self._type(next(self.nodes))
                return Functor(name, inside, type_.with_null(loose) if type_ else None, term.span)
            case Aggregate(operator=operator, target=target, body=body):
                items = self._body(body)
                of = None if target is None else self._term(target)
                type_ = self._type(next(self.nodes))
                if operator == "sum" and type_ is not None and type_.kind is Kind.DECIMAL:
                    type_ = replace(type_, precision=MAXIMAL_PRECISION)
                return Aggregate(operator, of, items, type_, term.span)
            case _:
                assert_never(term)

    def _constant(self, term: Constant) -> Constant:
        type_ = self._type(next(self.nodes))
        self._know(term, type_, term.span)
        if type_ is None:
            return term
        try:
            value = convert(term, type_)
        except OverflowError as error:
            words = f"`{text_of(term)}` is not a value of `{type_}`."
            self.findings.append(Diagnostic("C0306", words, term.span, str(error)))
            return term
        return Constant(value, type_.with_null(value is None), term.span)

    def _type(self, node: int) -> Type | None:
        return type_of(self.inference.unifier, node)

    def _know(self, term: Term, type_: Type | None, span: Span | None) -> None:
        if type_ is not None:
            return
        name = text_of(term)
        if name not in self.unknown:
            self.unknown.add(name)
            self.findings.append(
                Diagnostic(
                    "C0308",
                    f"The type of `{name}` cannot be inferred.",
                    span,
                    "declare the relation that it goes to, with types",
                )
            )


def annotate(
    inference: Inference, columns: Nullability, findings: list[Diagnostic]
) -> Iterator[Clause]:
    """Yield the program's clauses with types; findings are added to a list."""
    has_null = {name for name, loose in columns.items() if any(loose)}
    survey = inference.survey
    for number, clause in enumerate(survey.clauses):
        may_be_null = any(r.atom.relation in has_null for r in survey.readings[number])
        yield Annotation(
            inference,
            inference.variables[number],
            iter(inference.order[number]),
            nullable_variables(clause, columns) if may_be_null else frozenset(),
            findings,
            set(),
        ).clause(clause)
