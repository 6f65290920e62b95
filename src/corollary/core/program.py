"""Programs: as the user wrote them, and in normal form."""

import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Any, assert_never

from corollary.core.logic import (
    AnyAggregation,
    Clause,
    Condition,
    Constant,
    Expression,
    Functor,
    Rule,
    Value,
    Variable,
)
from corollary.core.states import State
from corollary.core.types import BOOL, INTEGER_NAMES, Type
from corollary.data_class import dataclass
from corollary.errors import Diagnostic
from corollary.source import SourceFile, Span


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as written: `symbol`, `Station`, `decimal(12,2)`, `[T]`, `{a: T}`, `{K -> V}`.

    Attributes:
        digits: the precision and scale of a decimal; of an interval the first one says the fields.
        members: of an array or struct, whose name says which it is.
    """

    name: str
    digits: tuple[int, int] | None = None
    nullable: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)
    members: "tuple[tuple[str, TypeName], ...]" = ()

    @classmethod
    def of(cls, type_: Type, span: Span | None = None) -> "TypeName":
        """Return a type as a declaration writes it."""
        digits = (type_.precision, type_.scale) if type_.has_digits else None
        name = type_.record.name if type_.record else str(type_.logical_kind)
        name = f"int{type_.bits}" if type_.bits in INTEGER_NAMES else name
        members = tuple((each, cls.of(t.with_null(False), span)) for each, t in type_.members)
        return cls(name, digits, type_.nullable, span, members)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a declaration."""

    name: str
    type: TypeName
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Declaration:
    """`.decl p(x: number, y: symbol?) key(x) virtual`."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    storage: str = ""
    """`stored`, `virtual`, or empty where the text does not say."""
    hints: tuple[str, ...] = ()
    """Qualifiers that only advise: `inline`, `brie`, `btree`, …"""
    is_equivalence: bool = False
    is_bag: bool = False
    """Whether it has copies: see `analysis.bags`."""
    span: Span | None = field(default=None, compare=False, repr=False)
    domains: tuple[tuple[str, ...], ...] = ()
    """The choice domains: sets of columns on which no two of its tuples agree."""


@dataclass(frozen=True, slots=True)
class BranchDeclaration:
    """`Leaf {x: number}` of an algebraic data type, or the fields `[x: number]` of a record."""

    name: str
    fields: tuple[Column, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """`.type A <: B` (one base, `is_subtype`), `.type A = B | C`, or a type of records.

    Attributes:
        branches: of `.type A = [x: B]` the one record, of `.type A = B {} | C {x: D}` the two.
    """

    name: str
    bases: tuple[TypeName, ...]
    is_subtype: bool
    span: Span | None = field(default=None, compare=False, repr=False)
    branches: tuple[BranchDeclaration, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctorDeclaration:
    """`.functor f(x: number, symbol): number`; a parameter without a name has an empty one."""

    name: str
    parameters: tuple[Column, ...]
    result: TypeName
    is_stateful: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FunctionalDependency:
    """`.fd m(a -> b, c)`."""

    relation: str
    determinants: tuple[str, ...]
    dependents: tuple[str, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input`, `.output`, `.printsize`, `.limitsize` or `.sql`, parameters in written order.

    `.sql v(text="CREATE VIEW v AS …")` keeps the statement that the rules of `v` were made of.
    """

    name: str
    relation: str
    parameters: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    def parameter(self, name: str, default: str = "") -> str:
        """Return the value of a parameter."""
        return dict(self.parameters).get(name, default)


