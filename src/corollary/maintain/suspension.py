"""Stages (1) to (3) of `ranked` and `stairs`: tuples that have lost their support are suspended.

    candidates ← tuples that a change below may have taken a derivation from                 (1)
    lost ← candidates that no rule supports; they are suspended                              (2)
    candidates ← tuples that may have depended on a lost one, unless they are suspended      (3)
    repeat (2) and (3) until there are no candidates; take the suspended tuples out

What supports a tuple, and what depends on one, is what the two algorithms differ in.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from corollary.core.pipeline import Reference
from corollary.core.plans import Extend, Loop, Role, Step, working_relation
from corollary.core.types import NUMBER
from corollary.maintain.draft import Body, Draft
from corollary.maintain.trace import derive_by_rule, record_whole


def suspend_unsupported(
    draft: Draft,
    seeds: tuple[Sequence[Step], Mapping[str, Sequence[Body]]],
    supports: Callable[[str], Iterable[Body]],
    dependents: Callable[[str], Iterable[Body]],
    take_out: Callable[[str], Sequence[Step]],
) -> list[Step]:
    """Return the steps that suspend and take out the tuples of a stratum without support.

    Args:
        draft: the plan under construction.
        seeds: the bodies (1), which find the first candidates of each relation, after the steps
            that make what they read.
        supports: the bodies (2), which keep candidates.
        dependents: the bodies (3), which find more candidates.
        take_out: what takes the suspended tuples of a relation out.
    """
    steps, bodies = seeds
    if not any(bodies.values()):
        return []
    found, check, extend, follow, out = [*steps], *(list[Step]() for _ in range(4))
    for name in bodies:
        candidate, kept, lost, suspended = (
            draft.working_relation(name, role, NUMBER)
            for role in ("candidate", "kept", "lost", "suspended")
        )
        found += derive_by_rule(
            draft, candidate, bodies[name], name, "candidates", role=Role.CHECKED
        )
        check += derive_by_rule(draft, kept, supports(name), name, "kept", is_disqualifying=True)
        check.append(
            draft.copy(
                lost,
                Reference(candidate),
                without=(Reference(kept),),
                role=Role.SUSPENDED,
                about=name,
            )
        )
        check += record_whole(draft, name, lost, "suspended")
        extend.append(Extend(suspended, lost))
        follow += derive_by_rule(
            draft,
            candidate,
            dependents(name),
            name,
            "candidates",
            without=(Reference(suspended),),
            role=Role.CHECKED,
        )
        out += take_out(name)
    candidates = tuple(Reference(working_relation(name, "candidate")) for name in bodies)
    return [*found, Loop((*check, *extend, *follow), candidates), *out]
