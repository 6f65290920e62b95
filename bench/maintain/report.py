"""The outcome of a maintenance task: a table for the terminal, and JSON."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bench.maintain.task import Bar, Task
from bench.maintain.turns import Outcome, Track

WIDTHS = (12, 12, 12, 12, 7)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a bar is met: for each kind of step how much quicker, and by how much it should."""

    bar: Bar
    times: dict[str, float]

    @property
    def word(self) -> str:
        """`ok`, or `missed` and where."""
        missed = [kind for kind, times in self.times.items() if times < self.bar.times]
        return f"missed ({', '.join(missed)})" if missed else "ok"


def kinds_of(outcome: Outcome) -> list[str]:
    """Return the kinds of steps that were taken."""
    return list(outcome.tracks[0].rounds[0])


def verdicts(task: Task, outcome: Outcome) -> list[Verdict]:
    """Return how the bars of a task were met."""
    found = []
    for bar in task.bars:
        times = {
            kind or "all": 1 / outcome.ratio(bar.ours, bar.rival, kind)
            for kind in (*kinds_of(outcome), None)
        }
        found.append(Verdict(bar, times))
    return found


def lines(task: Task, outcome: Outcome, *, with_bars: bool = True) -> list[str]:
    """Return a task's outcome as lines: a title, a line for each contender, one for each bar."""
    kinds = kinds_of(outcome)
    found = [
        f"{task.name}: {task.about}; {outcome.tuples:,} tuples",
        _line(("", *(f"{kind} ms" for kind in kinds), "all ms", "rounds"), "by"),
    ]
    for track in outcome.tracks:
        cells = [_milliseconds(track, kind) for kind in (*kinds, None)]
        found.append(_line((track.name, *cells, str(len(track.rounds))), _told(track)))
    for verdict in verdicts(task, outcome):
        found.append("    " + _sentence(verdict, with_bars=with_bars))
    found += [f"    WRONG {each}" for each in outcome.differences]
    return found


def _milliseconds(track: Track, kind: str | None) -> str:
    sign = "> " if track.is_cut(kind) else ""
    return f"{sign}{1000 * track.median(kind):,.2f}"


def _told(track: Track) -> str:
    parts = []
    for kind, told in track.told.items():
        names = "+".join(sorted(told.algorithms))
        switched = f", {told.switches} switched" if told.switches else ""
        parts.append(f"{kind}: {names}{switched}")
    return "; ".join(parts)


def _sentence(verdict: Verdict, *, with_bars: bool) -> str:
    bar = verdict.bar
    times = ", ".join(f"{kind} {times:.3g} x" for kind, times in verdict.times.items())
    judged = f"; bar {bar.times:.3g} x: {verdict.word}" if with_bars else ""
    return f"{bar.ours} quicker than {bar.rival}: {times}{judged}"


def _line(cells: Iterable[str], last: str) -> str:
    name, *others = cells
    padded = [cell.rjust(width) for cell, width in zip(others, WIDTHS[1:], strict=True)]
    return "  ".join(["   ", name.ljust(WIDTHS[0]), *padded, last]).rstrip()


def as_json(task: Task, outcome: Outcome) -> dict[str, Any]:
    """Return the outcome with every sample."""
    return {
        "workload": task.name,
        "about": task.about,
        "tuples": outcome.tuples,
        "differences": outcome.differences,
        "contenders": [
            {
                "name": track.name,
                "seconds": [
                    {kind: sample.seconds for kind, sample in each.items()} for each in track.rounds
                ],
                "is_cut": track.is_cut(),
                "told": {
                    kind: {
                        "algorithms": dict(told.algorithms),
                        "reasons": dict(told.reasons),
                        "switches": told.switches,
                    }
                    for kind, told in track.told.items()
                },
            }
            for track in outcome.tracks
        ],
        "bars": [
            {
                "ours": verdict.bar.ours,
                "rival": verdict.bar.rival,
                "bar": verdict.bar.times,
                "times": verdict.times,
                "verdict": verdict.word,
            }
            for verdict in verdicts(task, outcome)
        ],
    }
