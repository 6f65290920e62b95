"""The mock broker of librdkafka: it listens on loopback, in this process.

It does not hide what a transaction has written that was aborted, or whose process died: `Broker`
leaves out what no message with a position follows, as a consumer of what is committed would not see
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import confluent_kafka as kafka

SECONDS = 20.0
PARTITIONS = 4
"""The partitions of a topic that the mock broker makes."""


@dataclass(frozen=True)
class Broker:
    """A broker that runs."""

    address: str

    def read(self, topic: str) -> list[Any]:
        """Return all messages of a topic that are not of aborted transactions."""
        settings = {"bootstrap.servers": self.address, "enable.partition.eof": True}
        consumer = kafka.Consumer({**settings, "group.id": "reader", "enable.auto.commit": False})
        consumer.assign([kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        found: list[Any] = []
        ends = 0
        while ends < PARTITIONS:
            message = consumer.poll(SECONDS)
            assert message is not None
            if message.error() is None:
                found.append(message)
            else:
                assert message.error().code() == kafka.KafkaError._PARTITION_EOF
                ends += 1
        consumer.close()
        found.sort(key=lambda each: (each.partition(), each.offset()))
        done = {_commit(each) for each in found if "position" in dict(each.headers())}
        return [each for each in found if _commit(each) in done]


def _commit(message: Any) -> int:
    return int(dict(message.headers())["commit"])


@contextmanager
def broker() -> Iterator[Broker]:
    """Start a broker; it ends with the client that has it."""
    host = kafka.Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 2})
    (found,) = host.list_topics(timeout=SECONDS).brokers.values()
    yield Broker(f"{found.host}:{found.port}")
    host.purge()
