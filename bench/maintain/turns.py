"""The measuring core: contenders take turns at every round of changes, and answers are compared."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from bench.maintain.contenders import Contender, Sample, Told
from bench.maintain.task import Round, Step
from bench.measure import difference, in_order

FEWEST_ROUNDS = 3
"""Everybody takes part in so many, a steady contender in one."""

SHORTEST_LIMIT = 1.0
"""Nothing is given up sooner."""


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
        return self.is_cut() or (len(self.rounds) >= fewest and spent > allotted)


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


@dataclass(slots=True)
class Team:
    """Contenders on the same data, with their tracks; the last one is right.

    Attributes:
        start: the answer before and after every round.
    """

    members: list[tuple[Contender, Track]]
    start: "Contents | None" = None

    def active(self, allotted: float) -> list[tuple[Contender, Track]]:
        """Return those who do not rest."""
        return [pair for pair in self.members if not pair[1].has_done_enough(allotted)]


def take_turns(
    contenders: Sequence[Sequence[Contender]],
    rounds: Sequence[Round],
    allotted: float,
    patience: float | None = None,
) -> Outcome:
    """Let all contenders go through the rounds, until each has used the seconds allotted to it.

    The contents of the answers are compared after every step of the first round and when a
    contender goes to rest, the numbers of tuples after every step.
    """
    teams = [
        Team([(each, Track(each.name, each.is_steady)) for each in team]) for team in contenders
    ]
    differences: list[str] = []
    for number, steps in enumerate(rounds, 1):
        for team in teams:
            active = team.active(allotted)
            for _, track in active:
                track.rounds.append({})
            for step in steps:
                go(active, step, patience)
                differences += check(team, active, step, number)
            assert team.start is not None
            for contender, track in active:
                if number > 1 and (track.has_done_enough(allotted) or number == len(rounds)):
                    differences += disagreement(contender, team.start, f"after round {number}")
    tracks = [track for team in teams for _, track in team.members]
    for contender, track in (pair for team in teams for pair in team.members):
        track.tuples, track.told = contender.size(), dict(contender.told)
    return Outcome(tracks, differences)


def check(
    team: Team, active: Sequence[tuple[Contender, Track]], step: Step, number: int
) -> list[str]:
    """Compare the answers after a step."""
    where = f"after {step.kind} in round {number}"
    if number > 1:
        return _miscounts([each for each, _ in active], where)
    *others, (referee, _) = team.members
    team.start = contents_of(referee)
    return [text for each, _ in others for text in disagreement(each, team.start, where)]


def go(active: Sequence[tuple[Contender, Track]], step: Step, patience: float | None) -> None:
    """Let everybody go through one step."""
    quickest = float("inf")
    for contender, track in active:
        limit = None
        if patience is not None and quickest < float("inf"):
            limit = max(SHORTEST_LIMIT, patience * quickest)
        sample = contender.take(step, limit)
        track.rounds[-1][step.kind] = sample
        quickest = min(quickest, sample.seconds)


def _miscounts(active: Sequence[Contender], where: str) -> list[str]:
    sizes = {each.name: each.size() for each in active}
    if len(set(sizes.values())) <= 1:
        return []
    listed = ", ".join(f"{name} has {size:,}" for name, size in sizes.items())
    return [f"tuples {where}: {listed}"]


@dataclass(frozen=True, slots=True)
class Contents:
    """An answer, and a number that another answer has only if it has the same tuples."""

    name: str
    table: pa.Table
    print: int


def contents_of(contender: Contender) -> Contents:
    """Read an answer and take its print."""
    table = contender.answer()
    return Contents(contender.name, table, print_of(table))


def disagreement(contender: Contender, expected: Contents, where: str) -> list[str]:
    """Say how an answer differs from the expected one; nothing if it does not."""
    table = contender.answer()
    if table.num_rows == expected.table.num_rows and print_of(table) == expected.print:
        return []
    found = difference(expected.name, in_order(expected.table), contender.name, table)
    return [f"{where}: {each}" for each in found]


def print_of(table: pa.Table) -> int:
    """Return a number for a set of rows of numbers, whatever their order.

    >>> print_of(pa.table({"x": [1, 2], "y": [3, 4]})) == print_of(
    ...     pa.table({"a": [2, 1], "b": [4, 3]})
    ... )
    True
    >>> print_of(pa.table({"x": [1, 2], "y": [3, 4]})) == print_of(
    ...     pa.table({"x": [1, 2], "y": [4, 3]})
    ... )
    False
    """
    mixed = np.zeros(table.num_rows, np.uint64)
    for column in table.columns:
        mixed = _mix(mixed + column.to_numpy().astype(np.int64).view(np.uint64))
    return int(mixed.sum(dtype=np.uint64))


def _mix(words: "np.typing.NDArray[np.uint64]") -> "np.typing.NDArray[np.uint64]":
    """Scramble 64-bit words (splitmix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.typing.NDArray[np.uint64] = words ^ (words >> np.uint64(31))
    return mixed
