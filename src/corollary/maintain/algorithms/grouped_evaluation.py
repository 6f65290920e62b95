"""The evaluation of counts and sums over their own stratum, level by level.

The reference, and what a group, its level and *reads* are, is in `groups.py`.

    waiting = groups that read something
    current = waiting groups that read no waiting group which is not done                    (E1)
    aggregate the current groups; they are done, their level is the number of the round      (E2)
    until nothing is current; a group that is still waiting is on a cycle, or reads one      (E3)

| symbol | name here |
|---|---|
| waiting, done, current | `h•waiting`, `h•done`, `h•current` |
| groups that may be current, those of them that wait | `h•candidate`, `h•blocked` |
| what the current groups have, what all done have | `h•next`, `h•so_far` |
| levels | `h•leveled` |

Only readers of groups that were done in the last round become candidates, so a group is looked at
as often as the groups that it reads have levels.

Example: a uses 2 b, b uses 3 c; need(c) = 1 is a fact.

| round | candidates | current | h•next |
|---|---|---|---|
| first | a b | b | |
| 1 | a | a | need(b, 3) |
| 2 | | | need(a, 6) |
"""

from collections.abc import Iterator

from corollary.analysis.strata import Stratum
from corollary.core import plans
from corollary.core.logic import Constant, Literal, Variable
from corollary.core.pipeline import Reference
from corollary.core.plans import Step, working_relation
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.grouped_stratum import GroupedStratum
from corollary.maintain.payload import level_relation
from corollary.maintain.sip import Goal


def evaluate(
    stratum: Stratum, draft: Draft, state: State, *, with_levels: bool
) -> tuple[list[Step], dict[str, str]]:
    """Return the steps that evaluate a stratum in a state, and the relations with the results."""
    return _Evaluation(stratum, draft, state).steps(with_levels=with_levels)


class _Evaluation(GroupedStratum):
    """The evaluation of all groups, (E1) to (E3)."""

    def steps(self, *, with_levels: bool) -> tuple[list[Step], dict[str, str]]:
        """Return the steps, and the relations that hold the results."""
        draft = self.draft
        every = {name: draft.working_relation(name, "so_far") for name in self.order}
        steps: list[Step] = []
        for owner in self.owners:
            waiting = self.key_relation(owner, "waiting")
            keys = self.key_variables(owner)
            bodies = [Body.led(keys, self.pair_goal(each)) for each in self.readers(owner)]
            steps += draft.derive(waiting, bodies)
        for owner in self.owners:
            found = draft.working_relation(owner, "next")
            steps += draft.derive(found, list(self._without_reads(owner)))
            steps.append(plans.Extend(every[owner], found))
            steps.append(
                draft.copy(
                    self.key_relation(owner, "candidate"),
                    Reference(working_relation(owner, "waiting")),
                )
            )
        steps += self._select()
        process: list[Step] = []
        for name in self.order:
            process += self._current(name, every)
        grow: list[Step] = [
            plans.Extend(every[name], working_relation(name, "next")) for name in self.order
        ]
        results = dict(every)
        for owner in self.owners:
            current = working_relation(owner, "current")
            grow.append(plans.Extend(self.key_relation(owner, "done"), current))
            if with_levels:
                leveled = self.key_relation(owner, "leveled", NUMBER)
                grow.append(plans.ExtendWithRound(leveled, current))
                results[level_relation(draft, owner)] = leveled
        for owner in self.owners:
            bodies = [
                Body.led(
                    self.key_variables(owner),
                    Goal(
                        Literal(done, self.key_variables(each.read, "r")),
                        Reference(done, State.ADDED),
                    ),
                    self.pair_goal(each),
                )
                for each in self.readers(owner)
                if (done := working_relation(each.read, "done"))
            ]
            grow += draft.derive(working_relation(owner, "candidate"), bodies)
        going = tuple(Reference(working_relation(owner, "current")) for owner in self.owners)
        steps.append(plans.Loop((*process, *grow, *self._select()), going))
        stuck: list[str] = []
        for owner in self.owners:
            stuck.append(self.key_relation(owner, "stuck"))
            steps.append(
                draft.copy(
                    stuck[-1],
                    Reference(working_relation(owner, "waiting")),
                    without=(Reference(working_relation(owner, "done")),),
                )
            )
        steps.append(self.check(stuck, is_counted=False))
        return steps, results

    def _without_reads(self, owner: str) -> Iterator[Body]:
        """Yield the bodies that make the tuples of groups which read nothing, and of lower rules.

        Such a group has nothing to aggregate: of the rules with an aggregate only those for an
        empty group hold.
        """
        for rule in self.rules(owner):
            own = [each for each in rule.literals if each.relation in self.stratum.members]
            if any(not each.negated for each in own):
                continue
            waiting = working_relation(owner, "waiting")
            absent = [working_goal(waiting, self.key(owner, rule.head.slots), negated=True)]
            others = [
                Goal(each, Reference(each.relation, self.state))
                for each in rule.literals
                if each not in own
            ]
            yield Body(
                tuple(s for s in rule.head.slots if isinstance(s, Variable | Constant)),
                (*others, *(absent if own else ())),
                rule.conditions,
                rule.origin,
                is_judged=self.state is State.NEW,
                is_lenient=rule.is_lenient,
            )

    def _select(self) -> list[Step]:
        """Return the steps that make those of the candidates current that need not wait."""
        steps: list[Step] = []
        for owner in self.owners:
            candidate = working_relation(owner, "candidate")
            keys = self.key_variables(owner)
            blocked = self.key_relation(owner, "blocked")
            bodies = [
                Body.led(
                    keys,
                    working_goal(candidate, keys),
                    self.pair_goal(each),
                    working_goal(working_relation(each.read, "waiting"), read),
                    working_goal(self.key_relation(each.read, "done"), read, negated=True),
                )
                for each in self.readers(owner)
                if (read := self.key_variables(each.read, "r"))
            ]
            steps += self.draft.derive(blocked, bodies)
        for owner in self.owners:
            steps.append(
                self.draft.copy(
                    self.key_relation(owner, "current"),
                    Reference(working_relation(owner, "candidate")),
                    without=(Reference(working_relation(owner, "blocked")),),
                )
            )
        return steps

    def _current(self, name: str, every: dict[str, str]) -> list[Step]:
        """Return the steps that derive what a relation has for the current groups."""

        def read(_: int, literal: Literal) -> Goal:
            relation = literal.relation
            if relation in self.owners:
                return Goal(literal, Reference(every[relation]))
            if relation in self.stratum.members:
                return Goal(literal, Reference(working_relation(relation, "next")))
            return Goal(literal, Reference(relation, self.state))

        known = (Reference(every[name]),) if name in self.owners else ()
        return self.current_steps(name, "next", read, known)
