"""Replicas that are topics of Kafka: what comes and goes in a relation, as messages in JSON.

All messages of a publication are one transaction of Kafka. The last one has the position in a
header: it is there if all are. So the topic itself says which commit it shows, and a consumer that
reads what is committed gets each message exactly once; one that does not can tell repeated messages
by their headers `commit` and `ordinal`, which are the same each time.

| envelope   | a row comes, goes, or gets other values of its key         | all rows go |
|------------|------------------------------------------------------------|-------------|
| `changes`  | `_change_type` is `insert`, `delete` or `update_postimage` | `truncate`  |
| `debezium` | `op` is `c`, `d`, `u`, with `before` and `after`           | `t`         |

The former is the row itself, with `_commit_version` besides. The key of a message is the relation's
key; without one, all columns. The rows that a topic begins with are `insert`, or `r` for Debezium.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corollary.analysis.replicas import ReplicaSpec
from corollary.core.arrow import sort_rows
from corollary.core.program import Relation
from corollary.errors import WarehouseError
from corollary.warehouse.connections import kafka_settings
from corollary.warehouse.copies import change_data
from corollary.warehouse.files.durable_files import DELETE, INSERT, POSTIMAGE, PREIMAGE
from corollary.warehouse.formats.json_documents import JsonForm, row_texts
from corollary.warehouse.publishing.replica import (
    ReplicaPosition,
    foreign_replica,
    unreachable_replica,
)
from corollary.warehouse.warehouse import RelationDelta

DEBEZIUM = "debezium"
CONNECT_SECONDS = 10.0
COMMIT_SECONDS = 120.0
TRANSACTION_MILLISECONDS = 600_000
"""How long a transaction may take; brokers allow 15 minutes unless they are told otherwise."""
PRODUCE_MESSAGES = 4096
"""So many messages are handed over at once."""
FIRST_WINDOW, WINDOW_GROWTH = 8, 16
"""So many offsets are looked at for the last message of a partition; then more."""
_TRUNCATE = "truncate"
_OPERATIONS = {INSERT: "c", DELETE: "d", POSTIMAGE: "u", _TRUNCATE: "t"}
_READ = "r"


class KafkaReplica:
    """A topic that the changes of a relation are written to.

    Args:
        relation: the relation.
        spec: the connection, the topic, and the envelope of its messages.
        warehouse: the id of the warehouse.
    """

    def __init__(self, relation: Relation, spec: ReplicaSpec, warehouse: str) -> None:
        self._relation = relation
        self._spec = spec
        self._id = f"corollary-{warehouse}-{relation.name}-{spec.name}"

    @contextmanager
    def open(self) -> "Iterator[KafkaSession]":
        """Open the topic; a transaction of a process that died is ended.

        Raises:
            WarehouseError: `C0949`, it cannot be reached; `C0935`, the client is not installed.
        """
        try:
            import confluent_kafka as kafka
        except ImportError as error:
            raise WarehouseError.of(
                "C0935",
                "Topics of Kafka need the package `confluent-kafka`, which is not installed.",
                None,
                "install `corollary[kafka]`",
            ) from error
        settings = {"log_level": 2, **kafka_settings(self._spec.location)}
        consumer = producer = None
        try:
            producer = kafka.Producer(
                {
                    **settings,
                    "transactional.id": self._id,
                    "transaction.timeout.ms": TRANSACTION_MILLISECONDS,
                    "linger.ms": 20,
                }
            )
            consumer = kafka.Consumer(
                {
                    **settings,
                    "group.id": self._id,
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "fetch.wait.max.ms": 10,  # what is sought is there, or nothing is
                }
            )
            producer.init_transactions(CONNECT_SECONDS)
            yield KafkaSession(producer, consumer, self._relation, self._spec)
        except kafka.KafkaException as error:
            raise unreachable_replica(str(self._spec), error.args[0].str()) from error
        finally:
            if consumer is not None:
                consumer.close()
            if producer is not None:
                producer.purge()


class KafkaSession:
    """A topic, and a producer of transactions."""

    def __init__(self, producer: Any, consumer: Any, relation: Relation, spec: ReplicaSpec) -> None:
        self._producer, self._consumer = producer, consumer
        self._relation, self._spec = relation, spec
        self._has_history = False

    def position(self, recorded: ReplicaPosition | None) -> ReplicaPosition | None:
        """Return the position that the last message has; as it is recorded, if that is gone.

        Raises:
            WarehouseError: `C0979`, the last message is not ours.
        """
        bounds = [self._bounds(number) for number in self._partitions()]
        self._has_history = any(end for _, end in bounds)
        if not self._has_history:
            # Nothing was ever written there, or the topic has been made anew.
            return recorded if recorded is not None and not recorded.rows else None
        last = max(map(self._ids, self._last_messages(bounds)), default=None)
        return recorded if last is None or not last[2] else ReplicaPosition.of(json.loads(last[2]))

    def _bounds(self, partition: int) -> tuple[int, int]:
        from confluent_kafka import TopicPartition

        place = TopicPartition(self._spec.name, partition)
        low, high = self._consumer.get_watermark_offsets(place, timeout=CONNECT_SECONDS)
        return low, high

    def _last_messages(self, bounds: Sequence[tuple[int, int]]) -> list[Any]:
        """Return the last message of each partition that has one.

        What ends a transaction takes up an offset, too, as do messages that were not committed.
        """
        from confluent_kafka import KafkaError, TopicPartition

        found: dict[int, Any] = {}
        window = FIRST_WINDOW
        while True:
            sought = {
                number: max(low, high - window)
                for number, (low, high) in enumerate(bounds)
                if number not in found and low < high
            }
            name = self._spec.name
            self._consumer.assign([TopicPartition(name, *each) for each in sought.items()])
            reading = set(sought)
            while reading:
                message = self._consumer.poll(CONNECT_SECONDS)
                if message is None:
                    raise unreachable_replica(str(self._spec), "the broker does not answer")
                if message.error() is None:
                    found[message.partition()] = message
                elif message.error().code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                    reading.discard(message.partition())
            self._consumer.unassign()
            if all(
                number in found or low >= high - window for number, (low, high) in enumerate(bounds)
            ):
                return list(found.values())
            window *= WINDOW_GROWTH

    def _ids(self, message: Any) -> tuple[int, int, str]:
        """Return the commit, the ordinal, and the position, if the message has it."""
        try:
            headers = {name: value.decode() for name, value in message.headers() or ()}
            return int(headers["commit"]), int(headers["ordinal"]), headers.get("position", "")
        except (KeyError, ValueError, AttributeError) as error:
            raise foreign_replica(str(self._spec), "has messages of others") from error

    def _partitions(self) -> Sequence[int]:
        """Return the partitions of the topic, which a broker may make when it is asked for."""
        name = self._spec.name
        found = self._producer.list_topics(name, timeout=CONNECT_SECONDS).topics[name]
        if found.error is not None:
            raise unreachable_replica(str(self._spec), found.error.str())
        return sorted(found.partitions)

    def apply(self, change: RelationDelta, position: ReplicaPosition) -> None:
        """Write what comes and goes, in a transaction that moves to a position."""
        kinds = change_data(change.removed, change.added, self._spec.key)
        key = [(at, False) for at in self._spec.key]
        rows = {kind: sort_rows(each, key) for kind, each in kinds.items() if each.num_rows}
        with self._transaction(position) as send:
            send(DELETE, rows.get(DELETE), None)
            send(INSERT, None, rows.get(INSERT))
            send(POSTIMAGE, rows.get(PREIMAGE), rows.get(POSTIMAGE))

    def refresh(self, rows: pa.Table, position: ReplicaPosition) -> tuple[int, int]:
        """Write all rows; if the topic has messages already, first that all rows are gone."""
        with self._transaction(position) as send:
            if self._has_history:
                for number in self._partitions():
                    send.truncate(number)
            send(_READ, None, sort_rows(rows) if self._relation.arity else rows)
        return rows.num_rows, 0

    @contextmanager
    def _transaction(self, position: ReplicaPosition) -> "Iterator[MessageWriter]":
        self._producer.begin_transaction()
        try:
            writer = MessageWriter(self._producer, self._relation, self._spec, position)
            yield writer
            writer.finish()
            self._producer.commit_transaction(COMMIT_SECONDS)
        except BaseException:
            self._producer.purge()
            self._producer.abort_transaction(CONNECT_SECONDS)
            raise


class MessageWriter:
    """Writes the messages of one transaction, with numbers in their order."""

    def __init__(
        self, producer: Any, relation: Relation, spec: ReplicaSpec, position: ReplicaPosition
    ) -> None:
        self._producer, self._relation, self._spec = producer, relation, spec
        self._position = position
        self._columns = JsonForm(relation.columns)
        self._ordinal = 0
        self._last: dict[str, Any] = {}

    def __call__(self, kind: str, before: pa.Table | None, after: pa.Table | None) -> None:
        """Write a message for each row, which has been, and is from now on."""
        shown = before if after is None else after
        if shown is None or not shown.num_rows:
            return
        texts = [None if each is None else self._texts(each) for each in (before, after)]
        keys = self._texts(shown.select(list(self._spec.key))) if self._spec.key else None
        values = self._values(kind, shown.num_rows, *texts)
        rows = texts[0] if texts[1] is None else texts[1]
        self._send(rows if keys is None else keys, values)

    def truncate(self, partition: int) -> None:
        """Write that all rows are gone, into a partition."""
        (value,) = self._values(_TRUNCATE, 1, None, None).to_pylist()
        self._produce([{"value": value.encode()}], partition)

    def _texts(self, rows: pa.Table) -> pa.Array:
        """Return rows as JSON objects; they may have the columns of the key only."""
        if not self._relation.arity:
            return pa.array(["{}"] * rows.num_rows, pa.string())
        every = self._relation
        places = self._spec.key if rows.num_columns < every.arity else range(every.arity)
        part = Relation(
            every.name,
            tuple(every.columns[at] for at in places),
            tuple(every.types[at] for at in places),
            is_derived=every.is_derived,
        )
        return row_texts(rows, part, JsonForm(part.columns))

    def _values(
        self, kind: str, rows: int, before: pa.Array | None, after: pa.Array | None
    ) -> pa.Array:
        numbers = pa.array(range(self._ordinal, self._ordinal + rows)).cast(pa.string())
        commit = self._position.commit
        if self._spec.option != DEBEZIUM:
            kind = INSERT if kind == _READ else kind
            said = f'"_change_type": "{kind}", "_commit_version": {commit}}}'
            shown = before if after is None else after
            if shown is None or not self._relation.arity:
                return pa.array(["{" + said] * rows, pa.string())
            open_end = pc.utf8_slice_codeunits(shown, 0, -1)
            return pc.binary_join_element_wise(open_end, said, ", ")
        milliseconds = int(float(self._position.created) * 1000)
        source = (
            f'"op": "{_OPERATIONS.get(kind, kind)}", "ts_ms": {milliseconds}, "source": '
            f'{{"connector": "corollary", "name": "{self._position.warehouse}", "table": '
            f'{json.dumps(self._relation.name)}, "ts_ms": {milliseconds}, "commit": {commit}, '
            '"ordinal": '
        )
        null = pa.scalar("null")
        return pc.binary_join_element_wise(
            *('{"before": ', null if before is None else before, ', "after": '),
            *(null if after is None else after, ", " + source, numbers, "}}", ""),
        )

    def _send(self, keys: pa.Array, values: pa.Array) -> None:
        # The client takes its messages as Python has them.
        for start in range(0, len(values), PRODUCE_MESSAGES):
            part = slice(start, start + PRODUCE_MESSAGES)
            pairs = zip(keys[part].to_pylist(), values[part].to_pylist(), strict=True)
            self._produce([{"key": key, "value": value} for key, value in pairs])

    def _produce(self, messages: Sequence[Mapping[str, Any]], partition: int = -1) -> None:
        """Hand over messages, but for the last one: it may be that of the transaction."""
        commit = str(self._position.commit).encode()
        for each in messages:
            self._hand_over()
            headers = [("commit", commit), ("ordinal", str(self._ordinal).encode())]
            self._last = {**each, "partition": partition, "headers": headers}
            self._ordinal += 1
        self._producer.poll(0)

    def finish(self) -> None:
        """Hand over the last message, with the position."""
        if self._last:
            position = json.dumps(self._position.fields).encode()
            self._last["headers"].append(("position", position))
            self._hand_over()

    def _hand_over(self) -> None:
        while self._last:
            try:
                self._producer.produce(self._spec.name, **self._last)
                self._last = {}
            except BufferError:  # its queue is full
                self._producer.poll(0.1)
