"""The outcome of a maintenance task: a table for the terminal, and JSON."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from bench.maintain.task import BEST, CHOOSING, Bar, Task
from bench.maintain.tracks import Outcome, Track
from bench.maintain.verdicts import Judged, Verdict, verdicts

CHOICE_BAR = 1.2
WIDTHS = (18, 12, 12, 12, 12, 7)


def lines(task: Task, outcome: Outcome, *, with_bars: bool = True) -> list[str]:
    """Return a task's outcome as lines: a title, a line for each contender, one for each bar."""
    headings = [f"{kind} ms" for kind in outcome.kinds]
    found = [
        f"{task.name}: {task.about}",
        _line(("", "tuples", *headings, "all ms", "rounds"), "by"),
    ]
    for track in outcome.tracks:
        cells = [_milliseconds(track, kind) for kind in (*outcome.kinds, None)]
        cells = [f"{track.tuples:,}", *cells, str(len(track.rounds))]
        found.append(_line((track.name, *cells), _told(track)))
    for verdict in verdicts(task, outcome):
        found.append(f"    {sentence(verdict, with_bars=with_bars)}")
        if with_bars and verdict.bar.rival == BEST:
            found += [f"      {each}" for each in reasons(verdict, outcome)]
    found += [f"    WRONG {each}" for each in outcome.differences]
    return found


def choices(outcomes: Iterable[tuple[Task, Outcome]]) -> str:
    """Say how often auto has chosen the better one of an increment and a recomputation.

    It has if it took at most 1.2 times as long as the quicker one; nothing if no one chose.
    """
    found = [
        outcome.ratio("auto", min(rivals, key=lambda each: each.median(kind)).name, kind)
        for task, outcome in outcomes
        if task.group == CHOOSING
        if (rivals := [outcome.track(each) for each in (task.algorithms[1], "recompute")])
        for kind in outcome.kinds
    ]
    better = sum(ratio <= CHOICE_BAR for ratio in found)
    return f"auto chose the better one of two in {better} of {len(found)}" if found else ""


def reasons(verdict: Verdict, outcome: Outcome) -> list[str]:
    """Say why a choice was made that turned out bad."""
    told = outcome.track(verdict.bar.ours).told
    return [
        f"{each.kind}: {reason}"
        for each in verdict.judged
        if not each.is_met
        for reason, _ in told[each.kind].reasons.most_common(2)
    ]


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


def sentence(verdict: Verdict, *, with_bars: bool) -> str:
    """Return how a bar was met: how much quicker or, where that is allowed, how much slower."""
    bar = verdict.bar
    listed = ", ".join(_figure(each, bar, with_bars=with_bars) for each in verdict.judged)
    text = f"{bar.ours} against {bar.rival}: {listed}"
    return f"{text}: {verdict.word}" if with_bars else text


def _figure(judged: Judged, bar: Bar, *, with_bars: bool) -> str:
    if bar.times >= 1:
        limit = f" (at least {judged.needed:.3g})" if with_bars else ""
        return f"{judged.kind} {judged.times:.3g} x quicker{limit}"
    limit = f" (at most {1 / judged.needed:.3g})" if with_bars else ""
    whose = f" of {judged.rival}" if bar.rival == BEST else ""
    return f"{judged.kind} {1 / judged.times:.3g} x the time{whose}{limit}"


def _line(cells: Iterable[str], last: str) -> str:
    name, *others = cells
    padded = [cell.rjust(width) for cell, width in zip(others, WIDTHS[1:], strict=True)]
    return "  ".join(["   ", name.ljust(WIDTHS[0]), *padded, last]).rstrip()


def as_json(task: Task, outcome: Outcome) -> dict[str, Any]:
    """Return the outcome with every sample."""
    return {
        "workload": task.name,
        "about": task.about,
        "differences": outcome.differences,
        "contenders": [
            {
                "name": track.name,
                "tuples": track.tuples,
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
                "judged": [asdict(each) for each in verdict.judged],
                "verdict": verdict.word,
            }
            for verdict in verdicts(task, outcome)
        ],
    }
