"""The memory of the machine, and of the container on it."""

import os
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from corollary.core import machine
from corollary.core.engine import MACHINE_SHARE, driver_memory
from corollary.core.machine import machine_memory
from corollary.engines.local.bulk import connection
from corollary.engines.spark.session import granted_memory

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


def test_what_a_process_is_granted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It bounds the budget of the driver, and what DuckDB takes."""
    monkeypatch.delenv("COROLLARY_DRIVER_MEMORY", raising=False)
    monkeypatch.setattr(machine, "_granted", None)
    (tmp_path / V2).mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (tmp_path / V2 / "memory.max").write_text(f"{1 << 30}\n")
    for granted, expected in ((2 << 30, 1 << 30), (1 << 29, 1 << 29), (None, 1 << 30)):
        machine.grant_memory(granted)
        assert machine_memory(tmp_path) == expected
    machine.grant_memory(1 << 30)
    assert driver_memory() == min(PHYSICAL, 1 << 30) // MACHINE_SHARE
    assert connection._memory_limit() == f"{int(connection.MEMORY_FRACTION * (1 << 30)) >> 20}MiB"


@pytest.mark.parametrize(
    ("stated", "expected"), [(None, None), ("2g", 2 << 30), ("512m", 1 << 29), ("800", 800 << 20)]
)
def test_what_spark_grants_the_driver(stated: str | None, expected: int | None) -> None:
    session: Any = Mock(__module__="pyspark.sql.session")
    session.sparkContext.getConf().get.return_value = stated
    assert granted_memory(session) == expected


def test_the_driver_takes_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COROLLARY_DRIVER_MEMORY", raising=False)
    monkeypatch.setattr("corollary.core.engine.machine_memory", lambda: 1 << 30)
    assert driver_memory() == (1 << 30) // MACHINE_SHARE
