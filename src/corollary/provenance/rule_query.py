"""Rules as queries: the values for which a body holds, led by the tuples that are asked about.

For a rule `p(x, z) :- p(x, y), q(y, z), !r(y), y < z` and numbered tuples of p one pipeline:

    p•wanted(number, x, z) → q(y, z) → p(x, y) → not r(y) → y < z  ⇒  (number, y)

Instances of rules, nearest attempts, events and the rows of groups are all found so. What differs
is which literals are kept, what is read beside them (ranks, known values), and which values are
wanted. Virtual relations are asked for what the tuples bind (`maintain/tabling.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from corollary.core import logic
from corollary.core.once import once_per_program
from corollary.core.pipeline import Reference
from corollary.core.plans import Step, working_relation
from corollary.core.program import NormalProgram, Relation
from corollary.core.recorder import CountingRecorder
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.maintain.draft import Body, Draft
from corollary.maintain.sip import Goal
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import Row
from corollary.provenance.query_state import QueryState

TUPLE_NUMBER = logic.Variable("•number", NUMBER)
"""The number of a wanted tuple."""


@dataclass(frozen=True, slots=True)
class RuleQuery:
    """A body that wanted tuples lead.

    Attributes:
        wanted: what a wanted tuple is matched with, such as the head of a rule.
        goals: the literals of the body, and where they are read.
        outputs: the variables whose values are read, after the number of the tuple.
        conditions: of the body.
        origin: of the rule.
        is_lenient: whether an expression without a value is no error.
    """

    wanted: tuple[logic.Slot, ...]
    goals: tuple[Goal, ...]
    outputs: tuple[logic.Variable, ...]
    conditions: tuple[logic.Condition, ...] = ()
    origin: logic.Origin = logic.NO_RULE
    is_lenient: bool = False

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of an answer: the number of a tuple, and the outputs."""
        return (NUMBER, *map(logic.type_of, self.outputs))

    def body(self, wanted: str) -> Body:
        """Return the body with its lead, the relation of wanted tuples."""
        lead = Goal(logic.Literal(wanted, (TUPLE_NUMBER, *self.wanted)), Reference(wanted))
        return Body(
            (TUPLE_NUMBER, *self.outputs),
            (lead, *self.goals),
            self.conditions,
            self.origin,
            lead,
            is_lenient=self.is_lenient,
        )


class RuleQueries:
    """Queries for the same wanted tuples, in one plan that can be run for one set after another.

    Their working relations are in the engine until they are closed.

    Args:
        state: in which is asked.
        name: begins the names of the working relations.
        types: of wanted tuples.
        queries: the queries.
        draft: of the plan, if it reads more than the relations of the state.
    """

    def __init__(
        self,
        state: QueryState,
        name: str,
        types: Sequence[Type],
        queries: Sequence[RuleQuery],
        draft: Draft | None = None,
    ) -> None:
        draft = draft or state.draft()
        self._state = state
        self._wanted = working_relation(name, "wanted")
        self._targets = [working_relation(name, f"answers {at}") for at in range(len(queries))]
        shapes = {self._wanted: (NUMBER, *types)}
        shapes |= {name: each.types for name, each in zip(self._targets, queries, strict=True)}
        self._relations = {name: _working(name, each) for name, each in shapes.items()}
        draft.types |= shapes
        steps: list[Step] = []
        for target, query in zip(self._targets, queries, strict=True):
            steps += draft.derive(target, [query.body(self._wanted)])
        self._plan = draft.finish(steps)
        state.engine.declare(self._relations)

    def run(
        self, rows: Mapping[int, Row], allowance: Allowance | None = None
    ) -> dict[int, pa.Table]:
        """Return the answers of the queries that have any, by the numbers of the queries.

        Args:
            rows: the wanted tuples, by their numbers.
            allowance: what is left of the limits; None if the work does not count.

        Raises:
            WorkLimitError: the work is over.
        """
        engine, limits = self._state.engine, self._state.limits
        engine.insert(self._wanted, [(number, *row) for number, row in rows.items()])
        try:
            if allowance is None:
                engine.run(self._plan, CountingRecorder(), limits)
            else:
                allowance.run(engine, self._plan, limits)
            return {
                at: engine.read(name) for at, name in enumerate(self._targets) if engine.size(name)
            }
        finally:
            engine.clear([self._wanted])

    def close(self) -> None:
        """Drop what is in the engine."""
        self._state.engine.drop(self._relations)


