"""Type inference: every variable, constant, functor, aggregate and column gets its type."""

import struct
from collections.abc import Iterator
from dataclasses import field, replace
from datetime import datetime
from decimal import Decimal
from typing import assert_never

from corollary.analysis.phrases import term_text
from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.scopes import written_name
from corollary.analysis.traverse import replace_terms
from corollary.analysis.types.constraints import TypeConstraints, collect_constraints
from corollary.analysis.types.nulls import (
    Nullability,
    functor_may_be_null,
    has_null_source,
    is_nullable,
    null_heads,
    null_literals,
    nullable_columns,
    nullable_variables,
)
from corollary.analysis.types.scales import scales
from corollary.core import logic
from corollary.core.engine import check_deadline
from corollary.core.functors.arrays import FIELD, STRUCT
from corollary.core.functors.conversions import CAST, SAME_BITS
from corollary.core.functors.holistic import ARGUMENTS
from corollary.core.functors.lambdas import is_lambda, is_parameter, with_names
from corollary.core.program import Arithmetic, arithmetic_of
from corollary.core.records.record_terms import is_record_term
from corollary.core.records.record_text import make_record
from corollary.core.states import State
from corollary.core.types import BINARY, DECIMAL_MAX_DIGITS, NIL, NUMBER, Type, decimal
from corollary.core.values import (
    SCALARS,
    decimal_value,
    from_stored,
    is_decimal,
    is_value,
    parse_value,
    unscaled_integer,
)
from corollary.core.windows import WINDOW, window_of
from corollary.data_class import dataclass
from corollary.errors import Diagnostic


@dataclass(frozen=True, slots=True)
class TypedProgram:
    """Clauses with types, the types of the relations' columns, and what was found wrong."""

    clauses: tuple[logic.Clause, ...]
    columns: dict[str, tuple[Type | None, ...]]
    findings: tuple[Diagnostic, ...]


def infer_types(resolved: ResolvedProgram) -> TypedProgram:
    """Return the types of a program."""
    constraints = collect_constraints(resolved)
    scales(constraints)
    nullability = nullable_columns(resolved)
    clauses = tuple(annotate(constraints, nullability))
    findings = [*constraints.findings, *null_heads(resolved, clauses, nullability)]
    if any(constant.value is None for constant, _ in constraints.constants):
        findings += null_literals(resolved, clauses, nullability)
    columns = {
        name: schema.types if schema.declaration else _inferred(constraints, name, nullability)
        for name, schema in resolved.schemas.items()
    }
    return TypedProgram(clauses, columns, tuple(findings))


def _inferred(
    constraints: TypeConstraints, name: str, nullability: Nullability
) -> tuple[Type | None, ...]:
    """Return the column types of an event predicate without a declaration."""
    found = [constraints.unifier.type_of(node) for node in constraints.columns.get(name, [])]
    return tuple(
        type_.with_null(is_nullable) if type_ else None
        for type_, is_nullable in zip(found, nullability[name], strict=True)
    )


def annotate(constraints: TypeConstraints, columns: Nullability) -> Iterator[logic.Clause]:
    """Yield the program's clauses with types.

    Literals that do not fit their type, and terms without one, are added to the findings.
    """
    has_null = {name for name, nullable in columns.items() if any(nullable)}
    resolved = constraints.resolved
    has_words = arithmetic_of(resolved.program) is Arithmetic.WORDS
    for number, clause in enumerate(resolved.clauses):
        may_be_null = has_null_source(clause) or any(
            use.atom.relation in has_null for use in resolved.uses[number]
        )
        yield _ClauseAnnotator(
            constraints,
            constraints.variables[number],
            iter(constraints.order[number]),
            nullable_variables(clause, columns) if may_be_null else frozenset(),
            has_words,
        ).clause(clause)


