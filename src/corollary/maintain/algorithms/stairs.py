"""Strata of which only the best tuples count: evaluation, and maintenance by stairs.

Literature: G. Köstler, W. Kießling, H. Thöne, U. Güntzer, "Fixpoint iteration with subsumption in
deductive databases" (1995); D. Knuth, "A generalization of Dijkstra's algorithm" (1977); T. Szabó,
S. Erdweg, G. Bergmann, "Incremental whole-program analysis in Datalog with lattices" (2021), from
which it has that worse values of earlier rounds are kept.

t ⊑ u: same key, u at least as good ("u covers t"). The relation is the maximal tuples of the least
model without subsumption. The best alone do not do: a = min(b, 3), b = max(5, a + 4) ends at a = 3,
b = 7, each the other's only support; a came from b = 5. So worse values stay as *stairs*, "at least
this", with a rank:

    I1  every stair (t, r) has an instance in the current state whose premises of the stratum
        are stairs of rank < r and whose head covers t
    I2  no stair is covered by another stair whose rank is as small or smaller
    I3  the head of every instance over tops (maximal stairs) is covered by a stair;  p = tops

    C ← stairs (t, r), t covered by the head, r > all ranks of premises, for the instances
        of rem_i over the changes below (others OLD, premises any stairs)                 (1)
    (t, r) ∈ C is kept if I1 holds in NEW with premises not suspended; else suspended     (2)
    C ← as in (1), not suspended, for instances in NEW with a premise just suspended, the
        others any stairs, suspended or not                                               (3)
    repeat (2), (3); take the suspended out; derive, from tops in NEW, all heads of keys
        that lost a stair, and add_i; improve, go on semi-naively; stairs against I2 go   (4)

| symbol | name here |
|---|---|
| (t, r); tops | `p•rank`, a superset of p; p |
| C, kept, suspended | `p•candidate`, `p•kept`, `p•suspended` |
| keys that lost a stair | `p•lost_key` |
| heads of (4), what came | `p•found`, `p•new` |

Ranks *by round* are 1 + the largest of the premises. Where no head is better than a value premise,
ranks are *by value*: (value, tie), best first; the tie is 0 if all premises are strictly better,
else 1 + the largest tie among the equal. Then I2 leaves one stair a key, and ties are what is
stored. Which of the two, `analysis/monotonicity.py` decides.

Right: the model covers all stairs, by induction on r, by I1 and monotony; stairs cover all of the
model, by induction on derivations, by I3 and monotony. It ends: a stair is suspended once, and (4)
only improves; more rounds than keys mean that a value improves through its own key.

Example: stairs b=5 (0), a=3 (1), b=7 (2); the fact b=5 is removed:

| round | candidates | kept | suspended |
|---|---|---|---|
| 1 | b=5 | | b=5 |
| 2 | a=3 | | a=3 |
| 3 | b=7 | | b=7 |
| (4) | derives nothing: both go | | |
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from corollary.analysis.monotonicity import only_adds
from corollary.analysis.strata import Stratum
from corollary.core import plans
from corollary.core.logic import Condition, Literal, Rule, Variable, Wildcard, head_arguments
from corollary.core.pipeline import Links, Reference
from corollary.core.plans import Step
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.maintain import delta, payload
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.payload import RANK_VARIABLE
from corollary.maintain.sip import Goal
from corollary.maintain.stair_bodies import StairBodies, StairTables, stored_tables
from corollary.maintain.suspension import suspend_unsupported
from corollary.maintain.trace import INSERTION, derive_by_rule, trace_rows


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that maintain a stored stratum whose stairs are valid."""
    stairs = StairSteps(stratum, draft, stored_tables(draft))
    suspension = stairs.suspend()
    additions, first = delta.seed_bodies(
        draft,
        delta.unchanged_rules(draft, stratum.relations),
        stratum.relations,
        State.ADDED,
        stairs.derivation,
    )
    if suspension:
        for rule in stratum.rules:
            first[rule.head.relation].append(stairs.derivation(rule, None, stairs.lost_key(rule)))
    steps = [*suspension, *additions, *stairs.climb(first)]
    for name in stratum.relations:
        steps += [plans.CancelOut(name), plans.CancelOut(payload.rank_relation(draft, name))]
    return [*steps, *trace_rows(stratum, draft, "out" if suspension else "")]