@dataclass(frozen=True, slots=True)
class RowBound:
    """The maximum number of rows for which something is accepted; without either there is none.

    Attributes:
        share: the maximum part of all rows, from 0 to 1.
        count: the maximum number of rows.
    """

    share: float | None = None
    count: int | None = None

    @classmethod
    def parse(cls, text: str) -> "RowBound | None":
        """Return the bound that a text such as `50%`, `1000` or `off` says; None if it says none.

        >>> RowBound.parse("50%"), RowBound.parse("7"), RowBound.parse("-1")
        (RowBound(share=0.5, count=None), RowBound(share=None, count=7), None)
        """
        if text == "off":
            return cls()
        if re.fullmatch("[0-9]{1,18}", text):
            return cls(count=int(text))
        if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,6})?%", text) and float(text[:-1]) <= 100:
            return cls(share=float(text[:-1]) / 100)
        return None

    @property
    def is_off(self) -> bool:
        """Whether any number of rows is accepted."""
        return self.share is None and self.count is None

    def is_exceeded(self, number: int, total: int) -> bool:
        """Return whether a number of rows, out of a total, is not accepted."""
        if self.share is not None:
            return number > self.share * total
        return self.count is not None and number > self.count

    def __str__(self) -> str:
        if self.share is not None:
            return f"{self.share:.6%}".rstrip("%").rstrip("0").rstrip(".") + "%"
        return "off" if self.count is None else str(self.count)


ROW_BOUND_FORMS = "a share such as `10%`, a number of rows, or `off`"
"""What the text of a bound may be, for messages."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """`.alert e "message" (IO=console)` or `.abort e "message"`, parameters in written order."""

    name: str
    relation: str
    message: str
    parameters: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    def parameter(self, name: str, default: str = "") -> str:
        """Return the value of a parameter."""
        return dict(self.parameters).get(name, default)


@dataclass(frozen=True, slots=True)
class Pragma:
    """`.pragma "arithmetic" "32"`; the value is empty where the text gives none."""

    name: str
    value: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


class Arithmetic(StrEnum):
    """How numbers are computed."""

    EXACT = "exact"
    """64 bits; what does not fit is an error."""

    WORDS = "32"
    """Words of 32 bits that wrap around, as in Soufflé."""


ARITHMETIC_PRAGMA = "arithmetic"

SUBSUMPTION_PRAGMA, ROUNDS = "subsumption", "rounds"
"""The pragma, and its value that lets subsumption be evaluated in rounds."""

SQL_DIRECTIVE = "sql"
"""The directive that keeps the text of a statement."""


def owner_of(relation: str, owners: Container[str]) -> str | None:
    """Return the longest name among some whose statement made a relation.

    >>> owner_of("a.b.rows", {"a", "a.b"}), owner_of("ab", {"a"})
    ('a.b', None)
    """
    name = relation
    while name not in owners:
        name, point, _ = name.rpartition(".")
        if not point:
            return None
    return name


@dataclass(frozen=True, slots=True)
class Program:
    """A program as the user wrote it, in one or several files."""

    types: tuple[TypeDeclaration, ...] = ()
    declarations: tuple[Declaration, ...] = ()
    dependencies: tuple[FunctionalDependency, ...] = ()
    clauses: tuple[Clause, ...] = ()
    directives: tuple[Directive, ...] = ()
    reactions: tuple[Reaction, ...] = ()
    pragmas: tuple[Pragma, ...] = ()
    sources: tuple[SourceFile, ...] = field(default=(), compare=False, repr=False)
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False, repr=False)
    """The warnings of the parser."""
    functors: tuple[FunctorDeclaration, ...] = ()

    def __add__(self, other: "Program") -> "Program":
        return Program(
            self.types + other.types,
            self.declarations + other.declarations,
            self.dependencies + other.dependencies,
            self.clauses + other.clauses,
            self.directives + other.directives,
            self.reactions + other.reactions,
            self.pragmas + other.pragmas,
            self.sources + other.sources,
            self.warnings + other.warnings,
            self.functors + other.functors,
        )


def arithmetic_of(program: Program) -> Arithmetic:
    """Return how a program computes; the last pragma counts.

    >>> arithmetic_of(Program(pragmas=(Pragma("arithmetic", "32"),)))
    <Arithmetic.WORDS: '32'>
    """
    is_words = pragma_value(program, ARITHMETIC_PRAGMA) == Arithmetic.WORDS
    return Arithmetic.WORDS if is_words else Arithmetic.EXACT


def pragma_value(program: Program, name: str) -> str | None:
    """Return the value of the last pragma with a name; None if there is none."""
    return next((each.value for each in reversed(program.pragmas) if each.name == name), None)


def sql_texts(program: Program) -> dict[str, str]:
    """Return the statements that a program keeps, by what they define."""
    return {
        each.relation: each.parameter("text")
        for each in program.directives
        if each.name == SQL_DIRECTIVE
    }


# --- normal form -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupReading:
    """The groups of a relation whose counts or sums are recursive.

    Attributes:
        key: the columns whose values are the key of a tuple's group.
        reads: for each relation of the stratum whose groups its groups read, the relation that
            holds the pairs of keys: that of a group, then that of a group which it reads.
    """

    key: tuple[int, ...]
    reads: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of the normal program."""

    name: str
    columns: tuple[str, ...]
    types: tuple[Type, ...]
    is_derived: bool
    is_virtual: bool = False
    is_declared: bool = True
    """False for the relations that rewriting made (`p.base`, `h.keys1`, …)."""
    is_inlined: bool = False
    """Whether it is the body of an aggregate that is read through its one rule, and never stored;
    such a relation is virtual."""
    limit: int | None = None
    """The number of tuples after which a one-shot evaluation may stop (`.limitsize`)."""
    grouping: GroupReading | None = None
    """Its groups, if it has a rule with a count or sum over its own stratum."""
    domains: tuple[tuple[int, ...], ...] = ()
    """Its choice domains: columns on which no two of its tuples agree."""
    dominated: str | None = None
    """The relation of its dominated tuples, if subsumption is evaluated in rounds."""

    @property
    def arity(self) -> int:
        """The number of columns."""
        return len(self.types)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """A variable for each column, with its name and type."""
        return tuple(map(Variable, self.columns, self.types))

    @property
    def is_stored(self) -> bool:
        """Whether its tuples are stored; so are those of a virtual relation without rules."""
        return not (self.is_derived and self.is_virtual)