@dataclass(slots=True)
class _ClauseAnnotator:
    """Annotates one clause.

    Attributes:
        nodes: those of constants, functors and aggregates, in the order in which terms are met.
        nullable: the variables that may be null.
        has_words: whether numbers are words of 32 bits.
        untyped: the terms without a type that were reported.
    """

    constraints: TypeConstraints
    variables: dict[str, int]
    nodes: Iterator[int]
    nullable: frozenset[str]
    has_words: bool
    untyped: set[str] = field(default_factory=set)

    def clause(self, clause: logic.Clause) -> logic.Clause:
        """Return the clause with types; the body comes first, as in `constraints`."""
        body = self._body(clause.body)
        heads = tuple(replace_terms(each, self._term, _without_new) for each in clause.heads)
        return replace(clause, body=body, heads=heads)

    def _body(self, items: tuple[logic.BodyItem, ...]) -> tuple[logic.BodyItem, ...]:
        return tuple(replace_terms(each, self._term, _without_new) for each in items)

    def _term(self, term: logic.Term) -> logic.Term:
        return logic.fold_term(term, self._typed_term)[0]

    def _typed_term(
        self, term: logic.Term, inside: tuple[tuple[logic.Term, bool], ...]
    ) -> tuple[logic.Term, bool]:
        """Return a term with its type, and whether it may be null."""
        check_deadline()
        if isinstance(term, logic.Functor):
            may_be_null = functor_may_be_null(term, [is_null for _, is_null in inside])
            node = next(self.nodes)
            type_ = self._type(node)
            type_ = type_.with_null(may_be_null) if type_ else None
            if term.name == CAST:
                return self._cast(term, inside[0][0], type_), may_be_null
            if term.name == WINDOW:
                type_ = _window_type(term, type_)
            widened = self.constraints.widened.get(node, (False,) * len(inside))
            arguments = tuple(
                _as_decimal(argument) if is_integer else argument
                for (argument, _), is_integer in zip(inside, widened, strict=True)
            )
            is_text = term.name == "+" and type_ is not None and type_.is_symbol
            name = "cat" if is_text else term.name
            made = replace(term, name=name, arguments=arguments, type=type_)
            if is_lambda(made) or is_parameter(made):
                return with_names(made, written_name), may_be_null
            if is_record_term(made):
                return self._record(made), may_be_null
            if made.name == FIELD:
                self._field(made)
            if made.name in ("array", STRUCT) and type_ is not None:
                return _nested(made, type_), False
            if made.name in _CONSTANTS and isinstance(arguments[0], logic.Constant):
                return _logical(made, arguments[0]), may_be_null
            return made, may_be_null
        return self._leaf(term), is_nullable(term, self.nullable)

    def _field(self, term: logic.Functor) -> None:
        """Report a field that the struct has not."""
        struct, name = term.arguments
        if isinstance(struct, logic.Wildcard) or not isinstance(name, logic.Constant):
            return
        names = [] if struct.type is None else [each for each, _ in struct.type.members]
        if names and isinstance(name.value, str) and name.value not in names:
            message = f"`{term_text(struct)}` has no field `{name.value}`."
            note = f"its fields are {', '.join(f'`{each}`' for each in names)}"
            self._report(Diagnostic("C0309", message, term.span, note))

    def _record(self, term: logic.Functor) -> logic.Term:
        """Return a record of constants as a constant."""
        if term.type is None or term.type.record is None:
            self._untyped(term)
            return term
        values = [each.value for each in term.arguments if isinstance(each, logic.Constant)]
        if len(values) < len(term.arguments) or None in values:
            return term
        branch = term.type.record.branches.get(term.name.removeprefix("$"))
        if branch is not None and len(values) != len(branch.types):
            return term  # which is reported
        text = NIL if branch is None else make_record(branch, values, SCALARS)
        return logic.Constant(text, term.type, term.span)

    def _cast(self, term: logic.Functor, value: logic.Term, type_: Type | None) -> logic.Term:
        """Return a value in another type: the same one, or the one that has the same bits."""
        source = None if isinstance(value, logic.Wildcard) else value.type
        if source is None or type_ is None or source.domain == type_.domain:
            return value
        if {source.kind, type_.kind} <= SAME_BITS.keys():
            return logic.Functor(SAME_BITS[type_.kind], (value,), type_, term.span)
        kinds = f"a `{source.with_null(False)}` as a `{type_.with_null(False)}`"
        message = f"`as` cannot read {kinds}: they have no bits in common."
        note = "convert the value with `to_number`, `to_string` or the like"
        if source.is_symbol or type_.is_symbol:
            message = f"`as` cannot read {kinds}: texts have no numbers of their own here."
        self._report(Diagnostic("C0326", message, term.span, note))
        return value

    def _columns(self, arguments: logic.Functor) -> tuple[logic.Term, ...]:
        """Return the arguments of a holistic aggregate; constants are its own, not values."""
        return tuple(
            each if isinstance(each, logic.Constant) else self._term(each)
            for each in arguments.arguments
        )

    def _leaf(
        self, term: logic.Variable | logic.Wildcard | logic.Constant | logic.AggregateTerm
    ) -> logic.Term:
        match term:
            case logic.Variable(name=name):
                type_ = self._typed(term, self.variables[name])
                type_ = type_.with_null(name in self.nullable) if type_ else None
                return logic.Variable(written_name(name), type_, term.span)
            case logic.Wildcard():
                return term
            case logic.Constant():
                return self._constant(term)
            case logic.AggregateTerm(operator=operator, target=target, body=body):
                items = self._body(body)
                if isinstance(target, logic.Functor) and target.name == ARGUMENTS:
                    of: logic.Term | None = replace(target, arguments=self._columns(target))
                else:
                    of = None if target is None else self._term(target)
                type_ = self._type(next(self.nodes))
                if operator == "sum" and type_ is not None and type_.is_decimal:
                    type_ = replace(type_, precision=DECIMAL_MAX_DIGITS)
                return logic.AggregateTerm(operator, of, items, type_, term.span)
            case _:
                assert_never(term)

    def _constant(self, term: logic.Constant) -> logic.Constant:
        type_ = self._typed(term, next(self.nodes))
        if type_ is None:
            return term
        try:
            value = convert(term, type_)
            if self.has_words:
                value = _word(value, type_)
        except OverflowError as error:
            words = f"`{term_text(term)}` is not a value of `{type_}`."
            self._report(Diagnostic("C0306", words, term.span, str(error)))
            return term
        return logic.Constant(value, type_.with_null(value is None), term.span)

    def _type(self, node: int) -> Type | None:
        return self.constraints.unifier.type_of(node)

    def _typed(self, term: logic.Variable | logic.Constant, node: int) -> Type | None:
        """Return the type of a term; if it has none, report that once."""
        type_ = self._type(node)
        if type_ is None:
            self._untyped(term)
        return type_

    def _untyped(self, term: logic.Term) -> None:
        if (name := term_text(term)) not in self.untyped:
            self.untyped.add(name)
            words = f"The type of `{name}` cannot be inferred."
            cure = "declare the relation that it goes to, with types"
            self._report(Diagnostic("C0308", words, term.span, cure))

    def _report(self, finding: Diagnostic) -> None:
        self.constraints.findings.append(finding)


