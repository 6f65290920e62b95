"""The placement `sql`: strata that Spark maintains by queries, beside those of the driver."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from corollary.core.engine import Engine, TableHandle
from corollary.core.plans import Evaluation, RecordTrace, Within
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.engines.spark.remote import ChangedTuples, RelationDeltas, RemoteRun


@dataclass(frozen=True, slots=True)
class _Onward:
    """Tells a recorder of a run that goes on where others have left off."""

    recorder: Recorder
    handled: int

    def procedure(self, name: str) -> None:
        self.recorder.procedure(name)

    def end(self, name: str, handled: int) -> None:
        self.recorder.end(name, self.handled + handled)

    def step(self, step: Evaluation, size: int, led: int) -> None:
        self.recorder.step(step, size, led)

    def round(self, count: int = 1) -> None:
        self.recorder.round(count)

    def probe(self, relation: str, rows: int) -> None:
        self.recorder.probe(relation, rows)

    def bulk(self) -> None:
        self.recorder.bulk()

    def job(self, sent: int, returned: int) -> None:
        self.recorder.job(sent, returned)

    def switch(self, within: Within) -> None:
        self.recorder.switch(within)

    def row(
        self, row: RecordTrace, relations: "Mapping[str, tuple[pa.Table, ...]]", number: int
    ) -> None:
        self.recorder.row(row, relations, number)


class Queries:
    """Relations in another engine, and the parts of plans that run there.

    Args:
        engine: turns steps into queries.

    Attributes:
        relations: the relations that are there.
        synced: the copies that have the open change of their relation.
    """

    def __init__(self, engine: Engine) -> None:
        self.relations: dict[str, Relation] = {}
        self.synced: set[str] = set()
        self.has_open_run = False
        self._maintained: set[str] = set()
        self._engine = engine

    def maintains(self, name: str) -> bool:
        """Whether it maintains a relation, or has a copy of it."""
        return name in self._maintained

    def holds(self, name: str, pivot: int | None) -> bool:  # noqa: ARG002 - nothing is shared out
        """Whether it holds a relation."""
        return name in self.relations

    def add(self, relation: Relation, rows: pa.Table, pivot: int | None) -> None:  # noqa: ARG002
        """Hold a relation from now on, which has these tuples in OLD."""
        self.drop([relation.name])
        self.relations[relation.name] = relation
        self._engine.declare({relation.name: relation})
        self._engine.insert(relation.name, rows)
        self._engine.commit([relation.name])

    def apply_change(self, name: str, delta: ChangedTuples) -> None:
        """Let a relation that it maintains have changed, by what somebody else found."""
        assert delta.removed is not None
        self._engine.apply_change(name, delta.added, delta.removed)
        self._engine.commit([name])

    def drop(self, names: Iterable[str]) -> None:
        """Let go of relations."""
        for name in names:
            if self.relations.pop(name, None) is not None:
                self._engine.drop([name])
                self._maintained.discard(name)
                self.synced.discard(name)

    def size(self, name: str, state: State) -> int:
        """Return the number of tuples of a relation in a state."""
        return self._engine.size(name, state)

    def distinct(self, name: str) -> tuple[int, ...]:
        """Return about how many distinct values each column of a relation has."""
        return self._engine.distinct(name)

    def read(self, name: str, state: State) -> pa.Table:
        """Return the tuples of a relation in a state."""
        return self._engine.read(name, state)

    def handle(self, name: str, state: State) -> TableHandle | None:
        """Return tuples of a relation, to be read when somebody asks for them."""
        return self._engine.handle(name, state)

    def run(self, remote_run: RemoteRun, recorder: Recorder) -> int:
        """Run a part of a plan, a query a step; return how many rows have been handled then."""
        engine = self._engine
        for name, delta in remote_run.open_changes.items():
            assert delta.removed is not None
            engine.delete(name, delta.removed)
            engine.insert(name, delta.added)
        self.synced |= remote_run.open_changes.keys()
        self.has_open_run = True
        self._maintained |= remote_run.maintained
        engine.declare(
            {name: relation for name, (relation, _) in remote_run.working_relations.items()}
        )
        try:
            for name, (_, rows) in remote_run.working_relations.items():
                engine.insert(name, rows)
                engine.commit([name])
            onward = _Onward(recorder, remote_run.handled)
            return remote_run.handled + engine.run(remote_run.plan, onward, remote_run.limits)
        finally:
            engine.drop(remote_run.working_relations)

    def commit(self, changes: RelationDeltas) -> None:
        """Make NEW the OLD; with changes of copies that have not been synced so far."""
        for name, delta in changes.items():
            assert delta.removed is not None
            self._engine.apply_change(name, delta.added, delta.removed)
        self._engine.commit()
        self.synced.clear()
        self.has_open_run = False

    def rollback(self) -> None:
        """Make OLD the NEW."""
        self._engine.rollback()
        self.synced.clear()
        self.has_open_run = False

    def close(self) -> None:
        """Let go of views and files."""
        self._engine.close()
