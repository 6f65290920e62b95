"""A command in a process of its own: the clock, the processor, and the peak of its memory.

Processor time is user and system time of the process and of all that it has started and waited for.
Memory is **anonymous** memory, `RssAnon` of `/proc/PID/status`, of the process and its descendants
together, looked at every few milliseconds: pages of mapped files are the kernel's to take back, so
that they would say nothing about what fits into a machine. Where there is no `/proc` it is 0.
"""

import compileall
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import corollary

LOOK_SECONDS = 0.01
WATCH_SECONDS = 0.05
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Spent:
    """What one run of a command took.

    Attributes:
        wall: seconds on the clock.
        processor: seconds of user and system time.
        memory: bytes of anonymous memory at the peak.
        printed: what it wrote to standard output.
    """

    wall: float
    processor: float
    memory: int
    printed: str = ""

    def __str__(self) -> str:
        return f"{self.processor:.2f} s ({self.wall:.2f} s)"


def run_process(command: Sequence[str], directory: Path | None = None) -> Spent:
    """Run a command to its end.

    Raises:
        RuntimeError: it failed; with what it wrote to standard error.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=directory, stdout=out, stderr=errors)
        peak = 0
        while True:
            found, status, usage = os.wait4(process.pid, os.WNOHANG)
            if found:
                break
            peak = max(peak, _anonymous_memory(process.pid))
            time.sleep(LOOK_SECONDS)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)  # it was waited for here
        if process.returncode:
            errors.seek(0)
            message = errors.read().decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)} gave {process.returncode}: {message}")
        out.seek(0)
        printed = out.read().decode()
    return Spent(wall, usage.ru_utime + usage.ru_stime, peak, printed)


@cache
def byte_compile() -> None:
    """Compile the package, as installing it does: a worktree, or a setting, may have left that."""
    compileall.compile_dir(Path(corollary.__file__).parent, quiet=1)


def run_corollary(*arguments: str) -> Spent:
    """Run the command line of Corollary."""
    byte_compile()
    return run_process([sys.executable, "-m", "corollary", *arguments])


def run_duckdb(sql: str, database: Path, directory: Path, threads: int) -> Spent:
    """Run statements in a new database file; names of other files are relative to a directory."""
    database.unlink(missing_ok=True)
    code = (
        "import duckdb, sys; "
        f"duckdb.connect(sys.argv[1], config={{'threads': {threads}}}).execute(sys.argv[2])"
    )
    return run_process([sys.executable, "-c", code, str(database), sql], directory)


def middle(runs: Sequence[Spent]) -> Spent:
    """Return the medians of several runs of one command."""
    return Spent(
        statistics.median(each.wall for each in runs),
        statistics.median(each.processor for each in runs),
        max(each.memory for each in runs),
        runs[-1].printed,
    )


class ProcessWatch:
    """Looks at this process and all that come from it until stopped.

    The time of a process that ends counts as far as it was seen last: not all of those that Spark
    starts are waited for, and what is not waited for is in no total of the system.

    Attributes:
        peak: bytes of anonymous memory of this process.
        java: the same of all its Java processes together.
        seconds: processor time of all of them.
    """

    def __init__(self) -> None:
        self.peak = self.java = 0
        self.seconds = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop looking."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        first = {each: _ticks(each) for each in descendants(os.getpid())}
        last = dict(first)
        is_last = False
        while not is_last:
            is_last = self._ended.wait(WATCH_SECONDS)
            found = list(descendants(os.getpid()))
            for each in found:
                last[each] = max(last.get(each, 0), _ticks(each))
            self.peak = max(self.peak, _anonymous_bytes(os.getpid()))
            java = (each for each in found if _name(each) == "java")
            self.java = max(self.java, sum(map(_anonymous_bytes, java)))
        ticks = sum(last.values()) - sum(first.values())
        self.seconds = ticks / os.sysconf("SC_CLK_TCK")


def descendants(process: int) -> Iterator[int]:
    """Yield a process and all that come from it, as far as they can be seen."""
    waiting = [process]
    while waiting:
        each = waiting.pop()
        yield each
        with suppress(OSError):  # it has just ended, or there is no such directory here
            for task in Path("/proc", str(each), "task").iterdir():
                waiting += map(int, (task / "children").read_text(encoding="utf-8").split())


def processor_seconds(process: int) -> dict[int, float]:
    """Return the processor time so far of a process and of each that comes from it and runs."""
    second = os.sysconf("SC_CLK_TCK")
    return {each: _ticks(each) / second for each in descendants(process)}


def _anonymous_memory(process: int) -> int:
    """Return how many bytes a process and its descendants have now, as far as they can be seen."""
    return sum(map(_anonymous_bytes, descendants(process)))


def _anonymous_bytes(process: int) -> int:
    with suppress(OSError):
        status = Path("/proc", str(process), "status").read_text(encoding="utf-8")
        for line in status.splitlines():
            if line.startswith("RssAnon:"):
                return 1024 * int(line.split()[1])
    return 0


def _ticks(process: int) -> int:
    """Return the processor time of a process alone."""
    with suppress(OSError):
        stat = Path("/proc", str(process), "stat").read_text(encoding="utf-8")
        return sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return 0


def _name(process: int) -> str:
    with suppress(OSError):
        return Path("/proc", str(process), "comm").read_text(encoding="utf-8").strip()
    return ""