def _without_new(atom: logic.Atom) -> logic.Atom:
    """Return an atom without its `@new`: `p@new` and `p` are the same."""
    return replace(atom, state=None) if atom.state is State.NEW else atom


def _window_type(term: logic.Functor, type_: Type | None) -> Type | None:
    """Return the type of a window function: a sum has all digits that a decimal can have."""
    found = window_of(term)
    is_sum = found is not None and found.function.name == "sum"
    if type_ is not None and is_sum and type_.is_decimal:
        return replace(type_, precision=DECIMAL_MAX_DIGITS)
    return type_


_CONSTANTS = frozenset(
    {"from_hex", "to_local", "to_duration", "to_months", "to_float32", "time_from_micros"}
)
"""The functors by which constants of logical types are written."""


def _logical(term: logic.Functor, stored: logic.Constant) -> logic.Term:
    """Return a constant of a logical type; what is none of it fails where it is computed."""
    if isinstance(stored.value, int | float):
        assert term.type is not None
        value = from_stored(stored.value, term.type)
        is_one = is_value(value, term.type)
        return logic.Constant(value, term.type, term.span) if is_one else term
    if isinstance(stored.value, datetime):
        return logic.Constant(stored.value.replace(tzinfo=None), term.type, term.span)
    try:
        return logic.Constant(parse_value(str(stored.value), BINARY), term.type, term.span)
    except ValueError:
        return term


def _nested(term: logic.Functor, type_: Type) -> logic.Term:
    """Return an array or struct of constants as a constant."""
    parts = term.arguments if type_.is_array else term.arguments[1::2]
    values = [each.value for each in parts if isinstance(each, logic.Constant)]
    if len(values) < len(parts):
        return term
    return logic.Constant(tuple(values), type_, term.span)


def _as_decimal(term: logic.Term) -> logic.Term:
    """Return an integer as a decimal without digits after the point."""
    assert not isinstance(term, logic.Wildcard)
    nullable = term.type is not None and term.type.nullable
    type_ = decimal(DECIMAL_MAX_DIGITS, 0).with_null(nullable)
    return logic.Functor("to_decimal", (term, logic.Constant(0, NUMBER)), type_, term.span)


def convert(constant: logic.Constant, type_: Type) -> logic.Value:
    """Return the value of a literal in a type.

    >>> convert(logic.Constant(5), decimal(12, 2))
    Decimal('5.00')

    Raises:
        OverflowError: if the type has no such value; the message says why.
    """
    value = constant.value
    match value:
        case bool():
            return value
        case int() if type_.is_integral:
            least, most = type_.spec.bounds
            if not least <= value <= most:
                raise OverflowError(f"`{type_.kind}` goes from {least} to {most}")
            return value
        case int() | float() | Decimal() if type_.is_float:
            return _float(value)
        case int() | float() | Decimal() if type_.is_decimal:
            return _decimal(value, type_)
        case _:
            return value


def _word(value: logic.Value, type_: Type) -> logic.Value:
    """Return the word of 32 bits of a literal."""
    if isinstance(value, int) and type_.is_integral:
        least, most = (each >> 32 for each in type_.spec.bounds)
        if not least <= value <= most:
            raise OverflowError(f"`{type_.kind}` goes from {least} to {most} in 32 bits")
    if isinstance(value, float) and type_.is_float:
        try:
            return float(struct.unpack("f", struct.pack("f", value))[0])
        except OverflowError:
            raise OverflowError("`float` goes to about 3.4e38 in 32 bits") from None
    return value


def _float(value: float | Decimal) -> float:
    try:
        converted = float(value)
    except OverflowError:
        converted = float("inf")
    if converted in (float("inf"), float("-inf")):
        raise OverflowError("`float` goes to about 1.8e308")
    return converted + 0.0  # -0.0 becomes 0.0


def _decimal(value: float | Decimal, type_: Type) -> Decimal:
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    whole = type_.precision - type_.scale
    if exact.adjusted() >= whole and exact != 0:
        raise OverflowError(f"`{type_}` has {whole} digits before the point")
    if not is_decimal(exact, type_):
        raise OverflowError(f"`{type_}` has {type_.scale} digits after the point")
    return decimal_value(unscaled_integer(exact, type_.scale), type_.scale)
