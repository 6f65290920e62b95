"""`python -m bench.growth.plot OUT.svg FILE.json …`: the driver's memory over the rows, as SVG.

The files hold what `python -m bench.growth` prints, one object a line. Both axes are logarithmic:
memory that grows with the data would be the slanted line, which is 60 bytes a row.
"""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 360, 90, 50
BYTES_A_ROW = 60
"""What a tuple takes on the driver where a relation is held there."""
SERIES = (("load", "at the load", "#963", -10), ("change", "during changes", "#247", 20))
"""Steps whose peaks are drawn: their names, what they are called, colour, where figures are."""
ROWS = (1e5, 1e9)
MEGABYTES = (10, 100_000)


def main(out: str, *files: str) -> None:
    """Draw what was measured."""
    lines = [line for file in files for line in Path(file).read_text("utf-8").splitlines()]
    Path(out).write_text(draw([json.loads(line) for line in lines if line.startswith("{")]))


def draw(found: Sequence[dict[str, Any]]) -> str:
    """Return a figure of the peaks."""
    font = 'font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {font}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for power in range(5, 10):
        at = _x(10**power)
        parts.append(_line(at, HEIGHT - BOTTOM, at, 20, "#ddd"))
        parts.append(_text(at, HEIGHT - BOTTOM + 18, _count(10**power), "middle"))
    for power in range(1, 6):
        at = _y(10**power)
        parts.append(_line(LEFT, at, WIDTH - 20, at, "#ddd"))
        parts.append(_text(LEFT - 8, at + 4, f"{10**power:,} MB", "end"))
    parts.append(_text((LEFT + WIDTH) / 2, HEIGHT - 10, "rows of the base relation", "middle"))
    ends = [(rows, rows * BYTES_A_ROW / 1e6) for rows in (2e5, 1e9)]
    (x1, y1), (x2, y2) = ((_x(rows), _y(peak)) for rows, peak in ends)
    parts.append(_line(x1, y1, x2, y2, "#c66"))
    parts.append(_text(_x(1.2e8), _y(2.5e4), "60 B a row: all on the driver", "end"))
    for step, label, colour, below in SERIES:
        points = sorted((each["rows"], each[step]["memory"] / 1e6) for each in found)
        path = " ".join(f"{_x(rows):.1f},{_y(peak):.1f}" for rows, peak in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for rows, peak in points:
            parts.append(f'<circle cx="{_x(rows):.1f}" cy="{_y(peak):.1f}" r="4" fill="{colour}"/>')
            parts.append(_text(_x(rows), _y(peak) + below, f"{peak:,.0f}", "middle"))
        parts.append(_text(_x(points[-1][0]) + 40, _y(points[-1][1]) + below, label, "start"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(rows: float) -> float:
    low, high = map(math.log10, ROWS)
    return LEFT + (math.log10(rows) - low) / (high - low) * (WIDTH - 20 - LEFT)


def _y(megabytes: float) -> float:
    low, high = map(math.log10, MEGABYTES)
    return HEIGHT - BOTTOM - (math.log10(megabytes) - low) / (high - low) * (HEIGHT - BOTTOM - 20)


def _count(rows: float) -> str:
    return f"{rows / 1e6:g} M" if rows < 1e9 else f"{rows / 1e9:g} G"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


if __name__ == "__main__":
    main(*sys.argv[1:])
