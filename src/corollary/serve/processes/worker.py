"""The process that has a database open: the writer, or a reader; `python -m` runs it.

It is told what to do over a socket that it inherits, and ends when that socket does: whatever
happens to the front, no process is left behind.
"""

import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from corollary.database.opening import open_with
from corollary.database.options import DatabaseOptions
from corollary.database.publishing import PublishTime
from corollary.engines.local.bulk.connection import bound_memory
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.failures import service_error
from corollary.serve.processes.channel import Channel, error_frame
from corollary.serve.processes.reader import run_reader
from corollary.serve.processes.writer import run_writer
from corollary.serve.service import ServiceLimits


def main(descriptor: int) -> None:
    """Open the database that the first frame names, and serve requests until the socket ends."""
    for number in (signal.SIGINT, signal.SIGTERM):  # whoever stops the server tells this process
        signal.signal(number, signal.SIG_IGN)
    with suppress(BrokenPipeError, ConnectionResetError):  # the front has gone
        _serve(Channel(socket.socket(fileno=descriptor)))


def _serve(channel: Channel) -> None:
    first = channel.receive()
    if first is None:
        return
    settings = first[0]
    try:
        options = DatabaseOptions.from_json(settings["options"])
        context = open_context(settings["place"], options, settings["limits"])
    except Exception as error:  # noqa: BLE001 - the front tells what is wrong
        channel.send(error_frame(0, service_error(error, is_for_operator=True)))
        return
    run = run_writer if settings["role"] == "writer" else run_reader
    with closing(context):
        channel.send({"type": "ready", "commit": context.commit})
        run(channel, context)


def open_context(place: str, options: DatabaseOptions, limits: Mapping[str, Any]) -> HandlerContext:
    """Open the database of a warehouse for a server."""
    bounds = ServiceLimits(**limits)
    bound_memory(bounds.memory)
    chosen = replace(options, publish=PublishTime.MANUAL)  # after the answers, not with the commits
    when = PublishTime.of(options.publish or PublishTime.SECOND)
    return HandlerContext(open_with(place, chosen, create=False), bounds, when)


if __name__ == "__main__":
    main(int(sys.argv[1]))
