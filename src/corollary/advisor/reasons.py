"""Why nothing is advised for a predicate, in one line."""

from collections.abc import Sequence

from corollary.advisor.advice import Arity
from corollary.advisor.candidates import Candidate
from corollary.advisor.clauses import ClauseForm
from corollary.advisor.deciding import Decision
from corollary.advisor.shapes import Shapes


def reason_for(
    clauses: Sequence[ClauseForm], decision: Decision, before: int, shapes: Shapes, arity: Arity
) -> str:
    """Return the reason, the most telling one first."""
    if not clauses:
        return "it has no rules"
    if any(each.obstacle for each in clauses):
        return "aggregate"
    is_folded = any(
        isinstance(node, Candidate) for worked in decision.worked for node in worked.nodes
    )
    pinned = _pinned(clauses)
    if not is_folded:
        return pinned or "no step applies"
    head = max(_head_degree(each, shapes) for each in clauses)
    if before <= head:
        return f"no exponent gain (head already N^{head})"
    if decision.rejected:
        least = min(decision.rejected.values(), key=lambda each: each.degree)
        if least.degree <= arity.value:
            return f"too large: {least.why}"
        set_by = f"ea(D)={arity.value} set by relation {arity.set_by}"
        return f"criterion: degree {least.degree} > {set_by}"
    return pinned or f"no exponent gain (N^{before} with every candidate stored)"


def _head_degree(clause: ClauseForm, shapes: Shapes) -> int:
    joined = [each.literal for each in clause.pinned if each.literal is not None]
    held = [shapes.of(each) for each in (*clause.literals, *joined)]
    bound = frozenset().union(*(each.variables for each in held))
    return shapes.degree(clause.head_variables & bound, held)


def _pinned(clauses: Sequence[ClauseForm]) -> str | None:
    """Return what keeps variables from being folded away, if something does."""
    if any(each.why == "recursive" for clause in clauses for each in clause.pinned):
        return "recursive literal pinned"
    names: dict[str, None] = {}
    for clause in clauses:
        for each in clause.pinned:
            names.update(dict.fromkeys(sorted(each.variables - clause.head_variables)))
    return f"opaque literal pins variables {', '.join(names)}" if names else None
