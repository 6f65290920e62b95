"""Payload: ranks, derivation counts and running totals, as relations beside the stored ones.

| relation | columns | invariant |
|---|---|---|
| `p•rank` | those of p, rank | some derivation has only smaller ranks among its premises |
| `p•rank`, with subsumption | those of p, rank or tie | the stairs of `algorithms/stairs.py` |
| `p•count` | those of p, count | the number of derivations |
| `h•level` | the key of h's groups, level | a group is above all groups that it reads |
| `a•total` | the keys of a, n, words | the running totals of each group (`core/totals.py`) |
| `a•digits` | the keys of a, place, digit | the same for floats |
| `a•values` | the keys of a, values, n | the number of assignments with them in the group |

Ranks and counts hold exactly the tuples of p, each once; stairs hold more. The others belong to an
aggregate a. Of several accumulators, some are kept together: an aggregate falls into *parts*, and
the k-th has the payload `a•k•total`, `a•k•digits` or `a•k•values`.

The database keeps a validity mark that says whether the invariant holds; it is cleared when an
algorithm writes the relation without maintaining the payload.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from corollary.analysis import keys
from corollary.analysis.monotonicity import is_ranked_by_value
from corollary.analysis.strata import Stratum, strata
from corollary.core import logic
from corollary.core.once import once_per_program
from corollary.core.pipeline import Reference
from corollary.core.plans import WORKING_SEPARATOR, working_relation
from corollary.core.program import NormalProgram, Relation
from corollary.core.states import State
from corollary.core.totals import total_columns
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.maintain.delta import make_body, recursive_positions, without_wildcards
from corollary.maintain.draft import Body, Draft
from corollary.maintain.sip import Goal


class Payload(StrEnum):
    """The kinds of payload; the values name the relations that hold it."""

    RANK = "rank"
    LEVEL = "level"
    COUNT = "count"
    TOTAL = "total"
    DIGITS = "digits"
    VALUES = "values"

    @property
    def is_determined(self) -> bool:
        """Whether the relations say what it is; ranks and levels depend on their history."""
        return self not in (Payload.RANK, Payload.LEVEL)


RANK_VARIABLE = logic.Variable("rank'", NUMBER)
"""The rank of a head; the quote keeps it apart from the variables of a program."""


def rank_relation(draft: Draft, relation: str) -> str:
    """Return the relation of ranks beside a relation."""
    return draft.working_relation(relation, Payload.RANK, NUMBER)


def count_relation(draft: Draft, relation: str) -> str:
    """Return the relation of counts beside a relation."""
    return draft.working_relation(relation, Payload.COUNT, NUMBER)


def level_relation(draft: Draft, relation: str) -> str:
    """Return the relation of levels beside a relation with groups."""
    grouping = draft.relation(relation).grouping
    assert grouping is not None
    name = working_relation(relation, Payload.LEVEL)
    types = draft.types[relation]
    draft.types[name] = (*(types[column] for column in grouping.key), NUMBER)
    return name


def has_ranks(stratum: Stratum, program: NormalProgram) -> bool:
    """Whether the tuples of a stratum carry ranks: it is recursive and stored."""
    return (
        stratum.is_recursive
        and not (stratum.is_grouped or stratum.has_choice)
        and not any(program.relations[name].is_virtual for name in stratum.relations)
    )


def is_by_value(stratum: Stratum, types: Mapping[str, tuple[Type, ...]]) -> bool:
    """Whether the values of a stratum with subsumption are its ranks, and only ties are stored."""
    return is_ranked_by_value(stratum.rules, stratum.members, stratum.subsumption, types)


def rank_meaning(stratum: Stratum, program: NormalProgram) -> object:
    """Return what decides on the meaning of ranks: the orders of tuples, and how ranks compare."""
    types = {name: program.relations[name].types for name in stratum.relations}
    orders = tuple(sorted(stratum.subsumption.items(), key=lambda each: each[0]))
    return orders, is_by_value(stratum, types)


def has_counts(stratum: Stratum) -> bool:
    """Whether derivations are counted: no recursion, no leniency, perhaps several a tuple."""
    is_plain = not (stratum.is_recursive or stratum.aggregations or stratum.has_choice)
    can_count = is_plain and not any(rule.is_lenient for rule in stratum.rules)
    return can_count and not has_single_derivations(stratum)


def has_single_derivations(stratum: Stratum) -> bool:
    """Whether no tuple can have two derivations."""
    if stratum.is_recursive or stratum.aggregations or len(stratum.rules) != 1:
        return False
    if stratum.has_choice:
        return False
    return keys.has_single_derivations(stratum.rules[0], stratum.keys)


def payload_kind(stratum: Stratum, program: NormalProgram) -> Payload | None:
    """Return the kind of payload that is kept beside the relations of a stratum, if any."""
    if stratum.is_grouped:
        return Payload.LEVEL
    if has_ranks(stratum, program):
        return Payload.RANK
    if any(program.relations[name].is_virtual for name in stratum.relations):
        return None
    if stratum.aggregations:
        return next(iter(payload_kinds(stratum, program)), None)
    return Payload.COUNT if has_counts(stratum) else None


def payload_kinds(stratum: Stratum, program: NormalProgram) -> tuple[Payload, ...]:
    """Return all kinds of payload that are kept beside the relations of a stratum."""
    if not stratum.aggregations or stratum.is_grouped:
        kind = payload_kind(stratum, program)
        return () if kind is None else (kind,)
    (aggregation,) = stratum.aggregations
    if (
        isinstance(aggregation, logic.Windowing)
        or program.relations[stratum.relations[0]].is_virtual
    ):
        return ()
    return tuple(each.payload for each in parts_of(aggregation, program) if each.payload)


# --- aggregates ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """Some accumulators of an aggregate that are kept together, as an aggregate of their own.

    Attributes:
        aggregation: with these accumulators only.
        places: which of the accumulators these are.
        payload: what is kept of them, None if the body or the aggregate itself says it.
        kept: the relation of payload; parts that are found in the values of a column share one.
    """

    aggregation: logic.Aggregation
    places: tuple[int, ...]
    payload: Payload | None
    kept: str

    @property
    def only(self) -> logic.Accumulator:
        """The accumulator of a part that has one."""
        return self.aggregation.only


def parts_of(aggregation: logic.Aggregation, program: NormalProgram) -> tuple[Part, ...]:
    """Return the parts of an aggregate: counts and sums of integers, each of the others."""
    body = program.relations[aggregation.body]
    return _parts(aggregation, body.types, is_stored=body.is_stored)


def _parts(
    aggregation: logic.Aggregation, types: Sequence[Type], *, is_stored: bool
) -> tuple[Part, ...]:
    together: dict[object, list[int]] = {}
    for place, each in enumerate(aggregation.accumulators):
        is_alone = each.is_extreme or each.is_holistic
        is_alone = is_alone or (each.value is not None and types[each.value].is_float)
        together.setdefault(place if is_alone else None, []).append(place)
    parts: list[Part] = []
    values: dict[tuple[int, ...], str] = {}
    for number, places in enumerate(together.values(), 1):
        accumulators = tuple(aggregation.accumulators[at] for at in places)
        is_whole = len(together) == 1
        name = (
            aggregation.relation
            if is_whole
            else working_relation(aggregation.relation, f"{number}")
        )
        part = replace(aggregation, relation=name, accumulators=accumulators)
        payload = _part_payload(part, types, is_stored=is_stored, is_whole=is_whole)
        kept = working_relation(name, payload) if payload else ""
        if payload is Payload.VALUES:
            kept = values.setdefault(part.values, kept)
        parts.append(Part(part, tuple(places), payload, kept))
    return tuple(parts)


def _part_payload(
    part: logic.Aggregation, types: Sequence[Type], *, is_stored: bool, is_whole: bool
) -> Payload | None:
    """Return what is kept of a part.

    A count alone is its own total. The least and the greatest value of a group, and what is
    computed of all its values, are found in the body, or beside the aggregate where the body is not
    stored.
    """
    if part.extreme is not None or part.holistic is not None:
        return None if is_stored else Payload.VALUES
    if not part.values:
        return None if is_whole else Payload.TOTAL
    is_float = any(types[at].is_float for at in part.values)
    return Payload.DIGITS if is_float else Payload.TOTAL


def _term_types(aggregation: logic.Aggregation, program: NormalProgram) -> list[Type]:
    types, extreme = program.relations[aggregation.body].types, aggregation.extreme
    if extreme is None or extreme.is_nullable:
        return [types[at] for at in aggregation.values]
    return [types[at].with_null(False) for at in aggregation.values]


def payload_relations(stratum: Stratum, program: NormalProgram) -> list[Relation]:
    """Return the relations that hold the payload of a stratum."""
    role = payload_kind(stratum, program)
    if role is None:
        return []
    if stratum.aggregations and not stratum.is_grouped:
        (aggregation,) = stratum.aggregations
        assert isinstance(aggregation, logic.Aggregation), "windows have no payload"
        return _kept_relations(aggregation, program)
    beside = []
    for name in stratum.relations:
        relation = program.relations[name]
        columns, types = (*relation.columns, str(role)), (*relation.types, NUMBER)
        if stratum.is_grouped:
            if relation.grouping is None:
                continue
            key = relation.grouping.key
            columns = (*(relation.columns[at] for at in key), f"{WORKING_SEPARATOR}{role}")
            types = (*(relation.types[at] for at in key), NUMBER)
        beside.append(_beside(working_relation(name, role), columns, types))
    return beside


def _kept_relations(aggregation: logic.Aggregation, program: NormalProgram) -> list[Relation]:
    """Return the relations that hold the payload of an aggregate."""
    relation, count = program.relations[aggregation.relation], len(aggregation.groups)
    found: dict[str, Relation] = {}
    for part in parts_of(aggregation, program):
        if part.payload is None or part.kept in found:
            continue
        terms = _term_types(part.aggregation, program)
        # No column of a user has the separator in its name.
        more = tuple(f"{WORKING_SEPARATOR}{each}" for each in _more_columns(part.payload, terms))
        columns = (*relation.columns[:count], *more)
        types = (*relation.types[:count], *_more_types(part.payload, terms))
        found[part.kept] = _beside(part.kept, columns, types)
    return list(found.values())


def _beside(name: str, columns: tuple[str, ...], types: tuple[Type, ...]) -> Relation:
    return Relation(name, columns, types, is_derived=True, is_declared=False)


@once_per_program
def payload_relations_of(program: NormalProgram) -> dict[str, Relation]:
    """Return the payload relations of a program by name."""
    return {
        each.name: each
        for stratum in strata(program)
        for each in payload_relations(stratum, program)
    }


def _more_columns(role: Payload, terms: Sequence[Type]) -> tuple[str, ...]:
    """Return the columns that the payload of an aggregate has after the keys."""
    if role is not Payload.VALUES:
        return total_columns(terms)
    return (*("value" if len(terms) == 1 else f"value{at}" for at in range(len(terms))), "n")


def _more_types(role: Payload, terms: Sequence[Type]) -> tuple[Type, ...]:
    """Return the types of these columns."""
    if role is Payload.VALUES:
        return (*terms, NUMBER)
    return (NUMBER,) * len(total_columns(terms))


def declare_parts(draft: Draft, aggregation: logic.Aggregation) -> tuple[Part, ...]:
    """Return the parts of an aggregate of NEW, whose types the draft knows from now on.

    The body of an event is no relation of the program: the plan that reads it has it.
    """
    program, count = draft.update.new, len(aggregation.groups)
    name, _ = program.active.marked.get(aggregation.body, (aggregation.body, None))
    body = program.relations.get(aggregation.body)
    is_stored = body is None or body.is_stored
    parts = _parts(aggregation, draft.types[name], is_stored=is_stored)
    types = draft.types[aggregation.relation]
    for each in parts:
        values = (types[count + at] for at in each.places)
        draft.types[each.aggregation.relation] = (*types[:count], *values)
    return parts


def totals_relation(draft: Draft, part: Part) -> str:
    """Return the relation of payload of a part."""
    assert part.payload is not None
    keys = draft.types[part.aggregation.relation][: len(part.aggregation.groups)]
    terms = _term_types(part.aggregation, draft.update.new)
    draft.types[part.kept] = (*keys, *_more_types(part.payload, terms))
    return part.kept


def absent_head(rule: logic.Rule) -> Goal:
    """Return the goal that a rule's head is not in NEW."""
    literal = logic.Literal(rule.head.relation, logic.head_arguments(rule), negated=True)
    return Goal(literal, Reference(rule.head.relation))