class RelationKind(StrEnum):
    """What a relation is: written to, a view that is stored, or one that is computed."""

    BASE = "base"
    DERIVED = "derived"
    VIRTUAL = "virtual"


MarkedRelation = tuple[str, State]
"""A relation and a state: the meaning of `+p`, `-p` and `p@old`."""


def marked_name(relation: str, state: State) -> str:
    """Return the name that normal rules use for a relation in a state.

    >>> (
    ...     marked_name("link", State.REMOVED),
    ...     marked_name("link", State.OLD),
    ...     marked_name("link", State.NEW),
    ... )
    ('-link', 'link@old', 'link')
    """
    match state:
        case State.ADDED:
            return f"+{relation}"
        case State.REMOVED:
            return f"-{relation}"
        case State.OLD:
            return f"{relation}@old"
        case State.NEW:
            return relation
        case _:
            assert_never(state)


@dataclass(frozen=True, slots=True)
class ActiveRules:
    """The active part of a program in normal form: it reacts to the changes of a transaction.

    Attributes:
        relations: the event predicates, the heads of triggers, and their auxiliary relations.
        rules: define the relations, as do the aggregations. Their literals name one of these
            relations, a relation of the program in NEW, or a key of `marked`.
        marked: the relation and state of each marked literal, by its name in rules.
        queries: virtual relations of the program that were made for these rules only.
        triggers: the relations with the effects of triggers, each with the base relation and sign.
        reactions: alerts and constraints.
        merged: event predicates that are evaluated together, each with the relation of their
            tuples, in which the first column is the name of the event predicate.
    """

    relations: Mapping[str, Relation] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    aggregations: tuple[AnyAggregation, ...] = ()
    marked: Mapping[str, MarkedRelation] = field(default_factory=dict)
    queries: frozenset[str] = frozenset()
    triggers: Mapping[str, MarkedRelation] = field(default_factory=dict)
    reactions: tuple[Reaction, ...] = ()
    merged: Mapping[str, str] = field(default_factory=dict)

    @property
    def deleted_from(self) -> frozenset[str]:
        """The base relations from which triggers may delete tuples."""
        return frozenset(name for name, sign in self.triggers.values() if sign is State.REMOVED)


