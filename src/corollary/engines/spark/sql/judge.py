"""Deciding on Spark whether a missing value counts, by the judge of the local engine.

The relational literals of the body are joined as SQL; whether an instance is possible, which values
it lacks and why is found out row by row, by the local engine's code on Arrow batches; its negated
literals are SQL again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from corollary.core.logic import Constant, Variable
from corollary.core.pipeline import AntiProbe, Compute, Pipeline, Stage
from corollary.core.types import Type
from corollary.engines.local.evaluation import judge as local
from corollary.engines.local.evaluation.expressions import type_of
from corollary.engines.local.evaluation.frames import Frame
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.spark.sql import sql
from corollary.engines.spark.sql.columns import (
    held_column,
    held_type,
    names_of,
    plain_column,
    sql_type,
)
from corollary.engines.spark.sql.evaluation import Arguments, lists
from corollary.engines.spark.sql.functions import Functions
from corollary.engines.spark.sql.immutable_sets import Pieces
from corollary.engines.spark.sql.pipelines import Lowering, inputs_of
from corollary.engines.spark.sql.table import Table

TRIED = "t"
ALIVE, REASON = "alive", "reason"


@dataclass(frozen=True, slots=True)
class Try:
    """For each instance, the rows that it becomes: values, what is lacking, and why.

    Attributes:
        names, types: the variables of the rows.
    """

    stages: tuple[Stage, ...]
    arguments: Arguments
    names: tuple[str, ...]
    types: tuple[Type, ...]

    def __call__(self, length: pa.Array, *columns: pa.Array) -> pa.Array:
        """Return an array as long as the batch."""
        codes, count = Dictionary(), len(length)
        frame = self.arguments.frame(columns, codes)
        # The row that each one comes from goes along as a variable of its own.
        frame[""] = np.arange(count, dtype=np.int64)
        trial = local.Trial(Frame(frame, count), codes, np.ones(count, np.bool_))
        local.check_conditions(trial, self.stages)
        made = trial.frame
        order = np.argsort(made.columns[""], kind="stable")
        reasons = np.full(made.count, None, object)
        for mask, reason in reversed(trial.reasons):
            reasons[mask] = reason
        values = [
            held_column(plain_column(codes.decode_arrow(made.columns[name], type_), type_), type_)
            for name, type_ in zip(self.names, self.types, strict=True)
        ]
        lacking = [pa.array(trial.missing_mask({name})) for name in self.names]
        fields = [
            *values,
            *lacking,
            pa.array(trial.possible),
            pa.array(reasons.tolist(), pa.string()),
        ]
        struct = pa.StructArray.from_arrays(fields, _fields(len(self.names)))
        return lists(made.columns[""][order], struct.take(pa.array(order)), count)

    @property
    def result(self) -> str:
        """What it returns, as SQL names it."""
        kinds = [sql_type(type_) for type_ in self.types]
        kinds += ["BOOLEAN"] * (len(self.types) + 1) + ["STRING"]
        pairs = zip(_fields(len(self.names)), kinds, strict=True)
        return f"ARRAY<STRUCT<{', '.join(f'{name}: {kind}' for name, kind in pairs)}>>"


def _fields(count: int) -> list[str]:
    return [*_values(count), *(f"l{at}" for at in range(count)), ALIVE, REASON]


def _values(count: int) -> list[str]:
    return [f"x{at}" for at in range(count)]


class Judge:
    """Decides about one pipeline that has met expressions without a value."""

    def __init__(
        self,
        pipeline: Pipeline,
        tables: Mapping[str, Table],
        functions: Functions,
        pieces: Pieces,
        about: str,
    ) -> None:
        self._pipeline = pipeline
        self._tables = tables
        self._pieces = pieces
        self._about = f"{about}: judging missing values"
        self._inputs = inputs_of(pipeline, tables)
        relational, self._rest = local.split_stages(pipeline)
        bound = sorted(set().union(*map(local.bound_variables, relational)))
        head = tuple(Variable(name) for name in bound)
        body = Pipeline(relational, head, pipeline.origin, is_bag=pipeline.is_bag)
        frame = Lowering(body, tables, functions).frame()
        arguments = Arguments(tuple(bound), tuple(frame.columns[name][1] for name in bound))
        types = {name: type_ for name, (_, type_) in frame.columns.items()}
        types |= self._computed()
        self._variables = {name: at for at, name in enumerate(types)}
        trial = Try(self._rest, arguments, tuple(types), tuple(types.values()))
        self._types = types
        columns = [sql.column(frame.columns[name][0], "f") for name in bound]
        call = sql.call(functions.name(trial, trial.result), exp.Boolean(this=True), *columns)
        rows = sql.select([exp.Inline(this=call)], frame.source())
        self._query = self._possible(rows)

    def _computed(self) -> dict[str, Type]:
        """Return the variables that the judge binds by expressions."""
        found: dict[str, Type] = {}
        for stage in self._rest:
            if isinstance(stage, Compute):
                found[stage.variable.name] = type_of(stage.expression)
        for one, _ in local.equations_of(local.conditions_of(self._rest)):
            found.setdefault(one.name, type_of(one))
        return found

    def _possible(self, rows: sql.Node) -> sql.Node:
        """Return the rows in which nothing is false, negated literals included."""
        query: sql.Node = sql.select([exp.Star()], sql.of(rows, TRIED), sql.column(ALIVE, TRIED))
        for stage in self._rest:
            if isinstance(stage, AntiProbe):
                table = self._tables[stage.source.relation]
                if not table.size(stage.source.state):
                    continue
                tests: list[sql.Node] = []
                for name, slot in zip(names_of(table.types), stage.slots, strict=False):
                    if isinstance(slot, Variable):
                        at = self._variables[slot.name]
                        tests.append(sql.negated(sql.column(f"l{at}", TRIED)))
                        value: sql.Node = sql.column(f"x{at}", TRIED)
                    else:
                        assert isinstance(slot, Constant)
                        value = sql.constant(slot.value, type_of(slot))
                    tests.append(sql.same(value, sql.column(name, "s")))
                kept = sql.select([exp.Star()], sql.of(query, TRIED))
                away = table.layers(stage.source.state).query()
                on = sql.every(tests) or exp.Boolean(this=True)
                query = sql.joined(kept, sql.of(away, "s"), on, "ANTI")
        return query

    def heads(self, types: tuple[Type, ...]) -> sql.Node:
        """Return a query for the heads of the rows that are possible and have all their values."""
        tests: list[sql.Node] = []
        nodes: list[sql.Node] = []
        for name, slot, type_ in zip(names_of(types), self._pipeline.head, types, strict=False):
            if isinstance(slot, Variable):
                at = self._variables[slot.name]
                tests.append(sql.negated(sql.column(f"l{at}", TRIED)))
                value: sql.Node = sql.column(f"x{at}", TRIED)
            else:
                value = sql.constant(slot.value, type_of(slot))
            nodes.append(sql.named(sql.cast(value, type_), name))
        nodes = nodes or [sql.named(exp.Boolean(this=True), names_of(types)[0])]
        return sql.select(nodes, sql.of(self._query, TRIED), sql.every(tests))

    def raise_if_guilty(self) -> None:
        """Raise if some instance lacks a value though nothing in it is false.

        Raises:
            EvaluationError: with the values of one of them.
        """
        reason = sql.column(REASON, TRIED)
        guilty = sql.select([exp.Star()], sql.of(self._query, TRIED), sql.is_present(reason))
        found = self._pieces.fetch(guilty, self._about, self._inputs, limit=1)
        if not found.num_rows:
            return
        codes = Dictionary()
        columns = {
            name: codes.encode_arrow(
                plain_column(found.column(f"x{at}").cast(held_type(type_)), type_), type_
            )
            for at, (name, type_) in enumerate(self._types.items())
        }
        why = found.column(REASON)[0].as_py()
        raise local.missing_value_error(
            self._pipeline, why, Frame(columns, found.num_rows), 0, codes
        )
