"""One `Derive` step: the heads of all its pipelines by one query."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from corollary.core.pipeline import Pipeline, Probe, Reference
from corollary.core.plans import Derive, Reduce
from corollary.core.types import Kind, Type
from corollary.engines.local.evaluation.pipelines import copied_reference
from corollary.engines.spark.sql import sql
from corollary.engines.spark.sql.aggregates import total
from corollary.engines.spark.sql.columns import FAULT, names_of
from corollary.engines.spark.sql.functions import Functions
from corollary.engines.spark.sql.immutable_sets import Pieces, Tuples
from corollary.engines.spark.sql.judge import Judge
from corollary.engines.spark.sql.pipelines import Lowering, inputs_of, is_empty
from corollary.engines.spark.sql.projections import distinct, picked, picks
from corollary.engines.spark.sql.sets import minus
from corollary.engines.spark.sql.table import Table


@dataclass(frozen=True, slots=True)
class Derivation:
    """What a step needs of its engine."""

    step: Derive
    tables: Mapping[str, Table]
    functions: Functions
    pieces: Pieces
    about: str
    expected: int

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of the target's columns."""
        return self.tables[self.step.target].types

    def led(self) -> int:
        """Return how many tuples lead: those of the first probes."""
        firsts = [each.stages[0] for each in self.step.pipelines if each.stages]
        return sum(self._size(each.source) for each in firsts if isinstance(each, Probe))

    def _size(self, reference: Reference) -> int:
        return self.tables[reference.relation].size(reference.state)

    def run(self) -> Tuples:
        """Return the tuples of the step.

        Raises:
            EvaluationError: an expression has no value, and that counts.
        """
        live = [each for each in self.step.pipelines if not is_empty(each, self.tables)]
        if not live:
            return Tuples(self.types)
        unqueried = self._unqueried(live)
        if unqueried is not None:
            return unqueried
        doubtful = [each for each in live if each.judge]
        found, faults = self._derived(live, doubtful, {})
        if not faults:
            return found
        judged: dict[int, sql.Node] = {}
        for number in sorted(faults):
            judge = Judge(doubtful[number], self.tables, self.functions, self.pieces, self.about)
            if doubtful[number].is_lenient:
                judged[number] = judge.heads(self.types)
            else:
                judge.raise_if_guilty()
        return self._derived(live, doubtful, judged)[0] if judged else found

    def _unqueried(self, live: list[Pipeline]) -> Tuples | None:
        """Return the tuples of the step, if no query is needed for them."""
        if self.step.reduce is not None:
            return None
        known = [each for each in self.step.without if self._size(each)]
        found = self._copied(live, has_known=bool(known))
        if found is None:
            found = self._picked(live)
        if found is None:
            return None
        for each in known:
            there = self.tables[each.relation].among(found, each.state)
            found = minus(self.pieces, found, there)
        return found

    def _copied(self, live: list[Pipeline], *, has_known: bool) -> Tuples | None:
        """Return what a lone pipeline copies, in the pieces that it is in."""
        source = copied_reference(live[0]) if len(live) == 1 else None
        if source is None:
            return None
        layers = self.tables[source.relation].layers(source.state)
        if not layers.is_local and (len(layers.gone) or has_known):
            return None
        return layers.tuples(self.pieces)

    def _picked(self, live: list[Pipeline]) -> Tuples | None:
        """Return what pipelines pick from relations that are on the driver."""
        if sum(inputs_of(each, self.tables) for each in live) > self.pieces.small:
            return None
        tables = []
        for pipeline in live:
            places = picks(pipeline)
            if places is None:
                return None
            (stage,) = pipeline.stages
            assert isinstance(stage, Probe)
            layers = self.tables[stage.source.relation].layers(stage.source.state)
            if not layers.is_local:
                return None
            tables.append(picked(layers.tuples(self.pieces), places, self.types))
        return self.pieces.of_table(distinct(pa.concat_tables(tables)), self.types)

    # --- the query -----------------------------------------------------------------------------

    def _derived(
        self, live: list[Pipeline], doubtful: list[Pipeline], judged: Mapping[int, sql.Node]
    ) -> tuple[Tuples, set[int]]:
        """Run all pipelines; those that were judged give what the judge has let pass, too."""
        queries: list[sql.Node] = []
        for pipeline in live:
            number = doubtful.index(pipeline) if pipeline in doubtful else None
            if number in judged and pipeline.is_bag:
                continue
            lowering = Lowering(pipeline, self.tables, self.functions)
            made = lowering.heads(self.types, number)
            if doubtful and number is None:
                made = [self._unmarked(each) for each in made]
            queries += made
        queries += [self._unmarked(each) for each in judged.values()]
        has_faults = bool(doubtful)
        query = self._reduced(sql.union(queries), has_faults)
        inputs = sum(inputs_of(each, self.tables) for each in live)
        inputs += sum(self._size(each) for each in self.step.without)
        found, faults = self.pieces.run(
            query, self.types, self.about, inputs, expected=self.expected, has_faults=has_faults
        )
        for each in self._far():
            there = self.tables[each.relation].among(found, each.state)
            found = minus(self.pieces, found, there)
        return found, faults

    def _far(self) -> list[Reference]:
        """Return the relations of `without` in which it is better to look up what was derived.

        When few tuples lead, few are derived, and a large relation need not be moved for them.
        """
        small = self.pieces.small
        if self.step.reduce is Reduce.MIN or self.led() > small:
            return []
        return [each for each in self.step.without if self._size(each) > small]

    def _unmarked(self, query: sql.Node) -> sql.Node:
        fault = exp.Cast(this=exp.Null(), to=exp.DataType.build("INT"))
        nodes = [*sql.columns_of(self.types, "u"), sql.named(fault, FAULT)]
        return sql.select(nodes, sql.of(query, "u"))

    def _reduced(self, query: sql.Node, has_faults: bool) -> sql.Node:
        names = [*names_of(self.types), *([FAULT] if has_faults else [])]
        match self.step.reduce:
            case None:
                nodes = [sql.column(name, "d") for name in names]
                lone = sql.select(nodes, sql.of(query, "d"), is_distinct=True)
                return self._unknown(lone, names)
            case Reduce.MIN:
                return self._grouped(self._unknown(query, names), names)
            case Reduce.SUM:
                return self._unknown(self._grouped(query, names), names)

    def _grouped(self, query: sql.Node, names: list[str]) -> sql.Node:
        """Return each group with the least last column or its sum, where that is not 0."""
        last = len(self.types) - 1
        value = sql.column(names[last], "g")
        keys = [sql.column(name, "g") for at, name in enumerate(names) if at != last]
        where: sql.Node | None = None
        having: sql.Node | None = None
        if self.step.reduce is Reduce.MIN:
            combined: sql.Node = exp.Min(this=value)
        else:
            type_ = self.types[last]
            assert type_.kind is not Kind.FLOAT, "counts are integers"
            combined, exact = total(value, type_, type_)
            where = sql.is_present(value)
            having = exp.NEQ(this=exact, expression=sql.number(0))
            if FAULT in names:
                is_fault = sql.is_present(sql.column(FAULT, "g"))
                where, having = sql.any_of([where, is_fault]), sql.any_of([having, is_fault])
        nodes: list[sql.Node] = list(keys)
        nodes.insert(last, sql.named(combined, names[last]))
        return sql.select(nodes, sql.of(query, "g"), where, groups=keys, having=having)

    def _unknown(self, query: sql.Node, names: list[str]) -> sql.Node:
        """Return the rows that are not in `without`."""
        far = self._far()
        for each in self.step.without:
            if not self._size(each) or each in far:
                continue
            nodes = [sql.column(name, "l") for name in names]
            away = self.tables[each.relation].layers(each.state)
            on: sql.Node = sql.all_same(self.types, "l", "r", away.nulls)
            if FAULT in names:
                on = exp.And(this=sql.is_null(sql.column(FAULT, "l")), expression=on)
            kept = sql.select(nodes, sql.of(query, "l"))
            query = sql.joined(kept, sql.of(away.query(), "r"), on, "ANTI")
        return query