# --- orders of tuples --------------------------------------------------------------------------


TRUE = Constant(True, BOOL)


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """A column whose values are compared."""

    position: int
    is_greater_better: bool

    def better(self, one: Expression, other: Expression, *, strictly: bool = True) -> Functor:
        """Return the test that one value is better than another, or as good."""
        names = ("gt", "ge") if self.is_greater_better else ("lt", "le")
        return Functor(names[not strictly], (one, other), BOOL)


@dataclass(frozen=True, slots=True)
class SubsumptionOrder:
    """The order of a relation's tuples.

    Attributes:
        values: the value columns; in a lexicographic order, the first one decides. Without any,
            a tuple covers itself only.
        is_lexicographic: whether a later column counts only where those before it are equal;
            otherwise a tuple covers another if it is as good in each.
    """

    values: tuple[ValueColumn, ...]
    is_lexicographic: bool = False

    @property
    def is_total(self) -> bool:
        """Whether there is one best tuple for each key."""
        return self.is_lexicographic or len(self.values) == 1

    def keys(self, arity: int) -> tuple[int, ...]:
        """Return the key columns of a relation, by the number of its columns."""
        compared = {each.position for each in self.values}
        return tuple(at for at in range(arity) if at not in compared)

    def covers(
        self, one: Sequence[Expression], other: Sequence[Expression]
    ) -> tuple[Condition, ...]:
        """Return the conditions that one tuple covers another with the same key.

        >>> from corollary.core.logic import Variable
        >>> d, c = Variable("d"), Variable("c")
        >>> SubsumptionOrder((ValueColumn(0, False),)).covers([d], [c])[0].operator
        '<='
        """
        if not self.values:
            return ()
        if len(self.values) == 1:
            (column,) = self.values
            operator = ">=" if column.is_greater_better else "<="
            return (Condition(operator, one[column.position], other[column.position]),)
        tests = [
            column.better(one[column.position], other[column.position], strictly=False)
            for column in self.values
        ]
        if not self.is_lexicographic:
            return (Condition("=", Functor("and", tuple(tests), BOOL), TRUE),)
        test: Functor = tests[-1]
        for column in reversed(self.values[:-1]):
            left, right = one[column.position], other[column.position]
            equal = Functor("eq", (left, right), BOOL)
            both = Functor("and", (equal, test), BOOL)
            test = Functor("or", (column.better(left, right), both), BOOL)
        return (Condition("=", test, TRUE),)


def relations_read(
    rules: Iterable[Rule], aggregations: Iterable[AnyAggregation], names: Iterable[str] = ()
) -> dict[str, dict[str, None]]:
    """Return what relations with rules or an aggregation read; nothing for other `names`."""
    found: dict[str, dict[str, None]] = {name: {} for name in names}
    for rule in rules:
        below = dict.fromkeys(literal.relation for literal in rule.literals)
        found.setdefault(rule.head.relation, {}).update(below)
    for aggregation in aggregations:
        found.setdefault(aggregation.relation, {})[aggregation.body] = None
    return found


class RefreshPolicy(StrEnum):
    """How a stored view follows the changes of what it reads."""

    AUTO = "auto"
    INCREMENTAL = "incremental"
    """By the change, also where a new computation is estimated to be less work."""
    STRICT = "incremental strict"
    """The same, or not at all: it is an error where only a new computation is possible."""
    FULL = "full"


REFRESH_PARAMETER = "refresh"
"""The parameter of `.output` that has the policy."""


