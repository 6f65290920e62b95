"""The replicas of a program, as outputs; each kind loads its client library itself."""

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from corollary.analysis.replicas import ReplicaKind, ReplicaSpec
from corollary.core.program import Relation
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.files.places import Place
from corollary.warehouse.publishing.replica import Replica, ReplicaOutput
from corollary.warehouse.publishing.table_directory import TableDirectory


def replica_outputs(
    replicas: Iterable[tuple[Relation, ReplicaSpec]],
    root: Place,
    catalog: Catalog,
    counts: Mapping[str, Relation],
) -> Iterator[ReplicaOutput]:
    """Yield replicas as outputs.

    Args:
        replicas: each with its relation.
        root: the place of the warehouse.
        catalog: of the warehouse.
        counts: for each relation with copies, the one that has its counts.
    """
    tables = TableDirectory(root, catalog)
    for relation, spec in replicas:
        replica = _replica_of(relation, spec, tables.warehouse)
        yield ReplicaOutput(relation, str(spec), replica, tables, catalog=catalog, counts=counts)


def _replica_of(relation: Relation, spec: ReplicaSpec, warehouse: str) -> Replica:
    match spec.kind:
        case ReplicaKind.POSTGRESQL:
            from corollary.warehouse.publishing.postgresql_replica import PostgresqlReplica

            return PostgresqlReplica(relation, spec)
        case ReplicaKind.KAFKA:
            from corollary.warehouse.publishing.kafka_replica import KafkaReplica

            return KafkaReplica(relation, spec, warehouse)
        case ReplicaKind.ICEBERG:
            from corollary.warehouse.publishing.iceberg_replica import IcebergReplica

            return IcebergReplica(relation, spec)
        case _:
            assert_never(spec.kind)