@dataclass(frozen=True, slots=True)
class RankedBody:
    """A rule whose literals of its own stratum are read with their ranks.

    Attributes:
        state: in which literals of the stratum are read.
        ranks: for each position of the stratum the variable that holds the rank.
    """

    rule: logic.Rule
    draft: Draft
    state: State
    ranks: dict[int, logic.Variable]

    @property
    def head(self) -> tuple[logic.Variable | logic.Constant, ...]:
        """The head and its rank."""
        return (*logic.head_arguments(self.rule), RANK_VARIABLE)

    def ranked_literal(self, position: int) -> logic.Literal:
        """Return the literal at a position with its rank, and variables instead of wildcards."""
        literal = self.rule.literals[position]
        slots = without_wildcards(literal, self.draft, f"_{position}_")
        return logic.Literal(
            rank_relation(self.draft, literal.relation), (*slots, self.ranks[position])
        )

    def read(self, position: int, literal: logic.Literal) -> Goal:
        """Return where the literal at a position is read."""
        if position not in self.ranks:
            return Goal(literal, Reference(literal.relation))
        ranked = self.ranked_literal(position)
        return Goal(ranked, Reference(ranked.relation, self.state))

    def derivation(
        self, lead: Goal | None, position: int | None = None, goals: Sequence[Goal] = ()
    ) -> Body:
        """Return the body whose head gets its rank from its premises."""
        return make_body(
            self.rule,
            self.read,
            lead=lead,
            position=position,
            goals=goals,
            conditions=[rank_equation(self)],
            head=self.head,
            is_judged=True,
        )


def rank_body(rule: logic.Rule, members: Container[str], draft: Draft, state: State) -> RankedBody:
    """Return a rule whose stratum's literals are read with ranks in a state, others in NEW."""
    positions = recursive_positions(rule, members)
    ranks = {position: logic.Variable(f"rank{position}'", NUMBER) for position in positions}
    return RankedBody(rule, draft, state, ranks)


def rank_equation(ranked: RankedBody) -> logic.Condition:
    """Return the equation for the rank of a head: 1 + the largest rank of its premises, or 0."""
    ranks: list[logic.Expression] = list(ranked.ranks.values())
    if not ranks:
        return logic.Condition("=", RANK_VARIABLE, logic.Constant(0, NUMBER))
    largest = ranks[0] if len(ranks) == 1 else logic.Functor("max", tuple(ranks), NUMBER)
    return logic.Condition(
        "=", RANK_VARIABLE, logic.Functor("+", (largest, logic.Constant(1, NUMBER)), NUMBER)
    )
