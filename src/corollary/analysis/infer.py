"""Type inference: what columns, literals, functors and aggregates say of each other.

Every variable of a clause, every constant, functor and aggregate gets a node (see `unify`), every
declared column says what type its arguments have. Event predicates without a declaration have
nodes for their columns, so that their types come from all their rules at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import assert_never

from corollary.analysis import mismatch
from corollary.analysis.survey import Shape, Survey
from corollary.analysis.unify import Reason, Unifier
from corollary.analysis.wording import FRACTION_LITERAL, INTEGER_LITERAL, text_of
from corollary.core.functors import ANY, FUNCTORS, FunctorSignature, Kinds
from corollary.core.rules import Atom, Clause, Comparison, Negation, Truth, walk
from corollary.core.terms import (
    Aggregate,
    Constant,
    Functor,
    Term,
    Value,
    Variable,
    Wildcard,
)
from corollary.core.types import MAXIMAL_PRECISION, NUMERIC, Kind, Type
from corollary.errors import Diagnostic

_SYMBOL: Kinds = frozenset({Kind.SYMBOL})


@dataclass(slots=True)
class Inference:
    """The nodes of a program's terms and what was found wrong on the way.

    Attributes:
        variables: for each clause, the nodes of its variables.
        order: for each clause, the nodes of its constants, functors and aggregates in the order
            body before heads, arguments before their functor.
        columns: the nodes of the columns of event predicates without a declaration.
        computed: functors whose digits follow from those of their arguments.
        constants: the literals and their nodes.
        compared: the sides of comparisons, whose digits may differ.
    """

    survey: Survey
    unifier: Unifier = field(default_factory=Unifier)
    findings: list[Diagnostic] = field(default_factory=list)
    variables: list[dict[str, int]] = field(default_factory=list)
    order: list[list[int]] = field(default_factory=list)
    columns: dict[str, list[int]] = field(default_factory=dict)
    computed: list[tuple[Functor, int, tuple[int, ...]]] = field(default_factory=list)
    constants: list[tuple[Constant, int]] = field(default_factory=list)
    compared: list[tuple[int, int]] = field(default_factory=list)


def infer(survey: Survey) -> Inference:
    """Return the nodes of all terms, unified as far as they can be."""
    inference = Inference(survey)
    for clause in survey.clauses:
        _Clause(inference).visit(clause)
    return inference


class _Clause:
    """The inference of one clause."""

    def __init__(self, inference: Inference) -> None:
        self._inference = inference
        self._unifier = inference.unifier
        self._variables: dict[str, int] = {}
        self._order: list[int] = []
        inference.variables.append(self._variables)
        inference.order.append(self._order)

    def visit(self, clause: Clause) -> None:
        self._body(tuple(walk(clause.body)))
        for head in clause.heads:
            self._atom(head)

    def _body(self, items: Sequence[Atom | Negation | Comparison | Truth]) -> None:
        for item in items:
            match item:
                case Atom():
                    self._atom(item)
                case Negation(atom=atom):
                    self._atom(atom)
                case Comparison():
                    self._comparison(item)
                case Truth():
                    pass
                case _:
                    assert_never(item)

    def _atom(self, atom: Atom) -> None:
        shape = self._inference.survey.shape(atom)
        for position, term in enumerate(atom.arguments):
            node = self._term(term)
            if shape is not None:
                self._column(term, node, shape, position)

    def _column(self, term: Term, node: int, shape: Shape, position: int) -> None:
        type_ = shape.types[position]
        if type_ is not None:
            reason = Reason(
                f"column `{shape.columns[position]}` of `{shape.name}`", mismatch.span_of(term)
            )
            if not self._unifier.fix(node, type_, reason):
                wanted = Unifier()
                column = wanted.node()
                wanted.fix(column, type_, None)
                self._complain(
                    mismatch.against_column(
                        term, self._unifier.known(node), shape, position, wanted.known(column)
                    )
                )
        elif shape.declaration is None:
            nodes = self._inference.columns.get(shape.name)
            if nodes is None:
                nodes = [self._unifier.node() for _ in shape.columns]
                self._inference.columns[shape.name] = nodes
            column = nodes[position]
            if not self._unifier.same_domain(node, column):
                self._complain(
                    mismatch.against_column(
                        term,
                        self._unifier.known(node),
                        shape,
                        position,
                        self._unifier.known(column),
                    )
                )

    def _comparison(self, item: Comparison) -> None:
        left, right = self._term(item.left), self._term(item.right)
        if item.operator.lstrip("!") in ("match", "contains"):
            for term, node in ((item.left, left), (item.right, right)):
                self._take(term, node, item.operator.lstrip("!"), _SYMBOL)
            return
        if item.operator == "=":
            agree = self._unifier.same_domain(left, right)
        else:
            agree = self._unifier.same_kind(left, right)
            self._inference.compared.append((left, right))
        if not agree:
            sides = (
                (item.left, self._unifier.known(left)),
                (item.right, self._unifier.known(right)),
            )
            self._complain(mismatch.between_sides(item.operator, sides, item.span))

    def _take(self, term: Term, node: int, taker: str, kinds: Kinds) -> bool:
        reason = Reason(f"argument of `{taker}`", mismatch.span_of(term))
        if not self._unifier.narrow(node, kinds, reason):
            known = self._unifier.known(node)
            self._complain(mismatch.against_parameter(term, known, taker, kinds))
            return False
        return True

    def _term(self, term: Term) -> int:
        match term:
            case Variable(name=name):
                node = self._variables.get(name)
                if node is None:
                    node = self._variables[name] = self._unifier.node()
                return node
            case Wildcard():
                return self._unifier.node()
            case Constant():
                reason = Reason("this literal", term.span)
                node = self._unifier.node(literal_kinds(term), reason)
                self._inference.constants.append((term, node))
            case Functor():
                node = self._functor(term)
            case Aggregate():
                node = self._aggregate(term)
            case _:
                assert_never(term)
        self._order.append(node)
        return node

    def _functor(self, term: Functor) -> int:
        nodes = tuple(self._term(argument) for argument in term.arguments)
        signature = FUNCTORS.get(term.name)
        if signature is None or not signature.accepts(len(nodes)):
            return self._unifier.node()
        name = "-" if term.name == "neg" else term.name
        are_taken = [
            self._take(argument, node, name, signature.kinds(position))
            for position, (argument, node) in enumerate(zip(term.arguments, nodes, strict=True))
        ]
        if signature.result is None:
            return self._operands(term, nodes) if all(are_taken) else self._unifier.node()
        return self._result(term, signature)

    def _operands(self, term: Functor, nodes: tuple[int, ...]) -> int:
        result = self._unifier.node()
        for argument, node in zip(term.arguments[1:], nodes[1:], strict=True):
            if not self._unifier.same_kind(nodes[0], node):
                first = (term.arguments[0], self._unifier.known(nodes[0]))
                operands = (first, (argument, self._unifier.known(node)))
                self._complain(mismatch.between_operands(term.name, operands))
                return result
        self._unifier.same_kind(nodes[0], result)
        self._inference.computed.append((term, result, nodes))
        return result

    def _result(self, term: Functor, signature: FunctorSignature) -> int:
        assert signature.result is not None
        reason = Reason(f"the result of `{term.name}`", term.span)
        result = self._unifier.node(frozenset({signature.result}), reason)
        if term.name == "to_decimal":
            match term.arguments[1]:
                case Constant(value=int(scale)) if 0 <= scale <= MAXIMAL_PRECISION:
                    self._unifier.scale(result, MAXIMAL_PRECISION, scale, reason)
                case other:
                    self._complain(
                        Diagnostic(
                            "C0309",
                            f"`{text_of(other)}` is not a number of digits from 0 to "
                            f"{MAXIMAL_PRECISION}, as `to_decimal` needs it.",
                            mismatch.span_of(other),
                            "write the digits behind the point as a literal: `to_decimal(x, 2)`",
                        )
                    )
        return result

    def _aggregate(self, term: Aggregate) -> int:
        self._body(tuple(walk(term.body)))
        target = None if term.target is None else self._term(term.target)
        reason = Reason(f"the result of `{term.operator}`", term.span)
        match term.operator:
            case "count":
                return self._unifier.node(frozenset({Kind.NUMBER}), reason)
            case "sum" | "mean" | "min" | "max" if target is not None and term.target is not None:
                is_sum = term.operator in ("sum", "mean")
                kinds = NUMERIC if is_sum else ANY
                is_taken = self._take(term.target, target, term.operator, kinds)
                if term.operator == "mean":
                    return self._unifier.node(frozenset({Kind.FLOAT}), reason)
                result = self._unifier.node()
                if is_taken:
                    self._unifier.same_domain(target, result)
                return result
            case _:
                return self._unifier.node()

    def _complain(self, finding: Diagnostic) -> None:
        self._inference.findings.append(finding)


def literal_kinds(constant: Constant) -> Kinds:
    """Return the kinds that a literal may have.

    >>> literal_kinds(Constant("a"))
    frozenset({<Kind.SYMBOL: 'symbol'>})
    """
    if constant.type is not None:
        return frozenset({constant.type.kind})
    return _kinds(constant.value)


def _kinds(value: Value) -> Kinds:
    match value:
        case None:
            return ANY
        case bool():
            return frozenset({Kind.BOOL})
        case int():
            return INTEGER_LITERAL
        case str():
            return _SYMBOL
        case datetime():
            return frozenset({Kind.TIMESTAMP})
        case date():
            return frozenset({Kind.DATE})
        case _:
            return FRACTION_LITERAL


def type_of(unifier: Unifier, node: int) -> Type | None:
    """Return the type of a node, not nullable; None if it is not known."""
    kind = unifier.kind(node)
    if kind is not Kind.DECIMAL:
        return None if kind is None else Type(kind)
    known = unifier.known(node)
    if known.scale is None:
        return None
    return Type(kind, precision=known.precision, scale=known.scale)
