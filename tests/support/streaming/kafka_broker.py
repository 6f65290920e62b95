"""A broker of Kafka: the mock cluster of librdkafka, which other processes reach, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

Message = tuple[bytes | None, bytes | None]


class KafkaBroker:
    """A cluster of one broker, whose topics have four partitions.

    Attributes:
        servers: where it listens.
    """

    def __init__(self) -> None:
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0}
        self._producer = Producer(settings)
        (broker,) = self._producer.list_topics(timeout=10).brokers.values()
        self.servers = f"{broker.host}:{broker.port}"

    def send(self, topic: str, messages: Iterable[Message], partition: int | None = None) -> None:
        """Add messages with keys and values; without a partition, their keys choose it."""
        where = {} if partition is None else {"partition": partition}
        for key, value in messages:
            self._producer.produce(topic, value, key, **where)
            self._producer.poll(0)
        assert self._producer.flush(30) == 0


@contextmanager
def kafka_broker() -> Iterator[KafkaBroker]:
    """Give a broker that ends with its producer."""
    pytest.importorskip("confluent_kafka")
    yield KafkaBroker()
