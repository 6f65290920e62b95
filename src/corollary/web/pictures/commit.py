"""The picture of a commit: its views in the order of their computation, each with its time.

Floors are computed one after the other, so a bar begins where the one below it ends; the views of
one component are computed together and share their time. The bar says how long it took, the signs
what came and went, the words how it was computed.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import floor, log10
from typing import Any

from markupsafe import Markup, escape

from corollary.data_class import dataclass

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
    return Markup("".join(_drawn(views)))  # noqa: S704, names are escaped


def _drawn(views: Sequence[TimedView]) -> Iterable[str]:
    total = max((each.start + each.seconds for each in views), default=0.0) or 1e-9
    reach = WIDTH - LEFT - RIGHT
    height = TOP + ROW * len(views) + 8
    yield (
        f'<svg class="waterfall" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{len(views)} views in {escape(duration(total))}">'
    )
    for time in _ticks(total):
        x = LEFT + reach * time / total
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{height - 6}"/>'
        yield f'<text class="scale" x="{x:.1f}" y="{TOP - 11}">{_round_duration(time)}</text>'
    for number, each in enumerate(views):
        y = TOP + ROW * number
        x = LEFT + reach * each.start / total
        width = max(reach * each.seconds / total, LEAST_WIDTH)
        if number == 0 or views[number - 1].floor != each.floor:
            yield f'<text class="floor-name" x="0" y="{y + 20}">{each.floor}</text>'
        yield f'<text class="name" x="28" y="{y + 20}">{escape(_cut(each.name))}</text>'
        yield (
            f'<rect class="bar {escape(each.algorithm)}" x="{x:.1f}" y="{y + 6}" '
            f'width="{width:.1f}" height="{ROW - 14}" rx="3"><title>{escape(each.name)}: '
            f"{duration(each.seconds)}</title></rect>"
        )
        yield (
            f'<text class="words" x="{LEFT + reach + 14}" y="{y + 20}">'
            f'<tspan class="time">{duration(each.seconds)}</tspan> {escape(each.algorithm)}, '
            f"{escape(each.placement)}</text>"
        )
        yield f'<text class="signs" x="{WIDTH}" y="{y + 20}">{_signs(each)}</text>'
    yield "</svg>"


def _signs(view: TimedView) -> str:
    signs = []
    if view.added:
        signs.append(f'<tspan class="came">+{view.added:,}</tspan>')
    if view.removed:
        signs.append(f'<tspan class="went">−{view.removed:,}</tspan>')
    return " ".join(signs)


def _cut(name: str) -> str:
    return name if len(name) <= LABEL_MAX else f"{name[: LABEL_MAX - 1]}…"
