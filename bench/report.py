"""The results of a run: a table for the terminal, and JSON."""

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.measure import Measurement, Timing

HEADINGS = (
    *("workload", "tuples", "rounds", "plan s", "ours s", "duckdb s", "ratio", "bar"),
    *("ours cpu s", "duckdb cpu s", "ratio", ""),
)
WIDTHS = (17, 10, 6, 7, 7, 8, 6, 5, 10, 12, 6, 0)
"""Of the columns; the bar is that of the ratio before it, of seconds on the clock."""


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report.

    Attributes:
        bar: of the ratio where there is a rival, otherwise of our seconds.
    """

    name: str
    about: str
    measurement: Measurement
    bar: float | None = None
    remarks: tuple[str, ...] = field(default=())

    @property
    def ours(self) -> Timing:
        """Our timing."""
        return self.measurement.timings[0]

    @property
    def rival(self) -> Timing | None:
        """The timing of whom we are compared with."""
        others = self.measurement.timings[1:]
        return others[0] if others else None

    @property
    def ratio(self) -> float | None:
        """Our median over the rival's."""
        return self.ours.median / self.rival.median if self.rival else None

    @property
    def processor_ratio(self) -> float | None:
        """Our median of processor time over the rival's."""
        rival = self.rival
        return self.ours.median_processor / rival.median_processor if rival else None

    @property
    def verdict(self) -> str:
        """`ok` or `missed` where there is a bar, `WRONG` where answers differ."""
        if self.measurement.differences:
            return "WRONG"
        if self.bar is None:
            return ""
        figure = self.ours.median if self.ratio is None else self.ratio
        return "ok" if figure <= self.bar else "missed"

    @property
    def rate(self) -> float | None:
        """Tuples derived per second, by all steps."""
        derived = self.ours.notes.get("derived")
        return derived / self.ours.median if derived else None


def heading() -> str:
    """Return the line above the results."""
    return _line(HEADINGS)


def line(result: Result) -> str:
    """Return one result as a line of the table, what is remarkable about it below."""
    rival, ratio, rate = result.rival, result.ratio, result.rate
    processor_ratio = result.processor_ratio
    unit = "" if result.bar is None or ratio is not None else " s"
    notes = result.ours.notes
    cells = (
        result.name,
        f"{result.ours.tuples:,}",
        f"{notes['rounds']:.0f}" if "rounds" in notes else "",
        f"{notes['parse'] + notes['plan']:.3f}" if "plan" in notes else "",
        f"{result.ours.median:.3f}",
        f"{rival.median:.3f}" if rival else "",
        f"{ratio:.2f}" if ratio is not None else "",
        f"{result.bar:.1f}{unit}" if result.bar is not None else "",
        f"{result.ours.median_processor:.3f}",
        f"{rival.median_processor:.3f}" if rival else "",
        f"{processor_ratio:.2f}" if processor_ratio is not None else "",
        result.verdict or (f"{rate / 1e6:.2f} M tuples/s" if rate and not rival else ""),
    )
    below = [f"    {text}" for text in (*result.measurement.differences, *result.remarks)]
    return "\n".join([_line(cells), *below])


def _line(cells: Iterable[str]) -> str:
    name, *others = cells
    padded = [cell.rjust(width) for cell, width in zip(others[:-1], WIDTHS[1:-1], strict=True)]
    return "  ".join([name.ljust(WIDTHS[0]), *padded, others[-1]]).rstrip()


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "versions": {name: version(name) for name in ("numpy", "pyarrow", "duckdb")},
    }


def write(
    path: Path,
    results: list[Result],
    maintained: list[dict[str, Any]],
    figures: dict[str, list[dict[str, Any]]],
    *,
    repeat: int,
    scale: float,
) -> None:
    """Write all results as JSON, every run's seconds included."""
    content = {
        "machine": machine(),
        "repeat": repeat,
        "scale": scale,
        "results": [_as_json(result) for result in results],
        "maintained": maintained,
        **figures,
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _as_json(result: Result) -> dict[str, Any]:
    return {
        "workload": result.name,
        "about": result.about,
        "bar": result.bar,
        "ratio": result.ratio,
        "processor_ratio": result.processor_ratio,
        "verdict": result.verdict,
        "tuples_per_second": result.rate,
        "differences": result.measurement.differences,
        "remarks": list(result.remarks),
        "contenders": [
            {
                "name": timing.name,
                "median": timing.median,
                "seconds": timing.seconds,
                "processor": timing.processor,
                "tuples": timing.tuples,
                "notes": timing.notes,
            }
            for timing in result.measurement.timings
        ],
    }
