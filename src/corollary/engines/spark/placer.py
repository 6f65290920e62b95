"""Where relations are held and where strata run: by size and a budget, or as asked for."""

from collections.abc import Mapping

from corollary.core.engine import TUPLE_BYTES, Residency
from corollary.core.plans import WORKING_SEPARATOR, Placement
from corollary.core.program import Relation
from corollary.core.states import CHANGES
from corollary.data_class import dataclass
from corollary.rewrite.partitions import PARTITIONS

PARTITIONS_PLACE = "partitions"
"""The place of relations whose committed tuples are in partitions."""

LOAD_DIVISOR = 2
"""A load that would take more than the budget divided by this does not pass the driver."""

TASKS_MIN_TUPLES = 1 << 24
"""A stratum of this many tuples is partitioned; the driver is quicker with fewer…"""

TASKS_MIN_INPUT_TUPLES = 1 << 20
"""…and so is one that is still empty and reads this many."""

WORKER_MEMORY = 1 << 30
"""What a worker may hold of relations, in bytes, if the session does not say."""

COPIES_DIVISOR = 2
"""Copies of what a stratum reads take at most that divided by this."""


@dataclass(slots=True)
class Placer:
    """Decides for an engine where its relations and strata are.

    Attributes:
        is_forced: whether all relations are in partitions.
        memory: the bytes that the tuples of other relations may take on the driver; None for any
            number.
        worker_memory: the bytes that a worker may hold; 0 for `WORKER_MEMORY`.
        headroom: the bytes that tables there may still grow by until they are measured again.
    """

    is_forced: bool = False
    memory: int | None = None
    worker_memory: int = 0
    headroom: int = -1

    @property
    def load_max_tuples(self) -> int | None:
        """The tuples of one relation that may be read on the driver; None for any number."""
        if self.is_forced:
            return -1
        return None if self.memory is None else self.memory // (TUPLE_BYTES * LOAD_DIVISOR)

    def needs_partitions(self, relation: Relation) -> bool:
        """Whether a relation has to be in partitions, whatever its size."""
        is_stored = relation != PARTITIONS and not is_change_relation(relation.name)
        return self.is_forced and bool(relation.types) and is_stored

    def grow(self, tuples: int) -> None:
        """Note tuples that come to the driver."""
        self.headroom -= TUPLE_BYTES * tuples

    def measure(self) -> None:
        """Have the tables measured when it is asked next what is beyond the budget."""
        self.headroom = -1

    def beyond_budget(self, sizes: Mapping[str, int]) -> list[str]:
        """Return the largest relations on the driver, such that the others fit into the budget.

        Args:
            sizes: the tuples of each.
        """
        if self.memory is None or self.headroom >= 0:
            return []
        total, found = TUPLE_BYTES * sum(sizes.values()), []
        for name in sorted(sizes, key=lambda each: -sizes[each]):
            if total <= self.memory:
                break
            found.append(name)
            total -= TUPLE_BYTES * sizes[name]
        self.headroom = self.memory - total
        return found

    def residency(self, tuples: int, place: str) -> Residency:
        """Return where a relation is, and why.

        Args:
            tuples: how many it has.
            place: where they are.
        """
        if self.is_forced and place == PARTITIONS_PLACE:
            return Residency(place, "asked for")
        reason = f"its {tuples:,} tuples take about {TUPLE_BYTES * tuples >> 20:,} MB"
        if self.memory is not None:
            reason += f", the driver has {self.memory >> 20:,} MB for all relations"
        return Residency(place, reason)

    def placement(self, size: int, lower: int, *, is_partitioned: bool) -> Placement:
        """Return where a stratum with a pivot should run.

        Args:
            size: the tuples of its relations.
            lower: the tuples of the relations that it reads.
            is_partitioned: whether one of its relations is in partitions.
        """
        is_large = is_partitioned or size >= TASKS_MIN_TUPLES
        is_first = not size and lower >= TASKS_MIN_INPUT_TUPLES
        if not self.is_forced and (self.memory is None or not (is_large or is_first)):
            return Placement.DRIVER
        is_copied = TUPLE_BYTES * lower <= (self.worker_memory or WORKER_MEMORY) // COPIES_DIVISOR
        return Placement.TASKS if is_copied else Placement.ROUNDS


def is_change_relation(name: str) -> bool:
    """Return whether a relation holds the change of a virtual one, for a transaction."""
    return name.rpartition(WORKING_SEPARATOR)[2] in CHANGES and WORKING_SEPARATOR in name