def run_queries(
    state: QueryState,
    relation: str,
    rows: Sequence[Row],
    queries: Sequence[RuleQuery],
    allowance: Allowance | None = None,
    *,
    draft: Draft | None = None,
) -> dict[int, pa.Table]:
    """Return the answers of queries for tuples of a relation, which are numbered from 0.

    Args:
        state: in which is asked.
        relation: a relation of the normal program.
        rows: the tuples.
        queries: the queries.
        allowance: what is left of the limits; None if the work does not count.
        draft: of the plan, if it reads more than the relations of the state.
    """
    types = state.program.relations[relation].types
    with closing(RuleQueries(state, relation, types, queries, draft)) as found:
        return found.run(dict(enumerate(rows)), allowance)


def tuples_there(state: QueryState, relation: str, rows: Sequence[Row]) -> list[bool]:
    """Return for each tuple whether a relation, stored or virtual, has it."""
    if not rows:
        return []
    found = run_queries(state, relation, rows, [membership_query(state, relation)])
    numbers = set(found[0].column(0).to_pylist()) if found else set()
    return [number in numbers for number in range(len(rows))]


def membership_query(state: QueryState, relation: str) -> RuleQuery:
    """Return the query that finds out which of some tuples are there."""
    types = state.program.relations[relation].types
    row = tuple(logic.Variable(f"_{at}", type_) for at, type_ in enumerate(types))
    return RuleQuery(row, (state.goal(logic.Literal(relation, row)),), ())


def _working(name: str, types: tuple[Type, ...]) -> Relation:
    columns = tuple(f"c{at}" for at in range(len(types)))
    return Relation(name, columns, types, is_derived=False, is_declared=False)


@once_per_program
def guards(program: NormalProgram) -> frozenset[str]:
    """Return the relations of bindings that bodies of aggregates begin with; they say nothing."""
    return frozenset(each.head.relation for each in program.rules if each.is_lenient)


# --- rules and values ----------------------------------------------------------------------------


def with_named_wildcards(rule: logic.Rule, types: Callable[[str], Sequence[Type]]) -> logic.Rule:
    """Return a rule with variables in place of `_` in positive literals."""
    literals = []
    for number, literal in enumerate(rule.literals):
        slots = tuple(
            logic.Variable(f"_{number}.{at}", type_) if isinstance(slot, logic.Wildcard) else slot
            for at, (slot, type_) in enumerate(
                zip(literal.slots, types(literal.relation), strict=True)
            )
        )
        literals.append(literal if literal.negated else replace(literal, slots=slots))
    return replace(rule, literals=tuple(literals))


def match_head(head: logic.Literal, row: Row) -> dict[str, logic.Value]:
    """Return the values of the head's variables, for a tuple that the head fits."""
    return {
        slot.name: value
        for slot, value in zip(head.slots, row, strict=True)
        if isinstance(slot, logic.Variable)
    }


def row_of(literal: logic.Literal, values: Mapping[str, logic.Value]) -> Row | None:
    """Return the tuple of a literal whose variables have values; None if some have none."""
    row: list[logic.Value] = []
    for slot in literal.slots:
        if isinstance(slot, logic.Constant):
            row.append(slot.value)
        elif isinstance(slot, logic.Variable) and slot.name in values:
            row.append(values[slot.name])
        else:
            return None
    return tuple(row)
