"""The plan of a transaction: every stratum that may change, in order, each by its algorithm."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from corollary.analysis.joint_probes import part_of
from corollary.analysis.strata import Stratum, strata
from corollary.core import plans
from corollary.core.monitoring_optimisations import MonitoringOptimisation
from corollary.core.pipeline import Reference
from corollary.core.program import NormalProgram, RefreshPolicy
from corollary.core.states import CHANGES, State
from corollary.core.statistics import Statistics
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.maintain import assignments
from corollary.maintain.algorithms import (
    aggregates,
    autonomous,
    choices,
    counting,
    dred,
    epf,
    groups,
    pf,
    ranked,
    recompute,
    seminaive,
    stairs,
    totals,
)
from corollary.maintain.choose import Algorithm, AlgorithmChoice, ChangeSizes, choose
from corollary.maintain.draft import Draft
from corollary.maintain.payload import payload_kind, payload_relations
from corollary.maintain.update import Update

IN_PLACE_ALGORITHMS = (
    Algorithm.RANKED,
    Algorithm.COUNTING,
    Algorithm.DRED,
    Algorithm.AUTONOMOUS,
    Algorithm.TOTALS,
    Algorithm.GROUPS,
    Algorithm.CHOICES,
)
"""These change the stored relations step by step and read them in the middle of their work."""

PAYLOAD_KEEPING_ALGORITHMS = (
    Algorithm.RANKED,
    Algorithm.COUNTING,
    Algorithm.TOTALS,
    Algorithm.GROUPS,
    Algorithm.RECOMPUTE,
)
"""These leave valid ranks, counts or totals behind."""


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A plan, the algorithm chosen for each stratum and the strata that do not run on the driver.

    Attributes:
        choices: by procedure.
        places: by procedure; strata that are not listed run on the driver.
    """

    plan: plans.Plan
    choices: Mapping[str, AlgorithmChoice]
    places: Mapping[str, plans.PlacedCall] = field(default_factory=dict)


def choose_algorithms(
    update: Update, requested_for: Callable[[str], Algorithm], sizes: ChangeSizes
) -> dict[str, tuple[Stratum, AlgorithmChoice]]:
    """Return the strata that may change, by procedure, with the algorithm for each.

    Raises:
        InputError: an algorithm was requested that cannot maintain the stratum.
    """
    found = {}
    for stratum in strata(update.new):
        names = [name for name in stratum.relations if update.new.relations[name].grouping]
        requested = _common_request(
            {name: requested_for(name) for name in names or stratum.relations}
        )
        if all(_is_unobserved(name, update) for name in stratum.relations):
            continue
        if any(update.signs_of(name) for name in stratum.relations):
            choice = _by_policy(stratum, update, requested, sizes)
            found[plans.procedure_name(stratum.relations)] = stratum, choice
    unread = _unread(update, list(found.values()))
    return {
        name: (stratum, choice)
        for name, (stratum, choice) in found.items()
        if not _is_read_through(stratum, update, found.values())
        and unread.isdisjoint(stratum.relations)
    }


def _by_policy(
    stratum: Stratum, update: Update, requested: Algorithm, sizes: ChangeSizes
) -> AlgorithmChoice:
    """Return the algorithm for a stratum, as the policy of its view wants it.

    Raises:
        InputError: a new computation is not wanted, and nothing else is possible.
    """
    policy = update.new.policy_of(stratum.relations)
    if policy is RefreshPolicy.AUTO:
        return choose(stratum, update, requested, sizes)
    if policy is RefreshPolicy.FULL:
        choice = choose(stratum, update, Algorithm.RECOMPUTE, sizes)
        return replace(choice, reason="its policy is `FULL`")
    sizes = replace(sizes, may_recompute=False)
    choice = choose(stratum, update, requested, sizes)
    is_change = update.old is update.new and choice.algorithm is Algorithm.RECOMPUTE
    if policy is RefreshPolicy.STRICT and is_change:
        every = frozenset(update.new.relations)  # what is kept beside the rows may be made anew
        able = choose(stratum, replace(update, valid_payload=every), Algorithm.AUTO, sizes)
        if able.algorithm is Algorithm.RECOMPUTE:
            name = stratum.relations[0]
            raise InputError.of(
                "C0823",
                f"`{name.partition('.')[0]}` is to follow changes incrementally, but it would be "
                f"computed anew: {able.reason}.",
                None,
                "give it another `REFRESH POLICY`, such as `INCREMENTAL`; nothing was changed",
            )
    return choice


def incremental_update(program: NormalProgram, statistics: Statistics) -> Update:
    """Return the update by inserts into and deletes from all base relations of a program."""
    every = frozenset(CHANGES)
    bases = {name: every for name, each in program.relations.items() if not each.is_derived}
    payload = frozenset(program.relations)
    return Update(program, program, bases, statistics, valid_payload=payload)


