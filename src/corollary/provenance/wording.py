"""How rules, literals and conditions read in answers: as the user wrote them, with values put in.

What rewriting made is undone: `p.base(1)` reads `p(1)`, `!q.some1(1)` reads `!q(1, _)`, a row of
counts is a row of its bag.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from corollary.core import logic, printer
from corollary.core.logic import (
    AnyAggregation,
    Condition,
    Constant,
    Literal,
    Rule,
    Value,
    Variable,
    Wildcard,
    Windowing,
)
from corollary.core.program import NormalProgram, Program, owner_of, sql_texts
from corollary.core.titles import title_of
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.provenance.nodes import ProofKind, ProofNode, ProofRule, Row
from corollary.provenance.rule_query import guards
from corollary.source import Span

_SELECT = re.compile(r"\bselect\s+(?:distinct\s+|all\s+)?$", re.IGNORECASE)

Bindings = Mapping[str, Value]
"""The values of the variables of a rule, by name."""


@dataclass(frozen=True, slots=True)
class Projection:
    """A relation that rewriting made of some columns of another one.

    Columns that it has besides are fields of records among these.
    """

    relation: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Wording:
    """The words of a program.

    Attributes:
        written: the program as written.
        program: its normal form.
    """

    written: Program
    program: NormalProgram

    # --- rules ---------------------------------------------------------------------------------

    @cached_property
    def _numbers(self) -> Mapping[object, int]:
        """The numbers of clauses with a body, by text and span, by text, and by span."""
        found: dict[object, int] = {}
        number = 0
        for clause in self.written.clauses:
            if clause.body:
                number += 1
                text = printer.print_clause(clause)
                for key in ((text, clause.span), text, clause.span):
                    if key is not None:
                        found.setdefault(key, number)
        return found

    def rule_number(self, origin: logic.Origin) -> int | None:
        """Return the number of the user's rule, from 1; None if it is none, as of an `eqrel`."""
        for key in ((origin.text, origin.span), origin.text, origin.span):
            if key is not None and key in self._numbers:
                return self._numbers[key]
        return None

    def rule(self, number: int) -> ProofRule:
        """Return the rule of a number; that of a statement of SQL is its text."""
        clauses = [each for each in self.written.clauses if each.body]
        clause = clauses[number - 1]
        owner = owner_of(clause.heads[0].relation, self._statements)
        span = clause.span
        if owner is None or (span is not None and not span.file.is_sql):
            return _rule(number, printer.print_clause(clause), span)
        text = self._statements[owner] if span is None else excerpt(span)
        return _rule(number, text, span)

    @cached_property
    def _statements(self) -> Mapping[str, str]:
        return sql_texts(self.written)

    # --- relations -----------------------------------------------------------------------------

    @cached_property
    def _users(self) -> Mapping[str, str]:
        """The user's names of relations that hold base tuples, seeds and counts."""
        bases = self.program.bases
        found = {base: name for name, base in bases.items() if name in self.program.relations}
        # The seed of an equivalence has a base of its own: the equivalence is what users know.
        for base, name in list(found.items()):
            found[base] = found.get(name, name)
        for rule in self.program.rules:
            if "equivalences" in rule.origin.passes and rule.head.relation in self._closures:
                for literal in rule.literals:
                    if literal.relation != rule.head.relation:
                        found[literal.relation] = rule.head.relation
        for base, name in list(found.items()):
            found[base] = found.get(name, name)
        return found

    @cached_property
    def _closures(self) -> frozenset[str]:
        """The equivalences of the program."""
        return frozenset(each.name for each in self.written.declarations if each.is_equivalence)

    @cached_property
    def counts(self) -> Mapping[str, str]:
        """The bags of relations that hold counts, by these."""
        return {rows: bag for bag, rows in self.program.bags.items()}

    def user_name(self, relation: str) -> str:
        """Return what the user calls a relation."""
        found = self.counts.get(relation) or self._users.get(relation, relation)
        return title_of(found, self._statements)

    def user_row(self, relation: str, row: Row) -> Row:
        """Return a tuple as the user knows it: a row of a bag without its count."""
        return row[:-1] if relation in self.counts else row

    def user_types(self, relation: str) -> tuple[Type, ...]:
        """Return the types of such a tuple."""
        types = self.types(relation)
        return types[:-1] if relation in self.counts else types

    def types(self, relation: str) -> tuple[Type, ...]:
        """Return the types of a relation or an event predicate."""
        relations, active = self.program.relations, self.program.active.relations
        return (relations.get(relation) or active[relation]).types

    @cached_property
    def projections(self) -> Mapping[str, Projection]:
        """What rewriting made of relations to negate them, or to look up fields, by name."""
        found: dict[str, Projection] = {}
        for rule in (*self.program.rules, *self.program.active.rules):
            is_made = rule.origin.passes[-1:] in (("negations",), ("fields",))
            if is_made and len(rule.literals) == 1:
                source = rule.literals[0]
                columns = tuple(
                    at for at, slot in enumerate(source.slots) if not isinstance(slot, Wildcard)
                )
                found[rule.head.relation] = Projection(source.relation, columns)
        return found

    # --- texts ---------------------------------------------------------------------------------

    def tuple_text(self, relation: str, row: Row) -> str:
        """Return a tuple as text, with the user's name."""
        slots = tuple(map(Constant, row, self.types(relation)))
        return self.literal_text(Literal(relation, slots), {})

    def literal_text(self, literal: Literal, bindings: Bindings) -> str:
        """Return a literal as it was written, with the values that are known put in."""
        slots = tuple(substitute(slot, bindings) for slot in literal.slots)
        relation = literal.relation
        projection = self.projections.get(relation)
        if projection is not None:
            wide: list[logic.Slot] = [Wildcard()] * len(self.types(projection.relation))
            for at, slot in zip(projection.columns, slots, strict=False):
                wide[at] = slot
            relation, slots = projection.relation, tuple(wide)
        if relation in self.counts:
            slots = slots[:-1]
        shown = replace(literal, relation=self.user_name(relation), slots=slots)
        return printer.print_literal(shown)

    def node(self, kind: ProofKind, relation: str, row: Row, text: str = "") -> ProofNode:
        """Return the node of a tuple as the user knows it; it reads as written, unless a text says.

        Its id comes later.
        """
        words = text or self.tuple_text(relation, row)
        known = self.user_name(relation), self.user_row(relation, row), self.user_types(relation)
        return ProofNode(0, kind, *known, text=words)

    # --- aggregates ----------------------------------------------------------------------------

    @cached_property
    def aggregations(self) -> Mapping[str, AnyAggregation]:
        """The aggregations of the program, by their relations."""
        program = self.program
        every = (*program.aggregations, *program.active.aggregations)
        return {each.relation: each for each in every}

    def single_values(self, literal: Literal) -> Iterator[Literal]:
        """Yield a literal of an aggregate with one value, for each value that it asks for."""
        aggregation = self.aggregations[literal.relation]
        if isinstance(aggregation, Windowing) or len(aggregation.accumulators) == 1:
            yield literal
            return
        keys, slots = len(aggregation.groups), literal.slots
        asked = [at for at, slot in enumerate(slots) if at >= keys and slot != Wildcard()]
        for column in asked or [keys]:
            single = (
                slot if at < keys or at == column else Wildcard() for at, slot in enumerate(slots)
            )
            yield replace(literal, slots=tuple(single))

    def aggregate_text(self, literal: Literal, bindings: Bindings) -> str:
        """Return a literal of an aggregate as it was written, with known values put in.

        It reads `4 = count : { tc(1, y), edge(y, _) }`.
        """
        aggregation = self.aggregations[literal.relation]
        slots = [substitute(slot, bindings) for slot in literal.slots]
        if isinstance(aggregation, Windowing):
            values = ", ".join(map(printer.print_term, slots[-len(aggregation.functions) :]))
            names = ", ".join(f"{each.name}(…)" for each in aggregation.functions)
            keys = [slots[at] for at in aggregation.keys]
            return f"{values} = {names} : {self.group_text(literal.relation, keys)}"
        keys, results = slots[: len(aggregation.groups)], slots[len(aggregation.groups) :]
        bodies, group = self._bodies(aggregation), self.group_text(literal.relation, keys)
        asked = [
            f"{printer.print_term(value)} = "
            f"{printer.print_accumulator(each, lambda at: _term(bodies[0], at))} : {group}"
            for each, value in zip(aggregation.accumulators, results, strict=True)
            if len(results) == 1 or not isinstance(value, Wildcard)
        ]
        return ", ".join(asked) or group

    def group_text(self, relation: str, keys: Sequence[logic.Slot]) -> str:
        """Return what an aggregate aggregates, with the keys of a group put in."""
        aggregation = self.aggregations[relation]
        texts = [self._body_text(rule, aggregation, keys) for rule in self._bodies(aggregation)]
        return f"{{ {' ; '.join(texts)} }}"

    def _bodies(self, aggregation: AnyAggregation) -> tuple[Rule, ...]:
        """Return the rules of what is aggregated; of a relation that the user knows, itself."""
        body = self.program.relations[aggregation.body]
        rules = tuple(each for each in self.program.rules if each.head.relation == body.name)
        if rules and not body.is_declared:
            return rules
        whole = Literal(body.name, body.variables)
        return (Rule(whole, (whole,), (), aggregation.origin),)

    def _body_text(
        self, rule: Rule, aggregation: AnyAggregation, keys: Sequence[logic.Slot]
    ) -> str:
        places = (rule.head.slots[at] for at in aggregation.groups)
        known = {
            place.name: key.value
            for place, key in zip(places, keys, strict=False)
            if isinstance(place, Variable) and isinstance(key, Constant)
        }
        shown = (each for each in rule.literals if each.relation not in guards(self.program))
        parts = [self.literal_text(each, known) for each in shown]
        values = () if isinstance(aggregation, Windowing) else aggregation.values
        computed = [_computing_condition(rule, at) for at in values]
        parts += [condition_text(each, known) for each in rule.conditions if each not in computed]
        return ", ".join(parts)


