"""Counts and sums over their own stratum, group by group.

Reference: group-stratified aggregates of I. S. Mumick, H. Pirahesh and R. Ramakrishnan, "The magic
of duplicates and aggregates" (1990); levels kept up to date under insertion as in D. J. Pearce and
P. H. J. Kelly, "A dynamic topological sort algorithm for directed acyclic graphs" (2006).

A group g is a key of a relation h of the stratum. g *reads* g' if an instance of the lower literals
of a rule for g has a recursive literal with the key of g'. The pairs are `h.reads`, a relation of a
lower stratum. If no group reads itself, directly or not, the program is locally stratified, and has
one model: that of the groups evaluated in the order of their levels.

    level(g) > level(g')   for every pair (g, g') of reads; a group that reads nothing has level 0

Evaluation is in `grouped_evaluation.py`. Maintenance:

    opened  = groups of instances with a changed lower literal                               (M1)
    raised  = (g, level(g') + 1) for new pairs (g, g') that the levels contradict; the readers
              of what rose rise in the next round. In round i a path of i groups has risen, so
              more rounds than groups that rose show a cycle                                 (M2)
    aggregate the open groups of the lowest level in NEW; where that differs from OLD, open
              the readers, which have higher levels; until none is open                      (M3)

| symbol | name here |
|---|---|
| reads, level | `h.reads`, `h•level` |
| opened; open, with levels | `h•opened`; `h•open` |
| the lowest level, its open groups | `•lowest` of the stratum, `h•current` |
| levels found, those that are known to be as high | `h•found`, `h•covered` |
| raised, the groups that rose | `h•raised`, `h•risen` |
| a group in NEW, as it was, the difference | `h•now`, `h•was`, `h•came` and `h•gone` |

Every group is aggregated at most once in a transaction. Levels are raised as far as necessary, and
never lowered; a group that stops reading loses its level.

Example: a uses 2 b, b uses 3 c; need(c) = 1, so need(b) = 3, need(a) = 6; levels b 1, a 2.
The quantity 3 becomes 5:

| round | current | now | was | opened by it |
|---|---|---|---|---|
| M1 | | | | b |
| 1 | b | 5 | 3 | a |
| 2 | a | 10 | 6 | |
"""

from corollary.analysis.strata import Stratum
from corollary.core import plans
from corollary.core.logic import (
    EQUATIONS,
    Condition,
    Constant,
    Functor,
    Literal,
    Rule,
    Variable,
    variable_names,
    variables_of,
)
from corollary.core.pipeline import Reference
from corollary.core.plans import Reduce, Role, Step, working_relation
from corollary.core.states import CHANGES, State
from corollary.core.types import NUMBER
from corollary.maintain.delta import ChangedLiteral, changed_literals
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.grouped_stratum import GroupedStratum
from corollary.maintain.payload import level_relation
from corollary.maintain.sip import Goal, has_fault
from corollary.maintain.trace import trace_rows

