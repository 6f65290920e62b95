"""Payload: the ranks and derivation counts of stored tuples, as relations beside them.

| relation | columns | invariant |
|---|---|---|
| `p•rank` | those of p, rank | some derivation has only smaller ranks among its premises |
| `p•count` | those of p, count | the number of derivations |

Both hold exactly the tuples of p, each once. A validity mark, kept by the database, says whether
the invariant holds; an algorithm that writes p keeps it or the mark is cleared.
"""

from dataclasses import dataclass
from enum import StrEnum

from corollary.analysis.strata import Stratum
from corollary.core.pipeline import Reference
from corollary.core.plan import working
from corollary.core.program import NormalProgram, Relation
from corollary.core.rules import Condition, Literal, Rule, has_wildcard, head_of, names_in
from corollary.core.states import State
from corollary.core.terms import Constant, Expression, Functor, Variable, Wildcard
from corollary.core.types import NUMBER
from corollary.maintain.delta import recursive_places
from corollary.maintain.draft import Draft
from corollary.maintain.sip import Goal, range_of


class Payload(StrEnum):
    """What is kept beside the tuples of a relation, and how the relation of it is called."""

    RANK = "rank"
    COUNT = "count"


RANK = Variable("rank'", NUMBER)
"""The rank of a head; no variable of a program has a quote in its name."""


def rank_of(draft: Draft, relation: str) -> str:
    """Return the relation of ranks beside a relation."""
    return draft.make(relation, Payload.RANK, NUMBER)


def count_of(draft: Draft, relation: str) -> str:
    """Return the relation of counts beside a relation."""
    return draft.make(relation, Payload.COUNT, NUMBER)


def has_ranks(stratum: Stratum, program: NormalProgram) -> bool:
    """Whether the tuples of a stratum carry ranks: it is recursive and stored."""
    return stratum.is_recursive and not any(
        program.relations[name].is_virtual for name in stratum.relations
    )


def has_counts(stratum: Stratum) -> bool:
    """Whether derivations are counted: no recursion or guess, and a tuple may have several."""
    is_plain = not stratum.is_recursive and not stratum.aggregations
    can_count = is_plain and not any(rule.is_lenient for rule in stratum.rules)
    return can_count and not derives_once(stratum)


def derives_once(stratum: Stratum) -> bool:
    """Whether no tuple can have two derivations: one rule, whose head tells every value in it.

    What the head does not hold is computed from what it holds, except for the values of `range`.
    """
    if stratum.is_recursive or stratum.aggregations or len(stratum.rules) != 1:
        return False
    (rule,) = stratum.rules
    read = [literal for literal in rule.literals if not literal.negated]
    if rule.is_lenient or any(has_wildcard(literal) for literal in read):
        return False
    makes_several = any(range_of(condition) for condition in rule.conditions)
    return not makes_several and all(names_in(literal) <= names_in(rule.head) for literal in read)


def payload_of(stratum: Stratum, program: NormalProgram) -> Payload | None:
    """Return what is kept beside the tuples of a stratum."""
    if has_ranks(stratum, program):
        return Payload.RANK
    is_virtual = any(program.relations[name].is_virtual for name in stratum.relations)
    return Payload.COUNT if has_counts(stratum) and not is_virtual else None


def payload_relations(stratum: Stratum, program: NormalProgram) -> dict[str, Relation]:
    """Return the relations that hold the payload of a stratum, by the relation they belong to."""
    role = payload_of(stratum, program)
    if role is None:
        return {}
    made = {}
    for name in stratum.relations:
        relation = program.relations[name]
        made[name] = Relation(
            working(name, role),
            (*relation.columns, role),
            (*relation.types, NUMBER),
            is_derived=True,
            is_declared=False,
        )
    return made


def is_absent(rule: Rule) -> Goal:
    """Return the literal that says that a rule's head is not in NEW."""
    literal = Literal(rule.head.relation, head_of(rule), negated=True)
    return Goal(literal, Reference(rule.head.relation))


@dataclass(frozen=True, slots=True)
class RankedBody:
    """A rule whose literals of its own stratum are read with their ranks.

    Attributes:
        ranks: for each such position the variable that holds the rank.
    """

    rule: Rule
    draft: Draft
    state: State
    lower: State
    ranks: dict[int, Variable]

    @property
    def head(self) -> tuple[Variable | Constant, ...]:
        """The head and its rank."""
        return (*head_of(self.rule), RANK)

    def literal(self, place: int) -> Literal:
        """Return the literal at a position with its rank, every column named."""
        literal = self.rule.literals[place]
        types = self.draft.types[literal.relation]
        slots = tuple(
            Variable(f"_{place}_{at}'", types[at]) if isinstance(slot, Wildcard) else slot
            for at, slot in enumerate(literal.slots)
        )
        return Literal(rank_of(self.draft, literal.relation), (*slots, self.ranks[place]))

    def read(self, place: int, literal: Literal) -> Goal:
        """Return where the literal at a position is read."""
        if place not in self.ranks:
            return Goal(literal, Reference(literal.relation, self.lower))
        ranked = self.literal(place)
        return Goal(ranked, Reference(ranked.relation, self.state))


def ranked_literals(
    rule: Rule,
    members: tuple[str, ...],
    draft: Draft,
    state: State,
    *,
    lower: State = State.NEW,
) -> RankedBody:
    """Return a rule with ranks: its stratum's literals in `state`, those below in `lower`."""
    places = recursive_places(rule, members)
    ranks = {place: Variable(f"rank{place}'", NUMBER) for place in places}
    return RankedBody(rule, draft, state, lower, ranks)


def total_of(ranked: RankedBody) -> Condition:
    """Return the equation that gives a head its rank: 1 + the largest of its premises."""
    ranks: list[Expression] = list(ranked.ranks.values())
    if not ranks:
        return Condition("=", RANK, Constant(0, NUMBER))
    largest = ranks[0] if len(ranks) == 1 else Functor("max", tuple(ranks), NUMBER)
    return Condition("=", RANK, Functor("+", (largest, Constant(1, NUMBER)), NUMBER))