def _computing_condition(rule: Rule, column: int) -> Condition | None:
    """Return the condition that computes what is aggregated, if rewriting made a variable of it."""
    slot = rule.head.slots[column]
    if not isinstance(slot, Variable) or not is_made(slot):
        return None
    return next((each for each in rule.conditions if each.left == slot), None)


def _term(rule: Rule, column: int) -> str:
    """Return what is aggregated."""
    condition = _computing_condition(rule, column)
    return printer.print_term(rule.head.slots[column] if condition is None else condition.right)


def condition_text(condition: Condition, bindings: Bindings) -> str:
    """Return a condition with the values that are known put in.

    >>> test = Condition(">=", Variable("x"), logic.Functor("*", (Variable("y"), Constant(2))))
    >>> condition_text(test, {"x": 7, "y": 3})
    '7 >= 3 * 2'
    """
    left, right = (_put_in(side, bindings) for side in (condition.left, condition.right))
    return printer.print_condition(replace(condition, left=left, right=right))


def condition_node(condition: Condition, bindings: Bindings) -> ProofNode | None:
    """Return the note of a condition; None for an equation that only says what a value is."""
    text = condition_text(condition, bindings)
    left, separator, right = text.partition(" = ")
    is_plain = bool(separator) and left == right
    return None if is_plain else ProofNode(0, ProofKind.COMPUTED, "", (), (), text=text)


