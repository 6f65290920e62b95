"""A topic of Kafka, without Spark: partitions are assigned, and offsets are in the commit.

No consumer group is joined, and the brokers keep no offsets: what was read is what the warehouse
has committed, so each message counts exactly once. A reading ends at the messages that were there
when it began.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corollary.errors import InputError
from corollary.warehouse.connections import kafka_settings
from corollary.warehouse.files.input_files import file_error
from corollary.warehouse.sources.events.messages import NO_MESSAGES, Delivery, message_table
from corollary.warehouse.sources.source import Position
from corollary.warehouse.sources.source_spec import SourceSpec

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

_SILENT = logging.getLogger("corollary.kafka")
"""Takes what the client library says, which would go to the terminal: errors are raised."""
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
ANSWER_SECONDS = 10.0
"""How long a broker may take to answer."""
BATCH_MESSAGES = 10_000
WAIT_SECONDS = 0.1
"""How long messages are gathered, if there are fewer."""
EARLIEST, LATEST = "earliest", "latest"


class KafkaTopic:
    """Brings the messages of a topic; a position has the next offset of each partition."""

    def __init__(self, spec: SourceSpec) -> None:
        self._spec = spec
        self._topic = spec.directive.parameter("topic")

    def has_more(self, before: Position | None) -> bool:
        """Return whether a partition has messages after a position, or was added."""
        with self._consumer() as consumer:
            ends = self._bounds(consumer)
        known = before or {}
        return any(known.get(name, -1) != end for name, (_, end) in ends.items())

    def lag(self, before: Position | None) -> int:
        """Return how many messages there are now after a position."""
        with self._consumer() as consumer:
            bounds = self._bounds(consumer)
        known = before or {}
        return sum(max(0, end - known.get(name, start)) for name, (start, end) in bounds.items())

    def read(self, before: Position | None, most: int) -> Delivery:
        """Return messages: of each partition in order, the partitions by turns.

        Raises:
            InputError: `C1736`, the brokers do not answer, or there is no such topic; `C1737`,
                messages are gone that were not read.
        """
        with self._consumer() as consumer:
            bounds = self._bounds(consumer)
            offsets = self._starts(before, bounds)
            found, ends = [NO_MESSAGES], {name: end for name, (_, end) in bounds.items()}
            for batch in self._batches(consumer, offsets, ends, most):
                found += batch
        lag = sum(max(0, ends[name] - offset) for name, offset in offsets.items())
        return Delivery(pa.concat_tables(found), dict(offsets), lag)

    def _batches(
        self, consumer: "Consumer", offsets: dict[str, int], ends: dict[str, int], most: int
    ) -> Iterator[list[pa.Table]]:
        """Yield messages up to the ends, and move the offsets along."""
        from confluent_kafka import KafkaError, KafkaException, TopicPartition

        wanted = {name: offset for name, offset in offsets.items() if offset < ends[name]}
        consumer.assign([TopicPartition(self._topic, int(p), o) for p, o in wanted.items()])
        heard = time.monotonic()
        while wanted and most > 0:
            came: dict[str, list[Message]] = {}
            messages = consumer.consume(min(most, BATCH_MESSAGES), WAIT_SECONDS)
            heard = time.monotonic() if messages else heard
            if time.monotonic() - heard > ANSWER_SECONDS:
                raise self._failure(TimeoutError("the brokers no longer answer"))
            for message in messages:
                error, name = message.error(), str(message.partition())
                if error is None:
                    came.setdefault(name, []).append(message)
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - has no other name
                    # The last offsets may be of transactions, and no messages.
                    offsets[name] = max(offsets[name], message.offset() or 0)
                    wanted.pop(name, None)
                else:
                    raise self._failure(KafkaException(error))
            tables = []
            for name, messages in came.items():
                numbers = [each.offset() or 0 for each in messages]
                keys, values = (
                    [each.key() for each in messages],
                    [each.value() for each in messages],
                )
                place = f"{self._topic}[{name}]"
                tables.append(message_table(keys, values, place, numbers))
                most -= len(messages)
                offsets[name] = numbers[-1] + 1
                if offsets[name] >= ends[name]:
                    wanted.pop(name, None)
                    consumer.pause([TopicPartition(self._topic, int(name))])
            yield tables

    def _starts(
        self, before: Position | None, bounds: dict[str, tuple[int, int]]
    ) -> dict[str, int]:
        """Return the offset to read next, of each partition.

        Raises:
            InputError: `C1737`.
        """
        given = self._spec.directive.parameter("starting_offsets", EARLIEST)
        asked = dict(part.split(":") for part in given.split(",") if ":" in part)
        found = {}
        for name, (start, end) in bounds.items():
            if before is None:
                found[name] = int(asked.get(name, end if given == LATEST else start))
                continue
            offset = int(before.get(name, start))
            is_kept = start <= offset <= end
            if not is_kept and self._spec.directive.parameter("fail_on_data_loss") != "false":
                gone = (
                    f"messages {offset:,} to {start - 1:,}"
                    if offset < start
                    else f"all messages before {offset:,}"
                )
                raise InputError.of(
                    "C1737",
                    f"Partition {name} of `{self._topic}` has lost {gone}, of which not all were "
                    f"read; it has {start:,} to {end - 1:,} now.",
                    self._spec.directive.span,
                    'read on without them with `fail_on_data_loss="false"`, or read the topic into '
                    "a new relation; nothing was changed",
                )
            found[name] = offset if is_kept else start
        return found

    def _bounds(self, consumer: "Consumer") -> dict[str, tuple[int, int]]:
        """Return the first offset of each partition, and that after the last."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            topic = consumer.list_topics(self._topic, timeout=ANSWER_SECONDS).topics[self._topic]
            if topic.error is not None:
                raise KafkaException(topic.error)
            return {
                str(each): consumer.get_watermark_offsets(
                    TopicPartition(self._topic, each), timeout=ANSWER_SECONDS
                )
                for each in sorted(topic.partitions)
            }
        except KafkaException as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> InputError:
        first = error.args[0]
        reason = first.str() if hasattr(first, "str") else str(first)
        return InputError.of(
            "C1736",
            f"The topic `{self._topic}` cannot be read: {reason}.",
            self._spec.directive.span,
            "let `servers` name brokers that answer, and `topic` one of their topics; nothing was "
            "changed",
        )

    @contextmanager
    def _consumer(self) -> "Iterator[Consumer]":
        """Return a consumer that is in no group."""
        try:
            from confluent_kafka import Consumer
        except ImportError:
            raise InputError.of(
                "C1738",
                "Topics of Kafka are read with a package that is not installed.",
                self._spec.directive.span,
                'install it: `pip install "corollary[kafka]"`',
            ) from None
        consumer = Consumer(self._settings(), logger=_SILENT)
        try:
            yield consumer
        finally:
            consumer.close()

    def _settings(self) -> dict[str, Any]:
        """Return the settings of the consumer; those of a file of properties come first."""
        found: dict[str, Any] = {}
        directive, location = self._spec.directive, self._spec.location
        if name := directive.parameter("properties"):
            try:
                text = location.resolve(name).read_bytes().decode()
            except OSError as error:
                raise file_error(location.shown(name), "read", error, directive.span) from None
            lines = [line.strip() for line in text.splitlines()]
            pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
            found |= {name.strip(): value.strip() for name, _, value in pairs}
        if name := directive.parameter("connection"):
            found |= kafka_settings(name)
        if servers := directive.parameter("servers"):
            found["bootstrap.servers"] = servers
        return {
            "fetch.wait.max.ms": 50,
            **found,
            "group.id": f"corollary {self._spec.name}",  # asked for, and not joined
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
