"""Reading: a checked program as the advisor sees it.

Disjunctions are opened, every head gets a clause of its own, `_` becomes a variable, and duplicate
literals of a body go. Active rules are left out: they ask, they are not asked.
"""

from collections.abc import Iterable, Mapping

from corollary.advisor.clauses import ClauseForm
from corollary.advisor.inferring import with_views
from corollary.advisor.reading_clauses import clause_forms
from corollary.advisor.scheme import Dependence, Query, RelationForm, Scheme
from corollary.analysis.check import Checked
from corollary.analysis.traverse import readings
from corollary.core.graph import components
from corollary.core.program import Program
from corollary.core.rules import Clause
from corollary.warehouse.sources.quarantine import QUARANTINE


def read_scheme(
    program: Program, checked: Checked, queries: Iterable[Query] = (), opaque: str = "opaque"
) -> Scheme:
    """Return the scheme of a program.

    Args:
        program: the program as written, so that what is printed looks like it.
        checked: the same, checked.
        queries: the query predicates.
        opaque: `absorb` lets simple comparisons move into candidates.
    """
    clauses = [each for each in program.clauses if not _is_active(each, checked)]
    component = _components(clauses)
    types = {name: each.types for name, each in checked.signatures.items()}
    filled = {head.relation for each in clauses if not each.body for head in each.heads}
    filled |= {each.relation for each in program.directives if each.name == "input"}
    found: dict[str, list[ClauseForm]] = {}
    for clause in clauses:
        if clause.body:
            for head in clause.heads:
                forms = clause_forms(clause, head, component, types, absorbs=opaque == "absorb")
                found.setdefault(head.relation, []).extend(forms)
    forms_by = {name: tuple(each) for name, each in found.items()}
    relations = _relations(program, checked, forms_by, filled)
    return with_views(Scheme(relations, forms_by, tuple(queries)), filled, component)


def _is_active(clause: Clause, checked: Checked) -> bool:
    return any(head.sign or checked.signatures[head.relation].is_event for head in clause.heads)


def _components(clauses: Iterable[Clause]) -> dict[str, int]:
    graph: dict[str, set[str]] = {}
    for clause in clauses:
        below = {each.atom.relation for each in readings(clause)}
        for head in clause.heads:
            graph.setdefault(head.relation, set()).update(below)
    for name in [name for below in graph.values() for name in below]:
        graph.setdefault(name, set())
    return {name: number for number, names in enumerate(components(graph)) for name in names}


def _relations(
    program: Program,
    checked: Checked,
    clauses: Mapping[str, tuple[ClauseForm, ...]],
    filled: set[str],
) -> dict[str, RelationForm]:
    declared = _dependences(program)
    found = {}
    for name, signature in checked.signatures.items():
        if signature.is_event:
            continue
        is_derived = signature.is_derived or name in clauses
        declaration = signature.declaration
        storage = declaration.storage if declaration else ""
        found[name] = RelationForm(
            name,
            len(signature.columns),
            declared.get(name, ()),
            is_stored=name != QUARANTINE.name
            and (not is_derived or (storage == "stored" and name not in filled)),
            is_kept=storage != "virtual",
            is_inline=declaration is not None and "inline" in declaration.hints,
        )
    return found


def _dependences(program: Program) -> dict[str, tuple[Dependence, ...]]:
    columns = {each.name: [c.name for c in each.columns] for each in program.declarations}
    found: dict[str, list[Dependence]] = {}
    for declaration in program.declarations:
        if declaration.key:
            key = frozenset(columns[declaration.name].index(name) for name in declaration.key)
            rest = frozenset(range(len(declaration.columns))) - key
            found.setdefault(declaration.name, []).append(Dependence(key, rest))
    for each in program.dependencies:
        left, right = (
            frozenset(columns[each.relation].index(name) for name in names)
            for names in (each.determinants, each.dependents)
        )
        found.setdefault(each.relation, []).append(Dependence(left, right - left))
    return {name: tuple(every) for name, every in found.items()}
