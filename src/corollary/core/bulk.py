"""Bulk steps: when whole relations are joined and aggregated by an engine made for that."""

import os
from enum import StrEnum

from corollary.errors import InputError

BULK_MIN_TUPLES = 100_000
"""A step that is led by this many tuples is bulk…"""

BULK_MIN_FRAME_ROWS = 1_000_000
"""…and one through which this many rows are expected to flow."""


class BulkMode(StrEnum):
    """Which steps are bulk."""

    AUTO = "auto"
    """Those through which many rows flow."""
    ALWAYS = "always"
    """All that have an exact form."""
    NEVER = "never"
    """None."""


BULK_VARIABLE = "COROLLARY_BULK"
"""The environment variable that chooses where nothing else does."""


def bulk_mode(name: str | None = None) -> BulkMode:
    """Return the mode of a name, or of the environment if there is none.

    Raises:
        InputError: there is no such mode.
    """
    chosen = name or os.environ.get(BULK_VARIABLE) or BulkMode.AUTO
    if chosen not in list(BulkMode):
        cure = f"choose one of {', '.join(BulkMode)}"
        raise InputError.of("C0918", f"There is no mode of bulk work `{chosen}`.", None, cure)
    return BulkMode(chosen)
