"""Running totals: a changed row is added to its group, which is not aggregated again.

    δ(g, v) = Σ over the changed assignments of the body with keys g and terms v of ±1
    T_new(g) = T_old(g) + Σ over v of δ(g, v)·T(v);   A(g) = value(T_new(g)), none if n = 0

T(v) are the totals of a single assignment: a 1 for n, and the words or digits of v
(`core/totals.py`). All of T is additive and exact, so that after any changes T(g) is what an
evaluation of the group would give. The least and the greatest value are not additive:

    lost = groups g with δ(g, A_old(g)) < 0
    A(g) = best of A_old(g) and the values that came                   where g is not lost
    A(g) = best value of g in NEW                                      where g is lost

| symbol | name here |
|---|---|
| δ(g, v) | `a•difference`, whose last column is the number |
| Σ δ(g, v)·T(v) | `a•change` |
| T(g) | `a•total` or, for floats, `a•digits`; a count is its own total |
| the values of g | the body if it is stored, else `a•values`, whose last column is the number |
| A_new(g), A_old(g) for changed groups | `a•now`, `a•was` |

The body of an aggregate is mostly a relation that rewriting made of one conjunction. It is not
stored: the changed assignments come straight from its rule (`maintain/exact.py`). Of any other
body, its change is read. Either way the cost is that of the change, not of the groups; a lost group
costs as many steps as it has values.

Stages, and what holds after them: (1) δ has each changed (g, v), with the exact difference of its
assignments; (2) T is that of NEW; (3) A is that of NEW, and its change is exact.

Example: `total(k, s)`, r = {(x,1), (x,2), (y,5)}; r(x,2) removed: δ(x,2) = −1; T(x) goes from
n = 2, sum 3 to n = 1, sum 1; now (x,1), was (x,3). r(x,1) is not read.
"""

from dataclasses import replace

from corollary.analysis.strata import Stratum
from corollary.core import plans
from corollary.core.logic import (
    NO_RULE,
    Accumulator,
    Aggregation,
    Condition,
    Constant,
    Functor,
    Literal,
    Slot,
    Variable,
    Wildcard,
)
from corollary.core.pipeline import Extreme, Reference
from corollary.core.states import State
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.maintain.assignments import (
    difference_relation,
    difference_steps,
    weighted_aggregation,
)
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.payload import Payload, payload_kind, totals_relation
from corollary.maintain.sip import Goal
from corollary.maintain.trace import trace_rows

_ZERO = Constant(0, NUMBER)


def plan(stratum: Stratum, draft: Draft) -> list[plans.Step]:
    """Return the steps that maintain a stored aggregate whose totals are valid."""
    (aggregation,) = stratum.aggregations
    assert isinstance(aggregation, Aggregation), "windows have no totals"
    group = _Groups(aggregation, draft)
    payload = payload_kind(stratum, draft.update.new)
    steps = difference_steps(aggregation, draft)
    if not aggregation.values:
        change = group.count()
    elif aggregation.extreme is not None:
        change = group.extremes(aggregation.extreme, payload)
    else:
        assert payload is not None
        change = group.totals(payload)
    difference = Reference(difference_relation(aggregation, draft))
    return [*steps, plans.When((difference,), tuple(change)), *trace_rows(stratum, draft)]