def refresh_policies(program: Program) -> dict[str, RefreshPolicy]:
    """Return the policies that a program gives to its views."""
    return {
        each.relation: RefreshPolicy(each.parameter(REFRESH_PARAMETER).lower())
        for each in program.directives
        if each.name == "output" and each.parameter(REFRESH_PARAMETER)
    }


@dataclass(frozen=True, slots=True)
class NormalProgram:
    """A program as it is evaluated and maintained: rules and aggregations over typed relations.

    Attributes:
        facts: the tuples of base relations in the program text.
        bases: for each derived relation that has base tuples too, the relation that holds them.
        bags: for each relation with copies, the relation that has each row once, with its count in
            the last column.
        parts: for each base relation that was written to, its writers, each with the relation of
            the tuples it asserts; the base relation itself while there is one writer.
        active: its active part.
        subsumption: for each recursive relation of which only the best tuples count, their order.
        constants: the tuples of relations that hold constants of rules; they never change.
        arithmetic: how its numbers are computed; its rules say it all.
        counters: for each base relation of rows that `autoinc()` numbers, the relation of the rows.
        keys: the columns of the keys that base relations declare.
        policies: how views are to follow changes; others as it is cheapest.
        statements: the names that statements of SQL define; what they need beside begins with them.
        conclusions: what functions have found out about it, by function; see `once_per_program`.
    """

    relations: Mapping[str, Relation]
    rules: tuple[Rule, ...]
    aggregations: tuple[AnyAggregation, ...]
    facts: Mapping[str, tuple[tuple[Value, ...], ...]]
    bases: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    active: ActiveRules = ActiveRules()
    constants: Mapping[str, tuple[tuple[Value, ...], ...]] = field(default_factory=dict)
    bags: Mapping[str, str] = field(default_factory=dict)
    arithmetic: Arithmetic = Arithmetic.EXACT
    counters: Mapping[str, str] = field(default_factory=dict)
    subsumption: Mapping[str, SubsumptionOrder] = field(default_factory=dict)
    keys: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    policies: Mapping[str, RefreshPolicy] = field(default_factory=dict, compare=False)
    statements: frozenset[str] = field(default=frozenset(), compare=False)
    conclusions: dict[object, Any] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @property
    def declared_relations(self) -> dict[str, Relation]:
        """The relations that users know; the counts of a bag are a part of it."""
        counts = set(self.bags.values())
        return {
            name: each
            for name, each in self.relations.items()
            if each.is_declared and name not in counts
        }

    def policy_of(self, names: Iterable[str]) -> RefreshPolicy:
        """Return how relations that are maintained together are to follow changes.

        What a view needs beside has its policy.
        """
        owners = (owner_of(name, self.policies) for name in names) if self.policies else ()
        found = [self.policies[each] for each in owners if each is not None]
        return found[0] if found else RefreshPolicy.AUTO

    def holder_of(self, name: str) -> Relation:
        """Return the relation that has the tuples of a relation: of a bag, that of its counts."""
        return self.relations[self.bags.get(name, name)]

    def kind_of(self, name: str) -> RelationKind:
        """Return what a relation is; a bag is what the relation of its counts is."""
        holder = self.holder_of(name)
        if not holder.is_derived:
            return RelationKind.BASE
        return RelationKind.VIRTUAL if holder.is_virtual else RelationKind.DERIVED

    def restricted_to(self, views: Collection[str]) -> "NormalProgram":
        """Return the program with the rules of some views only; all others are base relations."""
        return replace(
            self,
            relations={
                name: each if name in views else replace(each, is_derived=False, is_virtual=False)
                for name, each in self.relations.items()
            },
            rules=tuple(each for each in self.rules if each.head.relation in views),
            aggregations=tuple(each for each in self.aggregations if each.relation in views),
            active=ActiveRules(),
            subsumption={name: each for name, each in self.subsumption.items() if name in views},
        )
