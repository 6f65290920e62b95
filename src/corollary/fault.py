"""Named points at which a test can make the process die, as if the power had failed.

`COROLLARY_FAULT=after_data_files` kills the process at the first pass of that point,
`after_data_files:3` at the third; several are separated by commas. Without the variable a point
costs one look-up in an empty mapping.
"""

import os
import signal

TRANSACTION_POINTS = (
    "before_intent",
    "after_intent",
    "after_data_files",
    "before_commit",
    "after_commit",
    "before_publish",
    "after_publish",
    "during_snapshot",
    "after_snapshot",
    "during_gc",
)
"""The points of a transaction, in the order in which it passes them."""
DELIVERY_POINTS = ("before_claim", "after_claim", "after_append", "before_mark")
"""The points of the delivery of alerts, which follows."""


def _read_counts() -> dict[str, int]:
    found = {}
    for each in filter(None, os.environ.get("COROLLARY_FAULT", "").split(",")):
        name, _, count = each.partition(":")
        if name not in (*TRANSACTION_POINTS, *DELIVERY_POINTS):
            known = ", ".join((*TRANSACTION_POINTS, *DELIVERY_POINTS))
            raise ValueError(f"COROLLARY_FAULT names {name}; the points are {known}")
        found[name] = int(count or 1)
    return found


_counts = _read_counts()


def hit(point: str) -> None:
    """Pass a point; kill the process here if the variable says so."""
    assert point in TRANSACTION_POINTS or point in DELIVERY_POINTS, point
    if point in _counts:
        _counts[point] -= 1
        if not _counts[point]:
            os.kill(os.getpid(), signal.SIGKILL)