def substitute(slot: logic.Slot, bindings: Bindings) -> logic.Slot:
    """Return the value of a variable, where it is known; an unknown one of a pass is `_`."""
    if not isinstance(slot, Variable):
        return slot
    if slot.name in bindings:
        return Constant(bindings[slot.name], slot.type)
    return Wildcard() if is_made(slot) else slot


def partial_row(literal: Literal, bindings: Bindings) -> Row:
    """Return the tuple of a literal; what has no value in it is null."""
    return tuple(getattr(substitute(slot, bindings), "value", None) for slot in literal.slots)


def is_made(variable: Variable) -> bool:
    """Whether rewriting made a variable."""
    return variable.name.startswith("_")


def _put_in(side: logic.Expression, bindings: Bindings) -> logic.Expression:
    def put(term: logic.Term, arguments: tuple[logic.Term, ...]) -> logic.Term:
        if isinstance(term, Variable) and term.name in bindings:
            return Constant(bindings[term.name], term.type)
        return replace(term, arguments=arguments) if isinstance(term, logic.Functor) else term

    found = logic.fold_term(side, put)
    assert isinstance(found, logic.Expression)
    return found


def excerpt(span: Span) -> str:
    """Return the text of a span, its lines joined and without indentation."""
    lines = [span.file.line(number) for number in range(span.line, span.end_line + 1)]
    if not lines:
        return ""
    lines[-1] = lines[-1][: span.end_column - 1]
    before, lines[0] = lines[0][: span.column - 1], lines[0][span.column - 1 :]
    if found := _SELECT.search(before):  # a block of SQL begins with what it selects
        lines[0] = found[0] + lines[0]
    return " ".join(stripped for line in lines if (stripped := line.strip()))


def _rule(number: int, text: str, span: Span | None) -> ProofRule:
    if span is None:
        return ProofRule(number, text)
    return ProofRule(number, text, span.file.name, span.line)
