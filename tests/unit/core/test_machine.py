"""The memory of the machine, and of the container on it."""

import os
from pathlib import Path

import pytest

from corollary.core.engine import MACHINE_SHARE, driver_memory
from corollary.core.machine import machine_memory

PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
V1 = "sys/fs/cgroup/memory"
V2 = "sys/fs/cgroup"


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        (None, {}, PHYSICAL),
        ("0::/\n", {f"{V2}/memory.max": "max\n"}, PHYSICAL),
        ("0::/\n", {f"{V2}/memory.max": "1048576\n"}, 1 << 20),
        ("0::/a/b\n", {f"{V2}/a/memory.max": "2097152\n", f"{V2}/a/b/memory.max": "max"}, 2 << 20),
        ("0::/a/b\n", {f"{V2}/a/memory.max": "4096", f"{V2}/a/b/memory.max": "8192"}, 4096),
        ("0::/outside\n", {f"{V2}/memory.max": "4096"}, 4096),
        ("5:cpu,memory:/d\n", {f"{V1}/d/memory.limit_in_bytes": "4096\n"}, 4096),
        ("5:memory:/docker/x\n", {f"{V1}/memory.limit_in_bytes": "8192\n"}, 8192),
        ("5:memory:/\n", {f"{V1}/memory.limit_in_bytes": "9223372036854771712\n"}, PHYSICAL),
        ("5:cpu:/\n1:name=systemd:/\n", {f"{V1}/memory.limit_in_bytes": "4096"}, PHYSICAL),
    ],
)
def test_memory_of_a_container(
    tmp_path: Path, groups: str | None, files: dict[str, str], expected: int
) -> None:
    if groups is not None:
        files = {**files, "proc/self/cgroup": groups}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert machine_memory(tmp_path) == expected


def test_the_driver_takes_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COROLLARY_DRIVER_MEMORY", raising=False)
    monkeypatch.setattr("corollary.core.engine.machine_memory", lambda: 1 << 30)
    assert driver_memory() == (1 << 30) // MACHINE_SHARE
