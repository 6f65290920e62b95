"""Which changes of base relations are behind a tuple that should not be there."""

from typing import TYPE_CHECKING, Any

from corollary.database.journal import Attempt

if TYPE_CHECKING:
    from corollary.database.kernel import Kernel


def causes(
    database: "Kernel", attempt: Attempt, relation: str, rows: list[tuple[Any, ...]]
) -> dict[tuple[Any, ...], tuple[str, ...]]:
    return {}
