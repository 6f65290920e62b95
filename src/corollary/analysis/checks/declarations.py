"""Declarations of relations and types: unique, of known types, with columns that exist."""

from collections.abc import Iterable, Iterator

from corollary.analysis.phrases import one_of, related_spans, repeated, suggest_name
from corollary.analysis.resolution import ResolvedProgram, cast_type, resolve_type
from corollary.analysis.traverse import clause_terms
from corollary.core.functors.conversions import CAST
from corollary.core.graph import shortest_path, strongly_connected_components
from corollary.core.logic import Functor, subterms
from corollary.core.plans import WORKING_SEPARATOR
from corollary.core.program import Declaration, FunctionalDependency, TypeDeclaration, TypeName
from corollary.core.types import DECIMAL_MAX_DIGITS, INTEGERS, PLAIN_BRANCH, PRIMITIVES, Kind
from corollary.errors import Diagnostic
from corollary.source import Span

_PRIMITIVE_TYPES = frozenset(str(kind) for kind in PRIMITIVES)


def declarations(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield what is wrong with the declarations of a program."""
    program = resolved.program
    declared = frozenset(declaration.name for declaration in program.types)
    yield from _types(resolved, declared)
    for clause in resolved.clauses:
        for term, _ in clause_terms(clause):
            for part in subterms(term):
                if isinstance(part, Functor) and part.name == CAST:
                    yield from _type_name(declared, cast_type(part))
    for declaration, first in repeated(program.declarations):
        yield Diagnostic(
            "C0211",
            f"Relation `{declaration.name}` is declared twice.",
            declaration.span,
            "remove one of the declarations, or rename one of the relations",
            related_spans((first.span, "first declared here")),
        )
    for declaration in program.declarations:
        if WORKING_SEPARATOR in declaration.name:
            yield Diagnostic(
                "C0220",
                f"The name `{declaration.name}` has a `{WORKING_SEPARATOR}` in it.",
                declaration.span,
                "choose another name: this sign marks the working relations of plans",
            )
        yield from _columns(resolved, declared, declaration)
        yield from _equivalence(resolved, declaration)
        yield from _check_columns(declaration.key, declaration, declaration.span, "The key")
        for domain in declaration.domains:
            yield from _check_columns(domain, declaration, declaration.span, "The choice domain")
    seen = {each.name: each for each in reversed(program.declarations)}
    for dependency in program.dependencies:
        yield from _dependency(dependency, seen)
    for functor in program.functors:
        for name in (*(each.type for each in functor.parameters), functor.result):
            yield from _type_name(declared, name)


def _columns(
    resolved: ResolvedProgram, declared: frozenset[str], declaration: Declaration
) -> Iterator[Diagnostic]:
    for column, first in repeated(declaration.columns):
        yield Diagnostic(
            "C0213",
            f"Relation `{declaration.name}` has two columns `{column.name}`.",
            column.span,
            "rename one of them",
            related_spans((first.span, "the first one")),
        )
    for column in declaration.columns:
        yield from _type_name(declared, column.type)
        type_ = resolve_type(column.type, resolved.types)
        # What SQL declares has no span: an outer join may have null for a record.
        is_written = column.type.span is not None
        if is_written and type_ is not None and type_.record is not None and type_.nullable:
            yield Diagnostic(
                "C0233",
                f"A column of the record type `{type_.record.name}` cannot be nullable.",
                column.type.span,
                f"write `{column.name}: {column.type.name}`: `nil` is the record without fields"
                if not type_.record.is_algebraic
                else f"write `{column.name}: {column.type.name}`, with a branch for no value",
            )


def _equivalence(resolved: ResolvedProgram, declaration: Declaration) -> Iterator[Diagnostic]:
    if not declaration.is_equivalence:
        return
    found = [resolve_type(column.type, resolved.types) for column in declaration.columns]
    if len(found) != 2 or (None not in found and found[0] != found[1]):
        yield Diagnostic(
            "C0218",
            f"Equivalence `{declaration.name}` needs two columns of one type.",
            declaration.span,
            "an `eqrel` relates values of one type, as in `.decl same(a: symbol, b: symbol) eqrel`",
        )


def _check_columns(
    names: Iterable[str], declaration: Declaration, span: Span | None, who: str
) -> Iterator[Diagnostic]:
    """Yield the names that are not columns, and those named twice."""
    columns = [column.name for column in declaration.columns]
    seen: set[str] = set()
    for name in names:
        if name not in columns:
            has = f"its columns are {', '.join(f'`{column}`' for column in columns)}"
            yield Diagnostic(
                "C0207",
                f"{who} names `{name}`, which is not a column of `{declaration.name}`.",
                span,
                suggest_name(name, columns) or (has if columns else "it has no columns"),
                related_spans((declaration.span, "declared here"))
                if span != declaration.span
                else (),
            )
        elif name in seen:
            yield Diagnostic("C0213", f"{who} names column `{name}` twice.", span, "name it once")
        seen.add(name)


def _dependency(
    dependency: FunctionalDependency, declared: dict[str, Declaration]
) -> Iterator[Diagnostic]:
    declaration = declared.get(dependency.relation)
    if declaration is not None:
        for names in (dependency.determinants, dependency.dependents):
            yield from _check_columns(names, declaration, dependency.span, "The dependency")


def _types(resolved: ResolvedProgram, declared: frozenset[str]) -> Iterator[Diagnostic]:
    seen: dict[str, TypeDeclaration] = {}
    for declaration in resolved.program.types:
        first = seen.setdefault(declaration.name, declaration)
        if first is not declaration or declaration.name in _PRIMITIVE_TYPES:
            is_own = first is not declaration
            yield Diagnostic(
                "C0212",
                f"Type `{declaration.name}` is "
                f"{'declared twice' if is_own else 'built in and cannot be declared'}.",
                declaration.span,
                "rename it",
                related_spans((first.span, "first declared here")) if is_own else (),
            )
        for base in declaration.bases:
            yield from _type_name(declared, base)
            if base.nullable:
                yield Diagnostic(
                    "C0219",
                    f"Type `{declaration.name}` cannot be nullable.",
                    base.span,
                    f"write `?` at the columns: `x: {declaration.name}?`",
                )
        yield from _union(resolved, declaration)
        yield from _branches(declared, declaration)
    yield from _branch_names(resolved.program.types)
    yield from _cycles(seen)


def _union(resolved: ResolvedProgram, declaration: TypeDeclaration) -> Iterator[Diagnostic]:
    found = [resolve_type(base, resolved.types) for base in declaration.bases]
    domains = {type_.domain for type_ in found if type_ is not None}
    record = next((type_.record for type_ in found if type_ and type_.record), None)
    if record is not None and (declaration.is_subtype or len(found) > 1):
        how = "a subtype" if declaration.is_subtype else "a union"
        yield Diagnostic(
            "C0231",
            f"Type `{declaration.name}` cannot be {how} of the record type `{record.name}`.",
            declaration.span,
            f"give it another name: `.type {declaration.name} = {record.name}`",
        )
        return
    if len(domains) > 1:
        kinds = one_of(f"`{type_.with_null(False)}`" for type_ in found if type_)
        yield Diagnostic(
            "C0217",
            f"Type `{declaration.name}` joins types of different primitives.",
            declaration.span,
            f"its values would be {kinds}; declare one type for each",
        )


def _branches(declared: frozenset[str], declaration: TypeDeclaration) -> Iterator[Diagnostic]:
    """Yield what is wrong with the fields of a record type."""
    for branch in declaration.branches:
        for field, first in repeated(branch.fields):
            yield Diagnostic(
                "C0232",
                f"Type `{declaration.name}` has two fields `{field.name}`.",
                field.span,
                "rename one of them",
                related_spans((first.span, "the first one")),
            )
        for field in branch.fields:
            yield from _type_name(declared, field.type)
            if field.type.nullable:
                yield Diagnostic(
                    "C0233",
                    f"Field `{field.name}` of `{declaration.name}` cannot be nullable.",
                    field.type.span,
                    f"write `{field.name}: {field.type.name}`, and a branch for no value",
                )


def _branch_names(types: Iterable[TypeDeclaration]) -> Iterator[Diagnostic]:
    """Yield the branches that are declared twice: `$Leaf(1)` names no type."""
    branches = (branch for each in types for branch in each.branches if branch.name != PLAIN_BRANCH)
    for branch, first in repeated(branches):
        yield Diagnostic(
            "C0234",
            f"Branch `{branch.name}` is declared twice.",
            branch.span,
            "rename one of them",
            related_spans((first.span, "first declared here")),
        )


def _cycles(declared: dict[str, TypeDeclaration]) -> Iterator[Diagnostic]:
    bases = {name: [b.name for b in found.bases] for name, found in declared.items()}
    for component in strongly_connected_components(bases):
        name = min(component, key=list(declared).index) if len(component) > 1 else component[0]
        cycle = shortest_path(bases, name, name) if name in declared else []
        if cycle:
            yield Diagnostic(
                "C0215",
                f"Type `{name}` is defined by itself: {' → '.join(f'`{link}`' for link in cycle)}.",
                declared[name].span,
                "base one of them on a primitive type, as in `.type A <: symbol`",
                related_spans(*((declared[link].span, "") for link in cycle[1:-1])),
            )


def _type_name(declared: frozenset[str], name: TypeName) -> Iterator[Diagnostic]:
    if name.members:
        names = [word for word, _ in name.members]
        twice = [word for at, word in enumerate(names) if word in names[:at]]
        if twice:
            message = f"A struct has the field `{twice[0]}` twice."
            yield Diagnostic("C0214", message, name.span, "give them different names")
        for _, each in name.members:
            yield from _type_name(declared, each)
    elif name.name == Kind.DECIMAL:
        if resolve_type(name, {}) is None:
            is_bare = name.digits is None
            yield Diagnostic(
                "C0216",
                "`decimal` needs its digits."
                if is_bare
                else f"`decimal` has 1 to {DECIMAL_MAX_DIGITS} digits, "
                "and at most as many of them after the point.",
                name.span,
                "write for example `decimal(12, 2)`",
            )
    elif name.name not in {*_PRIMITIVE_TYPES, *INTEGERS, *declared}:
        yield Diagnostic(
            "C0214",
            f"There is no type `{name.name}`.",
            name.span,
            suggest_name(name.name, _PRIMITIVE_TYPES | declared)
            or f"declare it, as in `.type {name.name} <: symbol`",
        )
    elif name.digits is not None and resolve_type(name, {}) is None:
        yield Diagnostic(
            "C0216", f"Type `{name.name}` has no digits.", name.span, f"write `{name.name}`"
        )
