"""The outcome of a maintenance task: a table for the terminal, and JSON."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from bench.maintain.task import Task
from bench.maintain.turns import Outcome, Track
from bench.maintain.verdicts import Judged, Verdict, verdicts

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
    found += [f"    {sentence(each, with_bars=with_bars)}" for each in verdicts(task, outcome)]
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


def sentence(verdict: Verdict, *, with_bars: bool) -> str:
    """Return how a bar was met: how much quicker or, where that is allowed, how much slower."""
    bar = verdict.bar
    is_slower = bar.times < 1
    listed = ", ".join(_figure(each, verdict, with_bars=with_bars) for each in verdict.judged)
    text = f"{bar.ours} {'takes' if is_slower else 'is quicker'}: {listed}"
    return f"{text}: {verdict.word}" if with_bars else text


def _figure(judged: Judged, verdict: Verdict, *, with_bars: bool) -> str:
    is_slower = verdict.bar.times < 1
    times, needed = judged.times, judged.needed
    if is_slower:
        times, needed = 1 / times, 1 / needed
    limit = f" (at {'most' if is_slower else 'least'} {needed:.3g})" if with_bars else ""
    than = "" if is_slower else "than "
    return f"{judged.kind} {times:.3g} x {than}{judged.rival}{limit}"


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
