"""Programs: as the user wrote them, and in normal form."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from corollary.core.rules import Aggregation, Clause, Rule
from corollary.core.states import State
from corollary.core.terms import Value
from corollary.core.types import Type
from corollary.errors import Diagnostic
from corollary.source import SourceFile, Span


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as written: `symbol`, `Station`, `decimal(12,2)`, each perhaps with `?`."""

    name: str
    digits: tuple[int, int] | None = None
    nullable: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


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
    """`stored`, `virtual`, or nothing said."""
    hints: tuple[str, ...] = ()
    """Qualifiers that only advise: `inline`, `brie`, `btree`, …"""
    is_equivalence: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """`.type A <: B` (one base, `is_subtype`) or `.type A = B | C`."""

    name: str
    bases: tuple[TypeName, ...]
    is_subtype: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Dependency:
    """`.fd m(a -> b, c)`."""

    relation: str
    determinants: tuple[str, ...]
    dependents: tuple[str, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input`, `.output`, `.printsize` or `.limitsize` with its parameters, in written order."""

    name: str
    relation: str
    parameters: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    def parameter(self, name: str, default: str = "") -> str:
        """Return the value of a parameter."""
        return dict(self.parameters).get(name, default)


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
class Program:
    """A program as the user wrote it; several files may make one."""

    types: tuple[TypeDeclaration, ...] = ()
    declarations: tuple[Declaration, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    clauses: tuple[Clause, ...] = ()
    directives: tuple[Directive, ...] = ()
    reactions: tuple[Reaction, ...] = ()
    sources: tuple[SourceFile, ...] = field(default=(), compare=False, repr=False)
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False, repr=False)
    """What the parser has to say of a text that it accepts."""

    def __add__(self, other: "Program") -> "Program":
        return Program(
            self.types + other.types,
            self.declarations + other.declarations,
            self.dependencies + other.dependencies,
            self.clauses + other.clauses,
            self.directives + other.directives,
            self.reactions + other.reactions,
            self.sources + other.sources,
            self.warnings + other.warnings,
        )


# --- normal form -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of the normal program: its columns, and whether rules define it."""

    name: str
    columns: tuple[str, ...]
    types: tuple[Type, ...]
    is_derived: bool
    is_virtual: bool = False
    is_declared: bool = True
    """False for the relations that rewriting made (`p.base`, `h.keys1`, …)."""
    limit: int | None = None
    """Tuples after which a one-shot evaluation may stop (`.limitsize`)."""

    @property
    def arity(self) -> int:
        """The number of columns."""
        return len(self.types)

    @property
    def is_stored(self) -> bool:
        """Whether its tuples are kept; those of a virtual relation are while it has no rules."""
        return not (self.is_derived and self.is_virtual)


Marked = tuple[str, State]
"""A relation, read as a change or in a state: what `+p`, `-p` and `p@old` stand for."""


@dataclass(frozen=True, slots=True)
class Active:
    """What reacts to the changes of a transaction, in normal form.

    Attributes:
        relations: the event predicates, the heads of triggers, what rewriting made for them.
        rules: define the relations, as do the aggregations. A literal of theirs names one of these
            relations, a relation of the program in NEW, or something marked.
        marked: the marked literals by the name that stands for them in rules.
        queries: virtual relations of the program that were made for these rules only.
        triggers: the relations that hold what triggers do, each with the base relation they change.
        reactions: alerts and constraints.
        merged: event predicates that are evaluated together, each with the relation that holds
            their tuples behind their names.
    """

    relations: Mapping[str, Relation] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    aggregations: tuple[Aggregation, ...] = ()
    marked: Mapping[str, Marked] = field(default_factory=dict)
    queries: frozenset[str] = frozenset()
    triggers: Mapping[str, Marked] = field(default_factory=dict)
    reactions: tuple[Reaction, ...] = ()
    merged: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NormalProgram:
    """What is evaluated and maintained: plain rules and aggregations over typed relations.

    Attributes:
        facts: the tuples of base relations that stand in the program text.
        bases: for each derived relation that has base tuples too, the relation that holds them.
        parts: for each base relation that was written to, who asserts tuples of it, each with the
            relation that holds them; the base relation itself, while there is one writer.
        active: what reacts to changes.
        constants: the tuples of relations that hold constants of rules, and never change.
    """

    relations: Mapping[str, Relation]
    rules: tuple[Rule, ...]
    aggregations: tuple[Aggregation, ...]
    facts: Mapping[str, tuple[tuple[Value, ...], ...]]
    bases: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    active: Active = Active()
    constants: Mapping[str, tuple[tuple[Value, ...], ...]] = field(default_factory=dict)
