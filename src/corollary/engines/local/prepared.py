"""What a plan needs to run, made once: working tables, and pipelines ready to run.

Plans that maintain a database run again and again; the same `Plan` object finds everything here.
"""

from collections.abc import Mapping

from corollary.core.engine import Limits
from corollary.core.pipeline import Pipeline
from corollary.core.plan import Plan
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.engines.local.budget import Budget
from corollary.engines.local.codes import Dictionary
from corollary.engines.local.pipelines import PipelineRunner
from corollary.engines.local.table import Table

SPARE = 64
"""So many sets of local tables are kept for the next invocations of a procedure."""


class Prepared:
    """A plan, the tables it runs on, and its pipelines.

    Attributes:
        tables: the relations of the engine and the working relations. A name stands for the table
            of the innermost invocation; all else reads tables through this mapping.
        budget, recorder: of the run that is under way.
    """

    def __init__(self, plan: Plan, held: Mapping[str, Table], dictionary: Dictionary) -> None:
        self.plan = plan
        self.dictionary = dictionary
        self.held = frozenset(held)
        self._working = [name for name in plan.types if name not in held]
        self.tables = {**held, **{name: self._table(name) for name in self._working}}
        self._runners: dict[int, PipelineRunner] = {}
        self._spare: dict[str, list[tuple[Table, ...]]] = {}
        for name in self.held & plan.orders.keys():
            self._arrange(name, self.tables[name])

    def begin(self, recorder: Recorder, limits: Limits) -> None:
        """Get ready for a run."""
        self.recorder = recorder
        self.budget = Budget(limits, self.tables, self.dictionary)

    def end(self) -> None:
        """Let go of what a run has made."""
        for name in self._working:
            self.tables[name].clear()

    def _table(self, name: str) -> Table:
        table = Table(self.plan.types[name], self.dictionary)
        self._arrange(name, table)
        return table

    def _arrange(self, name: str, table: Table) -> None:
        for order in self.plan.orders.get(name, ()):
            table.layers(State.NEW, order)

    def runner(self, pipeline: Pipeline) -> PipelineRunner:
        """Return what runs a pipeline."""
        runner = self._runners.get(id(pipeline))
        if runner is None:
            runner = self._runners[id(pipeline)] = PipelineRunner(
                pipeline, self.tables, self.dictionary, self.held
            )
        return runner

    # --- locals --------------------------------------------------------------------------------

    def enter(self, procedure: str) -> tuple[Table, ...]:
        """Give the locals of a procedure empty tables; return those they had."""
        names = self.plan.locals.get(procedure, ())
        if not names:
            return ()
        saved = tuple(self.tables[name] for name in names)
        spare = self._spare.setdefault(procedure, [])
        fresh = spare.pop() if spare else tuple(self._table(name) for name in names)
        self.tables.update(zip(names, fresh, strict=True))
        self.budget.set_aside(saved, 1)
        return saved

    def leave(self, procedure: str, saved: tuple[Table, ...]) -> None:
        """Give the locals of a procedure back the tables they had."""
        if not saved:
            return
        names = self.plan.locals[procedure]
        spare = self._spare[procedure]
        if len(spare) < SPARE:
            used = tuple(self.tables[name] for name in names)
            for table in used:
                table.clear()
            spare.append(used)
        self.tables.update(zip(names, saved, strict=True))
        self.budget.set_aside(saved, -1)