ZERO = Constant(0, NUMBER)
LEVEL = Variable("level'", NUMBER)
OTHER_LEVEL = Variable("other'", NUMBER)
ABOVE = Condition("=", LEVEL, Functor("+", (OTHER_LEVEL, Constant(1, NUMBER)), NUMBER))


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that maintain a stratum whose rules stay."""
    return _Maintenance(stratum, draft).steps()


class _Maintenance(GroupedStratum):
    """The maintenance of the groups that a change concerns, (M1) to (M3)."""

    def __init__(self, stratum: Stratum, draft: Draft) -> None:
        super().__init__(stratum, draft, State.NEW)

    def steps(self) -> list[Step]:
        """Return the steps."""
        steps = self._open()
        steps += self._fall()
        new_pairs = tuple(self.draft.changes_of(each.relation, State.ADDED) for each in self.pairs)
        steps.append(plans.When(new_pairs, tuple(self._rise())))
        opened: list[Step] = []
        lowest = working_relation(plans.procedure_name(self.stratum.relations), "lowest")
        self.draft.types[lowest] = (NUMBER,)
        for owner in self.owners:
            keys = self.key_variables(owner)
            first = working_goal(working_relation(owner, "opened"), keys)
            bodies = [
                Body.led((*keys, ZERO), first),
                Body.led((*keys, LEVEL), first, self._level(owner, keys)),
            ]
            opened += self.draft.derive(
                self.key_relation(owner, "open", NUMBER), bodies, reduce=Reduce.MAX
            )
        still_open = tuple(Reference(working_relation(owner, "open")) for owner in self.owners)
        loop = plans.Loop(tuple(self._round(lowest)), still_open)
        return [*steps, *opened, loop, *trace_rows(self.stratum, self.draft)]

    def _level(self, owner: str, keys: tuple[Variable, ...], level: Variable = LEVEL) -> Goal:
        """Return the literal with the level of a group."""
        relation = level_relation(self.draft, owner)
        return working_goal(relation, (*keys, level))

    # --- (M1) ----------------------------------------------------------------------------------

    def _open(self) -> list[Step]:
        """Return the steps that open the groups of changed instances."""
        bodies: dict[str, list[Body]] = {owner: [] for owner in self.owners}
        for name in self.order:
            for sign in CHANGES:
                for changed in changed_literals(
                    self.draft, self.rules(name), self.stratum.members, sign
                ):
                    state = State.NEW if sign is State.ADDED else State.OLD
                    bodies[self.owner_of[name]].append(self._changed(name, changed, state))
        return [
            step
            for owner in self.owners
            for step in self.draft.derive(self.key_relation(owner, "opened"), bodies[owner])
        ]

    def _changed(self, name: str, changed: ChangedLiteral, state: State) -> Body:
        """Return the groups of the instances that a changed literal takes part in.

        Literals of the stratum are left out, and so are tests that may have no value: what is
        opened in vain is found to be as it was.
        """
        rule = changed.rule
        goals = [changed.lead]
        goals += [
            Goal(each, Reference(each.relation, state))
            for at, each in enumerate(rule.literals)
            if at != changed.position
            and not each.negated
            and each.relation not in self.stratum.members
        ]
        bound = {each for goal in goals for each in variable_names(goal.literal)}
        head = self.key(name, rule.head.slots)
        conditions = _known_conditions(rule, bound)
        return Body(head, tuple(goals), conditions, rule.origin, changed.lead)

    # --- (M2) ----------------------------------------------------------------------------------

    def _fall(self) -> list[Step]:
        """Return the steps that take the level of groups which read nothing any more."""
        steps: list[Step] = []
        for owner in self.owners:
            level = level_relation(self.draft, owner)
            keys = self.key_variables(owner)
            left = [self.pair_goal(each, State.REMOVED) for each in self.readers(owner)]
            less, still, gone = (
                self.key_relation(owner, "less"),
                self.key_relation(owner, "still"),
                self.key_relation(owner, "unleveled", NUMBER),
            )
            first = working_goal(less, keys)
            remaining = [
                Body.led(keys, first, self.pair_goal(each)) for each in self.readers(owner)
            ]
            steps += self.draft.derive(less, [Body.led(keys, each) for each in left])
            steps += self.draft.derive(still, remaining)
            steps += self.draft.derive(
                gone,
                [
                    Body.led(
                        (*keys, LEVEL),
                        first,
                        working_goal(still, keys, negated=True),
                        self._level(owner, keys),
                    )
                ],
            )
            steps.append(plans.Remove(level, gone))
        return steps

    def _rise(self) -> list[Step]:
        """Return the steps that raise groups above what they read."""
        first, again, store = list[Step](), list[Step](), list[Step]()
        for owner in self.owners:
            found = self.key_relation(owner, "found", NUMBER)
            keys = self.key_variables(owner)
            bodies: list[Body] = []
            risen: list[Body] = []
            for pairs in self.readers(owner):
                read = self.key_variables(pairs.read, "r")
                lead = self.pair_goal(pairs, State.ADDED)
                bodies.append(Body.led((*keys, Constant(1, NUMBER)), lead))
                below = self._level(pairs.read, read, OTHER_LEVEL)
                bodies.append(Body.led((*keys, LEVEL), lead, below, conditions=(ABOVE,)))
                raised = self.key_relation(pairs.read, "raised", NUMBER)
                risen.append(
                    Body.led(
                        (*keys, LEVEL),
                        Goal(Literal(raised, (*read, OTHER_LEVEL)), Reference(raised, State.ADDED)),
                        self.pair_goal(pairs),
                        conditions=(ABOVE,),
                    )
                )
            first += self.draft.derive(found, bodies, reduce=Reduce.MAX)
            again += self.draft.derive(found, risen, reduce=Reduce.MAX)
        note = [step for owner in self.owners for step in self._note_rise(owner)]
        every = [working_relation(owner, "risen") for owner in self.owners]
        fresh = tuple(
            Reference(working_relation(owner, "raised"), State.ADDED) for owner in self.owners
        )
        for owner in self.owners:
            store += self._store_levels(owner)
        loop = plans.Loop((self.check(every, is_counted=True), *again, *note), fresh)
        return [*first, *note, loop, *store]

    def _note_rise(self, owner: str) -> list[Step]:
        """Return the steps that note which of the levels found are higher than those known."""
        found, covered, rise, raised = (
            self.key_relation(owner, role, NUMBER)
            for role in ("found", "covered", "rise", "raised")
        )
        up, risen = (self.key_relation(owner, role) for role in ("up", "risen"))
        keys = self.key_variables(owner)
        lead = working_goal(found, (*keys, LEVEL))
        known = (self._level(owner, keys, OTHER_LEVEL), working_goal(raised, (*keys, OTHER_LEVEL)))
        is_covered = (Condition(">=", OTHER_LEVEL, LEVEL),)
        bodies = [Body.led((*keys, LEVEL), lead, each, conditions=is_covered) for each in known]
        return [
            *self.draft.derive(covered, bodies),
            self.draft.copy(rise, Reference(found), without=(Reference(covered),)),
            plans.Extend(raised, rise),
            self.draft.copy(up, Reference(rise), without=(Reference(risen),)),
            plans.Extend(risen, up),
        ]

    def _store_levels(self, owner: str) -> list[Step]:
        """Return the steps that replace the levels of the groups that rose."""
        level = level_relation(self.draft, owner)
        highest, lower = (self.key_relation(owner, role, NUMBER) for role in ("highest", "lower"))
        keys = self.key_variables(owner)
        lead = working_goal(working_relation(owner, "raised"), (*keys, LEVEL))
        risen = working_goal(working_relation(owner, "risen"), keys)
        return [
            *self.draft.derive(highest, [Body.led((*keys, LEVEL), lead)], reduce=Reduce.MAX),
            *self.draft.derive(lower, [Body.led((*keys, LEVEL), risen, self._level(owner, keys))]),
            plans.Remove(level, lower),
            plans.Add(level, highest),
        ]

    # --- (M3) ----------------------------------------------------------------------------------

    def _round(self, lowest: str) -> list[Step]:
        """Return the steps that aggregate the open groups of the lowest level."""
        draft = self.draft
        steps: list[Step] = []
        open_groups = {
            owner: working_goal(
                working_relation(owner, "open"), (*self.key_variables(owner), LEVEL)
            )
            for owner in self.owners
        }
        bodies = [Body.led((LEVEL,), each) for each in open_groups.values()]
        steps += draft.derive(lowest, bodies, reduce=Reduce.MIN)
        least = working_goal(lowest, (LEVEL,))
        for owner, goal in open_groups.items():
            keys = self.key_variables(owner)
            steps += draft.derive(
                self.key_relation(owner, "current"),
                [Body.led(keys, least, goal)],
                role=Role.APPROXIMATED,
                about=owner,
            )
            leaving, rest = (self.key_relation(owner, role, NUMBER) for role in ("leaving", "rest"))
            steps += draft.derive(leaving, [Body.led((*keys, LEVEL), least, goal)])
            opened = Reference(working_relation(owner, "open"))
            steps.append(draft.copy(rest, opened, without=(Reference(leaving),)))
        for name in self.order:
            steps += self._update(name)
        for owner in self.owners:
            keys = self.key_variables(owner)
            readers = [
                Body.led(
                    (*keys, LEVEL),
                    working_goal(changed, self.key_variables(pairs.read, "r")),
                    self.pair_goal(pairs),
                    self._level(owner, keys),
                )
                for pairs in self.readers(owner)
                if (changed := self.key_relation(pairs.read, "changed"))
            ]
            rest_goal = working_goal(working_relation(owner, "rest"), (*keys, LEVEL))
            bodies = [Body.led((*keys, LEVEL), rest_goal), *readers]
            steps += draft.derive(working_relation(owner, "open"), bodies)
        return steps

    def _update(self, name: str) -> list[Step]:
        """Return the steps that bring the current groups of a relation to NEW."""

        def read(_: int, literal: Literal) -> Goal:
            relation = literal.relation
            is_inside = relation in self.stratum.members and relation not in self.owners
            return Goal(
                literal, Reference(working_relation(relation, "now") if is_inside else relation)
            )

        draft, owner = self.draft, self.owner_of[name]
        columns = draft.variables(name)
        keys = self.key(name, columns)
        lead = working_goal(working_relation(owner, "current"), keys)
        stored = working_goal(name, columns)
        was, came, gone = (draft.working_relation(name, role) for role in ("was", "came", "gone"))
        now = Reference(working_relation(name, "now"))
        role = Role.ACTUAL if name == owner else None
        about = name if name == owner else ""
        steps = [
            *self.current_steps(name, "now", read),
            *draft.derive(was, [Body.led(columns, lead, stored)]),
            draft.copy(came, now, without=(Reference(was),), role=role, about=about),
            draft.copy(gone, Reference(was), without=(now,), role=role, about=about),
            plans.Remove(name, gone),
            plans.Add(name, came),
        ]
        if name == owner:
            changes = [Body.led(keys, working_goal(each, columns)) for each in (came, gone)]
            steps += draft.derive(self.key_relation(owner, "changed"), changes)
        return steps


def _known_conditions(rule: Rule, bound: set[str]) -> tuple[Condition, ...]:
    """Return the conditions over bound variables, and the equations that bind more; adds these."""
    kept: list[Condition] = []
    waiting = list(rule.conditions)
    has_changed = True
    while has_changed:
        has_changed = False
        for condition in list(waiting):
            names = variable_names(condition)
            is_equation = condition.operator in EQUATIONS and any(
                isinstance(one, Variable)
                and one.name not in bound
                and {each.name for each in variables_of(other)} <= bound
                for one, other in (
                    (condition.left, condition.right),
                    (condition.right, condition.left),
                )
            )
            if is_equation or (names <= bound and not has_fault(condition)):
                kept.append(condition)
                waiting.remove(condition)
                bound |= names
                has_changed = True
    return tuple(kept)
