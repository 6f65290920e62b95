"""Whether the bars of a task are met."""

from dataclasses import dataclass

from bench.maintain.task import BEST, Bar, Task
from bench.maintain.tracks import Outcome

ALL = "all"


@dataclass(frozen=True, slots=True)
class Judged:
    """One kind of step under a bar.

    Attributes:
        kind: of the step, or `all`.
        rival: who it was compared with.
        times: quicker than the rival by this factor.
        needed: the factor that is expected.
    """

    kind: str
    rival: str
    times: float
    needed: float

    @property
    def is_met(self) -> bool:
        """Whether it is as quick as expected."""
        return self.times >= self.needed


@dataclass(frozen=True, slots=True)
class Verdict:
    """A bar and how it was met, for every kind of step."""

    bar: Bar
    judged: tuple[Judged, ...]

    @property
    def word(self) -> str:
        """`ok`, or `missed` and where."""
        missed = [each.kind for each in self.judged if not each.is_met]
        return f"missed ({', '.join(missed)})" if missed else "ok"


def verdicts(task: Task, outcome: Outcome) -> list[Verdict]:
    """Return how the bars of a task were met."""
    return [Verdict(bar, tuple(_judge(bar, outcome))) for bar in task.bars]


def _judge(bar: Bar, outcome: Outcome) -> list[Judged]:
    kinds: list[str | None] = [*outcome.kinds, None]
    if bar.kind is not None:
        kinds = [bar.kind]
    elif bar.rival == BEST:
        kinds = [*outcome.kinds]
    return [_judge_kind(bar, kind, outcome) for kind in kinds]


def _judge_kind(bar: Bar, kind: str | None, outcome: Outcome) -> Judged:
    rivals = [bar.rival]
    if bar.rival == BEST:
        others = [each for each in outcome.tracks if each.name != bar.ours and each.told]
        rivals = [each.name for each in others if not each.is_cut(kind)]
        rivals = rivals or [each.name for each in others]
    ratios = {each: 1 / outcome.ratio(bar.ours, each, kind) for each in rivals}
    rival = min(ratios, key=ratios.__getitem__)
    needed = bar.times
    if bar.switched is not None and outcome.track(bar.ours).has_switched(kind):
        needed = bar.switched
    return Judged(kind or ALL, rival, ratios[rival], needed)
