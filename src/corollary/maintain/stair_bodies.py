"""The rules of a stratum with subsumption as bodies, whose literals are read with ranks.

They are what `algorithms/stairs.py` evaluates and maintains such strata with.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from corollary.analysis.strata import Stratum
from corollary.core import plans
from corollary.core.logic import (
    Condition,
    Constant,
    Expression,
    Functor,
    Literal,
    Rule,
    Slot,
    Variable,
    Wildcard,
    head_arguments,
)
from corollary.core.pipeline import Reference
from corollary.core.program import TRUE, SubsumptionOrder
from corollary.core.states import State
from corollary.core.types import BOOL, NUMBER
from corollary.data_class import dataclass
from corollary.maintain import delta, payload
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.payload import RANK_VARIABLE
from corollary.maintain.sip import Goal

HeadSlot = Variable | Constant


@dataclass(frozen=True, slots=True)
class StairTables:
    """Where tops and stairs are.

    Attributes:
        is_stored: whether they are those of the database, whose change is kept, or working ones.
        lower: the state in which lower relations are read.
    """

    tops: Mapping[str, str]
    stairs: Mapping[str, str]
    is_stored: bool
    lower: State


def stored_tables(draft: Draft) -> StairTables:
    """Return the tables of the database."""
    names = draft.update.new.relations
    return StairTables(
        {name: name for name in names},
        {name: plans.working_relation(name, payload.Payload.RANK) for name in names},
        True,
        State.NEW,
    )


@dataclass(frozen=True, slots=True)
class RuleRanks:
    """The premises of a rule in its own stratum, with variables for their ranks."""

    rule: Rule
    ranks: Mapping[int, Variable]
    slots: Mapping[int, tuple[Slot, ...]]


class StairBodies:
    """The bodies of a stratum.

    Attributes:
        orders: the order of each relation; in a plain one, a tuple covers itself only.
        is_by_value: whether values are the ranks, and ties are stored.
    """

    def __init__(self, stratum: Stratum, draft: Draft, tables: StairTables) -> None:
        self.stratum, self.draft, self.tables = stratum, draft, tables
        plain = SubsumptionOrder(())
        self.orders = {name: stratum.subsumption.get(name, plain) for name in stratum.relations}
        self.is_by_value = payload.is_by_value(stratum, draft.types)
        for name in stratum.relations:
            payload.rank_relation(draft, name)

    # --- bodies --------------------------------------------------------------------------------

    def ranks(self, rule: Rule) -> RuleRanks:
        """Return variables for the ranks of the premises of a rule."""
        positions = delta.recursive_positions(rule, self.stratum.members)
        slots = {
            at: delta.without_wildcards(rule.literals[at], self.draft, f"_{at}_")
            for at in positions
        }
        return RuleRanks(rule, {at: Variable(f"rank{at}'", NUMBER) for at in positions}, slots)

    def derivation(self, rule: Rule, position: int | None, lead: Goal | None) -> Body:
        """Return a rule over tops whose head gets its rank, as (4) derives it."""
        ranks = self.ranks(rule)
        tops: list[Goal] = []

        def read(at: int, literal: Literal) -> Goal:
            if at not in ranks.ranks:
                return Goal(literal, Reference(literal.relation, self.tables.lower))
            name = literal.relation
            if not self.is_by_value:
                top = self.tables.tops[name]
                tops.append(Goal(Literal(top, ranks.slots[at]), Reference(top)))
            stair = self.tables.stairs[name]
            slots = (*ranks.slots[at], ranks.ranks[at])
            return working_goal(stair, slots)

        body = delta.make_body(
            rule,
            read,
            lead=lead,
            position=position,
            conditions=[self._rank_equation(ranks)],
            head=(*head_arguments(rule), RANK_VARIABLE),
        )
        return replace(body, goals=(*body.goals, *tops), is_deferred=True)

    def lost_key(self, rule: Rule) -> Goal:
        """Return the goal that the head's key has lost a stair."""
        name = rule.head.relation
        arguments = head_arguments(rule)
        keys = tuple(arguments[at] for at in self.orders[name].keys(len(arguments)))
        return working_goal(plans.working_relation(name, "lost_key"), keys)

    def _rank_equation(self, ranks: RuleRanks) -> Condition:
        """Return the equation for the rank of a head, or for its tie."""
        if not ranks.ranks:
            return Condition("=", RANK_VARIABLE, Constant(0, NUMBER))
        one, zero = Constant(1, NUMBER), Constant(0, NUMBER)
        terms: list[Expression] = []
        for at, rank in ranks.ranks.items():
            after: Expression = Functor("+", (rank, one), NUMBER)
            if self.is_by_value:
                equal = Functor("eq", (self._premise(ranks, at), self._value(ranks.rule)), BOOL)
                after = Functor("if", (equal, after, zero), NUMBER)
            terms.append(after)
        largest = terms[0] if len(terms) == 1 else Functor("max", tuple(terms), NUMBER)
        return Condition("=", RANK_VARIABLE, largest)

    def _premise(self, ranks: RuleRanks, position: int) -> Expression:
        """Return the one value of a premise."""
        literal = ranks.rule.literals[position]
        (column,) = self.orders[literal.relation].values
        slot = ranks.slots[position][column.position]
        assert not isinstance(slot, Wildcard)
        return slot

    def _value(self, rule: Rule) -> HeadSlot:
        """Return the one value of a head."""
        (column,) = self.orders[rule.head.relation].values
        return head_arguments(rule)[column.position]

    def _precedes(self, ranks: RuleRanks, stair: Sequence[HeadSlot]) -> Iterator[Condition]:
        """Yield the conditions that every premise has a smaller rank than a stair."""
        for at, rank in ranks.ranks.items():
            if not self.is_by_value:
                yield Condition("<", rank, RANK_VARIABLE)
                continue
            (column,) = self.orders[ranks.rule.head.relation].values
            one, other = self._premise(ranks, at), stair[column.position]
            equal = Functor("eq", (one, other), BOOL)
            before = Functor("lt", (rank, RANK_VARIABLE), BOOL)
            both = Functor("and", (equal, before), BOOL)
            test = Functor("or", (column.better(one, other), both), BOOL)
            yield Condition("=", test, TRUE)

    def stair(self, rule: Rule) -> tuple[HeadSlot, ...]:
        """Return the head with other variables for its values: a stair that it may cover.

        By value, there is one stair for a key, and a head that is worse supports nothing.
        """
        arguments = head_arguments(rule)
        if self.is_by_value:
            return arguments
        types = self.draft.types[rule.head.relation]
        compared = {each.position for each in self.orders[rule.head.relation].values}
        return tuple(
            Variable(f"stair{at}'", types[at]) if at in compared else argument
            for at, argument in enumerate(arguments)
        )

    def supports(
        self,
        rule: Rule,
        lead: Goal | None,
        position: int | None,
        *,
        lower: State,
        goals: Sequence[Goal] = (),
        is_living: bool = False,
    ) -> Body:
        """Return the stairs that the instances of a rule support: they cover them, from below.

        Args:
            rule: the rule.
            lead: the first literal, instead of that at `position` if there is one.
            position: of a literal of the rule.
            lower: the state in which lower literals are read.
            goals: further literals.
            is_living: whether premises must not be suspended.
        """
        ranks = self.ranks(rule)
        stair = self.stair(rule)
        more = list(goals)

        def read(at: int, literal: Literal) -> Goal:
            if at not in ranks.ranks:
                return Goal(literal, Reference(literal.relation, lower))
            ranked = self.tables.stairs[literal.relation]
            slots = (*ranks.slots[at], ranks.ranks[at])
            if is_living:
                gone = plans.working_relation(literal.relation, "suspended")
                more.append(Goal(Literal(gone, slots, negated=True), Reference(gone)))
            return Goal(Literal(ranked, slots), Reference(ranked, State.OLD))

        order = self.orders[rule.head.relation]
        covers = () if self.is_by_value else order.covers(head_arguments(rule), stair)
        body = delta.make_body(
            rule,
            read,
            lead=lead,
            position=position,
            conditions=[*covers, *self._precedes(ranks, stair)],
            head=(*stair, RANK_VARIABLE),
        )
        return replace(body, goals=(*body.goals, *more))

    def stored_stair(self, rule: Rule) -> Goal:
        """Return the goal that a stair is there that the head may cover."""
        name = self.tables.stairs[rule.head.relation]
        slots = (*self.stair(rule), RANK_VARIABLE)
        return Goal(Literal(name, slots), Reference(name, State.OLD))
