"""What keeps the files that frames read: a handle stays as long as a plan reads its tuples.

A frame is a plan, and so are the frames that are made of it, temp views, cached tables. They all
have the function that reads the files, one object, which nothing else has: once it is collected,
nobody can read the files any more. Spark's own plans are in Java; those of Connect are here.
"""

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import ref

from corollary.core.engine import TableHandle
from corollary.engines.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PINS: list[tuple[Callable[[], object], TableHandle]] = []
"""Handles, each with what returns the function that reads it, None once that is collected."""

_LOCK = Lock()


def pin_files(frame: "DataFrame", handle: TableHandle, *, has_view: bool) -> None:
    """Keep a handle as long as a plan reads it.

    Args:
        frame: of the function that reads it (`mapInArrow`).
        handle: what it reads.
        has_view: whether a temp view shows the frame; that of Connect is not here, and stays.
    """
    plan: Any = frame
    function_of: Callable[[], object] = lambda: handle  # noqa: E731 - until the process ends
    with suppress(Exception):  # no public way to ask, and another version may have no such way
        if not is_connect(frame.sparkSession):
            function = plan._jdf.queryExecution().analyzed().functionExpr().func()  # noqa: SLF001
            java = plan.sparkSession._jvm.java  # noqa: SLF001
            function_of = java.lang.ref.WeakReference(function).get
        elif not has_view:
            function_of = ref(plan._plan._function)  # noqa: SLF001
    with _LOCK:
        _PINS.append((function_of, handle))


def release_frames() -> None:
    """Forget the handles that no plan reads."""
    with _LOCK:
        _PINS[:] = [each for each in _PINS if _is_read(each[0])]


def _is_read(function_of: Callable[[], object]) -> bool:
    with suppress(Exception):  # Java is gone, and its plans with it
        return function_of() is not None
    return False


def framed_handles() -> list[TableHandle]:
    """Return the handles that plans read; of rows with copies, those on their counts."""
    with _LOCK:
        return [getattr(handle, "counted", handle) for _, handle in _PINS]
