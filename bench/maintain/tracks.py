"""What contenders did: the seconds of every step, and how they compare."""

import statistics
from dataclasses import dataclass, field

from bench.maintain.contenders import Sample, Told

FEWEST_ROUNDS = 3
"""Everybody takes part in so many, a steady contender in one."""


@dataclass(slots=True)
class Track:
    """What one contender did: for each round the sample of each kind of step.

    Attributes:
        is_steady: whether its time hardly depends on the change, so that a few rounds tell it.
        told: what the transactions of each kind told.
        tuples: of the answer, before and after every round.
    """

    name: str
    is_steady: bool = False
    rounds: list[dict[str, Sample]] = field(default_factory=list)
    told: dict[str, Told] = field(default_factory=dict)
    tuples: int = 0

    def median(self, kind: str | None = None, rounds: int | None = None) -> float:
        """Return the median seconds of a kind of step, or of all steps."""
        found = [
            sample.seconds
            for each in self.rounds[:rounds]
            for name, sample in each.items()
            if kind in (None, name)
        ]
        return statistics.median(found)

    def is_cut(self, kind: str | None = None) -> bool:
        """Whether a step was given up."""
        return any(
            sample.is_cut
            for each in self.rounds
            for name, sample in each.items()
            if kind in (None, name)
        )

    def has_switched(self, kind: str | None = None) -> bool:
        """Whether it gave up and recomputed in half of the steps of a kind or more."""
        told = [each for name, each in self.told.items() if kind in (None, name)]
        taken = sum(
            name in each for each in self.rounds for name in self.told if kind in (None, name)
        )
        return 0 < taken <= 2 * sum(each.switches for each in told)

    def has_done_enough(self, allotted: float) -> bool:
        """Whether it may rest: its seconds are used up, or it gave up a step."""
        spent = sum(sample.seconds for each in self.rounds for sample in each.values())
        fewest = 1 if self.is_steady else FEWEST_ROUNDS
        return len(self.rounds) >= fewest and (spent > allotted or self.is_cut())


@dataclass(slots=True)
class Outcome:
    """What a task gave.

    Attributes:
        tracks: those of the contenders, in their order.
        differences: where answers differ.
    """

    tracks: list[Track]
    differences: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        """The kinds of steps that were taken."""
        return list(self.tracks[0].rounds[0])

    def track(self, name: str) -> Track:
        """Return the track of a contender."""
        return next(each for each in self.tracks if each.name == name)

    def ratio(self, ours: str, rival: str, kind: str | None = None) -> float:
        """Return the seconds of one over those of another.

        Changes differ much, so only rounds that both took part in count, unless one is steady.
        """
        one, other = self.track(ours), self.track(rival)
        common: int | None = min(len(one.rounds), len(other.rounds))
        if one.is_steady or other.is_steady:
            common = None
        return one.median(kind, common) / other.median(kind, common)
