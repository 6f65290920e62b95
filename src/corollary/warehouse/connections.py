"""Connections: what programs name, and the operator of a process gives in the environment."""

import os
from urllib.parse import parse_qsl, unquote, urlsplit

from corollary.analysis.replicas import CONNECTION_PREFIX
from corollary.errors import WarehouseError


def connection_url(name: str) -> str:
    """Return the URL of a connection, from the environment of the process.

    Raises:
        WarehouseError: `C0978`, it is not there.
    """
    variable = CONNECTION_PREFIX + name.upper()
    url = os.environ.get(variable)
    if not url:
        raise WarehouseError.of(
            "C0978",
            f"There is no connection `{name}`: the variable `{variable}` is not set.",
            None,
            f"set it to a URL, such as `{variable}=postgresql://user@host/name`",
        )
    return url


def kafka_settings(name: str) -> dict[str, str]:
    """Return the settings of a client of Kafka for a connection.

    `kafka://a:9092,b:9092?security.protocol=SSL` names brokers, and settings of librdkafka.

    Raises:
        WarehouseError: `C0978`, the connection is not there, or not one to Kafka.
    """
    url = urlsplit(connection_url(name))
    if url.scheme != "kafka" or not url.netloc:
        raise WarehouseError.of(
            "C0978",
            f"The connection `{name}` does not lead to Kafka.",
            None,
            f"set `{CONNECTION_PREFIX}{name.upper()}` to `kafka://host:9092`; settings of the "
            "client follow as in `?security.protocol=SSL`",
        )
    return {"bootstrap.servers": unquote(url.netloc), **dict(parse_qsl(url.query))}
