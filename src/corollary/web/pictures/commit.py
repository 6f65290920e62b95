"""The picture of a commit: its views in the order of their computation, each with its time.

Floors are computed one after the other, so a bar begins where the one below it ends; the views of
one component are computed together and share their time. The bar says how long it took, the signs
what came and went, the words how it was computed.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import floor, log10
from typing import Any

from markupsafe import Markup

from corollary.data_class import dataclass
from corollary.drawing.svg import element, escape_text, shorten

WIDTH, LEFT, RIGHT, ROW, TOP = 1180, 230, 360, 32, 26
LEAST_WIDTH = 2.0
LABEL_MAX, TICKS_MAX = 22, 5


@dataclass(frozen=True, slots=True)
class TimedView:
    """A view that a commit has maintained.

    Attributes:
        floor: the stratum, from 1.
        together: the views that share its time, itself among them.
        start: seconds since the computation began.
        counters: of its algorithm, those that are not zero.
    """

    name: str
    floor: int
    together: tuple[str, ...]
    start: float
    seconds: float
    algorithm: str
    placement: str
    added: int
    removed: int
    counters: tuple[tuple[str, int], ...]


def timed_views(
    stats: Mapping[str, Mapping[str, Any]],
    changes: Mapping[str, Mapping[str, int]],
    floors: Mapping[str, tuple[int, int]],
) -> list[TimedView]:
    """Return the views of a commit in the order of their computation.

    Args:
        stats: of each view that was maintained, as `apply` reports them.
        changes: how many tuples of each relation came and went.
        floors: the stratum and the component of each relation.
    """
    groups: dict[tuple[int, int], list[str]] = {}
    parts: dict[str, list[str]] = {}
    for place, name in enumerate(stats):
        owner = _owner(name, floors)
        if owner not in parts:
            groups.setdefault(floors.get(owner, (1, -1 - place)), []).append(owner)
        parts.setdefault(owner, []).append(name)
    found, start = [], 0.0
    for (height, _), names in sorted(groups.items()):
        own = max((_seconds(stats[name]) for name in names if name in stats), default=0.0)
        helping = (part for name in names for part in parts[name] if part not in names)
        seconds = own + sum(_seconds(stats[part]) for part in helping)
        for name in names:
            each, change = stats.get(name, {}), changes.get(name, {})
            found.append(
                TimedView(
                    name,
                    height,
                    tuple(names),
                    start,
                    seconds,
                    str(each.get("algorithm", "")),
                    str(each.get("placement", "")),
                    change.get("added", 0),
                    change.get("removed", 0),
                    _counters(each),
                )
            )
        start += seconds
    return found


def _owner(name: str, floors: Mapping[str, tuple[int, int]]) -> str:
    """Return the relation of the program that a relation belongs to, such as an aggregate of it."""
    owner = name
    while owner not in floors and "." in owner:
        owner = owner.rpartition(".")[0]
    return owner if owner in floors else name


def _seconds(stats: Mapping[str, Any]) -> float:
    return float(stats.get("seconds", 0.0))


def _counters(stats: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    return tuple(
        (name.replace("_", " "), value)
        for name, value in stats.items()
        if type(value) is int and value
    )


def duration(seconds: float) -> str:
    """Return a time in the unit that fits it.

    >>> duration(0.00042), duration(0.0123), duration(3.21)
    ('0.42 ms', '12.3 ms', '3.21 s')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1000:.2f} ms" if seconds < 0.01 else f"{seconds * 1000:.1f} ms"


def _round_duration(seconds: float) -> str:
    """Return a round time.

    >>> _round_duration(0.2), _round_duration(0), _round_duration(1.5)
    ('200 ms', '0', '1.5 s')
    """
    if not seconds:
        return "0"
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:g} ms"


def _ticks(total: float) -> list[float]:
    """Return round times up to a total.

    >>> _ticks(0.318)
    [0.0, 0.1, 0.2, 0.3]
    """
    power = 10.0 ** floor(log10(total))
    steps = (power * factor for factor in (0.1, 0.2, 0.5, 1.0))
    step = next((each for each in steps if total / each < TICKS_MAX), power * 2)
    return [round(step * number, 12) for number in range(int(total / step) + 1)]


def commit_picture(views: Sequence[TimedView]) -> Markup:
    """Return the picture as SVG; the page gives its colours."""
    total = max((each.start + each.seconds for each in views), default=0.0) or 1e-9
    reach, height = WIDTH - LEFT - RIGHT, TOP + ROW * len(views) + 8
    parts: list[str] = []
    for time in _ticks(total):
        x = LEFT + reach * time / total
        parts.append(element("line", class_="grid", x1=x, x2=x, y1=TOP - 6, y2=height - 6))
        parts.append(element("text", _round_duration(time), class_="scale", x=x, y=TOP - 11))
    for number, each in enumerate(views):
        y = TOP + ROW * number
        if number == 0 or views[number - 1].floor != each.floor:
            parts.append(element("text", str(each.floor), class_="floor-name", x=0, y=y + 20))
        parts += _row(each, y, LEFT + reach * each.start / total, reach * each.seconds / total)
    return Markup(  # noqa: S704, the writer has escaped names
        element(
            "svg",
            *parts,
            class_="waterfall",
            viewBox=f"0 0 {WIDTH} {height}",
            width=WIDTH,
            height=height,
            role="img",
            aria_label=f"{len(views)} views in {duration(total)}",
        )
    )


def _row(view: TimedView, y: int, x: float, width: float) -> Iterator[str]:
    """Yield the name of a view, its bar, how it was computed, what came and went."""
    line = y + 20
    name = shorten(view.name, LABEL_MAX)
    yield element("text", escape_text(name), class_="name", x=28, y=line)
    title = element("title", escape_text(f"{view.name}: {duration(view.seconds)}"))
    size = {"x": x, "y": y + 6, "width": max(width, LEAST_WIDTH), "height": ROW - 14}
    yield element("rect", title, class_=f"bar {view.algorithm}", **size, rx=3)
    time = element("tspan", duration(view.seconds), class_="time")
    words = escape_text(f" {view.algorithm}, {view.placement}")
    yield element("text", time, words, class_="words", x=WIDTH - RIGHT + 14, y=line)
    signs = []
    if view.added:
        signs.append(element("tspan", f"+{view.added:,}", class_="came"))
    if view.removed:
        signs.append(element("tspan", f"−{view.removed:,}", class_="went"))
    yield element("text", " ".join(signs), class_="signs", x=WIDTH, y=line)
