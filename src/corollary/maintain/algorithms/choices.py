"""Choices by key: a relation with one choice domain, which it does not read itself.

Reference: X. Hu, J. Karp, D. Zhao, A. Zreika, X. Wu, B. Scholz, "The Choice Construct in the
Soufflé Language", APLAS 2021.

There a choice is any; here it is the least candidate of each key, so that it is a function of the
candidates, and a key can be looked at alone:

    p = { t ∈ C : t is least among the candidates with its key },   C = what the rules derive
    lost = p_old ∩ heads of rem_i          a chosen tuple that may have lost a derivation
    gone = lost − C_new                    it is no longer a candidate
    found = { t ∈ C_new : key(t) ∈ key(gone) } ∪ heads of add_i
    rivals = { t ∈ p_old − gone : key(t) ∈ key(found) }
    p_new = (p_old − gone − rivals) ∪ least of (found ∪ rivals) for each key

Candidates that are not chosen come and go unseen: only those of keys whose choice is gone are
derived again, and a new one is compared with the choice of its key. Right: the least of a key in
C_new is the old choice, a new candidate, or, if the old choice is gone, among all candidates in
NEW; the first two are found by rem_i and add_i, which meet every changed instance.

| symbol | name here |
|---|---|
| lost, gone, key(gone) | `p•lost`, `p•gone`, `p•gone_key` |
| found, rivals | `p•found`, `p•rival` |
| least of (found ∪ rivals) | `p•chosen` |

Example: C = {(1, a), (1, b), (2, c)}, the first column the domain, so p = {(1, a), (2, c)}:

| change of C | gone | found | rivals | change of p |
|---|---|---|---|---|
| − (1, b) | | | | |
| − (1, a) | (1, a) | (1, b) | | − (1, a), + (1, b) |
| + (2, b) | | (2, b) | (2, c) | − (2, c), + (2, b) |
| + (2, d) | | (2, d) | (2, c) | |

With several domains a tuple that goes may free others, and these take away from yet others; in
recursion the round in which a tuple is derived counts. There choices are made anew.
"""

from corollary.analysis.strata import Stratum
from corollary.core.logic import Literal, Rule, Variable, head_arguments
from corollary.core.pipeline import Reference
from corollary.core.plans import Add, Choose, Remove, Role, Step, When, working_relation
from corollary.core.program import NormalProgram
from corollary.core.states import State
from corollary.maintain import delta
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.sip import Goal
from corollary.maintain.trace import trace_rows


def is_chosen_by_key(stratum: Stratum, program: NormalProgram) -> bool:
    """Whether a stratum is one relation with one choice domain, without recursion."""
    if stratum.is_recursive or stratum.aggregations:
        return False
    (name,) = stratum.relations
    return len(program.relations[name].domains) == 1


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that maintain the choices of the keys that a change touches."""
    (name,) = stratum.relations
    removals = _remove_gone(name, stratum, draft)
    kept = delta.unchanged_rules(draft, (name,))
    additions, bodies = delta.seed_bodies(draft, kept, (name,), State.ADDED)
    first = list(bodies[name])
    if removals:
        first += [_of_gone_key(rule, draft) for rule in stratum.rules]
    found = draft.working_relation(name, "found")
    steps = [*removals, *additions, *draft.derive(found, first, role=Role.CHECKED, about=name)]
    steps.append(When((Reference(found),), tuple(_choose_again(name, draft))))
    return [*steps, *trace_rows(stratum, draft)]


def _remove_gone(name: str, stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that take out the chosen tuples that are no longer derived."""

    def remove(rule: Rule, position: int | None, lead: Goal | None) -> Body:
        chosen = Goal(Literal(name, head_arguments(rule)), Reference(name, State.OLD))
        read = delta.read_in_state(State.OLD)
        return delta.make_body(rule, read, lead=lead, position=position, goals=[chosen])

    steps, bodies = delta.seed_bodies(
        draft, delta.unchanged_rules(draft, (name,)), (name,), State.REMOVED, remove
    )
    if not bodies[name]:
        return []
    lost, kept, gone = (draft.working_relation(name, role) for role in ("lost", "kept", "gone"))
    steps += draft.derive(lost, bodies[name], role=Role.APPROXIMATED, about=name)
    again = [
        delta.make_body(
            rule, delta.read_in_state(State.NEW), lead=working_goal(lost, head_arguments(rule))
        )
        for rule in stratum.rules
    ]
    gone_key = _gone_key(name, draft)
    columns = draft.variables(name)
    lead = working_goal(gone, columns)
    keys = tuple(columns[at] for at in _domain(name, draft))
    return [
        *steps,
        *draft.derive(kept, again),
        draft.copy(gone, Reference(lost), without=(Reference(kept),)),
        *draft.derive(gone_key, [Body.led(keys, lead)]),
        Remove(name, gone),
    ]


def _choose_again(name: str, draft: Draft) -> list[Step]:
    """Return the steps that compare what was found with the choices of its keys."""
    found = working_relation(name, "found")
    rivals, all_, chosen, beaten, came = (
        draft.working_relation(name, role)
        for role in ("rival", "candidate", "chosen", "beaten", "came")
    )
    domain, columns = _domain(name, draft), draft.variables(name)
    others = tuple(
        each if at in domain else Variable(f"other{at}'", each.type)
        for at, each in enumerate(columns)
    )
    lead = working_goal(found, others)
    there = working_goal(name, columns)
    either = [Body.led(columns, working_goal(source, columns)) for source in (found, rivals)]
    return [
        *draft.derive(rivals, [Body.led(columns, lead, there)]),
        *draft.derive(all_, either),
        Choose(chosen, all_, (domain,)),
        draft.copy(came, Reference(chosen), without=(Reference(name),)),
        draft.copy(beaten, Reference(rivals), without=(Reference(chosen),)),
        Remove(name, beaten),
        Add(name, came),
    ]


def _of_gone_key(rule: Rule, draft: Draft) -> Body:
    """Return the body of the candidates of a rule whose key has lost its choice."""
    name, arguments = rule.head.relation, head_arguments(rule)
    keys = tuple(arguments[at] for at in _domain(name, draft))
    lead = working_goal(_gone_key(name, draft), keys)
    return delta.make_body(rule, delta.read_in_state(State.NEW), lead=lead)


def _gone_key(name: str, draft: Draft) -> str:
    """Return the working relation of the keys whose choice is gone."""
    found = working_relation(name, "gone_key")
    draft.types[found] = tuple(draft.types[name][at] for at in _domain(name, draft))
    return found


def _domain(name: str, draft: Draft) -> tuple[int, ...]:
    (domain,) = draft.relation(name).domains
    return domain
