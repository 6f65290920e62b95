"""Running totals: a changed row is added to its group, which is not aggregated again.

    δ(g, v) = Σ over the changed assignments of the body with keys g and terms v of ±1
    T_new(g) = T_old(g) + Σ over v of δ(g, v)·T(v);   A(g) = value(T_new(g)), none if n = 0

T(v) are the totals of a single assignment: a 1 for n, and the words or digits of v
(`core/totals.py`). All of T is additive and exact, so that after any changes T(g) is what an
evaluation of the group would give. The least and the greatest value are not additive:

    lost = groups g with δ(g, A_old(g)) < 0
    A(g) = best of A_old(g) and the values that came                   where g is not lost
    A(g) = best value of g in NEW                                      where g is lost

Holistic aggregates, such as a median, are computed of all values of the touched groups in NEW.

| symbol | name here |
|---|---|
| δ(g, v) | `a•difference`, whose last column is the number |
| Σ δ(g, v)·T(v) | `a•change` |
| T(g) | `a•total` or, for floats, `a•digits`; a count is its own total |
| the values of g | the body if it is stored, else `a•values`, whose last column is the number |
| the same of the k-th part | `a•k•change`, `a•k•total`, … |
| A_new(g), A_old(g) for changed groups | `a•now`, `a•was` |

Accumulators that are kept together are a part (`maintain/payload.py`): counts and sums of integers,
a sum of floats, an extreme, a holistic one. Of several parts, each says what it has for the touched
groups, and the record is their join by key.

The body of an aggregate is mostly a relation that rewriting made of one conjunction. It is not
stored: the changed assignments come straight from its rule (`maintain/exact.py`). Of any other
body, its change is read. Either way the cost is that of the change, not of the groups; a lost group
costs as many steps as it has values.

Stages, and what holds after them: (1) δ has each changed (g, v), with the exact difference of its
assignments; (2) T is that of NEW; (3) A is that of NEW, and its change is exact.

Example: `total(k, s)`, r = {(x,1), (x,2), (y,5)}; r(x,2) removed: δ(x,2) = −1; T(x) goes from
n = 2, sum 3 to n = 1, sum 1; now (x,1), was (x,3). r(x,1) is not read.
"""

from collections.abc import Sequence
from dataclasses import replace

