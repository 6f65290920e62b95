"""Name resolution: the relations, types and event predicates that every pass reads."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from corollary.analysis.scopes import rename_apart
from corollary.analysis.traverse import AtomUse, atom_uses, map_clause
from corollary.core.graph import reachable, strongly_connected_components
from corollary.core.logic import Atom, Clause, Constant, Functor, Term, Variable, applies_functor
from corollary.core.printer import print_type
from corollary.core.program import (
    Declaration,
    FunctorDeclaration,
    Program,
    TypeDeclaration,
    TypeName,
)
from corollary.core.states import State
from corollary.core.types import (
    DECIMAL_MAX_DIGITS,
    INTEGERS,
    INTERVAL_FIELDS,
    PRIMITIVES,
    SYMBOL,
    Branch,
    Kind,
    RecordType,
    Type,
    decimal,
    nested,
)
from corollary.core.user_functors.registration import registered_function
from corollary.core.user_functors.user_functor import SIGN, UserCall, UserFunctor
from corollary.data_class import dataclass
from corollary.source import Span


@dataclass(frozen=True, slots=True)
class RelationSchema:
    """A relation, by its declaration or by the first rule of an undeclared event predicate.

    Attributes:
        types: the types of the columns; None where a type is unknown or yet to be inferred.
        span: the declaration, or the head of the first rule.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[Type | None, ...]
    declaration: Declaration | None
    span: Span | None


@dataclass(frozen=True, slots=True)
class ResolvedProgram:
    """A program, and what all passes need to know of it, found once.

    Attributes:
        clauses: the program's clauses, with one name for each variable (see `scopes`).
        uses: for each clause, the atoms that it reads.
        types: the declared types that can be resolved.
        schemas: the declared relations, and the event predicates without a declaration.
        events: the event predicates.
        derived: relations with a rule or an equivalence, event predicates included.
        definitions: for each relation, its clauses; triggers are not among them.
        branches: those of algebraic data types, with their types.
    """

    program: Program
    clauses: tuple[Clause, ...]
    uses: tuple[tuple[AtomUse, ...], ...]
    types: Mapping[str, Type]
    schemas: Mapping[str, RelationSchema]
    events: frozenset[str]
    derived: frozenset[str]
    definitions: Mapping[str, tuple[int, ...]]
    branches: Mapping[str, tuple[Type, Branch]]

    def schema_of(self, atom: Atom) -> RelationSchema | None:
        """Return the relation of an atom; None if it is unknown or has another arity."""
        schema = self.schemas.get(atom.relation)
        return schema if schema and len(schema.columns) == len(atom.arguments) else None


def resolve_program(program: Program) -> ResolvedProgram:
    """Return a program with its names resolved; what cannot be resolved is left out."""
    types = resolve_types(program.types)
    functors = resolve_functors(program.functors, types)
    clauses = tuple(
        rename_apart(_with_functors(clause, functors) if functors else clause)
        for clause in program.clauses
    )
    uses = tuple(tuple(atom_uses(clause)) for clause in clauses)
    definitions: defaultdict[str, list[int]] = defaultdict(list)
    derived = {d.name for d in program.declarations if d.is_equivalence or d.domains}
    for number, clause in enumerate(clauses):
        for head in clause.heads:
            if is_definition(head):
                definitions[head.relation].append(number)
                if clause.body:
                    derived.add(head.relation)
    events = _event_predicates(clauses, uses)
    schemas: dict[str, RelationSchema] = {}
    for declaration in program.declarations:
        schemas.setdefault(declaration.name, _declared_schema(declaration, types))
    for number, clause in enumerate(clauses):
        for head in clause.heads:
            is_event = is_definition(head) and head.relation in events
            if is_event and head.relation not in schemas and is_active(uses[number], events):
                schemas[head.relation] = _inferred_schema(head)
    return ResolvedProgram(
        program,
        clauses,
        uses,
        types,
        schemas,
        events,
        frozenset(derived),
        {name: tuple(numbers) for name, numbers in definitions.items()},
        {
            branch.name: (type_, branch)
            for type_ in types.values()
            if type_.record is not None and type_.record.is_algebraic
            for branch in type_.record.branches.values()
        },
    )


def resolve_functors(
    declared: tuple[FunctorDeclaration, ...], types: Mapping[str, Type]
) -> dict[str, UserFunctor]:
    """Return the declared functors whose types are known, by the name that calls them, `@f`."""
    found: dict[str, UserFunctor] = {}
    for declaration in declared:
        parameters = [resolve_type(each.type, types) for each in declaration.parameters]
        result = resolve_type(declaration.result, types)
        known = tuple(type_.with_null(False) for type_ in parameters if type_ is not None)
        if result is not None and len(known) == len(parameters):
            function = registered_function(declaration.name)
            made = UserFunctor(declaration.name, known, result, function)
            found.setdefault(f"{SIGN}{declaration.name}", made)
    return found


def _with_functors(clause: Clause, functors: Mapping[str, UserFunctor]) -> Clause:
    """Return a clause in which the functors of the program know their types and functions."""

    def bound(term: Term) -> Term:
        declared = functors.get(term.name) if isinstance(term, Functor) else None
        if declared is None:
            return term
        assert isinstance(term, Functor)
        return UserCall(term.name, term.arguments, span=term.span, functor=declared)

    return map_clause(clause, bound) if applies_functor(clause, functors) else clause


