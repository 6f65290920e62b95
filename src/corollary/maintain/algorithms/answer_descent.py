"""Values that improve without end while a goal is answered: found by the chain of their answers.

As in an evaluation (`stairs.py`), with more rounds than answers some value has improved
through its own key. Each answer is kept with the round that found it; a link leads from an answer
to one of an earlier round that it was made of, by a rule that only adds.
"""

from collections.abc import Sequence
from dataclasses import field, replace

from corollary.analysis.monotonicity import is_ranked_by_value, only_adds
from corollary.analysis.strata import Stratum
from corollary.core import logic, plans
from corollary.core.pipeline import Links, Reference
from corollary.core.types import NUMBER
from corollary.data_class import dataclass
from corollary.maintain.sip import Goal, sip
from corollary.maintain.tabling import AdornedRelation, CallTables

_ROUND = logic.Variable("round'", NUMBER)
"""The round of an answer; the quote keeps it apart from the variables of a program."""


@dataclass(slots=True)
class AnswerDescent:
    """The links between the answers of a stratum, under construction."""

    stratum: Stratum
    tables: CallTables
    links: list[Links] = field(default_factory=list)
    steps: list[plans.Step] = field(default_factory=list)

    @property
    def is_possible(self) -> bool:
        """Whether a value of the stratum can improve through its own key."""
        stratum = self.stratum
        return bool(stratum.subsumption) and not is_ranked_by_value(
            stratum.rules, stratum.members, stratum.subsumption, self.tables.types
        )

    def add(
        self,
        rule: logic.Rule,
        node: AdornedRelation,
        goals: Sequence[Goal],
        conditions: Sequence[logic.Condition],
    ) -> None:
        """Add the links of a rule that is called as `node`.

        Args:
            rule: of the stratum.
            node: what is called.
            goals: its literals, read where their answers are.
            conditions: its conditions.
        """
        orders = self.stratum.subsumption
        if not self.is_possible or not only_adds(rule, self.stratum.members, orders):
            return
        rounds: list[tuple[Goal, logic.Variable]] = []
        others: list[Goal] = []
        for goal in goals:
            if goal.literal.relation not in orders or goal.literal.negated:
                others.append(goal)
                continue
            number = logic.Variable(f"round{len(rounds)}'", NUMBER)
            ranked = self._ranked(goal.source.relation)
            types = self.tables.types[goal.literal.relation]
            slots = tuple(
                logic.Variable(f"_{len(rounds)}_{at}'", type_)
                if isinstance(slot, logic.Wildcard)
                else slot
                for at, (slot, type_) in enumerate(zip(goal.literal.slots, types, strict=True))
            )
            literal = replace(goal.literal, slots=(*slots, number))
            rounds.append((Goal(literal, Reference(ranked)), number))
        head = logic.head_arguments(rule)
        own = self._ranked(node.answers)
        made = Goal(logic.Literal(own, (*head, _ROUND)), Reference(own))
        earlier = [logic.Condition("<", number, _ROUND) for _, number in rounds]
        for premise, _ in rounds:
            relation, read = premise.literal.relation, premise.literal.slots
            name = plans.working_relation(node.name, f"link{len(self.links)}")
            shown = (*head, _ROUND, *(s for s in read if not isinstance(s, logic.Wildcard)))
            types = (*self.tables.types[node.relation], NUMBER, *self.tables.types[relation])
            self.tables.types[name] = (*types, NUMBER)
            goals = [made, *(goal for goal, _ in rounds), *others]
            pipeline = sip(
                shown, goals, [*conditions, *earlier], rule.origin, self.tables.statistics
            )
            self.steps.append(plans.Derive(name, (replace(pipeline, judge=()),)))
            keys = (
                orders[each].keys(len(self.tables.types[each]))
                for each in (node.relation, relation)
            )
            self.links.append(Links(name, node.relation, relation, len(head), *keys))

    def _ranked(self, answers: str) -> str:
        """Return the relation that has answers with the rounds that found them."""
        name = f"{answers}{plans.WORKING_SEPARATOR}rounds"
        self.tables.types[name] = (*self.tables.types[answers], NUMBER)
        return name

    def before(self, nodes: Sequence[AdornedRelation]) -> list[plans.Step]:
        """Return the steps before the loop: rounds are counted anew."""
        if not self.links:
            return []
        return [plans.Clear(tuple(self._ranked(node.answers) for node in self._ordered(nodes)))]

    def inside(self, nodes: Sequence[AdornedRelation]) -> list[plans.Step]:
        """Return the steps at the end of a round."""
        if not self.links:
            return []
        steps: list[plans.Step] = [
            plans.ExtendWithRound(self._ranked(node.answers), node.new_answers)
            for node in self._ordered(nodes)
        ]
        answers = tuple(node.answers for node in nodes)
        find = plans.FindDescent(tuple(self.links))
        return [*steps, plans.Overrun(answers, (*self.steps, find))]

    def _ordered(self, nodes: Sequence[AdornedRelation]) -> list[AdornedRelation]:
        return [node for node in nodes if node.relation in self.stratum.subsumption]
