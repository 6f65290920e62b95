"""How much work a question may take."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from corollary.core.engine import Engine, Limits
from corollary.core.plans import Plan
from corollary.core.recorder import CountingRecorder
from corollary.data_class import dataclass
from corollary.engines.budget import WorkBudget, WorkLimitError, WorkUsed
from corollary.errors import LimitError
from corollary.provenance.nodes import CutReason

STEP_ROWS = 1_000
"""A step of a plan counts as this many rows, however few it handles."""

INSTANCE_ROWS = 20
"""The same for an instance that is looked at."""

DRY_RUN_ROWS = 50_000
"""The same for a change that is tried out."""


@dataclass(frozen=True, slots=True)
class ProofLimits:
    """Bounds on one question; what is left out because of them is said (`ProofCut`).

    Attributes:
        nodes: the maximum number of nodes that are shown.
        expanded: the maximum number of tuples whose instances are looked for.
        instances: the maximum number of instances of one tuple that are looked at.
        work: the maximum number of rows that are handled on the way; a step of a plan, an instance
            and a dry run count as many rows (`STEP_ROWS`, `INSTANCE_ROWS`, `DRY_RUN_ROWS`). A
            processor does about a million of them in a second.
        dry_runs: the maximum number of changes that are tried out.
        seconds: the last resort, after which no more instances are looked for: the answer of the
            same question may then be another one on a busy machine.
    """

    nodes: int = 1_000
    expanded: int = 100_000
    instances: int = 256
    work: int = 2_500_000
    dry_runs: int = 64
    seconds: float = 20.0


DEFAULT_LIMITS = ProofLimits()


class Allowance:
    """What is left of the limits of one question."""

    def __init__(self, limits: ProofLimits) -> None:
        self.limits = limits
        self.expanded = 0
        self.budget = WorkBudget(limits.work, limits.seconds, "rows")
        self._is_bounded = True

    @property
    def tuples(self) -> int:
        """The number of tuples whose instances may still be looked for."""
        return self.limits.expanded - self.expanded

    @property
    def is_over(self) -> bool:
        """Whether no more work may be done."""
        return self.budget.is_over

    @property
    def used(self) -> WorkUsed:
        """The work that was done."""
        return self.budget.used

    @property
    def reason(self) -> CutReason:
        """Which limit has ended the work."""
        return CutReason.WORK if self.budget.spent > self.budget.limit else CutReason.SECONDS

    @contextmanager
    def part(self, share: float) -> Iterator["Allowance"]:
        """Let a part of the question have a share of the work that is left."""
        left = max(self.budget.seconds_left, 0.0)
        limits = replace(self.limits, work=int(share * self.budget.left), seconds=share * left)
        part = Allowance(limits)
        try:
            yield part
        finally:
            self.expanded += part.expanded
            self.budget.spent += part.budget.spent

    @contextmanager
    def without_bounds(self) -> Iterator[None]:
        """Only count the work: what is done then is needed for any answer."""
        self._is_bounded = False
        try:
            yield
        finally:
            self._is_bounded = True

    def take(self, tuples: int) -> None:
        """Note that the instances of some tuples are looked for.

        Raises:
            WorkLimitError: the work is over.
        """
        self.expanded += tuples
        if tuples and self._is_bounded and self.is_over:
            raise WorkLimitError("the work for a question is over")

    def count_instances(self, instances: int) -> None:
        """Note that instances are looked at."""
        self.budget.spent += INSTANCE_ROWS * instances

    def run(self, engine: Engine, plan: Plan, limits: Limits) -> None:
        """Run a plan, within what is left.

        Raises:
            WorkLimitError: the work is over.
            LimitError: a limit of the database was hit.
        """
        budget = self.budget
        budget.spent += STEP_ROWS * sum(map(len, plan.procedures.values()))
        if self._is_bounded:
            limits = replace(limits, rows=budget.left)
            if limits.seconds is None:  # else the budget ends before them
                limits = replace(limits, seconds=max(budget.seconds_left, 0.0))
        try:
            budget.spent += engine.run(plan, CountingRecorder(), limits)
        except WorkLimitError:
            budget.spent = budget.limit + 1
            raise
        except LimitError as error:
            if self._is_bounded and self.is_over:
                raise WorkLimitError("the time for a question is over") from error
            raise