def evaluate(
    stratum: Stratum, draft: Draft, state: State
) -> tuple[list[Step], dict[str, str], dict[str, str]]:
    """Return the steps that evaluate a stratum in a state, and what holds tops and stairs."""
    tops = {name: draft.working_relation(name, "so_far") for name in stratum.relations}
    ranked = {name: draft.working_relation(name, "ranked", NUMBER) for name in stratum.relations}
    stairs = StairSteps(stratum, draft, StairTables(tops, ranked, False, state))
    first = {
        name: [
            stairs.derivation(rule, None, None)
            for rule in stratum.rules_by_head.get(name, ())
            if not delta.recursive_positions(rule, stratum.members)
        ]
        for name in stratum.relations
    }
    return stairs.climb(first), tops, ranked


class StairSteps(StairBodies):
    """The steps of a stratum."""

    # --- stages (1) to (3) ---------------------------------------------------------------------

    def suspend(self) -> list[Step]:
        """Return the steps that find the stairs without support, and take them out."""
        draft, members = self.draft, self.stratum.relations

        def remove(rule: Rule, position: int | None, lead: Goal | None) -> Body:
            stored = [self.stored_stair(rule)]
            return self.supports(rule, lead, position, lower=State.OLD, goals=stored)

        seeds = delta.seed_bodies(
            draft, delta.unchanged_rules(draft, members), members, State.REMOVED, remove
        )
        return suspend_unsupported(draft, seeds, self._keeping, self._dependents, self._take_out)

    def _keeping(self, name: str) -> Iterator[Body]:
        """Yield the bodies of (2): a candidate has an instance of living premises below it."""
        candidate = plans.working_relation(name, "candidate")
        for rule in self.stratum.rules_by_head.get(name, ()):
            lead = working_goal(candidate, (*self.stair(rule), RANK_VARIABLE))
            yield self.supports(rule, lead, None, lower=State.NEW, is_living=True)

    def _dependents(self, name: str) -> Iterator[Body]:
        """Yield the bodies of (3): stairs that may have depended on one just suspended."""
        for rule in self.stratum.rules_by_head.get(name, ()):
            ranks = self.ranks(rule)
            for position in ranks.ranks:
                gone = plans.working_relation(rule.literals[position].relation, "suspended")
                slots = (*ranks.slots[position], ranks.ranks[position])
                lead = Goal(Literal(gone, slots), Reference(gone, State.ADDED))
                stored = [self.stored_stair(rule)]
                yield self.supports(rule, lead, position, lower=State.NEW, goals=stored)

    def _take_out(self, name: str) -> list[Step]:
        """Return the steps that take suspended stairs out; a stair below may be a top then."""
        draft, order = self.draft, self.orders[name]
        suspended = plans.working_relation(name, "suspended")
        out = draft.working_relation(name, "out")
        columns = draft.variables(name)
        keys = tuple(columns[at] for at in order.keys(len(columns)))
        lost_key = plans.working_relation(name, "lost_key")
        draft.types[lost_key] = tuple(draft.types[name][at] for at in order.keys(len(columns)))
        lead = working_goal(suspended, (*columns, RANK_VARIABLE))
        steps: list[Step] = [
            draft.intersect(out, Reference(suspended), Reference(name)),
            plans.Remove(name, out),
            plans.Remove(self.tables.stairs[name], suspended),
            *draft.derive(lost_key, [Body.led(keys, lead)]),
        ]
        if self.is_by_value or not order.values:
            return steps
        left = draft.working_relation(name, "left", NUMBER)
        exposed = draft.working_relation(name, "exposed", NUMBER)
        shown = draft.working_relation(name, "shown")
        of_keys = working_goal(lost_key, keys)
        stairs = Literal(self.tables.stairs[name], (*columns, RANK_VARIABLE))
        goals = [of_keys, Goal(stairs, Reference(stairs.relation))]
        steps += draft.derive(left, [Body.led((*columns, RANK_VARIABLE), *goals)])
        steps += self._improve(name, exposed, left)
        return [*steps, draft.copy(shown, Reference(exposed)), plans.Add(name, shown)]

    # --- stage (4), and evaluation ---------------------------------------------------------------

    def climb(self, first: Mapping[str, Sequence[Body]]) -> list[Step]:
        """Return the steps that derive, improve, and go on until nothing improves.

        Args:
            first: for each relation the bodies that start it; their last column is the rank.
        """
        draft, members = self.draft, self.stratum.relations
        start: list[Step] = []
        again: list[Step] = []
        grow: list[Step] = []
        for name in members:
            found = draft.working_relation(name, "found", NUMBER)
            came = draft.working_relation(name, "came", NUMBER)
            start += derive_by_rule(
                draft, found, first.get(name, ()), name, INSERTION, reduce=plans.Reduce.MIN
            )
            again += derive_by_rule(
                draft, found, self._following(name), name, INSERTION, reduce=plans.Reduce.MIN
            )
            grow += [*self._improve(name, came, found), *self._store(name)]
        fresh = tuple(Reference(plans.working_relation(name, "came")) for name in members)
        loop = plans.Loop((*again, *grow, *find_endless_descent(self)), fresh)
        return [*start, *grow, loop, plans.Judge(tuple(self._judge()))]

    def _following(self, name: str) -> Iterator[Body]:
        """Yield what a relation gets from the tuples that came last."""
        for rule in self.stratum.rules_by_head.get(name, ()):
            ranks = self.ranks(rule)
            for position in ranks.ranks:
                came = plans.working_relation(rule.literals[position].relation, "came")
                slots = (*ranks.slots[position], ranks.ranks[position])
                lead = working_goal(came, slots)
                yield self.derivation(rule, position, lead)

    def _improve(self, name: str, target: str, source: str) -> list[Step]:
        """Return the steps that find the best of some tuples that no top covers."""
        draft, order = self.draft, self.orders[name]
        rivals = draft.working_relation(name, "rival")
        top = self.tables.tops[name]
        columns = draft.variables(name)
        others = self._values_renamed(name, columns, "other")
        found = working_goal(source, (*others, RANK_VARIABLE))
        rival = working_goal(top, columns)
        return [
            *draft.derive(rivals, [Body.led(columns, found, rival)]),
            plans.Improve(target, source, rivals, order, len(columns)),
        ]

    def _store(self, name: str) -> list[Step]:
        """Return the steps that add what came, without what it covers."""
        draft, order = self.draft, self.orders[name]
        top, stairs = self.tables.tops[name], self.tables.stairs[name]
        came, new = plans.working_relation(name, "came"), draft.working_relation(name, "new")
        steps: list[Step] = [draft.copy(new, Reference(came))]
        if order.values:
            columns = draft.variables(name)
            others = self._values_renamed(name, columns, "new")
            beaten = draft.working_relation(name, "beaten")
            outdone = draft.working_relation(name, "outdone", NUMBER)
            covers = order.covers(others, columns)
            lead = working_goal(new, others)
            old = working_goal(top, columns)
            steps += draft.derive(beaten, [Body.led(columns, lead, old, conditions=covers)])
            rank = Variable("newrank'", NUMBER)
            lead = working_goal(came, (*others, rank))
            ranked = (*columns, RANK_VARIABLE)
            old = working_goal(stairs, ranked)
            covers = (*covers, *self.outdone_conditions(rank))
            steps += draft.derive(outdone, [Body.led(ranked, lead, old, conditions=covers)])
            steps += [plans.Remove(top, beaten), plans.Remove(stairs, outdone)]
        add = plans.Add if self.tables.is_stored else plans.Extend
        return [*steps, add(top, new), add(stairs, came)]

    def outdone_conditions(self, rank: Variable) -> tuple[Condition, ...]:
        """Return when a better stair of some rank makes another one superfluous, as I2 says."""
        return () if self.is_by_value else (Condition("<=", rank, RANK_VARIABLE),)

    def _values_renamed(
        self, name: str, columns: Sequence[Variable], prefix: str
    ) -> tuple[Variable, ...]:
        """Return the columns with other variables for the values."""
        compared = {each.position for each in self.orders[name].values}
        return tuple(
            Variable(f"{prefix}{at}'", column.type) if at in compared else column
            for at, column in enumerate(columns)
        )

    def _judge(self) -> Iterator[Step]:
        """Yield the steps that decide about values that were missing: only over tops they count."""
        for name in self.stratum.relations:
            bodies = []
            for rule in self.stratum.rules_by_head.get(name, ()):
                body = self.derivation(rule, None, None)
                bodies.append(replace(body, is_judged=True, is_deferred=False))
            judged = self.draft.working_relation(name, "judged", NUMBER)
            yield from self.draft.derive(judged, bodies)


