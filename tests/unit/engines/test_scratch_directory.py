"""Directories of temporary files: they go with their process, or are found by the next one."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corollary.engines import scratch_directory
from corollary.engines.scratch_directory import ScratchDirectory

MAKE = """
import sys
from pathlib import Path
from corollary.engines.scratch_directory import ScratchDirectory
made = ScratchDirectory("scratch", Path(sys.argv[1]))
(made.path / "file").write_text("x")
print(made.path, flush=True)
sys.stdin.read()
"""


def run(directory: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", MAKE, str(directory)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    assert Path(process.stdout.readline().strip()).is_dir()
    return process


@pytest.mark.parametrize("is_killed", [False, True])
def test_directories_of_other_processes(tmp_path: Path, is_killed: bool) -> None:
    process = run(tmp_path)
    own = ScratchDirectory("scratch", tmp_path)
    assert len([each for each in tmp_path.iterdir() if each.is_dir()]) == 2  # it is in use
    if is_killed:
        os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    ScratchDirectory("scratch", tmp_path).close()
    assert {each.name for each in tmp_path.iterdir()} == {own.path.name, f"{own.path.name}.lock"}
    own.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_directory_goes_with_its_owner(tmp_path: Path) -> None:
    made = ScratchDirectory("scratch", tmp_path)
    (made.path / "below").mkdir()
    del made
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_taken_for_abandoned_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may look for abandoned ones before the lock is held."""
    swept: list[bool] = []
    really = scratch_directory.flock

    def sweep_first(lock: Any, how: int) -> None:
        if not swept:
            swept.append(True)
            scratch_directory._remove_abandoned(tmp_path, "scratch")
        really(lock, how)

    monkeypatch.setattr(scratch_directory, "flock", sweep_first)
    made = ScratchDirectory("scratch", tmp_path)
    assert swept
    assert made.path.is_dir()
    assert [each.name for each in tmp_path.glob("*.lock")] == [f"{made.path.name}.lock"]
    made.close()
    assert not list(tmp_path.iterdir())
