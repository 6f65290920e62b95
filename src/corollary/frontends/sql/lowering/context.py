"""What all parts of the lowering share: the columns of sources, and how queries are read."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field

from corollary.core.logic import Atom, Term, Variable, Wildcard, variables_of
from corollary.core.types import NUMBER, SYMBOL, Type
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql import query_tree as tree
from corollary.frontends.sql.lowering.bodies import RuleBody
from corollary.frontends.sql.lowering.draft import ViewDraft
from corollary.source import Span


@dataclass(frozen=True, slots=True)
class LoweredQuery:
    """The relation that a query became.

    Attributes:
        relation: its name; `q.rows` if it counts copies.
        outer: the variables of queries around that are its first columns.
        names: those of its other columns.
        types: their types.
        is_bag: whether a last column has the number of copies.
        keys: the columns, by number, that tell its rows apart where the outer variables are given.
    """

    relation: str
    outer: tuple[Variable, ...]
    names: tuple[str, ...]
    types: tuple[Type, ...]
    is_bag: bool
    keys: tuple[frozenset[int], ...]

    def atom(self, columns: tuple[Term, ...], count: Term | None = None) -> Atom:
        """Return a literal of the relation."""
        counts = (count or Wildcard(),) if self.is_bag else ()
        return Atom(self.relation, (*self.outer, *columns, *counts))

    def some(self) -> Atom:
        """Return a literal that says that there is a row."""
        return self.atom(tuple(Wildcard() for _ in self.types))

    @property
    def has_one_row(self) -> bool:
        """Whether there is at most one row."""
        return not self.is_bag and frozenset() in self.keys


@dataclass(frozen=True, slots=True)
class OpenBranch:
    """A branch of a union: its body, its columns, and what tells its rows apart."""

    query: tree.Query
    body: RuleBody
    row: list[Term]
    keys: Sequence[frozenset[int]]


@dataclass(slots=True)
class RecursiveRelation:
    """The relation of a recursive table.

    Attributes:
        types: of its columns; one may be null if some rule lets it.
        keys: the columns that tell its rows apart, if it is a set.
        has_way: whether a column tells the derivations of a row apart…
        has_count: …and another one has the number of copies.
    """

    table: tree.RecursiveTable
    relation: str
    names: list[str]
    types: list[Type]
    keys: tuple[frozenset[int], ...]
    has_way: bool = False
    has_count: bool = False
    branches: list[OpenBranch] = field(default_factory=list)

    @property
    def columns(self) -> list[tuple[str, Type]]:
        """The columns, hidden ones too."""
        found = list(zip(self.names, self.types, strict=True))
        found += [("way", SYMBOL)] if self.has_way else []
        return [*found, ("n", NUMBER)] if self.has_count else found


@dataclass(frozen=True, slots=True)
class Mark:
    """What a lowering had at some time."""

    draft: ViewDraft
    known: dict[str, LoweredQuery]
    sets: set[str]


class ViewLowering(ABC):
    """One view under lowering.

    Attributes:
        draft: its rules so far.
        columns: the terms of the columns of each source, by its number.
        used: the columns of sources that expressions of the statement name.
        readers: how many references each common table expression has.
        known: relations of common table expressions that several references read.
        recursive: the relations of recursive tables.
        ways: the variable that tells derivations apart, of each source that is such a relation.
        sets: those of them that do not say how often a row is there.
    """

    def __init__(
        self, draft: ViewDraft, used: frozenset[tuple[int, int]], readers: Mapping[str, int]
    ) -> None:
        self.draft = draft
        self.used = used
        self.readers = readers
        self.columns: dict[int, list[Term]] = {}
        self.known: dict[str, LoweredQuery] = {}
        self.sets: set[str] = set()
        self.recursive: dict[str, RecursiveRelation] = {}
        self.ways: dict[int, Variable] = {}
        self._free: dict[int, tuple[tree.Query, tuple[tree.ColumnReference, ...]]] = {}

    @abstractmethod
    def define(self, query: tree.Query, relation: str, body: RuleBody) -> LoweredQuery:
        """Make the rules of a query.

        Args:
            query: the query.
            relation: the name of its relation, if it is a set.
            body: an empty body, with the variables of queries around.
        """

    def open_select(self, select: tree.Select, body: RuleBody) -> None:
        """Add the source and the condition of a block to a body."""
        if select.source is not None:
            self.add_source(select.source, body)
        self.add_condition(select.where, body)

    @abstractmethod
    def add_source(self, source: tree.Source, body: RuleBody) -> None:
        """Add a source to a body; its columns are known then."""

    @abstractmethod
    def add_condition(self, condition: tree.Expression | None, body: RuleBody) -> None:
        """Add that a condition is true."""

    @abstractmethod
    def term(
        self,
        expression: tree.Expression,
        body: RuleBody,
        *,
        terms: Mapping[tree.Expression, Term] | None = None,
        drops_null: bool = False,
    ) -> Term:
        """Return the term of an expression; its subqueries become items of the body.

        Args:
            expression: what to lower.
            body: where it has a value.
            terms: expressions whose terms are known; those of the body by default.
            drops_null: whether rows in which it is null are not needed.
        """

    # --- attempts ------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """Return what `rollback` needs to forget all that comes after."""
        return Mark(self.draft.copy(), dict(self.known), set(self.sets))

    def rollback(self, mark: Mark) -> None:
        """Forget all that came after a mark, which can be used once."""
        self.draft.restore(mark.draft)
        self.known, self.sets = mark.known, mark.sets

    # --- subqueries ----------------------------------------------------------------------------

    def free_references(self, query: tree.Query) -> tuple[tree.ColumnReference, ...]:
        """Return the references of a query to columns of queries around it."""
        known = self._free.get(id(query))
        if known is None:  # the query is kept, so that no other one gets its id
            known = self._free[id(query)] = query, tree.free_references(query)
        return known[1]

    def inner_body(self, query: tree.Query, around: RuleBody, *, is_set: bool) -> RuleBody:
        """Return an empty body for a query inside another one."""
        found: dict[str, Variable] = {}
        for reference in self.free_references(query):
            term = self.columns[reference.source][reference.column]
            for variable in variables_of(term):
                found.setdefault(self.draft.resolve(variable).name, variable)
        outer = tuple(
            variable if variable.type is None else self._narrowed(variable, around)
            for variable in found.values()
        )
        made: list[Atom] = []

        def make_outer() -> Atom:
            if not made:
                made.append(self.project(outer, around, "of"))
            return made[0]

        body = RuleBody(self.draft, outer, is_set, make_outer)
        body.take_nulls(outer, around)
        for each in found.values():
            body.known.add({self.draft.resolve(each).name}, {each.name})
            body.take_nulls((each,), around)
        return body

    def _narrowed(self, variable: Variable, around: RuleBody) -> Variable:
        resolved = self.draft.resolve(variable)
        assert variable.type is not None
        return Variable(resolved.name, variable.type.with_null(around.is_nullable(variable)))

    def lower(self, query: tree.Query, around: RuleBody, *, is_set: bool) -> LoweredQuery:
        """Return the relation of a query inside another one."""
        body = self.inner_body(query, around, is_set=is_set)
        return self.define(query, self.draft.relation("q"), body)

    def lower_part(
        self, query: tree.Query, body: RuleBody, *, is_set: bool, is_kept: bool = False
    ) -> LoweredQuery:
        """Return the relation of a part of a query, with the same outer variables."""
        name = self.draft.relation("q")
        if is_kept:
            self.draft.kept.add(name)
        return self.define(query, name, body.empty_copy(is_set=is_set))

    def project(
        self, variables: tuple[Variable, ...], body: RuleBody, label: str, span: Span | None = None
    ) -> Atom:
        """Return a literal of a new relation: some variables of all rows of a body."""
        name = self.draft.relation(label)
        items = body.closed_items(variables)
        types = [
            (self.draft.hint(each), (each.type or NUMBER).with_null(body.is_nullable(each)))
            for each in variables
        ]
        self.draft.declare(name, types)
        self.draft.add(name, variables, items, span)
        return Atom(name, variables)

    # --- bodies --------------------------------------------------------------------------------

    def cut(
        self, body: RuleBody, columns: Sequence[Term] | None = None, *, storage: str = "virtual"
    ) -> None:
        """Make a body a relation, and the body one literal of it.

        Args:
            body: what is cut.
            columns: those that the relation has in any case; by default those that are used.
            storage: of the relation.
        """
        terms = columns
        if terms is None:
            terms = [term for number in body.sources for term in self.used_columns(number)]
        variables = (*body.outer, *body.visible(terms))
        types = {each.name: (each.type or NUMBER) for each in variables}
        name = self.draft.relation("join")
        self.draft.declare(
            name,
            [
                (self.draft.hint(each), types[each.name].with_null(body.is_nullable(each)))
                for each in variables
            ],
            storage=storage,
        )
        self.draft.add(name, variables, body.closed_items())
        body.items[:] = [Atom(name, variables)]
        body.base = None
        body.alternatives = 1

    def used_columns(self, source: int) -> list[Term]:
        """Return the terms of the columns of a source that are needed."""
        return [
            term
            for number, term in enumerate(self.columns[source])
            if (source, number) in self.used
        ]

    def read(self, lowered: LoweredQuery, body: RuleBody) -> list[Variable]:
        """Add a literal of a query's relation to a body, and return its columns."""
        draft = self.draft
        variables = [
            draft.variable(name, type_)
            for name, type_ in zip(lowered.names, lowered.types, strict=True)
        ]
        count = draft.variable("n", NUMBER) if lowered.is_bag else None
        body.items.append(lowered.atom(tuple(variables), count))
        note_row(body, variables, count, lowered.keys, {each.name for each in lowered.outer})
        return variables


def note_row(
    body: RuleBody,
    variables: list[Variable],
    count: Variable | None,
    keys: tuple[frozenset[int], ...],
    given: set[str],
) -> None:
    """Note what a literal with a row of a source says of its variables.

    Args:
        body: where the literal is.
        variables: the columns.
        count: the number of copies, if the source is a bag.
        keys: of the source.
        given: outer variables that the source depends on.
    """
    known = body.known
    names = [each.name for each in variables]
    known.not_null |= {each.name for each in variables if each.type and not each.type.nullable}
    witnesses = variables
    if count is not None:
        body.counts.append(count)
        known.not_null.add(count.name)
        known.add({*names, *given}, {count.name})
    elif keys:
        for key in keys:
            known.add({*(names[column] for column in key), *given}, names)
        smallest = min(keys, key=lambda key: (len(key), sorted(key)))
        witnesses = [variables[column] for column in sorted(smallest)]
    body.witnesses += witnesses


def refuse(code: str, message: str, span: Span | None, cure: str) -> InputError:
    """Return the error of a query that cannot be lowered exactly."""
    return InputError.of(code, message, span, cure)
