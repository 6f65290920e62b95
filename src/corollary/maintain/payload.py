"""Payload: the ranks and derivation counts of stored tuples, as relations beside them.

| relation | columns | invariant |
|---|---|---|
| `p•rank` | those of p, rank | some derivation has only smaller ranks among its premises |
| `p•count` | those of p, count | the number of derivations |

Both hold exactly the tuples of p, each once. The database keeps a validity mark that says whether
the invariant holds; it is cleared when an algorithm writes p without maintaining the payload.
"""

from dataclasses import dataclass
from enum import StrEnum

from corollary.analysis.strata import Stratum
from corollary.core import logic
from corollary.core.pipeline import Reference
from corollary.core.plans import working_relation
from corollary.core.program import NormalProgram, Relation
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.maintain.delta import recursive_positions
from corollary.maintain.draft import Draft
from corollary.maintain.sip import Goal, range_of


class Payload(StrEnum):
    """The kinds of payload; the values name the relations that hold it."""

    RANK = "rank"
    COUNT = "count"


RANK_VARIABLE = logic.Variable("rank'", NUMBER)
"""The rank of a head; the quote keeps it apart from the variables of a program."""


def rank_relation(draft: Draft, relation: str) -> str:
    """Return the relation of ranks beside a relation."""
    return draft.working_relation(relation, Payload.RANK, NUMBER)


def count_relation(draft: Draft, relation: str) -> str:
    """Return the relation of counts beside a relation."""
    return draft.working_relation(relation, Payload.COUNT, NUMBER)


def has_ranks(stratum: Stratum, program: NormalProgram) -> bool:
    """Whether the tuples of a stratum carry ranks: it is recursive and stored."""
    return stratum.is_recursive and not any(
        program.relations[name].is_virtual for name in stratum.relations
    )


def has_counts(stratum: Stratum) -> bool:
    """Whether derivations are counted: no recursion, no leniency, perhaps several a tuple."""
    is_plain = not stratum.is_recursive and not stratum.aggregations
    can_count = is_plain and not any(rule.is_lenient for rule in stratum.rules)
    return can_count and not has_single_derivations(stratum)


def has_single_derivations(stratum: Stratum) -> bool:
    """Whether no tuple can have two derivations: one rule, whose head has all variables it reads.

    Other variables are computed from those, uniquely unless `range` gives them several values.
    """
    if stratum.is_recursive or stratum.aggregations or len(stratum.rules) != 1:
        return False
    (rule,) = stratum.rules
    read = [literal for literal in rule.literals if not literal.negated]
    if rule.is_lenient or any(logic.has_wildcard(literal) for literal in read):
        return False
    makes_several = any(range_of(condition) for condition in rule.conditions)
    return not makes_several and all(
        logic.variable_names(literal) <= logic.variable_names(rule.head) for literal in read
    )


def payload_kind(stratum: Stratum, program: NormalProgram) -> Payload | None:
    """Return the kind of payload that the tuples of a stratum have, if any."""
    if has_ranks(stratum, program):
        return Payload.RANK
    is_virtual = any(program.relations[name].is_virtual for name in stratum.relations)
    return Payload.COUNT if has_counts(stratum) and not is_virtual else None


def payload_relations(stratum: Stratum, program: NormalProgram) -> dict[str, Relation]:
    """Return the relations that hold the payload of a stratum, by the relations of the stratum."""
    role = payload_kind(stratum, program)
    if role is None:
        return {}
    beside = {}
    for name in stratum.relations:
        relation = program.relations[name]
        beside[name] = Relation(
            working_relation(name, role),
            (*relation.columns, role),
            (*relation.types, NUMBER),
            is_derived=True,
            is_declared=False,
        )
    return beside


def absent_head(rule: logic.Rule) -> Goal:
    """Return the goal that a rule's head is not in NEW."""
    literal = logic.Literal(rule.head.relation, logic.head_arguments(rule), negated=True)
    return Goal(literal, Reference(rule.head.relation))


@dataclass(frozen=True, slots=True)
class RankedBody:
    """A rule whose literals of its own stratum are read with their ranks.

    Attributes:
        state: in which literals of the stratum are read.
        lower: in which literals of lower strata are read.
        ranks: for each position of the stratum the variable that holds the rank.
    """

    rule: logic.Rule
    draft: Draft
    state: State
    lower: State
    ranks: dict[int, logic.Variable]

    @property
    def head(self) -> tuple[logic.Variable | logic.Constant, ...]:
        """The head and its rank."""
        return (*logic.head_arguments(self.rule), RANK_VARIABLE)

    def ranked_literal(self, position: int) -> logic.Literal:
        """Return the literal at a position with its rank, and variables instead of wildcards."""
        literal = self.rule.literals[position]
        types = self.draft.types[literal.relation]
        slots = tuple(
            logic.Variable(f"_{position}_{at}'", types[at])
            if isinstance(slot, logic.Wildcard)
            else slot
            for at, slot in enumerate(literal.slots)
        )
        return logic.Literal(
            rank_relation(self.draft, literal.relation), (*slots, self.ranks[position])
        )

    def read(self, position: int, literal: logic.Literal) -> Goal:
        """Return where the literal at a position is read."""
        if position not in self.ranks:
            return Goal(literal, Reference(literal.relation, self.lower))
        ranked = self.ranked_literal(position)
        return Goal(ranked, Reference(ranked.relation, self.state))


def rank_body(
    rule: logic.Rule,
    members: tuple[str, ...],
    draft: Draft,
    state: State,
    *,
    lower: State = State.NEW,
) -> RankedBody:
    """Return a rule whose stratum's literals are read with ranks in `state`, others in `lower`."""
    positions = recursive_positions(rule, members)
    ranks = {position: logic.Variable(f"rank{position}'", NUMBER) for position in positions}
    return RankedBody(rule, draft, state, lower, ranks)


def rank_equation(ranked: RankedBody) -> logic.Condition:
    """Return the equation for the rank of a head: 1 + the largest rank of its premises, or 0."""
    ranks: list[logic.Expression] = list(ranked.ranks.values())
    if not ranks:
        return logic.Condition("=", RANK_VARIABLE, logic.Constant(0, NUMBER))
    largest = ranks[0] if len(ranks) == 1 else logic.Functor("max", tuple(ranks), NUMBER)
    return logic.Condition(
        "=", RANK_VARIABLE, logic.Functor("+", (largest, logic.Constant(1, NUMBER)), NUMBER)
    )
