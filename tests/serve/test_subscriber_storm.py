"""Subscribers of a server whose processes are killed see every commit, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.subscribers import Course, Fire

pytestmark = pytest.mark.integration


def test_nothing_is_lost_or_out_of_order_under_kills(tmp_path: Path) -> None:
    course = Course(subscribers=200, calm=3, stormy=6, kills=2, pause=0.2)
    storm = Fire(tmp_path, course).run()
    assert storm.wrong == []
    assert storm.kills == ["worker", "server"]
    assert storm.breaks >= 200, "the server was killed once, with all connections"
    assert storm.events >= 100 * 9 + 100 * 5
