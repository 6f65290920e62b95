"""What is known of replicas: the commit that each shows, and why one cannot be brought forward.

The replica itself is the truth; what is here serves `status`, and saves a look at replicas of which
nothing has changed. The table is created with the first replica.
"""

import time
from dataclasses import asdict, replace

from corollary.data_class import dataclass
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.catalog_reader import CatalogReader

TABLE = "corollary_replicas"
CREATE = f"""
    CREATE TABLE IF NOT EXISTS {TABLE} (
        relation VARCHAR(400) NOT NULL,
        replica VARCHAR(800) NOT NULL,
        changed VARCHAR(400) NOT NULL,
        commit_number INTEGER NOT NULL,
        position TEXT NOT NULL,
        error TEXT,
        failed FLOAT,
        PRIMARY KEY (relation, replica))"""


@dataclass(frozen=True, slots=True)
class ReplicaRecord:
    """What is known of a replica.

    Attributes:
        relation: of which it is one.
        replica: as the program declares it.
        changed: the relation whose changes it follows, which has the counts of copies.
        commit_number: up to this commit there is nothing that it does not show; 0 if it is new.
        position: what it says about itself, as JSON; empty if it is new.
        error: why it could not be brought forward the last time.
        failed: when that was, in seconds since 1970.
    """

    relation: str
    replica: str
    changed: str
    commit_number: int = 0
    position: str = ""
    error: str | None = None
    failed: float | None = None


class ReplicaRecords:
    """What the catalog of a warehouse knows of replicas."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def find(self, relation: str, replica: str) -> ReplicaRecord | None:
        """Return what is known of a replica."""
        found = (each for each in replica_records(self._catalog) if each.relation == relation)
        return next((each for each in found if each.replica == replica), None)

    def record(self, new: ReplicaRecord) -> None:
        """Record what a replica shows."""
        with self._catalog.write_transaction() as connection:
            connection.execute(CREATE)
            connection.execute(
                "DELETE FROM corollary_replicas WHERE relation = ? AND replica = ?",
                new.relation,
                new.replica,
            )
            connection.insert(TABLE, [asdict(new)])

    def record_failure(self, known: ReplicaRecord, error: str) -> None:
        """Record why a replica could not be brought forward."""
        if known.error != error:
            self.record(replace(known, error=error, failed=time.time()))

    def skip_unchanged(self, upto: int) -> None:
        """Record that replicas show a commit that nothing they lack comes before.

        So they do not need the history before it.
        """
        for each in replica_records(self._catalog):
            behind = self._catalog.count_changing_commits(each.changed, each.commit_number)
            if each.commit_number and not behind:
                self.record(replace(each, commit_number=max(upto, each.commit_number)))


def replica_records(catalog: CatalogReader) -> list[ReplicaRecord]:
    """Return what a catalog knows of all replicas."""
    with catalog.read_transaction() as connection:
        if TABLE not in connection.tables():
            return []
        rows = connection.rows("SELECT * FROM corollary_replicas ORDER BY relation, replica")
    return [ReplicaRecord(**row._asdict()) for row in rows]
