"""Fields of records that join literals become columns, so that they can be looked up.

    out(k, b) :- rec(r, k), a = field 1 of r, b = field 2 of r, p(a).
    out(k, b) :- rec.fields1(r, k, a), b = field 2 of r, p(a).
    rec.fields1(r, k, a) :- rec(r, k), a = field 1 of r.

Without it, a new tuple of `p` would have to be compared with all records: only the field leads from
one to the other. So a relation gets such columns only where no variable of a literal, and no record
whose fields are all known, connects it with the others; and not inside of its own recursion, where
the round in which a tuple is derived may count.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from corollary.core import logic
from corollary.core.graph import strongly_connected_components
from corollary.core.program import relations_read
from corollary.core.records.record_terms import FIELD_OF
from corollary.core.types import NUMBER, SYMBOL, Branch, Type
from corollary.data_class import dataclass
from corollary.rewrite.translation_unit import TranslationUnit, unused_name

Path = tuple[tuple[str, int], ...]
"""How a field is reached: branches, and the numbers of their fields."""


@dataclass(frozen=True, slots=True)
class FieldAccess:
    """A condition `variable = field of record`, where a literal has the record, or one around it.

    Attributes:
        column: of the literal.
        path: from the value of the column.
        count: how many fields the record has.
    """

    variable: logic.Variable
    condition: logic.Condition
    column: int
    path: Path
    count: int


def fields(unit: TranslationUnit) -> None:
    """Give relations whose records join by fields alone a relation with these as columns."""
    tables = _FieldTables(unit)
    members = _recursions(unit)
    unit.rules = [tables.rewrite(rule, members) for rule in unit.rules] + tables.rules


def _recursions(unit: TranslationUnit) -> dict[str, frozenset[str]]:
    """Return for each relation those that depend on it and on which it depends."""
    reads = relations_read(unit.rules, unit.aggregations, unit.relations)
    found = strongly_connected_components(reads)
    return {name: frozenset(names) for names in found for name in names}


@dataclass(slots=True)
class _FieldTables:
    """The relations with fields as columns; equal ones are made once."""

    unit: TranslationUnit
    names: dict[tuple[str, tuple[tuple[int, Path], ...]], str] = field(default_factory=dict)
    rules: list[logic.Rule] = field(default_factory=list)

    def rewrite(self, rule: logic.Rule, members: Mapping[str, frozenset[str]]) -> logic.Rule:
        """Return a rule whose literals have the fields that join them as columns."""
        if not any(_is_access(condition) for condition in rule.conditions):
            return rule
        for at, literal in enumerate(rule.literals):
            if literal.negated or literal.relation in members[rule.head.relation]:
                continue
            joins = _joining_fields(rule, at)
            if joins:
                return self.rewrite(self._replaced(rule, at, joins), members)
        return rule

    def _replaced(self, rule: logic.Rule, at: int, joins: list[FieldAccess]) -> logic.Rule:
        literal = rule.literals[at]
        name = self._name(literal.relation, joins, rule)
        slots = (*literal.slots, *(each.variable for each in joins))
        gone = [each.condition for each in joins]
        made = replace(
            rule,
            literals=(*rule.literals[:at], logic.Literal(name, slots), *rule.literals[at + 1 :]),
            conditions=tuple(each for each in rule.conditions if each not in gone),
        )
        ways = {
            (join.column, join.path[:length]) for join in joins for length in range(len(join.path))
        }
        return _without_unused(made, at, ways)

    def _name(self, source: str, joins: list[FieldAccess], rule: logic.Rule) -> str:
        key = source, tuple((each.column, each.path) for each in joins)
        if key not in self.names:
            number = sum(relation == source for relation, _ in self.names) + 1
            self.names[key] = self.unit.unused_name(f"{source}.fields{number}")
            self._define(self.names[key], source, joins, rule)
        return self.names[key]

    def _define(self, name: str, source: str, joins: list[FieldAccess], rule: logic.Rule) -> None:
        relation = self.unit.relations[source]
        columns = relation.variables
        names = list(relation.columns)
        conditions: list[logic.Condition] = []
        values: list[logic.Variable] = []
        for number, each in enumerate(joins, 1):
            part = columns[each.column]
            for branch, at in each.path:
                names.append(unused_name(f"field{number}", names))
                whole, part = part, logic.Variable(names[-1], _branch(part, branch).types[at])
                access = (whole, logic.Constant(branch, SYMBOL), logic.Constant(at, NUMBER))
                conditions.append(
                    logic.Condition("=", part, logic.Functor(FIELD_OF, access, _nullable(part)))
                )
            values.append(part)
        labels = [*relation.columns, *(value.name for value in values)]
        types = [value.type for value in values if value.type is not None]
        self.unit.declare(name, labels, [*relation.types, *types])
        origin = rule.origin.with_pass("fields")
        head = logic.Literal(name, (*columns, *values))
        self.rules.append(
            logic.Rule(head, (logic.Literal(source, columns),), tuple(conditions), origin)
        )


def _without_unused(rule: logic.Rule, at: int, ways: set[tuple[int, Path]]) -> logic.Rule:
    """Return a rule without records on the way to fields that nothing else asks for."""
    literals = {name for each in (rule.head, *rule.literals) for name in logic.variable_names(each)}
    for access in list(_accesses(rule, rule.literals[at]))[::-1]:
        others = tuple(each for each in rule.conditions if each != access.condition)
        used = literals.union(*map(logic.variable_names, others))
        if (access.column, access.path) in ways and access.variable.name not in used:
            rule = replace(rule, conditions=others)
    return rule


def _nullable(variable: logic.Variable) -> Type:
    """Return the type of a field that is taken out of a record, which may have another branch."""
    assert variable.type is not None
    return variable.type.with_null(True)


def _branch(record: logic.Variable, name: str) -> Branch:
    assert record.type is not None
    assert record.type.record is not None
    return record.type.record.branches[name]


def _is_access(condition: logic.Condition) -> bool:
    right = condition.right
    return (
        condition.operator == "="
        and isinstance(condition.left, logic.Variable)
        and isinstance(right, logic.Functor)
        and right.name == FIELD_OF
        and isinstance(right.arguments[0], logic.Variable)
    )


def _accesses(rule: logic.Rule, literal: logic.Literal) -> Iterator[FieldAccess]:
    """Yield the fields of the records of a literal that conditions of its rule take out of them."""
    reached: dict[str, tuple[int, Path]] = {
        slot.name: (column, ())
        for column, slot in enumerate(literal.slots)
        if isinstance(slot, logic.Variable)
    }
    waiting = [each for each in rule.conditions if _is_access(each)]
    has_grown = True
    while has_grown:
        has_grown = False
        for condition in list(waiting):
            variable, access = condition.left, condition.right
            assert isinstance(variable, logic.Variable)
            assert isinstance(access, logic.Functor)
            whole, branch, number = access.arguments
            assert isinstance(whole, logic.Variable)
            assert isinstance(branch, logic.Constant)
            assert isinstance(number, logic.Constant)
            if whole.name not in reached:
                continue
            waiting.remove(condition)
            has_grown = True
            column, before = reached[whole.name]
            path = (*before, (str(branch.value), int(str(number.value))))
            reached.setdefault(variable.name, (column, path))
            count = len(_branch(whole, str(branch.value)).types)
            yield FieldAccess(variable, condition, column, path, count)


def _joining_fields(rule: logic.Rule, at: int) -> list[FieldAccess]:
    """Return the fields of a literal by which alone it is joined with other literals."""
    near = _connected(rule, at)
    far = {
        name
        for place, literal in enumerate(rule.literals)
        if place not in near and not literal.negated
        for name in logic.variable_names(literal)
    }
    found = [each for each in _accesses(rule, rule.literals[at]) if each.variable.name in far]
    known: dict[tuple[int, Path], set[int]] = {}
    for each in found:
        known.setdefault((each.column, each.path[:-1]), set()).add(each.path[-1][1])
    # A record all of whose fields are known is made and looked up as a whole.
    return [each for each in found if len(known[each.column, each.path[:-1]]) < each.count]


def _connected(rule: logic.Rule, at: int) -> set[int]:
    """Return the positive literals that variables of literals connect with one of them."""
    near, names = {at}, set(logic.variable_names(rule.literals[at]))
    has_grown = True
    while has_grown:
        has_grown = False
        for place, literal in enumerate(rule.literals):
            if place in near or literal.negated:
                continue
            if not names.isdisjoint(logic.variable_names(literal)):
                near.add(place)
                names |= logic.variable_names(literal)
                has_grown = True
    return near
