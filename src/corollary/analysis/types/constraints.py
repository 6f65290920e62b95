"""Type constraints: what columns, literals, functors and aggregates require of each other.

Every variable of a clause, every constant, functor and aggregate gets a node (see `unify`), every
declared column gives its arguments its type. Event predicates without a declaration have nodes for
their columns, so that their types come from all their rules at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import field
from datetime import date, datetime, time, timedelta
from typing import assert_never

from corollary.analysis.phrases import FRACTION_LITERAL, INTEGER_LITERAL, one_of, term_text
from corollary.analysis.resolution import RelationSchema, ResolvedProgram, cast_type, resolve_type
from corollary.analysis.types import mismatch
from corollary.analysis.types.unify import PartialType, Reason, Unifier
from corollary.core import logic
from corollary.core.engine import check_deadline
from corollary.core.functors import catalog
from corollary.core.functors.arrays import FIELD, FIELDS, STRUCT, ZIP
from corollary.core.functors.conversions import CAST
from corollary.core.functors.holistic import HOLISTIC
from corollary.core.functors.lambdas import has_lambda, is_lambda, is_parameter, parameters_of
from corollary.core.functors.spec import (
    ANY,
    ARRAYS,
    INTEGRAL,
    LETTERS,
    ORDERED,
    STRUCTS,
    FunctorSpec,
    Kinds,
)
from corollary.core.functors.texts import FROM_JSON, JSON_NOTE, has_json_options, json_type
from corollary.core.records.record_terms import is_record_term
from corollary.core.types import DECIMAL_MAX_DIGITS, NIL, NUMERIC, Kind
from corollary.core.user_functors.user_functor import UserCall
from corollary.core.windows import RANKS, WINDOW, window_of
from corollary.data_class import dataclass
from corollary.errors import Diagnostic
from corollary.source import Span

_SYMBOL: Kinds = frozenset({Kind.SYMBOL})
_AGGREGATE_RESULTS: dict[str, Kinds] = {
    "count": frozenset({Kind.NUMBER}),
    "mean": frozenset({Kind.FLOAT}),
}
"""The aggregates whose result has another type than what is aggregated."""

_HOLISTIC_KINDS: dict[tuple[str, int], Kinds] = {
    **dict.fromkeys((("bit_and", 0), ("bit_or", 0), ("bit_xor", 0)), INTEGRAL),
    ("listagg", 0): _SYMBOL,
    ("collect_list", 0): ANY - {Kind.RECORD},
}
"""What holistic aggregates are of, where it is not anything that has an order."""

RecordTerm = tuple[logic.Functor, int, tuple[int, ...]]
"""A record as it is written, its node and those of its fields."""


_KINDS_FIRST = (*(spec.name for spec in catalog.FUNCTORS.values() if spec.is_mixing), "sign")
"""The functors whose result depends on the kinds of their arguments."""


@dataclass(slots=True)
class TypeConstraints:
    """The nodes of a program's terms, and what was found wrong with them.

    Attributes:
        variables: for each clause, the nodes of its variables.
        order: for each clause, the nodes of its constants, functors and aggregates, body before
            heads, arguments before their functor: `annotate` meets the terms in the same order.
        columns: the nodes of the columns of event predicates without a declaration.
        computed: functors whose digits follow from those of their arguments.
        constants: the literals and their nodes.
        compared: the sides of comparisons, whose digits may differ.
        records: the records whose type is not known yet, with their nodes and those of the fields.
        widened: for operations of integers and decimals, which operands are integers, by the node
            of the result: `annotate` converts them.
    """

    resolved: ResolvedProgram
    unifier: Unifier = field(default_factory=Unifier)
    findings: list[Diagnostic] = field(default_factory=list)
    variables: list[dict[str, int]] = field(default_factory=list)
    order: list[list[int]] = field(default_factory=list)
    columns: dict[str, list[int]] = field(default_factory=dict)
    computed: list[tuple[logic.Functor, int, tuple[int, ...]]] = field(default_factory=list)
    constants: list[tuple[logic.Constant, int]] = field(default_factory=list)
    compared: list[tuple[int, int]] = field(default_factory=list)
    records: list[RecordTerm] = field(default_factory=list)
    widened: dict[int, tuple[bool, ...]] = field(default_factory=dict)

    def resolve_records(self) -> None:
        """Give the fields of records their types, as far as those of the records are known."""
        self.records, findings = resolve_records(self.unifier, self.records)
        self.findings += findings


def collect_constraints(resolved: ResolvedProgram) -> TypeConstraints:
    """Return the nodes of all terms, unified as far as they can be."""
    constraints = TypeConstraints(resolved)
    for clause, uses in zip(resolved.clauses, resolved.uses, strict=True):
        found = _ClauseConstraints(constraints)
        if logic.applies_functor(clause, _KINDS_FIRST):
            found.bind_variables(use.atom for use in uses)
        found.visit(clause)
        constraints.resolve_records()
    constraints.resolve_records()
    return constraints


class _ClauseConstraints:
    """Collects the constraints of one clause."""

    def __init__(self, constraints: TypeConstraints) -> None:
        self._constraints = constraints
        self._unifier = constraints.unifier
        self._variables: dict[str, int] = {}
        self._parameters: dict[str, int] = {}
        self._order: list[int] = []
        constraints.variables.append(self._variables)
        constraints.order.append(self._order)

    def bind_variables(self, atoms: Iterable[logic.Atom]) -> None:
        """Let variables have the kinds of their columns before any operation is met.

        Two columns that disagree are reported when their atoms are visited.
        """
        for atom in atoms:
            schema = self._constraints.resolved.schema_of(atom)
            if schema is None:
                continue
            for term, name, type_ in zip(atom.arguments, schema.columns, schema.types, strict=True):
                if isinstance(term, logic.Variable) and type_ is not None:
                    reason = Reason(f"column `{name}` of `{schema.name}`", term.span)
                    kinds = frozenset({type_.inferred_kind})
                    self._unifier.restrict(self._term(term), kinds, reason)

    def visit(self, clause: logic.Clause) -> None:
        """Add the nodes of a clause, body before heads."""
        self._body(clause.body)
        for head in clause.heads:
            self._atom(head)

    def _body(self, items: tuple[logic.BodyItem, ...]) -> None:
        for item in logic.literals_of(items):
            match item:
                case logic.Atom():
                    self._atom(item)
                case logic.Negation(atom=atom):
                    self._atom(atom)
                case logic.Comparison():
                    self._comparison(item)
                case logic.Truth():
                    pass
                case _:
                    assert_never(item)

    def _atom(self, atom: logic.Atom) -> None:
        schema = self._constraints.resolved.schema_of(atom)
        for position, term in enumerate(atom.arguments):
            node = self._term(term)
            if schema is not None:
                self._argument(term, node, schema, position)

    def _argument(self, term: logic.Term, node: int, schema: RelationSchema, position: int) -> None:
        """Let an argument have the type of its column, which may be yet to be inferred."""
        type_ = schema.types[position]
        if type_ is not None:
            name = schema.columns[position]
            reason = Reason(f"column `{name}` of `{schema.name}`", term.span)
            agrees, expected = self._unifier.assign(node, type_, reason), PartialType.of(type_)
        elif schema.declaration is None:
            column = self._undeclared_columns(schema)[position]
            agrees = self._unifier.unify_domains(node, column)
            expected = self._unifier.partial_type(column)
        else:
            return  # The declared type does not exist, which `declarations` reports.
        if not agrees:
            known = self._unifier.partial_type(node)
            self._report(mismatch.column_mismatch(term, known, schema, position, expected))

    def _undeclared_columns(self, schema: RelationSchema) -> list[int]:
        columns = self._constraints.columns
        if schema.name not in columns:
            columns[schema.name] = [self._unifier.new_node() for _ in schema.columns]
        return columns[schema.name]

    def _comparison(self, item: logic.Comparison) -> None:
        left, right = self._term(item.left), self._term(item.right)
        if item.operator.lstrip("!") in ("match", "contains"):
            for term, node in ((item.left, left), (item.right, right)):
                self._take(term, node, item.operator.lstrip("!"), _SYMBOL)
            return
        if item.operator in logic.EQUATIONS:
            agree = self._unifier.unify_domains(left, right)
        else:
            agree = self._unifier.unify_kinds(left, right)
            self._constraints.compared.append((left, right))
            if item.operator != "!=" and agree:
                self._take(item.left, left, item.operator, ORDERED)
        if not agree:
            sides = (
                (item.left, self._unifier.partial_type(left)),
                (item.right, self._unifier.partial_type(right)),
            )
            self._report(mismatch.comparison_mismatch(item.operator, sides, item.span))

    def _take(self, term: logic.Term, node: int, taker: str, kinds: Kinds) -> bool:
        reason = Reason(f"argument of `{taker}`", term.span)
        if not self._unifier.restrict(node, kinds, reason):
            known = self._unifier.partial_type(node)
            self._report(mismatch.parameter_mismatch(term, known, taker, kinds))
            return False
        return True

    def _term(self, term: logic.Term) -> int:
        return logic.fold_term(term, self._node, has_lambda)

    def _applied(self, term: logic.Functor) -> tuple[int, ...]:
        """Return the nodes of the arguments of a functor that takes a lambda.

        Its parameters are known before its body, whose operations may depend on their types.
        """
        signature, nodes = catalog.signature_of(term), list[int]()
        for at, argument in enumerate(term.arguments):
            if is_lambda(argument) and signature is not None:
                names, taken = parameters_of(argument.name), signature.lambda_at(at)
                for name, word in zip(names, taken, strict=False):
                    self._parameters[name] = self._parameter(word, signature, nodes)
            nodes.append(self._term(argument))
        return tuple(nodes)

    def _parameter(self, word: str, signature: FunctorSpec, nodes: Sequence[int]) -> int:
        """Return the node of a parameter whose type is written so in a signature."""
        for node, shape in zip(nodes, signature.shape, strict=False):
            if shape == word:
                return node
            if shape == f"[{word}]":
                return self._unifier.member(node)
        return self._unifier.new_node(frozenset({Kind(word.rstrip("?"))}))

    def _node(self, term: logic.Term, inside: tuple[int, ...]) -> int:
        """Return the node of a term, given those of its arguments."""
        check_deadline()
        match term:
            case logic.Variable(name=name):
                node = self._variables.get(name)
                if node is None:
                    node = self._variables[name] = self._unifier.new_node()
                return node
            case logic.Wildcard():
                return self._unifier.new_node()
            case logic.Constant():
                reason = Reason("this literal", term.span)
                node = self._unifier.new_node(literal_kinds(term), reason)
                if term.type is not None and term.type.members:
                    self._unifier.assign(node, term.type, reason)
                self._constraints.constants.append((term, node))
            case logic.Functor() if is_record_term(term):
                node = self._record(term, inside)
            case logic.Functor() if is_parameter(term):
                known = self._parameters.get(parameters_of(term.name)[0])
                node = self._unifier.new_node() if known is None else known
            case logic.Functor():
                node = self._functor(term, self._applied(term) if has_lambda(term) else inside)
            case logic.AggregateTerm():
                node = self._aggregate(term)
            case _:
                assert_never(term)
        self._order.append(node)
        return node

    def _record(self, term: logic.Functor, nodes: tuple[int, ...]) -> int:
        """Return the node of a record; its type may be known only from what is met later."""
        reason = Reason("this record", term.span)
        node = self._unifier.new_node(frozenset({Kind.RECORD}), reason)
        if term.name.startswith("$"):
            known = self._constraints.resolved.branches.get(term.name[1:])
            if known is None or len(known[1].fields) != len(nodes):
                return node  # `names` reports it
            self._unifier.assign(node, known[0], reason)
        self._constraints.records.append((term, node, nodes))
        return node

    def _functor(self, term: logic.Functor, nodes: tuple[int, ...]) -> int:
        if term.name == CAST:
            return self._cast(term)
        if term.name == WINDOW:
            return self._window(term, nodes)
        signature = catalog.signature_of(term)
        if signature is None or not signature.accepts(len(nodes)):
            return self._unifier.new_node()
        if isinstance(term, UserCall):
            return self._user_call(term, nodes)
        name = "-" if term.name == "neg" else term.name
        are_taken = [
            self._take(_of_lambda(argument), node, name, signature.kinds(position, len(nodes)))
            for position, (argument, node) in enumerate(zip(term.arguments, nodes, strict=True))
        ]
        if signature.time_letters:
            self._format(term)
        for position in signature.patterns:
            self._pattern(term, term.arguments[position])
        for position, values in signature.literals.items():
            self._literal(term, position, values)
        if not has_json_options(term):
            message = f"The options of `{term.name}` are not an object as a literal of JSON."
            self._report(Diagnostic("C0309", message, term.span, JSON_NOTE))
        if all(are_taken) and signature.is_comparing and self._agree(term, nodes):
            self._constraints.compared.append((nodes[0], nodes[1]))
        if term.name in (STRUCT, FIELD, FIELDS, ZIP):
            result = self._fields(term, nodes)
        elif signature.shape:
            result = self._shaped(term, signature, nodes, are_taken)
            if term.name == FROM_JSON:
                self._unifier.assign(result, json_type(term), Reason("its type", term.span))
        elif signature.is_like_first:
            result = self._unifier.new_node()
            self._unifier.unify_domains(nodes[0], result)
        elif signature.result is None:
            result = self._unifier.new_node()
            if all(are_taken):
                self._operands(term, signature, nodes, result)
        else:
            reason = Reason(f"the result of `{term.name}`", term.span)
            is_sign = term.name == "sign"
            is_float = is_sign and self._unifier.partial_type(nodes[0]).kinds == {Kind.FLOAT}
            kind = Kind.FLOAT if is_float else signature.result
            result = self._unifier.new_node(frozenset({kind}), reason)
            if signature.scale_at is not None:
                self._round(term.arguments[signature.scale_at], result, reason)
        return result

    def _shaped(
        self,
        term: logic.Functor,
        signature: FunctorSpec,
        nodes: tuple[int, ...],
        are_taken: Sequence[bool],
    ) -> int:
        """Let arrays have the elements that the signature of a functor says."""
        result = self._unifier.new_node()
        named = defaultdict[str, int](self._unifier.new_node)
        written = [signature.shape_at(at) for at in range(len(nodes))]
        for at, (node, shape) in enumerate(
            zip((*nodes, result), (*written, signature.shape[-1]), strict=True)
        ):
            shape, reason = (
                shape.rpartition("->")[2],
                Reason(f"the result of `{term.name}`", term.span),
            )
            for part, word in self._unifier.inside(node, shape, reason):
                if word not in LETTERS:
                    self._unifier.restrict(part, frozenset({Kind(word)}), reason)
                elif not self._unifier.unify_domains(named[word], part) and all(are_taken):
                    argument = term.arguments[at] if at < len(nodes) else term
                    known = self._unifier.partial_type(part)
                    wanted = self._unifier.partial_type(named[word]).kinds
                    self._report(mismatch.parameter_mismatch(argument, known, term.name, wanted))
        return result

    def _fields(self, term: logic.Functor, nodes: tuple[int, ...]) -> int:
        """Let a struct have the fields that are written, or the field that is asked for."""
        reason = Reason(f"the result of `{term.name}`", term.span)
        names: list[str] = []
        if term.name in (STRUCT, ZIP) and len(nodes) % 2:
            message = f"`{term.name}` takes a name and a value for each field."
            note = f'write for example `{term.name}("a", x, "b", y)`'
            self._report(Diagnostic("C0309", message, term.span, note))
            return self._unifier.new_node()
        for each in term.arguments[1 if term.name in (FIELD, FIELDS) else 0 :: 2]:
            match each:
                case logic.Constant(value=str(name)) if name not in names:
                    names.append(name)
                case _:
                    message = f"`{term_text(each)}` is not the name of a field, as a literal, once."
                    note = 'write for example `struct("a", x, "b", y)` and `field(s, "a")`'
                    self._report(Diagnostic("C0309", message, term.span, note))
                    return self._unifier.new_node()
        if term.name == STRUCT:
            result = self._unifier.new_node(STRUCTS, reason)
            self._unifier.assign_fields(result, tuple(names))
            for name, node in zip(names, nodes[1::2], strict=True):
                self._unifier.unify_domains(self._unifier.member(result, name), node)
            return result
        if term.name == FIELD:
            return self._unifier.member(nodes[0], names[0])
        result = self._unifier.new_node(ARRAYS, reason)
        if term.name == ZIP:
            struct = self._unifier.member(result)
            self._unifier.restrict(struct, STRUCTS, reason)
            self._unifier.assign_fields(struct, tuple(names))
            for name, array, node in zip(names, term.arguments[1::2], nodes[1::2], strict=True):
                self._take(array, node, term.name, ARRAYS)
                inner = self._unifier.member(node)
                self._unifier.unify_domains(self._unifier.member(struct, name), inner)
            return result
        struct = self._unifier.member(nodes[0])
        self._unifier.restrict(struct, STRUCTS, reason)
        held = self._unifier.member(struct, names[0])
        self._unifier.unify_domains(self._unifier.member(result), held)
        return result

    def _window(self, term: logic.Functor, nodes: tuple[int, ...]) -> int:
        """Return the node of a window function; the check `windows` looks at its text."""
        found = window_of(term)
        if found is None:
            return self._unifier.new_node()
        function = found.function
        reason = Reason(f"the result of `{function.name}`", term.span)
        if function.name in (*RANKS, "count"):
            return self._unifier.new_node(frozenset({Kind.NUMBER}), reason)
        if function.name in HOLISTIC:
            arguments = [(term.arguments[1 + at], nodes[1 + at]) for at in function.arguments]
            return self._holistic(function.name, arguments, term.span)
        result = self._unifier.new_node()
        taken = NUMERIC if function.name == "sum" else ANY
        for at in function.arguments:
            if self._take(term.arguments[1 + at], nodes[1 + at], function.name, taken):
                self._unifier.unify_domains(nodes[1 + at], result)
        return result

    def _user_call(self, term: UserCall, nodes: tuple[int, ...]) -> int:
        """Let arguments and result have the types that the functor is declared with."""
        declared = term.functor
        for argument, node, type_ in zip(term.arguments, nodes, declared.parameters, strict=True):
            reason = Reason(f"argument of `{term.name}`", argument.span)
            if not self._unifier.assign(node, type_, reason):
                known = self._unifier.partial_type(node)
                self._report(mismatch.user_parameter_mismatch(argument, known, term.name, type_))
        result = self._unifier.new_node()
        reason = Reason(f"the result of `{term.name}`", term.span)
        self._unifier.assign(result, declared.result, reason)
        return result

    def _cast(self, term: logic.Functor) -> int:
        """Let `as(x, T)` have the type T, whatever x is; `annotate` refuses what has no meaning."""
        result = self._unifier.new_node()
        type_ = resolve_type(cast_type(term), self._constraints.resolved.types)
        if type_ is not None:
            self._unifier.assign(result, type_, Reason("this cast", term.span))
        return result

    def _operands(
        self, term: logic.Functor, signature: FunctorSpec, nodes: tuple[int, ...], result: int
    ) -> None:
        """Require one kind of the operands and the result; their digits may differ.

        An integer may be beside a decimal: it is a decimal without digits after the point then.
        `null` is of the type of the result.
        """
        kinds = [self._unifier.partial_type(node).kinds for node in nodes]
        integers = tuple(each <= INTEGRAL for each in kinds)
        if signature.is_mixing and any(integers) and frozenset({Kind.DECIMAL}) in kinds:
            decimals = tuple(node for node, each in zip(nodes, integers, strict=True) if not each)
            self._unifier.unify_kinds(decimals[0], result)
            self._constraints.computed.append((term, result, decimals))
            self._constraints.widened[result] = integers
            return
        alike = signature.alike(len(nodes))
        if not self._agree(term, nodes, alike):
            return
        self._unifier.unify_kinds(nodes[alike[0]], result)
        sized = [at for at in alike if not _is_null(term.arguments[at])]
        for at in alike:
            if at not in sized:
                self._unifier.unify_domains(nodes[at], result)
        self._constraints.computed.append((term, result, tuple(nodes[at] for at in sized)))

    def _agree(
        self, term: logic.Functor, nodes: tuple[int, ...], alike: Sequence[int] = (0, 1)
    ) -> bool:
        """Let some arguments have one kind; return False if they cannot."""
        first = alike[0]
        for at in alike[1:]:
            if not self._unifier.unify_kinds(nodes[first], nodes[at]):
                operands = [
                    (term.arguments[each], self._unifier.partial_type(nodes[each]))
                    for each in (first, at)
                ]
                self._report(mismatch.operand_mismatch(term.name, operands))
                return False
        return True

    def _round(self, scale: logic.Term, result: int, reason: Reason) -> None:
        """Give the result of `to_decimal` the digits that an argument names."""
        match scale:
            case logic.Constant(value=int(digits)) if 0 <= digits <= DECIMAL_MAX_DIGITS:
                self._unifier.assign_scale(result, DECIMAL_MAX_DIGITS, digits, reason)
            case _:
                pass  # `_literal` reports it

    def _literal(self, term: logic.Functor, position: int, values: Sequence[int | str]) -> None:
        """Check an argument that must be known before anything is computed."""
        written = term.arguments[position]
        match written:
            case logic.Constant(value=int() | str() as value) if value in values:
                return
            case _:
                pass
        if isinstance(values, range):
            what = f"a number of digits from {values[0]} to {values[-1]}"
        else:
            what = one_of(term_text(logic.Constant(each)) for each in values)
        suggested = term_text(logic.Constant(2 if 2 in values else values[0]))
        example = ", ".join(
            suggested if at == position else term_text(argument)
            for at, argument in enumerate(term.arguments)
        )
        self._report(
            Diagnostic(
                "C0309",
                f"`{term_text(written)}` is not {what}, as `{term.name}` needs it.",
                written.span,
                f"write it as a literal: `{term.name}({example})`",
            )
        )

    def _pattern(self, term: logic.Functor, written: logic.Term) -> None:
        """Check a pattern, and the group of it that is asked for."""
        reason = "it is not a literal"
        if isinstance(written, logic.Constant) and isinstance(written.value, str):
            try:
                groups = catalog.count_groups(written.value)
            except ValueError as error:
                reason = str(error)
            else:
                self._group(term, groups)
                return
        self._report(
            Diagnostic(
                "C0311",
                f"`{term_text(written)}` is not a pattern of `{term.name}`: {reason}.",
                written.span,
                'write a regular expression of RE2 as a literal, such as `"[a-z]+"`',
            )
        )

    def _group(self, term: logic.Functor, groups: int) -> None:
        """Check the number of a group of a pattern."""
        if "group" not in catalog.FUNCTORS[term.name].arguments:
            return
        match term.arguments[2]:
            case logic.Constant(value=int(number)) if 0 <= number <= groups:
                return
            case written:
                self._report(
                    Diagnostic(
                        "C0309",
                        f"`{term_text(written)}` is not the number of a group of the pattern, "
                        f"which has {groups}.",
                        written.span,
                        "write 0 for all that matches, or the number of a group, as a literal",
                    )
                )

    def _format(self, term: logic.Functor) -> None:
        """Check the format of a time, which must be known before anything is computed."""
        written = term.arguments[1]
        reason = "it is not a literal"
        try:
            if isinstance(written, logic.Constant) and isinstance(written.value, str):
                catalog.read_time_format(term.name, written.value)
                return
        except ValueError as error:
            reason = str(error)
        example = "%d.%m.%Y" if term.name == "parse_date" else "%d.%m.%Y %H:%M"
        self._report(
            Diagnostic(
                "C0310",
                f"`{term_text(written)}` is not a format of `{term.name}`: {reason}.",
                written.span,
                f'write one such as `"{example}"`',
            )
        )

    def _aggregate(self, term: logic.AggregateTerm) -> int:
        self._body(term.body)
        if term.operator in HOLISTIC:
            terms = logic.aggregated_terms(term)
            columns = [each for each in terms if not isinstance(each, logic.Constant)]
            arguments = [(each, self._term(each)) for each in columns]
            return self._holistic(term.operator, arguments, term.span)
        target = None if term.target is None else self._term(term.target)
        kinds = _AGGREGATE_RESULTS.get(term.operator)
        reason = Reason(f"the result of `{term.operator}`", term.span) if kinds else None
        result = self._unifier.new_node(kinds or ANY, reason)
        if term.target is not None and target is not None:
            taken = NUMERIC if term.operator in ("sum", "mean") else ORDERED
            if self._take(term.target, target, term.operator, taken) and not kinds:
                self._unifier.unify_domains(target, result)
        return result

    def _holistic(
        self, operator: str, arguments: Sequence[tuple[logic.Term, int]], span: Span | None
    ) -> int:
        """Return the node of a holistic aggregate of columns, each with its node."""
        wanted, typed_by = HOLISTIC[operator], HOLISTIC[operator].typed_by
        for at, (each, node) in enumerate(arguments):
            taken = _HOLISTIC_KINDS.get((operator, at), ORDERED)
            if typed_by is None:
                taken = frozenset({Kind.FLOAT})
            if at == wanted.columns and not wanted.is_open:  # how often a row counts
                taken = frozenset({Kind.NUMBER})
            self._take(each, node, operator, taken)
        reason = Reason(f"the result of `{operator}`", span)
        if typed_by is None:
            return self._unifier.new_node(frozenset({Kind.FLOAT}), reason)
        result = self._unifier.new_node(ARRAYS if wanted.is_array else ANY, reason)
        inside = self._unifier.member(result) if wanted.is_array else result
        self._unifier.unify_domains(arguments[typed_by][1], inside)
        return result

    def _report(self, finding: Diagnostic) -> None:
        self._constraints.findings.append(finding)


def _is_null(term: logic.Term) -> bool:
    return isinstance(term, logic.Constant) and term.value is None


def _of_lambda(term: logic.Term) -> logic.Term:
    """Return what gives the value of an argument: the body of a lambda."""
    return term.arguments[0] if is_lambda(term) else term


def literal_kinds(constant: logic.Constant) -> Kinds:
    """Return the kinds that a literal may have.

    >>> literal_kinds(logic.Constant("a"))
    frozenset({<Kind.SYMBOL: 'symbol'>})
    """
    if constant.type is not None:
        return frozenset({constant.type.logical_kind})
    match constant.value:
        case None:
            return ANY
        case bool():
            return frozenset({Kind.BOOL})
        case int():
            return INTEGER_LITERAL
        case str():
            return _SYMBOL
        case bytes():
            return frozenset({Kind.BINARY})
        case tuple():
            return ARRAYS
        case datetime(tzinfo=None):
            return frozenset({Kind.TIMESTAMP_NTZ})
        case datetime():
            return frozenset({Kind.TIMESTAMP})
        case time():
            return frozenset({Kind.TIME_OF_DAY})
        case timedelta():
            return frozenset({Kind.DURATION})
        case date():
            return frozenset({Kind.DATE})
        case _:
            return FRACTION_LITERAL


def resolve_records(
    unifier: Unifier, records: Sequence[RecordTerm]
) -> tuple[list[RecordTerm], list[Diagnostic]]:
    """Give the fields of records their types, where the types of the records are known.

    Returns:
        The records whose types are not known yet, and what is wrong with the others.
    """
    findings: list[Diagnostic] = []
    waiting, left = list(records), len(records) + 1
    while waiting and len(waiting) < left:
        left, pending, waiting = len(waiting), waiting, []
        for term, node, fields in pending:
            record = unifier.record(node)
            if record is None:
                waiting.append((term, node, fields))
                continue
            branch = record.branches.get(term.name.removeprefix("$"))
            if term.name == NIL and not record.is_algebraic:
                continue
            if branch is None or len(branch.types) != len(fields):
                findings.append(mismatch.record_mismatch(term, record))
                continue
            for at, (argument, inner) in enumerate(zip(term.arguments, fields, strict=True)):
                reason = Reason(f"field `{branch.fields[at]}` of `{record.name}`", argument.span)
                if not unifier.assign(inner, branch.types[at], reason):
                    known = unifier.partial_type(inner)
                    findings.append(mismatch.field_mismatch(argument, known, record, branch, at))
    return waiting, findings
