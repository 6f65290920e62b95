"""A plan and the tables it runs on, for one run."""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from corollary.core.engine import Limits
from corollary.core.pipeline import AntiProbe, Pipeline, Probe, Reference
from corollary.core.plans import (
    WORKING_SEPARATOR,
    Aggregate,
    Derive,
    Loop,
    PlacedCall,
    Plan,
    ReadTotals,
    Total,
)
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.engines.budget import Budget
from corollary.engines.spark.sql import sql
from corollary.engines.spark.sql.aggregates import aggregate
from corollary.engines.spark.sql.columns import from_held, names_of
from corollary.engines.spark.sql.derive import Derivation
from corollary.engines.spark.sql.functions import Functions
from corollary.engines.spark.sql.immutable_sets import Pieces, Tuples
from corollary.engines.spark.sql.sets import minus
from corollary.engines.spark.sql.table import Layers, Table


class _NoDictionary:
    """Values stand for themselves here."""

    nbytes = 0


class Prepared:
    """What the interpreter runs.

    Attributes:
        tables: the relations that the plan names, the engine's and the working ones.
    """

    def __init__(
        self,
        plan: Plan,
        held: Mapping[str, Table],
        relations: Mapping[str, Relation],
        functions: Functions,
        pieces: Pieces,
        *,
        recorder: Recorder,
        limits: Limits,
    ) -> None:
        self.plan = plan
        self.recorder = recorder
        self.tables = {
            name: held[name] if name in held else Table(types, pieces)
            for name, types in plan.types.items()
        }
        self.budget = Budget(limits, self._all_tables, _NoDictionary())
        self._held = held
        self._working = [name for name in plan.types if name not in held]
        self._relations = relations
        self._functions = functions
        self._pieces = pieces
        self._sizes: dict[int, int] = {}

    def _all_tables(self) -> Iterator[Table]:
        yield from self._held.values()
        yield from (self.tables[name] for name in self._working)

    # --- locals --------------------------------------------------------------------------------

    def enter(self, procedure: str) -> tuple[Table, ...]:
        """Give the locals of a procedure empty tables; return those they had."""
        names = self.plan.locals.get(procedure, ())
        saved = tuple(self.tables[name] for name in names)
        for name in names:
            self.tables[name] = Table(self.plan.types[name], self._pieces)
        self.budget.count_shadowed(saved, 1)
        return saved

    def leave(self, procedure: str, saved: tuple[Table, ...]) -> None:
        """Give the locals of a procedure back the tables they had."""
        self.tables.update(zip(self.plan.locals.get(procedure, ()), saved, strict=True))
        self.budget.count_shadowed(saved, -1)

    # --- steps ---------------------------------------------------------------------------------

    def derive(self, step: Derive, number: int) -> tuple[Tuples, int]:
        """Return the tuples of a step in a round, and how many led to them."""
        derivation = Derivation(
            step,
            self.tables,
            self._functions,
            self._pieces,
            _about(step.target, number),
            self._sizes.get(id(step), 0),
        )
        led = derivation.led()
        for pipeline in step.pipelines:
            self._tell(pipeline)
        found = derivation.run()
        self._sizes[id(step)] = len(found)
        for pipeline in step.pipelines:
            self.budget.count_rows(pipeline, 0)
        self.budget.count_step_rows(led + len(found))
        if step.pipelines:
            self.budget.count_tuples(step.pipelines[-1], found)
            self.budget.release_batches()
        return found, led

    def _tell(self, pipeline: Pipeline) -> None:
        """Tell of the relations that a pipeline looks up, by the tuples that lead it."""
        first = pipeline.stages[0] if pipeline.stages else None
        lead = first.source if isinstance(first, Probe) else None
        rows = 1 if lead is None else self.tables[lead.relation].size(lead.state)
        for stage in pipeline.stages if rows else ():
            if not isinstance(stage, Probe | AntiProbe) or stage.source.relation not in self._held:
                continue
            if stage.source.state in (State.OLD, State.NEW):
                self.recorder.probe(stage.source.relation, 1 if stage is first else rows)

    def aggregate(self, step: Aggregate) -> Tuples:
        """Return the tuples of a step."""
        body, target = self.tables[step.body.relation], self.tables[step.target]
        size = body.size(step.body.state)
        if not size:
            return Tuples(target.types)
        query = aggregate(step, body, target.types, self._functions)
        about = _about(step.target, 0)
        found, _ = self._pieces.run(query, target.types, about, size)
        for each in step.without:
            there = self.tables[each.relation].among(found, each.state)
            found = minus(self._pieces, found, there)
        return found

    def total(self, step: Total) -> Tuples:
        """Refuse: where queries compute an aggregate, no totals are kept."""
        raise AssertionError(f"totals of `{step.aggregation.relation}` in a query")

    def read_totals(self, step: ReadTotals) -> Tuples:
        """Refuse: where queries compute an aggregate, no totals are kept."""
        raise AssertionError(f"totals of `{step.aggregation.relation}` in a query")

    def extend_with_round(self, target: str, source: str, number: int) -> None:
        """Extend a table by tuples with a number behind each."""
        table, plain = self.tables[target], self.tables[source].tuples(State.NEW)
        if len(plain):
            numbered = self._numbered(plain, table, number)
            table.extend(minus(self._pieces, numbered, table.among(numbered, State.NEW)))
        else:
            table.extend(Tuples(table.types))

    def _numbered(self, plain: Tuples, table: Table, number: int) -> Tuples:
        names = names_of(table.types)
        if plain.is_local:
            held = plain.table() if plain.types else plain.table().select([])
            numbers = pa.array([number] * len(plain), pa.int64())
            made = pa.table([*held.columns, numbers], names=names)
            return self._pieces.of_table(made, table.types)
        nodes: list[sql.Node] = [sql.column(name, "p") for name in names[:-1]]
        nodes.append(sql.named(sql.constant(number, NUMBER), names[-1]))
        query = sql.select(nodes, sql.of(plain.query(), "p"))
        size = len(plain)
        found, _ = self._pieces.run(query, table.types, "numbering", size, expected=size)
        return found

    def run_placed_call(self, step: PlacedCall) -> bool:  # noqa: ARG002 - one place only
        """Run a procedure elsewhere; return whether that was done."""
        return False

    def run_narrow_rounds(self, loop: Loop, number: int) -> tuple[int, bool]:  # noqa: ARG002
        """Run no rounds: each one is a query."""
        return 0, False

    def read(self, reference: Reference) -> pa.Table:
        """Return the tuples of a relation in a state."""
        table = self.tables[reference.relation]
        relation = self._relations.get(reference.relation)
        unnamed = [f"c{at}" for at in range(len(table.types))]
        names = unnamed if relation is None else relation.columns
        return from_held(fetched(table.layers(reference.state), self._pieces), table.types, names)


def fetched(layers: Layers, pieces: Pieces) -> pa.Table:
    """Return the tuples of a state as Spark holds them, from wherever they are."""
    if layers.is_local:
        return layers.tuples(pieces).table()
    return pieces.fetch(layers.query(), "corollary: reading", len(layers))


def _about(target: str, number: int) -> str:
    """Return what Spark shows for a step: the relation, the step and the round."""
    relation, _, role = target.partition(WORKING_SEPARATOR)
    words = [
        f"corollary: {relation or target}",
        *([role.replace(WORKING_SEPARATOR, " ")] if role else []),
    ]
    return f"{' · '.join(words)}{f' · round {number}' if number else ''}"
