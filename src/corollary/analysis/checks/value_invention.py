"""Value invention: warnings about recursion that makes new values, and so may never end.

`n(x + 1) :- n(x).` is warned about. A rule is taken to end if the values that it computes with,
or the computed ones, are bounded: by a relation outside the recursion, by a comparison with
something that does not come from the recursion, or because they are handed on unchanged, as `s`
in `rev(s, k + 1) :- rev(s, k), k < strlen(s).`
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from corollary.analysis.dependencies import DependencyGraph, dependency_graph
from corollary.analysis.patterns import equated_terms, pattern_terms, pattern_variables
from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.scopes import written_name
from corollary.core import logic
from corollary.core.functors.catalog import is_expanding
from corollary.core.graph import closure_of
from corollary.core.records.record_terms import is_record_term
from corollary.errors import Diagnostic, Severity

_ORDER_COMPARISONS = ("<", "<=", ">", ">=")


def value_invention(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield a warning for each recursive rule that may make new values without end."""
    for clause, head, what in _inventing_clauses(resolved, resolved.clauses):
        if clause.span is not None and clause.span.is_sql:
            yield Diagnostic(
                "C1353",
                "This recursion makes new values, or counts ways, and may never end.",
                clause.span,
                "bound it, as in `WHERE n < 1000`; otherwise it runs until a limit stops it",
                severity=Severity.WARNING,
            )
            continue
        yield Diagnostic(
            "C0706",
            f"This recursive rule computes {what} from `{head.relation}` itself and may never end.",
            clause.span,
            "bound it, as in `x < 1000`; otherwise it runs until a limit such as "
            "`--limit-rounds` or `--limit-tuples` stops it",
            severity=Severity.WARNING,
        )


def mark_endless(
    resolved: ResolvedProgram, typed: Sequence[logic.Clause]
) -> tuple[logic.Clause, ...]:
    """Return clauses in which those of SQL that may make new values without end are marked.

    Args:
        resolved: the program.
        typed: its clauses with types, in the same order.
    """
    safe = [each for each in resolved.clauses if each.is_null_safe and each.body]
    endless = {id(clause) for clause, _, _ in _inventing_clauses(resolved, safe)} if safe else set()
    return tuple(
        replace(each, may_never_end=True) if id(clause) in endless else each
        for clause, each in zip(resolved.clauses, typed, strict=True)
    )


def _inventing_clauses(
    resolved: ResolvedProgram, clauses: Iterable[logic.Clause]
) -> Iterator[tuple[logic.Clause, logic.Atom, str]]:
    """Yield the clauses that may make new values without end, the head, and what is made."""
    graph = dependency_graph(resolved)
    values = _compared_columns(resolved)
    for clause in clauses:
        for head in clause.heads:
            if clause.body and not head.sign:
                compared = values.get(head.relation, frozenset())
                what = _invented_value(graph, clause, head, compared)
                if what is not None:
                    yield clause, head, what


def _compared_columns(resolved: ResolvedProgram) -> dict[str, frozenset[int]]:
    """Return the columns that subsumption compares: a value that only adds is worse some day."""
    found: dict[str, frozenset[int]] = {}
    for clause in resolved.clauses:
        if clause.dominating is None:
            continue
        one, other = clause.heads[0].arguments, clause.dominating.arguments
        columns = frozenset(at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
        name = clause.dominating.relation
        found[name] = found.get(name, columns) | columns
    return found


def _adds_only(term: logic.Term) -> bool:
    functors = [part for part in logic.subterms(term) if isinstance(part, logic.Functor)]
    return all(part.name in ("+", "-", "min", "max", "to_integer") for part in functors)


def _invented_value(
    graph: DependencyGraph, clause: logic.Clause, head: logic.Atom, values: frozenset[int]
) -> str | None:
    """Return what a recursive rule computes from its own relation, if nothing bounds it."""
    items = tuple(logic.literals_of(clause.body))
    recursive: set[str] = set()
    bounded: set[str] = set()
    for item in items:
        if isinstance(item, logic.Atom):
            names = {variable.name for variable in pattern_variables(item)}
            if graph.is_recursive(head.relation, item.relation):
                recursive |= names
            else:
                bounded |= names
            if item.relation == head.relation and len(item.arguments) == len(head.arguments):
                pairs = zip(head.arguments, item.arguments, strict=True)
                bounded |= {
                    new.name for new, old in pairs if isinstance(new, logic.Variable) and new == old
                }
    equations = [
        pair
        for item in items
        if isinstance(item, logic.Comparison) and item.operator in logic.EQUATIONS
        for pair in equated_terms(item.left, item.right)
    ]
    bounded |= _parts_of(equations, bounded)
    recursive -= bounded
    if not recursive:
        return None
    equalities = [
        (one.name, other)
        for left, right in equations
        for one, other in ((left, right), (right, left))
        if isinstance(one, logic.Variable) and one.name not in bounded
    ]
    computed = _computed(equalities, recursive)
    sources = recursive | computed
    if any(isinstance(item, logic.Comparison) and _bounds_value(item, sources) for item in items):
        return None
    definitions = dict(equalities)
    for at, term in enumerate(head.arguments):
        value = definitions.get(term.name, term) if isinstance(term, logic.Variable) else term
        if at in values and _adds_only(value):
            continue
        if (isinstance(term, logic.Variable) and term.name in computed) or _computes(term, sources):
            if isinstance(term, logic.Variable):
                return f"`{written_name(term.name)}`"
            return "a new value"
    return None


def _parts_of(equations: list[tuple[logic.Term, logic.Term]], bounded: set[str]) -> set[str]:
    """Return the variables of records that bounded values are taken apart to."""
    return closure_of(
        bounded,
        (
            ({whole.name}, part.name)
            for left, right in equations
            for whole, pattern in ((left, right), (right, left))
            if isinstance(whole, logic.Variable)
            for part in pattern_terms(pattern)
            if isinstance(part, logic.Variable)
        ),
    )


def _computed(equalities: list[tuple[str, logic.Term]], recursive: set[str]) -> set[str]:
    """Return the variables that equalities compute from recursive ones."""
    computed: set[str] = set()
    while True:
        new = {
            name
            for name, term in equalities
            if name not in computed
            and name not in recursive
            and (
                _computes(term, recursive | computed)
                or any(variable.name in computed for variable in logic.variables_of(term))
            )
        }
        if not new:
            return computed
        computed |= new


def _computes(term: logic.Term, sources: set[str]) -> bool:
    """Whether a term makes new values from some variables."""
    return any(
        isinstance(part, logic.Functor)
        and (is_record_term(part) or is_expanding(part))
        and any(variable.name in sources for variable in logic.variables_of(part))
        for part in logic.subterms(term)
    )


def _bounds_value(item: logic.Comparison, sources: set[str]) -> bool:
    sides = [any(v.name in sources for v in logic.variables_of(t)) for t in (item.left, item.right)]
    return item.operator in _ORDER_COMPARISONS and sides[0] != sides[1]
