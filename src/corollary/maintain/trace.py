"""The rows of a trace for algorithms that work on a stratum as a whole.

They record what each rule derives in each round of a stage, as Table 1 of "Maintenance of recursive
views" does, and in the end one row for the removals of a relation (tuples taken out, tuples that
came back, tuples removed) and one for its additions; `epf` and `pf` record a row per invocation
instead.

| stage | of | a row has |
|---|---|---|
| `overestimate` | `dred` | the heads that a rule overdeletes: approximation |
| `candidates` | `ranked` | the heads that have to be checked: approximation |
| `kept` | `ranked` | those that a rule supports: disqualified |
| `suspended` | `ranked` | those that no rule supports: approximation |
| `rederived` | both | the heads taken out that a rule derives again: disqualified |
| `removed` | `autonomous` | the heads that a rule no longer derives: approximation |
| `inserted` | all three | the new heads that a rule derives: approximation |
| `result` | all three | all of it, and what changes: actual |
"""

from collections.abc import Iterable, Sequence

from corollary.analysis.strata import Stratum
from corollary.core import plans
from corollary.core.pipeline import Reference
from corollary.core.plans import RecordTrace, Step, When
from corollary.core.states import State
from corollary.maintain.delta import changes_below
from corollary.maintain.draft import Body, Draft


def derive_by_rule(
    draft: Draft,
    target: str,
    bodies: Iterable[Body],
    name: str,
    stage: str,
    *,
    without: Sequence[Reference] = (),
    reduce: plans.Reduce | None = None,
    role: plans.Role | None = None,
    is_disqualifying: bool = False,
) -> list[Step]:
    """Return the steps that derive tuples of a relation; a trace records what each rule derives.

    Args:
        draft: the plan under construction.
        target: the working relation to derive; its columns are those of `name`, and maybe a rank.
        bodies: what to derive it by.
        name: the relation.
        stage: the stage of the algorithm.
        without: tuples that are left out.
        reduce: how tuples become one that differ in their last column only.
        role: of the result.
        is_disqualifying: whether the result are tuples that stay.
    """
    if not draft.is_traced:
        return draft.derive(
            target, bodies, without=without, reduce=reduce, role=role, about=name if role else ""
        )
    steps: list[Step] = []
    parts: list[Reference] = []
    for body in bodies:
        number = len(draft.types)  # so that every name is new
        part = plans.working_relation(target, f"{stage} {number}")
        draft.types[part] = draft.types[target]
        propagated = plans.Role.PROPAGATED if role else None
        steps += draft.derive(
            part, [body], without=without, reduce=reduce, role=propagated, about=name
        )
        shown = draft.working_relation(name, f"{stage} {number} shown")
        row = [draft.copy(shown, Reference(part))]
        parts.append(Reference(part))
        rows = _rows_of_rule(draft, body, shown, name, stage, is_disqualifying=is_disqualifying)
        steps.append(When((Reference(part),), (*row, *rows)))
    gathered = draft.copy(target, *parts, role=role, about=name)
    steps.append(
        plans.Derive(
            target, gathered.pipelines, (), reduce, role, name if role else "", is_gathering=True
        )
    )
    return steps


def _rows_of_rule(
    draft: Draft, body: Body, shown: str, name: str, stage: str, *, is_disqualifying: bool
) -> list[Step]:
    """Return the steps that record what one body has derived."""
    steps: list[Step] = []
    updates: tuple[Reference, ...] = ()
    source = ""
    if body.lead is not None:
        source = body.lead.source.relation.partition(plans.WORKING_SEPARATOR)[0]
        led = plans.working_relation(shown, "updates")
        draft.types[led] = draft.types[source]
        steps.append(draft.copy(led, body.lead.source))
        updates = (Reference(led),)

    def record(found: str, sign: State, at: str, *, stays: bool) -> RecordTrace:
        found_here = (Reference(found),)
        disqualified = found_here if stays else ()
        text = body.origin.text
        return RecordTrace(text, updates, found_here, disqualified, (), name, sign, source, at)

    if stage != INSERTION:
        return [*steps, record(shown, State.REMOVED, stage, stays=is_disqualifying)]
    # What is derived was taken out before, or is new.
    back, new = (plans.working_relation(shown, role) for role in ("back", "new"))
    draft.types |= dict.fromkeys((back, new), draft.types[name])
    was = Reference(name, State.OLD)
    return [
        *steps,
        draft.intersect(back, Reference(shown), was),
        draft.copy(new, Reference(shown), without=(was,)),
        When((Reference(back),), (record(back, State.REMOVED, "rederived", stays=True),)),
        When((Reference(new),), (record(new, State.ADDED, "inserted", stays=False),)),
    ]


INSERTION = "insertion"
"""The stage in which tuples come back, or are new."""


def record_whole(draft: Draft, name: str, found: str, stage: str) -> list[Step]:
    """Return the steps that record tuples of a relation which no single rule has found."""
    if not draft.is_traced:
        return []
    shown = draft.working_relation(name, f"{stage} shown")
    row = RecordTrace(
        f"{name}: removals", (), (Reference(shown),), (), (), name, State.REMOVED, "", stage
    )
    return [draft.copy(shown, Reference(found)), When((Reference(shown),), (row,))]


def trace_rows(stratum: Stratum, draft: Draft, taken_role: str = "") -> list[Step]:
    """Return the steps that record the outcome for a stratum, if the plan is traced.

    Args:
        stratum: what was maintained.
        draft: the plan under construction.
        taken_role: the role of the working relation of tuples that were taken out, if there is one.
    """
    rows: list[Step] = []
    if not draft.is_traced:
        return rows
    updates = changes_below(stratum, draft)
    for name in stratum.relations:
        removed = Reference(name, State.REMOVED)
        out, back = removed, list[Reference]()
        if taken_role:
            out = Reference(draft.working_relation(name, taken_role))
            back = [Reference(draft.working_relation(name, "back"))]
            rows.append(draft.copy(back[0].relation, out, without=(removed,)))
        parts = ((out,), tuple(back), (removed,))
        removals = RecordTrace(
            f"{name}: removals", updates, *parts, name, State.REMOVED, "", "result"
        )
        rows.append(When((out,), (removals,)))
        added = Reference(name, State.ADDED)
        additions = RecordTrace(
            f"{name}: additions", updates, (added,), (), (added,), name, State.ADDED, "", "result"
        )
        rows.append(When((added,), (additions,)))
    return rows
