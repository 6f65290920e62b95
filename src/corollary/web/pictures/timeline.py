"""The slider's picture: a tick for each commit, what came above the line, what went below it."""

from collections.abc import Iterable, Mapping
from math import log1p
from typing import Any

from markupsafe import Markup

from corollary.data_class import dataclass

HEIGHT, MIDDLE, REACH, LEAST = 40.0, 24.0, 15.0, 2.0
"""Of the picture; of the line; the longest tick on either side, and the shortest."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A commit on the slider.

    Attributes:
        at: when it was made, as JSON has it.
        added: how many tuples came.
        removed: how many went.
        alerts: how many alerts it raised.
        new_program: whether it changed the program.
        changes: by relation, how many tuples came and went.
    """

    commit: int
    at: str
    added: int
    removed: int
    alerts: int
    new_program: bool
    changes: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The commits that the slider shows, and the point that the page is at.

    Attributes:
        ticks: oldest first.
        at: the commit that the page shows; 0 if there is none.
        since: the commit that it is compared with, if any.
    """

    ticks: tuple[Tick, ...]
    at: int
    since: int | None

    @property
    def first(self) -> int:
        """The oldest commit of the slider."""
        return self.ticks[0].commit if self.ticks else 0

    @property
    def newest(self) -> int:
        """The last commit of all."""
        return self.ticks[-1].commit if self.ticks else 0

    @property
    def is_past(self) -> bool:
        """Whether the page shows an earlier state."""
        return self.at != self.newest

    @property
    def when(self) -> str | None:
        """When the commit that is shown was made, if the slider has it."""
        return next((each.at for each in self.ticks if each.commit == self.at), None)

    @property
    def changes(self) -> Mapping[str, tuple[int, int]]:
        """What the commit that is shown has changed: by relation, how many came and went."""
        return next((each.changes for each in self.ticks if each.commit == self.at), {})

    @property
    def before(self) -> int | None:
        """The commit before the one that is shown."""
        return max((each.commit for each in self.ticks if each.commit < self.at), default=None)

    @property
    def after(self) -> int | None:
        """The commit after it."""
        return min((each.commit for each in self.ticks if each.commit > self.at), default=None)

    @property
    def compared_with(self) -> int:
        """The commit that a comparison begins with."""
        return self.at - 1

    @property
    def picture(self) -> Markup:
        """The ticks as SVG, as wide as there is room."""
        return Markup("".join(_drawn(self)))  # noqa: S704, numbers only


def timeline_of(
    commits: Iterable[Mapping[str, Any]], at: int | None, since: int | None
) -> Timeline:
    """Return the slider of the commits of a log, which are newest first."""
    ticks = tuple(
        Tick(
            each["commit"],
            each["timestamp"],
            sum(change["added"] for change in each["changes"].values()),
            sum(change["removed"] for change in each["changes"].values()),
            each.get("alerts", 0),
            each["new_program"],
            {name: (it["added"], it["removed"]) for name, it in each["changes"].items()},
        )
        for each in reversed(list(commits))
    )
    newest = ticks[-1].commit if ticks else 0
    return Timeline(ticks, newest if at is None else at, since)


def _drawn(timeline: Timeline) -> Iterable[str]:
    span = max(timeline.newest - timeline.first, 1)
    most = max((max(each.added, each.removed) for each in timeline.ticks), default=0)
    scale = (REACH - LEAST) / max(log1p(most), 1.0)

    def place(commit: int) -> float:
        only = timeline.newest == timeline.first
        return 100.0 if only else 100 * (commit - timeline.first) / span

    yield f'<svg class="ticks" width="100%" height="{HEIGHT:.0f}" aria-hidden="true">'
    if timeline.since is not None:
        start, end = place(max(timeline.since, timeline.first)), place(timeline.at)
        yield f'<rect class="span" x="{start:.3f}%" width="{max(end - start, 0):.3f}%" y="4" '
        yield f'height="{HEIGHT - 6:.0f}"/>'
    yield f'<line class="line" x1="0" x2="100%" y1="{MIDDLE}" y2="{MIDDLE}"/>'
    for each in timeline.ticks:
        x = place(each.commit)
        up = LEAST + scale * log1p(each.added) if each.added else 0.0
        down = LEAST + scale * log1p(each.removed) if each.removed else 0.0
        chosen = " chosen" if each.commit == timeline.at else ""
        if each.new_program:
            yield f'<circle class="new{chosen}" cx="{x:.3f}%" cy="{MIDDLE}" r="2.5"/>'
        if up:
            yield _line("came" + chosen, x, MIDDLE - up, MIDDLE)
        if down:
            yield _line("went" + chosen, x, MIDDLE, MIDDLE + down)
        if not up and not down:
            yield _line("none" + chosen, x, MIDDLE - LEAST, MIDDLE + LEAST)
        if each.alerts:
            yield f'<circle class="alert" cx="{x:.3f}%" cy="4" r="3"/>'
    yield "</svg>"


def _line(name: str, x: float, top: float, bottom: float) -> str:
    return f'<line class="{name}" x1="{x:.3f}%" x2="{x:.3f}%" y1="{top:.1f}" y2="{bottom:.1f}"/>'