# --- groups --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Groups:
    """The plan of one aggregate under construction, after δ is derived."""

    aggregation: Aggregation
    draft: Draft

    @property
    def name(self) -> str:
        """The aggregate."""
        return self.aggregation.relation

    @property
    def keys(self) -> tuple[Variable, ...]:
        """Variables for the keys."""
        return self.draft.variables(self.name)[: len(self.aggregation.groups)]

    @property
    def difference(self) -> str:
        """The relation δ."""
        return difference_relation(self.aggregation, self.draft)

    def working(self, role: str, *more: Type) -> str:
        """Return a working relation with the keys and columns of more types."""
        name = plans.working_relation(self.name, role)
        keys = self.draft.types[self.name][: len(self.aggregation.groups)]
        self.draft.types[name] = (*keys, *more)
        return name

    # --- counts --------------------------------------------------------------------------------

    def count(self) -> list[plans.Step]:
        """Return the steps for a count: its own value is the total."""
        outdated = self.working("outdated", NUMBER)
        return [_accumulate(self.draft, self.name, self.difference, outdated, 1, about=self.name)]

    # --- sums and means ------------------------------------------------------------------------

    def totals(self, payload: Payload) -> list[plans.Step]:
        """Return the steps for sums and means."""
        draft, aggregation = self.draft, self.aggregation
        totals = totals_relation(draft, aggregation, payload)
        additive = 1 if payload is Payload.DIGITS else len(draft.types[totals]) - len(self.keys)
        change = draft.types[totals][len(self.keys) :]
        found, rows = self.working("change", *change), self.working("totals", *change)
        weighted = weighted_aggregation(aggregation, self.difference)
        terms = tuple(draft.types[aggregation.body][at] for at in aggregation.values)
        outdated = self.working("outdated", *change)
        was, now = (draft.working_relation(self.name, role) for role in ("was", "now"))
        added = _accumulate(draft, totals, found, outdated, additive, about=self.name)
        total = plans.Total(found, weighted, Reference(self.difference), is_weighted=True)
        steps: list[plans.Step] = [total]
        if payload is Payload.DIGITS:  # some of the rows of a group change: all are read
            steps += [*self._touch(found), added]
            steps += self._look_up("totals", Reference(totals))
            steps.append(plans.ReadTotals(now, weighted, Reference(rows), terms))
            steps += self._look_up("was", Reference(self.name, State.OLD))
        else:
            steps += [
                added,
                plans.ReadTotals(now, weighted, Reference(totals, State.ADDED), terms),
                plans.ReadTotals(was, weighted, Reference(totals, State.REMOVED), terms),
            ]
        return [*steps, *self._store()]

    # --- least and greatest values -------------------------------------------------------------

    def extremes(self, accumulator: Accumulator, payload: Payload | None) -> list[plans.Step]:
        """Return the steps for the least or the greatest value.

        Null is a value among others where it is the value of a group of nulls; it is the best of
        none.
        """
        draft, aggregation = self.draft, self.aggregation
        (term_at,) = aggregation.values
        term = draft.types[aggregation.body][term_at]
        value, count = Variable("value'", term), Variable("count'", NUMBER)
        row = (*self.keys, value)
        changed, steps = self.difference, list[plans.Step]()
        if term.nullable and not accumulator.is_nullable:
            changed = self.working("changed", term, NUMBER)
            lead = working_goal(self.difference, (*row, count))
            present = Condition("=", value, value)
            body = Body((*row, count), (lead,), (present,), NO_RULE, lead)
            steps = draft.derive(changed, [body])
        steps += self._touch(changed, role=plans.Role.APPROXIMATED)
        is_greatest = accumulator.operator == "max"
        if payload is None:
            columns: list[Slot] = [Wildcard()] * len(draft.types[aggregation.body])
            for at, key in zip(aggregation.groups, self.keys, strict=True):
                columns[at] = key
            columns[term_at] = value
            extreme = Extreme(term_at, is_greatest)
            literal = Literal(aggregation.body, tuple(columns))
            values = Goal(literal, Reference(aggregation.body), extreme)
        else:
            kept = totals_relation(draft, aggregation, payload)
            outdated = self.working("outdated", term, NUMBER)
            steps.append(_accumulate(draft, kept, changed, outdated, 1))
            extreme = Extreme(len(self.keys), is_greatest)
            values = Goal(Literal(kept, (*row, count)), Reference(kept), extreme)
        return [*steps, *self._lost(changed, value, count), *self._best(changed, value, values)]

    def _lost(self, changed: str, value: Variable, count: Variable) -> list[plans.Step]:
        """Return the step that finds the groups that have lost an assignment of their value."""
        lead = working_goal(changed, (*self.keys, value, count))
        old = Goal(Literal(self.name, (*self.keys, value)), Reference(self.name, State.OLD))
        less = Condition("<", count, _ZERO)
        body = Body(self.keys, (lead, old), (less,), NO_RULE, lead)
        return self.draft.derive(self.working("lost"), [body])

    def _best(self, changed: str, value: Variable, values: Goal) -> list[plans.Step]:
        """Return the steps that find the best of what came, what was there, and lost groups."""
        draft, keys = self.draft, self.keys
        row = (*keys, value)
        count = Variable("count'", NUMBER)
        came = working_goal(changed, (*row, count))
        touched, lost = working_goal(self.working("touched"), keys), self.working("lost")
        old = Goal(Literal(self.name, row), Reference(self.name, State.OLD))
        is_not_lost, is_lost = working_goal(lost, keys, negated=True), working_goal(lost, keys)
        more = Condition(">", count, _ZERO)
        present = Condition("=", value, value)
        bodies = [
            Body(row, (came,), (more,), NO_RULE, came),
            Body(row, (touched, old, is_not_lost), (), NO_RULE, touched),
            Body(row, (is_lost, values), (present,), NO_RULE, is_lost),
        ]
        term = draft.types[self.aggregation.body][self.aggregation.values[0]]
        if self.aggregation.has_every_group:
            null = Constant(None, term)
            slots = tuple(null if slot == value else slot for slot in values.literal.slots)
            nulls = Goal(replace(values.literal, slots=slots), values.source)
            bodies.append(Body((*keys, null), (is_lost, nulls), (), NO_RULE, is_lost))
        best = self.working("candidates", term)
        now = draft.working_relation(self.name, "now")
        return [
            *draft.derive(best, bodies),
            plans.Aggregate(now, weighted_aggregation(self.aggregation, best), Reference(best)),
            *self._look_up("was", Reference(self.name, State.OLD)),
            *self._store(),
        ]

    # --- steps that all have in common ---------------------------------------------------------

    def _touch(self, source: str, role: plans.Role | None = None) -> list[plans.Step]:
        """Return the step that finds the groups that change."""
        touched = self.working("touched")
        return [self.draft.copy(touched, Reference(source), role=role, about=self.name)]

    def _look_up(self, role: str, source: Reference) -> list[plans.Step]:
        """Return the step that finds what a relation has of the groups that change."""
        draft = self.draft
        more = draft.types[source.relation][len(self.keys) :]
        columns = draft.variables(source.relation)
        lead = working_goal(self.working("touched"), self.keys)
        goal = Goal(Literal(source.relation, columns), source)
        body = Body(columns, (lead, goal), (), NO_RULE, lead)
        return draft.derive(self.working(role, *more), [body])

    def _store(self) -> list[plans.Step]:
        """Return the steps that bring the aggregate from what it was to what it is now."""
        draft, name = self.draft, self.name
        was, now, gone, came = (
            draft.working_relation(name, role) for role in ("was", "now", "gone", "came")
        )
        role = plans.Role.ACTUAL
        return [
            draft.copy(came, Reference(now), without=(Reference(was),), role=role, about=name),
            draft.copy(gone, Reference(was), without=(Reference(now),), role=role, about=name),
            plans.Remove(name, gone),
            plans.Add(name, came),
        ]


