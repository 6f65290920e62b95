"""The placement of an engine that has one process."""

from collections.abc import Sequence

from corollary.core.engine import RelationPlace, TaskPool
from corollary.core.plans import Placement


class SinglePlacement:
    """The placement of an engine that runs all strata in this process."""

    @property
    def tasks(self) -> TaskPool | None:
        """None: there are no other processes."""
        return None

    @property
    def reads_partitions(self) -> bool:
        """False: it reads no files of an index that tasks have written."""
        return False

    @property
    def partition_count(self) -> int:
        """One: no stratum is partitioned."""
        return 1

    def placement(
        self,
        relations: Sequence[str],  # noqa: ARG002 - the protocol's parameters
        below: Sequence[str],  # noqa: ARG002
        *,
        has_pivot: bool,  # noqa: ARG002
    ) -> Placement:
        """Return where a stratum should run: on the driver."""
        return Placement.DRIVER

    def place_of(self, relation: str) -> RelationPlace:  # noqa: ARG002
        """Return where the tuples of a relation are: here."""
        return RelationPlace("local", "the engine is in one process")