from corollary.analysis.strata import Stratum
from corollary.core import plans
from corollary.core.logic import (
    NO_RULE,
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
from corollary.maintain.payload import Part, Payload, declare_parts, totals_relation
from corollary.maintain.sip import Goal
from corollary.maintain.trace import trace_rows

_ZERO = Constant(0, NUMBER)


def plan(stratum: Stratum, draft: Draft) -> list[plans.Step]:
    """Return the steps that maintain a stored aggregate whose totals are valid."""
    (aggregation,) = stratum.aggregations
    assert isinstance(aggregation, Aggregation), "windows have no totals"
    group = _Groups(aggregation, draft)
    parts = declare_parts(draft, aggregation)
    steps = difference_steps(aggregation, draft)
    if not aggregation.values:
        change = group.count()
    elif len(parts) == 1 and parts[0].payload is Payload.TOTAL:
        change = group.totals(parts[0])
    else:
        change = group.record(parts)
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
    def values(self) -> tuple[Variable, ...]:
        """Variables for the values."""
        return self.draft.variables(self.name)[len(self.aggregation.groups) :]

    @property
    def difference(self) -> str:
        """The relation δ."""
        return difference_relation(self.aggregation, self.draft)

    def working(self, role: str, *more: Type, part: Part | None = None) -> str:
        """Return a working relation with the keys and columns of more types."""
        name = plans.working_relation(part.aggregation.relation if part else self.name, role)
        keys = self.draft.types[self.name][: len(self.aggregation.groups)]
        self.draft.types[name] = (*keys, *more)
        return name

    # --- counts --------------------------------------------------------------------------------

    def count(self) -> list[plans.Step]:
        """Return the steps for a count: its own value is the total."""
        outdated = self.working("outdated", NUMBER)
        return [_accumulate(self.draft, self.name, self.difference, outdated, 1, about=self.name)]

    # --- counts and sums of integers -----------------------------------------------------------

    def totals(self, part: Part) -> list[plans.Step]:
        """Return the steps for what the totals say alone: those that change are the change."""
        steps, kept = self._add_totals(part)
        was, now = (self.draft.working_relation(self.name, role) for role in ("was", "now"))
        return [
            *steps,
            self._read(part, now, Reference(kept, State.ADDED)),
            self._read(part, was, Reference(kept, State.REMOVED)),
            *self._store(),
        ]

    def _add_totals(self, part: Part) -> tuple[list[plans.Step], str]:
        """Return the steps that add the change to the totals of a part, and these."""
        draft, kept = self.draft, totals_relation(self.draft, part)
        types = draft.types[kept][len(self.keys) :]
        additive = 1 if part.payload is Payload.DIGITS else len(types)
        found = self.working("change", *types, part=part)
        outdated = self.working("outdated", *types, part=part)
        about = self.name if len(part.places) == len(self.values) else ""
        added = _accumulate(draft, kept, found, outdated, additive, about=about)
        if not part.aggregation.values:
            count = Variable("count'", NUMBER)
            lead = working_goal(self.difference, (*draft.variables(self.difference)[:-1], count))
            body = Body((*self.keys, count), (lead,), (), NO_RULE, lead, is_bag=True)
            return [*draft.derive(found, [body], reduce=plans.Reduce.SUM), added], kept
        weighted = self._weighted(part)
        total = plans.Total(found, weighted, Reference(self.difference), is_weighted=True)
        return [total, added], kept

    def _weighted(self, part: Part) -> Aggregation:
        """Return the aggregation of a part over δ."""
        whole = weighted_aggregation(self.aggregation, self.difference)
        accumulators = tuple(whole.accumulators[at] for at in part.places)
        return replace(whole, relation=part.aggregation.relation, accumulators=accumulators)

    def _read(self, part: Part, target: str, totals: Reference) -> plans.ReadTotals:
        terms = tuple(self.draft.types[self.aggregation.body][at] for at in part.aggregation.values)
        own = weighted_aggregation(part.aggregation, self.difference)
        return plans.ReadTotals(target, own, totals, terms)

    # --- records of several parts --------------------------------------------------------------

    def record(self, parts: Sequence[Part]) -> list[plans.Step]:
        """Return the steps for groups whose values are in several parts, or not in totals alone.

        Each part says what the touched groups have now; a group is all of it.
        """
        draft, role = self.draft, plans.Role.APPROXIMATED
        touched, difference = self.working("touched"), Reference(self.difference)
        steps: list[plans.Step] = [draft.copy(touched, difference, role=role, about=self.name)]
        steps += self._look_up("was", Reference(self.name, State.OLD))
        lead = working_goal(touched, self.keys)
        goals, added = [lead], set[str]()
        for part in parts:
            if part.aggregation.extreme is not None:
                more, now = self._best(part, added)
            elif part.aggregation.holistic is not None:
                more, now = self._of_all_values(part, added)
            else:
                more, now = self._add_totals(part)
                if part.aggregation.values:
                    more += self._look_up("totals", Reference(now), part)
                    rows = Reference(plans.working_relation(part.aggregation.relation, "totals"))
                    now = self._now(part)
                    more.append(self._read(part, now, rows))
            steps += more
            values = (self.values[at] for at in part.places)
            goals.append(working_goal(now, (*self.keys, *values)))
        now = draft.working_relation(self.name, "now")
        if len(parts) > 1:
            row = (*self.keys, *self.values)
            steps += draft.derive(now, [Body.led(row, *goals)])
        return [*steps, *self._store()]

    def _now(self, part: Part) -> str:
        """Return the relation of what the touched groups have now of a part."""
        return self.working("now", *self._value_types(part), part=part)

    def _value_types(self, part: Part) -> tuple[Type, ...]:
        return self.draft.types[part.aggregation.relation][len(self.keys) :]

    # --- least and greatest values -------------------------------------------------------------

    def _best(self, part: Part, added: set[str]) -> tuple[list[plans.Step], str]:
        """Return the steps that find the least or the greatest value, and where it is.

        Null is a value among others where it is the value of a group of nulls; it is the best of
        none. The payload of other parts that has got the change is in `added`.
        """
        draft, keys = self.draft, self.keys
        accumulator, (term_at,) = part.only, part.aggregation.values
        term = draft.types[self.aggregation.body][term_at]
        value, count = Variable("value'", term), Variable("count'", NUMBER)
        row, is_greatest = (*keys, value), accumulator.operator == "max"
        changed, steps = self._changed(part, (value,), count)
        place = term_at
        if part.payload is not None:
            steps += self._keep(part, changed, added)
            place = len(keys)
        values = replace(self._values(part, (value,), count), extreme=Extreme(place, is_greatest))
        came = working_goal(changed, (*row, count))
        slots: list[Slot] = [*keys, *(Wildcard() for _ in self.values)]
        slots[len(keys) + part.places[0]] = value
        was = draft.working_relation(self.name, "was")
        old = Goal(Literal(was, tuple(slots)), Reference(was))
        lost = self.working("lost", part=part)
        less, more = (Condition(sign, count, _ZERO) for sign in ("<", ">"))
        steps += draft.derive(lost, [Body.led(keys, came, old, conditions=[less])])
        is_not_lost, is_lost = working_goal(lost, keys, negated=True), working_goal(lost, keys)
        present = Condition("=", value, value)
        bodies = [
            Body.led(row, came, conditions=[more]),
            Body.led(row, old, is_not_lost),
            Body.led(row, is_lost, values, conditions=[present]),
        ]
        if accumulator.is_nullable and term.nullable:
            null = Constant(None, term)
            filled = tuple(null if slot == value else slot for slot in values.literal.slots)
            nulls = Goal(replace(values.literal, slots=filled), values.source)
            bodies.append(Body.led((*keys, null), is_lost, nulls))
        best = self.working("candidates", term, part=part)
        now, own = self._now(part), weighted_aggregation(part.aggregation, best)
        found = plans.Aggregate(now, own, Reference(best))
        return [*steps, *draft.derive(best, bodies), found], now

    def _changed(
        self, part: Part, values: Sequence[Variable], count: Variable
    ) -> tuple[str, list[plans.Step]]:
        """Return the changed values of a part, each with a number, and the steps that find them."""
        types = [each.type for each in values if each.type is not None]
        is_asked = part.only.is_nullable or part.only.is_holistic
        is_asked = is_asked or not any(each.nullable for each in types)
        if is_asked and self.aggregation.values == part.aggregation.values:
            return self.difference, []
        draft, length = self.draft, len(self.keys)
        changed = self.working("changed", *types, NUMBER, part=part)
        row: list[Slot] = [*draft.variables(self.difference)[:-1], count]
        for at, value in zip(part.aggregation.values, values, strict=True):
            row[length + self.aggregation.values.index(at)] = value
        lead = Goal(Literal(self.difference, tuple(row)), Reference(self.difference))
        tests = () if is_asked else tuple(Condition("=", each, each) for each in values)
        body = Body((*self.keys, *values, count), (lead,), tests, NO_RULE, lead, is_bag=True)
        return changed, draft.derive(changed, [body], reduce=plans.Reduce.SUM)

    def _keep(self, part: Part, changed: str, added: set[str]) -> list[plans.Step]:
        """Return the step that adds a change to the values of a part, if it is not added yet."""
        kept = totals_relation(self.draft, part)
        if kept in added:
            return []
        added.add(kept)
        types = self.draft.types[kept][len(self.keys) :]
        outdated = self.working("outdated", *types, part=part)
        return [_accumulate(self.draft, kept, changed, outdated, 1)]

    def _values(self, part: Part, values: Sequence[Variable], count: Variable) -> Goal:
        """Return the literal of the values of a part in NEW: of the body, or of those kept."""
        if part.payload is not None:
            kept = totals_relation(self.draft, part)
            return working_goal(kept, (*self.keys, *values, count))
        body = self.aggregation.body
        columns: list[Slot] = [Wildcard()] * len(self.draft.types[body])
        places = (*self.aggregation.groups, *part.aggregation.values)
        for at, variable in zip(places, (*self.keys, *values), strict=True):
            columns[at] = variable
        return Goal(Literal(body, tuple(columns)), Reference(body))

    # --- all values ----------------------------------------------------------------------------

    def _of_all_values(self, part: Part, added: set[str]) -> tuple[list[plans.Step], str]:
        """Return the steps that compute a holistic aggregate, and where its values are."""
        draft, body = self.draft, self.draft.types[self.aggregation.body]
        types = [body[at] for at in part.aggregation.values]
        values = [Variable(f"value{at}'", type_) for at, type_ in enumerate(types)]
        count, number = Variable("count'", NUMBER), Constant(1, NUMBER)
        steps: list[plans.Step] = []
        if part.payload is not None:
            changed, steps = self._changed(part, values, count)
            steps += self._keep(part, changed, added)
        lead = working_goal(self.working("touched"), self.keys)
        row = (*self.keys, *values, number if part.payload is None else count)
        goals = lead, self._values(part, values, count)
        members = self.working("members", *types, NUMBER, part=part)
        found = Body(row, goals, (), NO_RULE, lead, is_bag=True)
        steps += draft.derive(members, [found], reduce=plans.Reduce.SUM)
        now, own = self._now(part), weighted_aggregation(part.aggregation, members)
        return [*steps, plans.Aggregate(now, own, Reference(members))], now

    # --- steps that all have in common ---------------------------------------------------------

    def _look_up(self, role: str, source: Reference, part: Part | None = None) -> list[plans.Step]:
        """Return the step that finds what a relation has of the groups that change."""
        draft = self.draft
        more = draft.types[source.relation][len(self.keys) :]
        columns = draft.variables(source.relation)
        lead = working_goal(self.working("touched"), self.keys)
        goal = Goal(Literal(source.relation, columns), source)
        body = Body.led(columns, lead, goal)
        return draft.derive(self.working(role, *more, part=part), [body])

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
        *draft.derive(outdated, [Body.led(columns, lead, old)]),
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
        Body.led((*keys, *sums), lead, old, conditions=(*equations, stays)),
        Body.led((*keys, *changes), lead, unknown),
    ]
    return [draft.copy(known, before), *draft.derive(target, bodies)]


def _numbers(role: str, count: int) -> tuple[Variable, ...]:
    """Return variables for the additive columns; the quote keeps them apart from others."""
    return tuple(Variable(f"{role}{at}'", NUMBER) for at in range(count))
