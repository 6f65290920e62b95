"""Ranked maintenance of a stored recursive stratum: lost support is detected in one step.

Every stored tuple t has a rank, such that t has a derivation in the current state whose premises
of the stratum all have smaller ranks. Support is well-founded, so cyclic support cannot keep a
tuple alive, and whether t has lost its support is decided without recursion.

    C  ← heads of rem_i over the changes below (others OLD) that are stored             (1)
    t ∈ C is kept if an instance with head t has all lower literals in NEW and its
        premises stored, not suspended, of rank < rank(t); else t is suspended          (2)
    C  ← heads of instances, lower literals in NEW, with a premise s just suspended, the
        others stored (suspended or not), head not suspended, rank(head) > rank(s)      (3)
    repeat (2) and (3) until C is empty; take the suspended tuples out; rederive and
        insert semi-naively, a new rank being 1 + the largest of the premises           (4)

| symbol | name here |
|---|---|
| rank(t) | `p•rank`, whose last column is the rank |
| C | `p•candidate` |
| kept | `p•kept` |
| suspended, and just suspended | `p•suspended`, its ADDED |
| derived in (4) | `p•found`, all of them `p•new` |

After (3) every tuple that is left has a derivation from such tuples of smaller rank and from NEW
lower literals; by induction on the rank it is derivable. (4) derives everything else that is.
In (3) the lower literals are read in NEW: a tuple kept in (2) may depend on an instance that only
NEW has, and must be a candidate again when its supporter is suspended.

Example: edges a→b, b→c, c→b, tc left-linear (ranks 0: ab bc cb, 1: ac bb cc); edge(a,b) removed:

| round | candidates | kept | suspended |
|---|---|---|---|
| 1 | ab | | ab |
| 2 | ac | | ac |

The cycle b, c supports itself and is never touched.
"""

from collections.abc import Iterator

from corollary.analysis.strata import Stratum
from corollary.core.logic import Condition, Literal, Rule, Variable, Wildcard, head_arguments
from corollary.core.pipeline import Reference
from corollary.core.plans import CancelOut, Remove, Step, working_relation
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.maintain import delta, payload
from corollary.maintain.algorithms.seminaive import insert
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.sip import Goal
from corollary.maintain.suspension import suspend_unsupported
from corollary.maintain.trace import trace_rows


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that maintain a stored recursive stratum whose ranks are valid."""
    members = stratum.relations
    suspension = _suspend(stratum, draft)

    def add(rule: Rule, position: int | None, lead: Goal | None) -> Body:
        ranked = payload.rank_body(rule, stratum.members, draft, State.NEW)
        return ranked.derivation(lead, position, [payload.absent_head(rule)])

    additions, first = delta.seed_bodies(
        draft, delta.unchanged_rules(draft, stratum.relations), members, State.ADDED, add
    )
    if suspension:
        for rule in stratum.rules:
            out = working_goal(
                draft.working_relation(rule.head.relation, "suspended", NUMBER),
                (*head_arguments(rule), Variable("suspended'", NUMBER)),
            )
            ranked = payload.rank_body(rule, stratum.members, draft, State.NEW)
            first[rule.head.relation].append(ranked.derivation(out))
    steps = [*suspension, *additions, *insert(stratum, draft, first, with_ranks=True)]
    for name in members:
        steps += [CancelOut(name), CancelOut(payload.rank_relation(draft, name))]
    return [*steps, *trace_rows(stratum, draft, "out" if suspension else "")]


def _suspend(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return stages (1) to (3): find the tuples that have lost their support, and take them out."""
    members = stratum.relations

    def remove(rule: Rule, position: int | None, lead: Goal | None) -> Body:
        head = (*head_arguments(rule), payload.RANK_VARIABLE)
        ranked = Literal(payload.rank_relation(draft, rule.head.relation), head)
        stored = Goal(ranked, Reference(ranked.relation, State.OLD))
        return delta.make_body(
            rule,
            delta.read_in_state(State.OLD),
            lead=lead,
            position=position,
            goals=[stored],
            head=head,
        )

    seeds = delta.seed_bodies(
        draft, delta.unchanged_rules(draft, members), members, State.REMOVED, remove
    )

    def take_out(name: str) -> list[Step]:
        suspended, out = working_relation(name, "suspended"), draft.working_relation(name, "out")
        return [
            draft.copy(out, Reference(suspended)),
            Remove(name, out),
            Remove(payload.rank_relation(draft, name), suspended),
        ]

    return suspend_unsupported(
        draft,
        seeds,
        lambda name: _supports(name, stratum, draft),
        lambda name: _dependents(name, stratum, draft),
        take_out,
    )


def _supports(name: str, stratum: Stratum, draft: Draft) -> Iterator[Body]:
    """Yield the bodies of (2) that keep a candidate: its premises are smaller and not suspended."""
    candidate = draft.working_relation(name, "candidate", NUMBER)
    for rule in stratum.rules_by_head.get(name, ()):
        ranked = payload.rank_body(rule, stratum.members, draft, State.OLD)
        not_suspended: list[Goal] = []
        for position in ranked.ranks:
            literal = ranked.ranked_literal(position)
            suspended = draft.working_relation(
                rule.literals[position].relation, "suspended", NUMBER
            )
            not_suspended.append(working_goal(suspended, literal.slots, negated=True))
        yield delta.make_body(
            rule,
            ranked.read,
            lead=working_goal(candidate, ranked.head),
            goals=not_suspended,
            conditions=[
                Condition("<", rank, payload.RANK_VARIABLE) for rank in ranked.ranks.values()
            ],
            head=ranked.head,
        )


def _dependents(name: str, stratum: Stratum, draft: Draft) -> Iterator[Body]:
    """Yield the bodies of (3): heads that may have depended on a tuple that was just suspended."""
    for rule in stratum.rules_by_head.get(name, ()):
        for position in delta.recursive_positions(rule, stratum.members):
            ranked = payload.rank_body(rule, stratum.members, draft, State.OLD)
            suspended = draft.working_relation(
                rule.literals[position].relation, "suspended", NUMBER
            )
            lead = Goal(ranked.ranked_literal(position), Reference(suspended, State.ADDED))
            head = Literal(payload.rank_relation(draft, name), ranked.head)

            # The other premises may be suspended themselves: without them, a head whose premises
            # are suspended in the same round would be missed.
            def read(at: int, literal: Literal, position: int = position) -> Goal:
                if literal.relation in stratum.members and not literal.negated and at != position:
                    stored = payload.rank_relation(draft, literal.relation)
                    slots = (*literal.slots, Wildcard())
                    return Goal(Literal(stored, slots), Reference(stored, State.OLD))
                return Goal(literal, Reference(literal.relation))

            yield delta.make_body(
                rule,
                read,
                lead=lead,
                position=position,
                goals=[Goal(head, Reference(head.relation, State.OLD))],
                conditions=[Condition(">", payload.RANK_VARIABLE, ranked.ranks[position])],
                head=ranked.head,
            )