def _unread(update: Update, chosen: Sequence[tuple[Stratum, AlgorithmChoice]]) -> set[str]:
    """Return the virtual relations whose change nobody reads: all above is evaluated anew."""
    unread: set[str] = set()
    for at in reversed(range(len(chosen))):
        stratum, _ = chosen[at]
        if not all(
            update.is_virtual(name) and name not in update.watched for name in stratum.members
        ):
            continue
        readers = [
            (above, choice)
            for above, choice in chosen[at + 1 :]
            if not stratum.members.isdisjoint(update.read_below(above))
        ]
        if readers and all(
            not unread.isdisjoint(above.relations)
            or (
                choice.algorithm is Algorithm.RECOMPUTE
                and not any(map(update.is_virtual, above.relations))
            )
            for above, choice in readers
        ):
            unread |= stratum.members
    return unread


def _is_read_through(
    stratum: Stratum, update: Update, chosen: Iterable[tuple[Stratum, AlgorithmChoice]]
) -> bool:
    """Whether a stratum is an inlined body whose own change nobody reads."""
    (name, *_) = stratum.relations
    if not update.new.relations[name].is_inlined or name in update.watched:
        return False
    if any(literal.relation == name for rule in update.new.rules for literal in rule.literals):
        return False
    return not any(
        choice.algorithm is Algorithm.AGGREGATES and each.body == name
        for above, choice in chosen
        for each in above.aggregations
    )


def _common_request(requested: Mapping[str, Algorithm]) -> Algorithm:
    """Return the one algorithm that is requested for the relations of a stratum."""
    explicit = {name: each for name, each in requested.items() if each is not Algorithm.AUTO}
    if len(set(explicit.values())) > 1:
        listed = ", ".join(f"{each} for `{name}`" for name, each in explicit.items())
        raise InputError.of(
            "C0821",
            f"These relations depend on each other and are maintained together: {listed}.",
            None,
            "ask for the same algorithm for all of them",
        )
    return next(iter(explicit.values()), Algorithm.AUTO)


def _is_unobserved(name: str, update: Update) -> bool:
    """Whether nothing needs the change of a relation.

    A virtual relation that is new is read by new relations only, which are evaluated in full.
    """
    is_new = name not in update.old.relations
    return is_new and update.is_virtual(name) and name not in update.watched


def maintain(
    update: Update,
    chosen: Mapping[str, tuple[Stratum, AlgorithmChoice]],
    *,
    places: Mapping[str, plans.PlacedCall] | None = None,
    make_final_steps: Callable[[Draft], Sequence[plans.Step]] = lambda _: (),
    is_traced: bool = False,
    is_strict: bool = False,
) -> Maintenance:
    """Return the plan that brings every relation to NEW, or finds its change.

    Args:
        update: what changes.
        chosen: the strata that may change, by procedure, with the algorithm for each.
        places: where strata run that do not run on the driver, by procedure.
        make_final_steps: makes the steps that follow once all views are maintained.
        is_traced: whether the plan records the rows of the papers' tables.
        is_strict: whether a stratum that exceeds its budget fails instead of being recomputed.
    """
    draft = Draft(update, is_traced)
    used = {name: place for name, place in (places or {}).items() if name in chosen}
    main: list[plans.Step] = []
    abandoned: dict[str, plans.Call] = {}
    """By procedure what empties the tables of calls that it fills."""
    for name, (stratum, choice) in chosen.items():
        main += _shared_rows(stratum, chosen, used, draft)
        if choice.algorithm in IN_PLACE_ALGORITHMS:
            # Its own steps read NEW of the stratum as it is, even before it is complete.
            draft.readable.update(stratum.relations)
        steps = _PLANS[choice.algorithm](stratum, draft)
        if choice.budget is not None:
            otherwise = tuple(recompute.plan(stratum, draft))
            if any(isinstance(each, plans.Call) for each in plans.steps_inside(steps)):
                # The abandoned run may have left calls open that were never answered.
                forget = plans.Call(plans.procedure_name(stratum.relations, "forget"))
                draft.procedures[forget.procedure] = ()
                abandoned[name] = forget
                otherwise = forget, *otherwise
            steps = [
                plans.Within(
                    choice.budget,
                    tuple(steps),
                    None if is_strict else otherwise,
                    name,
                    choice.outset,
                )
            ]
        draft.procedures[name] = tuple(steps)
        draft.readable.update(stratum.relations)
        main.append(_call_if_changed(stratum, draft, used.get(name, plans.Call(name)), chosen))
    main += make_final_steps(draft)
    epf.complete_clear_tables(draft)
    plan, tables = draft.finish(main), draft.tables.memo_relations()
    emptied: dict[str, tuple[plans.Step, ...]] = {}
    for name, forget in abandoned.items():
        written = {*plans.relations_written(part_of(plan, plans.Call(name)))}
        emptied[forget.procedure] = (plans.Clear(tuple(t for t in tables if t in written)),)
    plan = replace(plan, procedures={**plan.procedures, **emptied})
    made = {name: choice for name, (_, choice) in chosen.items()}
    return Maintenance(plan, made, used)


