"""The engines by name."""

from typing import Any

from corollary.core.engine import Engine
from corollary.errors import InputError

LOCAL, SPARK = "local", "spark"
PLACEMENTS = ("auto", "driver", "tasks", "sql")
ENGINES = (LOCAL, SPARK)


def made(
    name: str, spark: Any = None, placement: str = "auto", shares: int | None = None
) -> Engine:
    """Return a new engine that holds nothing.

    Args:
        name: `local` or `spark`.
        spark: the session that the Spark engine works beside; a local one if it is not given.
        placement: where it runs strata: `auto`, `driver`, `tasks` or `sql`.
        shares: how many tasks share a stratum; as many as run at once if it is not given.

    Raises:
        InputError: there is no such engine, or what it needs is not installed.
    """
    if name == LOCAL:
        from corollary.engines.local.engine import LocalEngine

        return LocalEngine()
    if name != SPARK:
        raise InputError.of(
            "C0918",
            f"There is no engine `{name}`.",
            None,
            f"choose one of {', '.join(ENGINES)}",
        )
    if placement not in PLACEMENTS:
        raise InputError.of(
            "C0918",
            f"There is no placement `{placement}`.",
            None,
            f"choose one of {', '.join(PLACEMENTS)}",
        )
    from corollary.engines.spark.placed import PlacedEngine

    return PlacedEngine(spark, placement=placement, shares=shares)
