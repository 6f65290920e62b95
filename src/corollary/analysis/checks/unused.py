"""Warnings about what has no effect: relations, rules, variables."""

from collections import Counter
from collections.abc import Iterator

from corollary.analysis.bags import bags_of, projection, rows_name
from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.scopes import written_name
from corollary.analysis.traverse import TermPosition, clause_terms
from corollary.core.logic import Clause, Constant, Functor, Variable, variables_of
from corollary.core.program import Declaration
from corollary.errors import Diagnostic, Severity


def unused(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield warnings about relations that nothing reads or fills, and variables used once."""
    yield from _relations(resolved)
    for clause in resolved.clauses:
        if clause.span is not None and clause.span.is_sql:
            continue  # its variables and nulls are those of a translation
        if clause.dominating is None:  # the atoms of subsumption are written like heads
            yield from _variables(clause)
        yield from _null_comparisons(clause)


def _relations(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    program = resolved.program
    bags = bags_of(program)
    of_bag = {rows_name(name): name for name in bags}  # a bag and its counts are one relation here
    projections = [projection(each) for each in bags.values()]
    clauses = [number for number, clause in enumerate(program.clauses) if clause not in projections]
    heads = [head for number in clauses for head in resolved.clauses[number].heads]
    shown = {d.relation for d in program.directives if d.name in ("output", "printsize")}
    read = {reaction.relation for reaction in program.reactions} | shown
    read |= {use.atom.relation for number in clauses for use in resolved.uses[number]}
    filled = {d.relation for d in program.directives if d.name == "input"}
    filled |= {head.relation for head in heads}
    changed = {head.relation for head in heads if head.sign}
    sinks = {each.parameter("relation") for each in program.reactions}
    filled, changed = filled | sinks, changed | sinks
    read, shown, filled, changed = (
        {of_bag.get(name, name) for name in names} for names in (read, shown, filled, changed)
    )
    for declaration in program.declarations:
        name = declaration.name
        if name in resolved.events or name in of_bag:
            continue
        if declaration.span is not None and declaration.span.is_sql:
            continue  # a table is there to be asked
        if name not in read and name not in changed and not declaration.storage:
            yield Diagnostic(
                "C0701",
                f"Relation `{name}` is never used.",
                declaration.span,
                f"read it in a rule, or publish it: `.output {name}`",
                severity=Severity.WARNING,
            )
        elif name not in filled and (name in shown or declaration.storage):
            yield Diagnostic(
                "C0702",
                f"Relation `{name}` is always empty: no rule, fact or `.input` fills it.",
                declaration.span,
                f"define it: `{_head(declaration)} :- …`",
                severity=Severity.WARNING,
            )


def _head(declaration: Declaration) -> str:
    """Return the head of a rule that would fill a relation."""
    columns = [column.name for column in declaration.columns]
    if declaration.is_bag:
        return f"{rows_name(declaration.name)}({', '.join((*columns, 'n'))})"
    return f"{declaration.name}({', '.join(columns)})"


def _variables(clause: Clause) -> Iterator[Diagnostic]:
    found = list(clause_terms(clause))
    counts: Counter[str] = Counter()
    for term, _ in found:
        if isinstance(term, Variable):
            counts[term.name] += 1
        elif isinstance(term, Functor):
            counts.update(variable.name for variable in variables_of(term))
    for term, position in found:
        if not isinstance(term, Variable) or position is not TermPosition.ARGUMENT:
            continue
        if counts[term.name] == 1 and not term.name.startswith("_"):
            yield Diagnostic(
                "C0703",
                f"Variable `{written_name(term.name)}` is used only once.",
                term.span,
                f"write `_`, or `_{written_name(term.name)}`, if its value does not matter",
                severity=Severity.WARNING,
            )


def _null_comparisons(clause: Clause) -> Iterator[Diagnostic]:
    for term, position in clause_terms(clause):
        if (
            position in (TermPosition.EQUATED, TermPosition.COMPARED)
            and isinstance(term, Constant)
            and term.value is None
        ):
            yield Diagnostic(
                "C0704",
                "A comparison with `null` never holds.",
                term.span,
                "to find nulls, write `x is null`, or give `null` to an atom: `p(x, null)`",
                severity=Severity.WARNING,
            )
