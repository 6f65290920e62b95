"""Names of relations and functors: they exist and have that many arguments."""

from collections.abc import Iterator, Sequence

from corollary.analysis.phrases import related_spans, suggest_name
from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.scopes import written_name
from corollary.analysis.traverse import TermPosition, clause_terms
from corollary.analysis.types.constraints import literal_kinds
from corollary.core.functors.catalog import FUNCTORS, signature_of
from corollary.core.functors.spec import ANY, FunctorSpec
from corollary.core.logic import Atom, Clause, Constant, Functor, Variable, subterms
from corollary.core.records.record_terms import is_record_term
from corollary.core.syntax import TODAY
from corollary.core.types import PRIMITIVES, Type
from corollary.core.user_functors.user_functor import SIGN
from corollary.errors import Diagnostic
from corollary.source import Span


def names(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield the unknown names, once each, and the uses with a wrong number of arguments."""
    unknown: set[str] = set()
    for number, clause in enumerate(resolved.clauses):
        atoms = [*clause.heads, *(use.atom for use in resolved.uses[number])]
        for atom in atoms:
            if atom.relation in resolved.schemas:
                yield from _arity(resolved, atom)
            elif atom.relation not in unknown:
                unknown.add(atom.relation)
                columns = _likely_columns(resolved, atom, atoms)
                is_head = atom in clause.heads
                yield _unknown(resolved, atom.relation, columns, atom.span, is_head=is_head)
        yield from _functors(resolved, clause)
    program = resolved.program
    users = [(user.relation, user.span) for user in program.dependencies]
    # The text of a function of SQL is kept, too.
    users += [(each.relation, each.span) for each in program.directives if each.name != "sql"]
    users += [(user.relation, user.span) for user in program.reactions]
    for name, span in users:
        if name not in resolved.schemas and name not in unknown:
            unknown.add(name)
            yield _unknown(resolved, name, "x: symbol", span, is_head=False)


def _likely_columns(resolved: ResolvedProgram, atom: Atom, others: Sequence[Atom]) -> str:
    """Return columns for a relation that is not declared, as far as its clause shows them."""
    known: dict[str, Type] = {}
    for other in others:
        schema = resolved.schema_of(other)
        for term, type_ in zip(other.arguments, schema.types if schema else (), strict=False):
            if isinstance(term, Variable) and type_ is not None:
                known.setdefault(term.name, type_)
    columns: dict[str, str] = {}
    for number, term in enumerate(atom.arguments, 1):
        name = written_name(term.name) if isinstance(term, Variable) else f"c{number}"
        type_ = known.get(term.name) if isinstance(term, Variable) else None
        kinds = literal_kinds(term) if isinstance(term, Constant) else ANY
        kind = next(kind for kind in PRIMITIVES if kind in kinds)
        columns[name if name not in columns else f"c{number}"] = str(type_ or kind)
    return ", ".join(f"{name}: {type_}" for name, type_ in columns.items())


def _unknown(
    resolved: ResolvedProgram, name: str, columns: str, span: Span | None, *, is_head: bool
) -> Diagnostic:
    declare = f"declare it, as in `.decl {name}({columns})`"
    near = suggest_name(name, resolved.schemas)
    cure = declare if is_head and not near else near or declare
    return Diagnostic("C0201", f"There is no relation `{name}`.", span, cure)


def _arity(resolved: ResolvedProgram, atom: Atom) -> Iterator[Diagnostic]:
    schema = resolved.schemas[atom.relation]
    has, given = len(schema.columns), len(atom.arguments)
    if has != given:
        columns = ", ".join(schema.columns)
        yield Diagnostic(
            "C0202",
            f"Relation `{atom.relation}` has {_count(has, 'column')}, but {_given(given)}.",
            atom.span,
            f"write `{atom.relation}({columns})`" + (", with `_` for the rest" if columns else ""),
            related_spans((schema.span, "declared here" if schema.declaration else "first rule")),
        )


def _functors(resolved: ResolvedProgram, clause: Clause) -> Iterator[Diagnostic]:
    own = {f"{SIGN}{each.name}" for each in resolved.program.functors}
    for whole, position in clause_terms(clause):
        for term in subterms(whole):
            if not isinstance(term, Functor):
                continue
            if is_record_term(term):
                yield from _branch(resolved, term)
                continue
            if term.name == "range" and (term is not whole or position is not TermPosition.EQUATED):
                yield Diagnostic(
                    "C0204",
                    "`range` makes several values and stands only beside `=`, with a variable.",
                    term.span,
                    "name its values first: `x = range(0, 10)`",
                )
            signature = signature_of(term)
            if term.name == TODAY:
                yield Diagnostic(
                    "C0203", "`today` takes no arguments.", term.span, "write `today()`"
                )
            elif signature is None:
                if term.name not in own:  # else its types are unknown, which `functors` reports
                    yield _unknown_functor(term, own)
            elif not signature.accepts(len(term.arguments)):
                most = signature.max_arguments
                if signature.is_paired:
                    takes = "pairs of a test and a value, and one more value"
                elif most is None:
                    takes = f"at least {_count(signature.min_arguments, 'argument')}"
                elif most == signature.min_arguments:
                    takes = _count(most, "argument")
                else:
                    takes = f"{signature.min_arguments} to {most} arguments"
                yield Diagnostic(
                    "C0203",
                    f"`{term.name}` takes {takes}, but {_given(len(term.arguments))}.",
                    term.span,
                    f"write `{_form(signature)}`",
                )


def _unknown_functor(term: Functor, own: set[str]) -> Diagnostic:
    name = term.name.removeprefix(SIGN)
    note = suggest_name(term.name, own)
    if name in FUNCTORS:
        note = f"write `{name}`, without `@`: it is built in"
    parameters = ", ".join(f"{letter}: number" for letter, _ in zip("xyzuvw", term.arguments))  # noqa: B905
    declare = f"declare it, as in `.functor {name}({parameters}): number`"
    message = f"There is no functor `{term.name}`."
    return Diagnostic("C0203", message, term.span, note or declare)


def _branch(resolved: ResolvedProgram, term: Functor) -> Iterator[Diagnostic]:
    """Yield what is wrong with the name of a branch, or with the number of its fields."""
    if not term.name.startswith("$"):
        return
    known = resolved.branches.get(term.name[1:])
    if known is None:
        names = [f"${name}" for name in resolved.branches]
        yield Diagnostic(
            "C0235",
            f"There is no branch `{term.name}`.",
            term.span,
            suggest_name(term.name, names)
            or f"declare it, as in `.type T = {term.name[1:]} {{x: number}}`",
        )
        return
    fields = known[1].fields
    if len(fields) != len(term.arguments):
        given = _given(len(term.arguments))
        yield Diagnostic(
            "C0236",
            f"Branch `{term.name}` has {_count(len(fields), 'field')}, but {given}.",
            term.span,
            f"write `{term.name}({', '.join(fields)})`" if fields else f"write `{term.name}`",
        )


def _form(signature: FunctorSpec) -> str:
    """Return how a functor is applied: `substr(symbol, number, number)`."""
    names = [
        str(*kinds) if len(kinds) == 1 else letter
        for kinds, letter in zip(signature.parameters, "xyz", strict=False)
    ]
    return f"{signature.name}({', '.join(names)}{', …' if signature.is_variadic else ''})"


def _given(number: int) -> str:
    return f"{number} {'is' if number == 1 else 'are'} given"


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
