"""Growth on Spark: a table of 1, 10, 20 and 100 million rows, joined and summed, in partitions.

| figure | how it is taken |
|---|---|
| load | files of Parquet into a warehouse, committed; what Spark's workers use is counted |
| load/write | the same sums joined, grouped and written by Spark alone, warm: processor time |
| memory | the driver's Python process at its peak, anonymous, over the whole run |
| change | the median of six transactions of 1,000 rows: clock, processor, jobs, bytes |
| recompute/change | the same change, the sums computed anew, dry: processor time |
| query/change | Spark's own query over the files, cold: processor time |
| growth | a change at 100 million rows against one at 10 million: processor time |
| memory growth | the driver's peak at 100 million rows against that at 20 million |

Every size is a process of its own (`python -m bench.growth`), with a Spark session on two cores.
This runs only when asked for: `make bench ARGS="--only growth --scale 0.1"` has up to 10 million
rows and takes minutes; at a scale of 1 it writes 10 GB, and takes half an hour or more. A task that
writes a partition of 12 million rows takes 4 GB.
`python -m bench.growth.plot` draws what `python -m bench.growth` prints.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.figure import Figure
from bench.growth import sales_files
from bench.jobs import CORES, size

NAME = "growth"
ABOUT = "1 to 100 million rows in partitions on Spark, local[2]: a process for each size"
SIZES = {1_000_000: (2, 4), 10_000_000: (2, 4), 20_000_000: (4,), 100_000_000: (4,)}
"""Rows, and the partitions per core that they are measured with."""
GROWTH_SIZES = {100_000_000: 10_000_000}
MEMORY_SIZES = {100_000_000: 20_000_000}
"""The sizes that are compared."""
DISK_BYTES_A_ROW = 150
LOAD_BARS = {10_000_000: 3.0}
RATIO_BARS = {20_000_000: 5.0, 100_000_000: 20.0}
GROWTH_BAR = 1.5
MEMORY_BAR = 1.3


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    known: dict[tuple[int, int], dict[str, Any]] = {}
    for full, counts in SIZES.items():
        rows = max(1_000, round(full * scale))
        with tempfile.TemporaryDirectory(prefix="corollary-growth-") as directory:
            place = Path(directory)
            _check_disk(place, rows)
            sales_files.write_files(place, rows)
            for per_core in counts:
                found = known[full, per_core] = measure(place, rows, per_core * CORES)
                shutil.rmtree(place / "warehouse")
                yield from figures(rows, per_core, found)
                yield from comparisons(full, per_core, known)


def measure(place: Path, rows: int, partitions: int) -> dict[str, Any]:
    """Return what the process of one size has measured."""
    command = [sys.executable, "-m", "bench.growth", str(place), "--rows", str(rows)]
    command += ["--partitions", str(partitions)]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {process.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return found


def figures(rows: int, per_core: int, found: dict[str, Any]) -> Iterator[Figure]:
    """Yield the figures of one size."""
    label = _label(rows, per_core)
    load, change = found["load"], found["change"]
    wrong = ("the view is not what Spark SQL says",) if found["differs"] else ()
    about = f"{load['wall']:.1f} s on the clock; {_jobs(load)}; {rows / load['processor']:,.0f}/s"
    name = f"{label}: load"
    yield Figure(name, load["processor"], "s", None, about, differences=wrong)
    write = found["write"]["processor"]
    about = f"{write:.1f} s; the first load {found['first load']['processor']:.1f} s"
    yield Figure(f"{label}: load/write", load["processor"] / write, "x", LOAD_BARS.get(rows), about)
    about = f"driver at its peak; Java {size(found['java'])}"
    yield Figure(f"{label}: memory", found["memory"] / 1e6, "MB", None, about)
    about = f"{change['wall']:.2f} s on the clock; {_jobs(change)}"
    yield Figure(f"{label}: change", change["processor"], "s", None, about)
    bar = next((bar for least, bar in RATIO_BARS.items() if rows == least), None)
    for name in ("recompute", "query"):
        ratio = found[name]["processor"] / change["processor"]
        about = f"{found[name]['processor']:.1f} s; {_jobs(found[name])}"
        judged = bar if name == "recompute" else None
        yield Figure(f"{label}: {name}/change", ratio, "x", judged, about, is_floor=True)


def comparisons(
    full: int, per_core: int, known: Mapping[tuple[int, int], dict[str, Any]]
) -> Iterator[Figure]:
    """Yield the figures that compare a size with a smaller one."""
    found = known[full, per_core]
    label = _label(found["rows"], per_core)
    if before := known.get((GROWTH_SIZES.get(full, 0), per_core)):
        ratio = found["change"]["processor"] / before["change"]["processor"]
        about = f"against {before['rows'] / 1e6:g} M"
        yield Figure(f"{label}: growth", ratio, "x", GROWTH_BAR, about)
    if before := known.get((MEMORY_SIZES.get(full, 0), per_core)):
        ratio = found["memory"] / before["memory"]
        about = f"against {before['rows'] / 1e6:g} M: {size(before['memory'])}"
        yield Figure(f"{label}: memory growth", ratio, "x", MEMORY_BAR, about)


def _label(rows: int, per_core: int) -> str:
    return f"{rows / 1e6:g} M, {per_core} a core"


def _jobs(found: dict[str, Any]) -> str:
    moved = ", ".join(f"{size(found[each])} {each}" for each in ("sent", "shuffled", "returned"))
    return f"{found['jobs']:g} jobs, {found['stages']:g} stages, {moved}"


def _check_disk(place: Path, rows: int) -> None:
    needed, free = DISK_BYTES_A_ROW * rows, shutil.disk_usage(place).free
    if free < needed:
        raise SystemExit(
            f"{rows:,} rows need {needed / 1e9:.0f} GB in {place.parent}, which has "
            f"{free / 1e9:.0f} GB; choose another directory with TMPDIR, or a smaller --scale"
        )