def find_endless_descent(stairs: StairBodies) -> list[Step]:
    """Return the step that fails if a value improves through its own key, by adding only.

    With more rounds than keys, some value has improved through its own key. If the rules on that
    chain only add to the value, the chain goes on for ever; a bounded value ends it.
    """
    if stairs.is_by_value:
        return []
    steps: list[Step] = []
    links: list[Links] = []
    for rule in stairs.stratum.rules:
        if not only_adds(rule, stairs.stratum.members, stairs.stratum.subsumption):
            continue
        for position, rank in stairs.ranks(rule).ranks.items():
            steps += _link(stairs, rule, position, rank, links)
    if not links:
        return []
    tops = tuple(stairs.tables.tops[name] for name in stairs.stratum.relations)
    return [plans.Overrun(tops, (*steps, plans.FindDescent(tuple(links))))]


def _link(
    stairs: StairBodies, rule: Rule, position: int, rank: Variable, links: list[Links]
) -> list[Step]:
    """Return the steps that pair the heads of a rule, which are stairs, with a premise."""
    draft = stairs.draft
    head, premise = rule.head.relation, rule.literals[position].relation
    arguments = head_arguments(rule)
    name = plans.working_relation(head, f"link{len(links)}")
    draft.types[name] = (*draft.types[head], NUMBER, *draft.types[premise], NUMBER)
    ranks = stairs.ranks(rule)
    ranked_heads = stairs.tables.stairs[head]
    slots = ranks.slots[position]

    def read(at: int, literal: Literal) -> Goal:
        if at not in ranks.ranks:
            return Goal(literal, Reference(literal.relation, stairs.tables.lower))
        ranked = stairs.tables.stairs[literal.relation]
        return working_goal(ranked, (*ranks.slots[at], ranks.ranks[at]))

    shown = tuple(slot for slot in slots if not isinstance(slot, Wildcard))
    body = delta.make_body(
        rule,
        read,
        goals=[working_goal(ranked_heads, (*arguments, RANK_VARIABLE))],
        conditions=[Condition("<", each, RANK_VARIABLE) for each in ranks.ranks.values()],
        head=(*arguments, RANK_VARIABLE, *shown, rank),
    )
    keys = (stairs.orders[each].keys(len(draft.types[each])) for each in (head, premise))
    links.append(Links(name, head, premise, len(arguments), *keys))
    return draft.derive(name, [body])