def is_definition(head: Atom) -> bool:
    """Whether a head defines its relation; the head of a trigger changes it."""
    return not head.sign and head.state is None


def is_active(uses: tuple[AtomUse, ...], events: frozenset[str]) -> bool:
    """Whether a clause reads a change, the old state or an event predicate; `@new` is no event."""
    return any(r.atom.sign or r.atom.state is State.OLD or r.atom.relation in events for r in uses)


def _event_predicates(
    clauses: tuple[Clause, ...], uses: tuple[tuple[AtomUse, ...], ...]
) -> frozenset[str]:
    """Return the heads of active clauses, and of those that read them, and so on."""
    readers: defaultdict[str, list[int]] = defaultdict(list)
    pending: list[int] = []
    for number, read in enumerate(uses):
        for relation in {use.atom.relation for use in read}:
            readers[relation].append(number)
        if is_active(read, frozenset()):
            pending.append(number)
    events: set[str] = set()
    while pending:
        for head in clauses[pending.pop()].heads:
            if is_definition(head) and head.relation not in events:
                events.add(head.relation)
                pending += readers[head.relation]
    return frozenset(events)


def _declared_schema(declaration: Declaration, types: Mapping[str, Type]) -> RelationSchema:
    columns = tuple(column.name for column in declaration.columns)
    found = tuple(resolve_type(column.type, types) for column in declaration.columns)
    return RelationSchema(declaration.name, columns, found, declaration, declaration.span)


def _inferred_schema(head: Atom) -> RelationSchema:
    columns: list[str] = []
    for position, term in enumerate(head.arguments, 1):
        name = term.name if isinstance(term, Variable) else ""
        columns.append(name if name and name not in columns else f"c{position}")
    return RelationSchema(head.relation, tuple(columns), (None,) * len(columns), None, head.span)


def resolve_type(name: TypeName, types: Mapping[str, Type]) -> Type | None:
    """Return the type of a name; None if there is none."""
    found = types.get(name.name)
    if name.members:
        inner = [(word, resolve_type(each, types)) for word, each in name.members]
        known = [(word, each) for word, each in inner if each is not None]
        found = nested(Kind(name.name), known) if len(known) == len(inner) else None
    elif name.name == Kind.DECIMAL and name.digits is not None:
        precision, scale = name.digits
        if 1 <= precision <= DECIMAL_MAX_DIGITS and 0 <= scale <= precision:
            found = decimal(precision, scale)
    elif name.name in INTERVAL_FIELDS and name.digits is not None:
        at, scale = name.digits
        if 0 <= at < len(INTERVAL_FIELDS[Kind(name.name)]) and not scale:
            found = Type(Kind(name.name), precision=at)
    elif name.name in PRIMITIVES and name.digits is None and name.name != Kind.DECIMAL:
        found = Type(Kind(name.name))
    elif name.name in INTEGERS and found is None and name.digits is None:
        found = INTEGERS[name.name]
    return found.with_null(name.nullable or found.nullable) if found else None


def cast_type(cast: Functor) -> TypeName:
    """Return the type that `as(x, T)` names."""
    named = cast.arguments[1]
    assert isinstance(named, Constant)
    return TypeName(str(named.value), span=named.span)


def resolve_types(declared: tuple[TypeDeclaration, ...]) -> dict[str, Type]:
    """Return the type of each declared type; cyclic and unknown ones are left out."""
    first = {declaration.name: declaration for declaration in reversed(declared)}
    records = {
        name: RecordType(name, _definition(name, first))
        for name, declaration in first.items()
        if declaration.branches
    }
    types = _primitive_types(first, records)
    for name, record in records.items():
        record.branches = {
            each.name: Branch(
                each.name,
                tuple(field.name for field in each.fields),
                # What has no type is reported, and never evaluated.
                tuple(resolve_type(field.type, types) or SYMBOL for field in each.fields),
            )
            for each in first[name].branches
        }
    return types


def _definition(name: str, declared: Mapping[str, TypeDeclaration]) -> str:
    """Return the declarations of a type and of all types that it names."""

    def named_by(each: str) -> Iterator[str]:
        if each in declared:
            yield from (base.name for base in declared[each].bases)
            yield from (f.type.name for branch in declared[each].branches for f in branch.fields)

    found = reachable([name], named_by)
    return "\n".join(print_type(declared[each]) for each in sorted(found) if each in declared)


def _primitive_types(
    first: Mapping[str, TypeDeclaration], records: Mapping[str, RecordType]
) -> dict[str, Type]:
    """Return the types of records, and of what is based on them and on primitives."""
    bases = {name: [base.name for base in first[name].bases] for name in first}
    types = {name: replace(SYMBOL, record=record) for name, record in records.items()}
    for component in strongly_connected_components(bases):
        name = component[0]
        if len(component) > 1 or name not in first or name in bases[name] or name in records:
            continue
        found = [resolve_type(base, types) for base in first[name].bases]
        known = [type_ for type_ in found if type_ is not None]
        if known and len(known) == len(found) and len({(t.domain, t.record) for t in known}) == 1:
            widest = max(type_.precision for type_ in known)
            types[name] = replace(known[0], precision=widest, nullable=False)
    return types
