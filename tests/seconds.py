"""Demands that no test of `make test` takes more than half a second of processor time.

`make test` records what each test takes. Those above the limit are run again on their own, since
the first test of a process loads modules, and the smaller figure counts. A busy or slow machine may
need four times as long. A test that needs longer is marked `slow`, which `make test-integration`
runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT_SECONDS = 0.5
BUSY_FACTOR = 4


def slow_tests(record: Path) -> dict[str, float]:
    """Return the tests of a record that are above the limit, with their seconds."""
    seconds: dict[str, float] = json.loads(record.read_text("utf-8"))
    return {test: found for test, found in seconds.items() if found > BUSY_FACTOR * LIMIT_SECONDS}


def again(tests: dict[str, float]) -> dict[str, float]:
    """Run tests in a process of their own, and return those that are above the limit again."""
    with tempfile.TemporaryDirectory() as directory:
        record = Path(directory) / "seconds.json"
        command = [sys.executable, "-m", "pytest", "-q", "--hypothesis-profile=ci"]
        command += [f"--record-seconds={record}", *tests]
        subprocess.run(command, check=True)
        return {test: min(found, tests[test]) for test, found in slow_tests(record).items()}


def main(record: Path) -> int:
    """Return 1 if there are tests above the limit, and name them."""
    tests = slow_tests(record)
    left = again(tests) if tests else {}
    for test, found in sorted(left.items(), key=lambda each: -each[1]):
        print(f"{found:6.2f} s  {test}")
    if left:
        print(f"Over {LIMIT_SECONDS} s of processor time: make them smaller, or mark them `slow`.")
    return bool(left)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
