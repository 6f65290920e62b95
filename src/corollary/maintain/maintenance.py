"""The plan of a transaction: every stratum that may change, in order, each by its algorithm."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from corollary.analysis.strata import Stratum, strata
from corollary.core.optimisations import Optimisation
from corollary.core.plan import (
    Call,
    Place,
    Placement,
    Plan,
    Step,
    Store,
    When,
    Within,
    procedure_of,
)
from corollary.core.states import State
from corollary.errors import InputError
from corollary.maintain import (
    aggregates,
    autonomous,
    counting,
    dred,
    epf,
    events,
    pf,
    ranked,
    recompute,
    seminaive,
)
from corollary.maintain.choose import Algorithm, Choice, Sizes, choose
from corollary.maintain.draft import Draft
from corollary.maintain.payload import payload_of, payload_relations
from corollary.maintain.update import Update

IN_PLACE = (Algorithm.RANKED, Algorithm.COUNTING, Algorithm.DRED, Algorithm.AUTONOMOUS)
"""These change the stored relations step by step, and read them as they are."""

KEEPS_PAYLOAD = (Algorithm.RANKED, Algorithm.COUNTING, Algorithm.RECOMPUTE)


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A plan; what was chosen for each stratum in it, by procedure; and those placed elsewhere."""

    plan: Plan
    choices: Mapping[str, Choice]
    places: Mapping[str, Place] = field(default_factory=dict)


def choices(
    update: Update, wanted: Callable[[str], Algorithm], sizes: Sizes
) -> dict[str, tuple[Stratum, Choice]]:
    """Return the strata that may change, with what maintains them.

    Raises:
        InputError: an algorithm is wanted that cannot do it.
    """
    found = {}
    for stratum in strata(update.new):
        chosen = _agreed({name: wanted(name) for name in stratum.relations})
        if all(_is_unseen(name, update) for name in stratum.relations):
            continue
        if any(update.signs(name) for name in stratum.relations):
            choice = choose(stratum, update, chosen, sizes)
            found[procedure_of(stratum.relations)] = stratum, choice
    return found


def _agreed(wanted: Mapping[str, Algorithm]) -> Algorithm:
    """Return the one algorithm that is wanted for the relations of a stratum."""
    asked = {name: each for name, each in wanted.items() if each is not Algorithm.AUTO}
    if len(set(asked.values())) > 1:
        listed = ", ".join(f"{each} for `{name}`" for name, each in asked.items())
        raise InputError.of(
            "C0821",
            f"These relations depend on each other and are maintained together: {listed}.",
            None,
            "ask for the same algorithm for all of them",
        )
    return next(iter(asked.values()), Algorithm.AUTO)


def _is_unseen(name: str, update: Update) -> bool:
    """Whether nobody needs the change of a relation: it is new, so that its readers are too."""
    is_new = name not in update.old.relations
    return is_new and update.is_virtual(name) and name not in update.watched


def maintain(
    update: Update,
    chosen: Mapping[str, tuple[Stratum, Choice]],
    *,
    places: Mapping[str, Place] | None = None,
    goals: Collection[str] = (),
    is_traced: bool = False,
    is_strict: bool = False,
) -> Maintenance:
    """Return the plan that brings every relation to NEW, or finds its change.

    Args:
        update: what changes.
        chosen: the strata that may change, by procedure, with what maintains them.
        places: of strata that run elsewhere, by procedure.
        goals: event predicates to evaluate then.
        is_traced: whether the plan tells the rows of the papers' tables.
        is_strict: whether it fails rather than recompute what outgrows its budget.
    """
    draft = Draft(update, is_traced)
    choices = {name: choice for name, (_, choice) in chosen.items()}
    used = {
        name: place
        for name, place in (places or {}).items()
        if name in choices and _runs_in(choices[name].algorithm, place.placement)
    }
    main: list[Step] = []
    for name, (stratum, choice) in chosen.items():
        if choice.algorithm in IN_PLACE:
            draft.finished.update(stratum.relations)
        steps = _steps(choice.algorithm, stratum, draft)
        if choice.budget is not None:
            draft.procedures.setdefault(epf.FORGET, ())
            otherwise = (Call(epf.FORGET), *recompute.plan(stratum, draft))
            steps = [Within(choice.budget, tuple(steps), None if is_strict else otherwise, name)]
        draft.procedures[name] = tuple(steps)
        draft.finished.update(stratum.relations)
        main.append(_when_reached(stratum, draft, used.get(name, Call(name))))
    main += events.react(draft, goals)
    epf.forget(draft)
    return Maintenance(draft.plan(main), choices, used)


def react(update: Update, goals: Collection[str]) -> Plan:
    """Return the plan that evaluates event predicates, where all views are maintained."""
    draft = Draft(update)
    draft.finished.update(update.new.relations)
    return draft.plan(events.react(draft, goals))


def _steps(algorithm: Algorithm, stratum: Stratum, draft: Draft) -> list[Step]:
    match algorithm:
        case Algorithm.RECOMPUTE:
            return recompute.plan(stratum, draft)
        case Algorithm.DRED:
            return dred.plan(stratum, draft)
        case Algorithm.PF:
            return pf.plan(stratum, draft)
        case Algorithm.EPF:
            without = draft.update.without
            return epf.plan(
                stratum,
                draft,
                has_memo=Optimisation.SHARING not in without,
                is_minimised=Optimisation.MINIMISING not in without,
            )
        case Algorithm.COUNTING:
            return counting.plan(stratum, draft)
        case Algorithm.RANKED:
            return ranked.plan(stratum, draft)
        case Algorithm.AUTONOMOUS:
            return autonomous.plan(stratum, draft)
        case Algorithm.AGGREGATES:
            return aggregates.plan(stratum, draft)
        case Algorithm.AUTO:
            raise AssertionError("auto chooses another")
        case _:
            assert_never(algorithm)


def _runs_in(algorithm: Algorithm, placement: Placement) -> bool:
    """Whether an algorithm runs in a place: a query for each invocation would be too many."""
    return placement is not Placement.SQL or algorithm not in (Algorithm.PF, Algorithm.EPF)


def _when_reached(stratum: Stratum, draft: Draft, call: Call | Place) -> Step:
    """Return the call of a stratum, made only if something it reads has changed."""
    update, members = draft.update, set(stratum.relations)
    if update.redefined & members:
        return call
    below = dict.fromkeys(
        [literal.relation for rule in stratum.rules for literal in rule.literals]
        + [each.body for each in stratum.aggregations]
    )
    changes = tuple(
        draft.changes(name, sign)
        for name in below
        if name not in members
        for sign in sorted(update.signs(name))
    )
    return When(changes, (call,))


def rebuild(stratum: Stratum, update: Update) -> Plan:
    """Return the plan that makes the payload of a stored stratum anew, as it was in OLD.

    The relations may belong to several strata of OLD: ranks across all of them are good ranks for
    each.
    """
    draft = Draft(update)
    rules = tuple(rule for rule in update.old.rules if rule.head.relation in stratum.relations)
    before = replace(stratum, rules=rules)
    wanted = payload_of(stratum, update.new)
    steps, results = seminaive.fixpoint(before, draft, State.OLD, wanted)
    known = {each.name for each in payload_relations(stratum, update.new).values()}
    stores = [Store(name, result) for name, result in results.items() if name in known]
    return draft.plan([*steps, *stores])
