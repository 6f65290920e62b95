"""The slider over commits: ticks, what is before and after, and the range that is compared."""

from __future__ import annotations

from typing import Any

from corollary.web.pictures.timeline import timeline_of


def commit(number: int, added: int = 0, removed: int = 0, **other: object) -> dict[str, Any]:
    """Return a commit as the log has it."""
    changes = {"p": {"added": added, "removed": removed}} if added or removed else {}
    return {
        "commit": number,
        "timestamp": f"2026-11-15T08:00:{number:02}Z",
        "changes": changes,
        "new_program": number == 1,
        "alerts": 0,
        **other,
    }


LOG = [commit(4), commit(3, removed=1, alerts=2), commit(2, added=5), commit(1, added=1)]


def test_the_newest_commit_is_shown_by_default() -> None:
    timeline = timeline_of(LOG, None, None)
    assert (timeline.at, timeline.is_past, timeline.before, timeline.after) == (4, False, 3, None)
    assert timeline.changes == {}


def test_an_earlier_one() -> None:
    timeline = timeline_of(LOG, 2, None)
    assert (timeline.at, timeline.is_past, timeline.before, timeline.after) == (2, True, 1, 3)
    assert timeline.changes == {"p": (5, 0)}
    assert timeline.when == "2026-11-15T08:00:02Z"


def test_ticks_say_what_came_and_went() -> None:
    picture = str(timeline_of(LOG, 3, 1).picture)
    assert picture.count('class="came') == 2
    assert picture.count('class="went chosen"') == 1
    assert picture.count('class="alert"') == 1
    assert picture.count('class="span"') == 1
    assert "style=" not in picture


def test_without_commits() -> None:
    timeline = timeline_of([], None, None)
    assert (timeline.at, timeline.newest, timeline.before, timeline.after) == (0, 0, None, None)
    assert "<line" in str(timeline.picture)
