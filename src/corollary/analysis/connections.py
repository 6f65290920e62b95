"""Connections: names in a program for servers, whose addresses the environment of a process has.

So no program holds an address or a secret, and nobody who may change one chooses where it leads.
"""

import os

from corollary.errors import InputError
from corollary.source import Span

CONNECTION_PREFIX = "COROLLARY_CONNECTION_"
"""The variable with the URL of a connection is this and its name in capitals."""


def connection_url(name: str, span: Span | None) -> str:
    """Return the URL of a connection.

    Raises:
        InputError: `C1742`, it is not there.
    """
    variable = CONNECTION_PREFIX + name.upper()
    url = os.environ.get(variable)
    if not url:
        raise InputError.of(
            "C1742",
            f"There is no connection `{name}`: the variable `{variable}` is not set.",
            span,
            f"set it to a URL, such as `{variable}=postgresql://user@host/name`",
        )
    return url