def _accumulate(
    draft: Draft, totals: str, change: str, outdated: str, additive: int, *, about: str = ""
) -> plans.Accumulate:
    """Return the step that adds a change to totals, whose last columns are additive."""
    columns = draft.variables(totals)
    keys = columns[: len(columns) - additive]
    lead = working_goal(change, (*keys, *_numbers("difference", additive)))
    old = Goal(Literal(totals, columns), Reference(totals, State.OLD))
    updated = f"{outdated}{plans.WORKING_SEPARATOR}after"
    draft.types[updated] = draft.types[totals]
    smaller = (
        *draft.derive(outdated, [Body(columns, (lead, old), (), NO_RULE, lead)]),
        *_sum_up(draft, change, Reference(outdated), updated, additive),
        plans.Remove(totals, outdated),
        plans.Add(totals, updated),
        plans.CancelOut(totals),
    )
    return plans.Accumulate(totals, change, additive, smaller, about=about)


def _sum_up(
    draft: Draft, change: str, before: Reference, target: str, additive: int
) -> list[plans.Step]:
    """Return the steps that derive the sums of a change and what was before, where there was any.

    What becomes 0 in the first of the additive columns, the last ones, is left out.
    """
    columns = draft.variables(target)
    keys = columns[: len(columns) - additive]
    known = f"{before.relation}{plans.WORKING_SEPARATOR}keys"
    draft.types[known] = draft.types[target][: len(keys)]
    changes, olds, sums = (_numbers(role, additive) for role in ("difference", "before", "after"))
    lead = working_goal(change, (*keys, *changes))
    old = Goal(Literal(before.relation, (*keys, *olds)), before)
    equations = tuple(
        Condition("=", total, Functor("+", (one, other), NUMBER))
        for total, one, other in zip(sums, olds, changes, strict=True)
    )
    stays = Condition("!=", sums[0], _ZERO)
    unknown = working_goal(known, keys, negated=True)
    bodies = [
        Body((*keys, *sums), (lead, old), (*equations, stays), NO_RULE, lead),
        Body((*keys, *changes), (lead, unknown), (), NO_RULE, lead),
    ]
    return [draft.copy(known, before), *draft.derive(target, bodies)]


def _numbers(role: str, count: int) -> tuple[Variable, ...]:
    """Return variables for the additive columns; the quote keeps them apart from others."""
    return tuple(Variable(f"{role}{at}'", NUMBER) for at in range(count))
