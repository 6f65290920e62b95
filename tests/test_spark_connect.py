"""The engine on Spark Connect: the same results without `sparkContext`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.long]

SCRIPT = Path(__file__).with_name("connected.py")


@pytest.mark.parametrize("placement", ["tasks", "sql", "auto"])
def test_views_are_right(placement: str) -> None:
    found = subprocess.run(
        [sys.executable, str(SCRIPT), placement], capture_output=True, text=True, timeout=600
    )
    assert found.returncode == 0, found.stderr[-3000:]
    assert found.stdout.splitlines()[-1] == "right"
