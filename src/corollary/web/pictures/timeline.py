"""The slider's picture: a tick for each commit, what came above the line, what went below it."""

from collections.abc import Iterable, Iterator, Mapping
from math import log1p
from typing import Any

from markupsafe import Markup

from corollary.data_class import dataclass
from corollary.drawing.svg import element

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
        size = {"width": "100%", "height": HEIGHT}
        return Markup(  # noqa: S704, numbers only
            element("svg", *_ticks(self), class_="ticks", **size, aria_hidden="true")
        )


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


def _ticks(timeline: Timeline) -> Iterator[str]:
    span = timeline.newest - timeline.first
    most = max((max(each.added, each.removed) for each in timeline.ticks), default=0)
    scale = (REACH - LEAST) / max(log1p(most), 1.0)

    def position(commit: int) -> str:
        return f"{100 * (commit - timeline.first) / span if span else 100.0:.3f}%"

    def line(kind: str, x: str, top: float, bottom: float) -> str:
        return element("line", class_=kind, x1=x, x2=x, y1=top, y2=bottom)

    if timeline.since is not None:
        start = max(timeline.since, timeline.first)
        width = f"{100 * max(timeline.at - start, 0) / max(span, 1):.3f}%"
        yield element("rect", class_="span", x=position(start), width=width, y=4, height=HEIGHT - 6)
    yield element("line", class_="line", x1=0, x2="100%", y1=MIDDLE, y2=MIDDLE)
    for each in timeline.ticks:
        x = position(each.commit)
        up = LEAST + scale * log1p(each.added) if each.added else 0.0
        down = LEAST + scale * log1p(each.removed) if each.removed else 0.0
        chosen = " chosen" if each.commit == timeline.at else ""
        if each.new_program:
            yield element("circle", class_=f"new{chosen}", cx=x, cy=MIDDLE, r=2.5)
        if up:
            yield line(f"came{chosen}", x, MIDDLE - up, MIDDLE)
        if down:
            yield line(f"went{chosen}", x, MIDDLE, MIDDLE + down)
        if not up and not down:
            yield line(f"none{chosen}", x, MIDDLE - LEAST, MIDDLE + LEAST)
        if each.alerts:
            yield element("circle", class_="alert", cx=x, cy=4, r=3)
