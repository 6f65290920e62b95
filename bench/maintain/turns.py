"""The measuring core: contenders take turns at every round of changes, and answers are compared."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.maintain.answers import Contents, contents_of, disagreement
from bench.maintain.contenders import Contender
from bench.maintain.task import Round, Step, Task
from bench.maintain.tracks import Outcome, Track

SHORTEST_LIMIT = 1.0
"""Seconds; nothing is given up sooner."""


@dataclass(slots=True)
class Team:
    """Contenders on the same data, with their tracks; the last one is right.

    Attributes:
        start: the answer before and after every round.
    """

    members: list[tuple[Contender, Track]]
    start: Contents | None = None

    def active(self, task: Task, number: int) -> list[tuple[Contender, Track]]:
        """Return those who do not rest; in every round another one is first."""
        found = [pair for pair in self.members if not pair[1].has_done_enough(task.allotted)]
        first = (number - 1) % max(1, len(found))
        return found[first:] + found[:first]

    def limit(self, step: Step, task: Task) -> float | None:
        """Return after how many seconds a step is given up, judged by the quickest one like it."""
        taken = [
            sample.seconds
            for _, track in self.members
            for each in track.rounds
            if (sample := each.get(step.kind)) is not None
        ]
        if task.patience is None or not taken:
            return None
        return max(SHORTEST_LIMIT, task.patience * min(taken))


def take_turns(
    contenders: Sequence[Sequence[Contender]], rounds: Sequence[Round], task: Task
) -> Outcome:
    """Let teams of contenders go through the rounds, until each has used the seconds allotted.

    The contents of the answers are compared after every step of the first round and when a
    contender goes to rest, the numbers of tuples after every step.
    """
    teams = [
        Team([(each, Track(each.name, each.is_steady)) for each in team]) for team in contenders
    ]
    differences: list[str] = []
    for number, steps in enumerate(rounds, 1):
        for team in teams:
            differences += go_round(team, steps, number, task)
    for team in teams:
        assert team.start is not None
        for contender, track in team.members:
            differences += disagreement(contender, team.start, "in the end")
            track.tuples, track.told = contender.size(), dict(contender.told)
    return Outcome([track for team in teams for _, track in team.members], differences)


def go_round(team: Team, steps: Round, number: int, task: Task) -> list[str]:
    """Let a team go through one round, and return where answers differ."""
    differences: list[str] = []
    active = team.active(task, number)
    for _, track in active:
        track.rounds.append({})
    for step in steps:
        for contender, track in active:
            track.rounds[-1][step.kind] = contender.take(step, team.limit(step, task))
        where = f"after {step.kind} in round {number}"
        if number == 1:
            *others, (referee, _) = team.members
            team.start = contents_of(referee)
            for contender, _ in others:
                differences += disagreement(contender, team.start, where)
        else:
            sizes = {contender.name: contender.size() for contender, _ in active}
            if step is steps[-1] and team.start is not None:
                sizes["start"] = team.start.table.num_rows
            differences += miscounts(sizes, where)
    return differences


def miscounts(sizes: dict[str, int], where: str) -> list[str]:
    """Say how numbers of tuples differ; nothing if they do not.

    >>> miscounts({"ranked": 7, "duckdb": 8}, "after delete in round 2")
    ['tuples after delete in round 2: ranked 7, duckdb 8']
    """
    if len(set(sizes.values())) <= 1:
        return []
    listed = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    return [f"tuples {where}: {listed}"]