def _shared_rows(
    stratum: Stratum,
    chosen: Mapping[str, tuple[Stratum, AlgorithmChoice]],
    places: Mapping[str, plans.PlacedCall],
    draft: Draft,
) -> list[plans.Step]:
    """Return the call that derives the assignments of an aggregate's body, if others need them too.

    So several aggregates of one join, which are evaluated anew, make it once.
    """
    bodies = {each.body for each in stratum.aggregations} - draft.shared_bodies
    if len(bodies) != 1 or draft.is_traced:
        return []
    (body,) = bodies
    readers = {
        name: (each, choice)
        for name, (each, choice) in chosen.items()
        if any(aggregation.body == body for aggregation in each.aggregations)
    }
    is_shared = (
        len(readers) > 1
        and assignments.is_read_through(body, draft)
        and all(
            choice.algorithm is Algorithm.RECOMPUTE
            and choice.budget is None
            and name not in places
            and not any(map(draft.update.is_virtual, each.relations))
            for name, (each, choice) in readers.items()
        )
    )
    call = plans.Call(plans.procedure_name((body,), "rows"))
    calls = {_call_if_changed(each, draft, call, chosen) for each, _ in readers.values()}
    if not is_shared or len(calls) > 1:
        return []
    draft.procedures[call.procedure] = tuple(assignments.derive_shared_rows(body, draft))
    draft.shared_bodies.add(body)
    return list(calls)


def _epf(stratum: Stratum, draft: Draft) -> list[plans.Step]:
    without = draft.update.disabled_optimisations
    return epf.plan(
        stratum,
        draft,
        has_memo=MonitoringOptimisation.SHARING not in without,
        is_minimised=MonitoringOptimisation.MINIMISING not in without,
    )


def _ranked(stratum: Stratum, draft: Draft) -> list[plans.Step]:
    return stairs.plan(stratum, draft) if stratum.subsumption else ranked.plan(stratum, draft)


_PLANS: Mapping[Algorithm, Callable[[Stratum, Draft], list[plans.Step]]] = {
    Algorithm.RECOMPUTE: recompute.plan,
    Algorithm.DRED: dred.plan,
    Algorithm.PF: pf.plan,
    Algorithm.EPF: _epf,
    Algorithm.COUNTING: counting.plan,
    Algorithm.RANKED: _ranked,
    Algorithm.AUTONOMOUS: autonomous.plan,
    Algorithm.AGGREGATES: aggregates.plan,
    Algorithm.TOTALS: totals.plan,
    Algorithm.GROUPS: groups.plan,
    Algorithm.CHOICES: choices.plan,
}
"""What each algorithm does; `choose` replaces `AUTO` by one of them."""


def _call_if_changed(
    stratum: Stratum,
    draft: Draft,
    call: plans.Call | plans.PlacedCall,
    chosen: Mapping[str, tuple[Stratum, AlgorithmChoice]],
) -> plans.Step:
    """Return the call of a stratum, guarded by the changes of the relations that it reads."""
    update = draft.update
    bodies = (each.body for each in stratum.aggregations)
    if not update.redefined.isdisjoint((*stratum.relations, *bodies)):
        return call
    found = {name for each, _ in chosen.values() for name in each.relations}
    changes: list[Reference] = []
    work = [stratum]
    while work:
        for name in update.read_below(work.pop()):
            if update.is_virtual(name) and update.signs_of(name) and name not in found:
                # Its change is not found, but follows from those below.
                work.append(draft.tables.stratum_of(name, State.NEW))
                continue
            signs = sorted(update.signs_of(name))
            changes += (draft.changes_of(name, sign) for sign in signs)
    return plans.When(tuple(dict.fromkeys(changes)), (call,))


def plan_payload_rebuild(stratum: Stratum, update: Update) -> plans.Plan:
    """Return the plan that recomputes the payload of a stored stratum in OLD.

    The relations may belong to several strata of OLD: ranks that are well-founded across all of
    them are well-founded in each.
    """
    draft = Draft(update)
    rules = tuple(rule for rule in update.old.rules if rule.head.relation in stratum.relations)
    before = replace(stratum, rules=rules)
    wanted = payload_kind(stratum, update.new)
    steps, results = seminaive.fixpoint(before, draft, State.OLD, wanted)
    known = {each.name for each in payload_relations(stratum, update.new)}
    stores = [
        plans.StoreRelation(name, result) for name, result in results.items() if name in known
    ]
    return draft.finish([*steps, *stores])
