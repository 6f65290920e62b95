"""`window(…)`: in a rule that does nothing else than give each tuple of a relation its values."""

from collections import Counter
from collections.abc import Iterator

from corollary.analysis.resolution import ResolvedProgram
from corollary.core.logic import Atom, Clause, Comparison, Variable, terms_of
from corollary.core.windows import has_window, window_of
from corollary.errors import Diagnostic


def windows(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield the rules with window functions that are not as they have to be."""
    windowed = [clause for clause in resolved.clauses if has_window(clause)]
    if not windowed:
        return
    rules = Counter(head.relation for clause in resolved.clauses for head in clause.heads)
    for clause in windowed:
        is_alone = all(rules[head.relation] == 1 for head in clause.heads)
        if not is_alone or not _is_plain(clause):
            yield Diagnostic(
                "C0248",
                "A rule with `window` has to be the only one of its relation, and to have the form "
                '`h(x, …, v, …) :- p(x, …), v = window("…", x, …), …`.',
                clause.span,
                "give each tuple of one relation its values, and use them in another rule",
            )


def _is_plain(clause: Clause) -> bool:
    """Whether a rule has one literal, windows over its variables, and all of these in its head."""
    atoms = [item for item in clause.body if isinstance(item, Atom)]
    others = [item for item in clause.body if not isinstance(item, Atom)]
    if len(atoms) != 1 or len(clause.heads) != 1 or clause.heads[0].sign or atoms[0].sign:
        return False
    row = [each.name for each in atoms[0].arguments if isinstance(each, Variable)]
    values: list[str] = []
    for item in others:
        if not isinstance(item, Comparison) or item.operator not in ("=", "is"):
            return False
        if not isinstance(item.left, Variable) or window_of(item.right) is None:
            return False
        given = (term for term in terms_of(item)[1:] for term in getattr(term, "arguments", ())[1:])
        if not all(isinstance(term, Variable) and term.name in row for term in given):
            return False
        values.append(item.left.name)
    head = [each.name for each in clause.heads[0].arguments if isinstance(each, Variable)]
    is_row = len(row) == len(atoms[0].arguments) and len(head) == len(clause.heads[0].arguments)
    return is_row and head == [*row, *values] and len(set(head)) == len(head)
