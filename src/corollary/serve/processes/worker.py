"""The process that has a database open: the writer, or a reader; `python -m` runs it.

It is told what to do over a socket that it inherits, and ends when that socket does: whatever
happens to the front, no process is left behind.
"""

import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import asdict, replace
from typing import Any

from corollary.core.engine import abandon_work
from corollary.database.opening import open_with
from corollary.database.options import DatabaseOptions
from corollary.database.publishing import PublishTime
from corollary.engines.local.bulk.connection import bound_memory
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.failures import service_error
from corollary.serve.processes.channel import Channel, error_frame, found_frame, read_requests
from corollary.serve.processes.goal_batches import answer_batch
from corollary.serve.processes.group_commit import (
    CommitReport,
    GroupCommitter,
    Write,
    remember_timings,
)
from corollary.serve.service import ServiceLimits
from corollary.serve.subscriptions.watching import set_watched

FINISH_SECONDS = 0.5
"""The longest time for which alerts wait while writes come in."""

IDLE_SECONDS = 0.05
"""After this time without requests, a reader catches up with commits that it was told about."""


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


def run_writer(channel: Channel, context: HandlerContext) -> None:
    """Do what the front sends, until it sends no more.

    Alerts are delivered when no write waits, or after half a second; tables are published when it
    is time to. The requests are answered already.
    """

    def report(commit: CommitReport) -> None:
        channel.send({"type": "commit", **asdict(commit)})

    def begin(numbers: object) -> None:
        channel.send({"type": "begin", "ids": numbers})

    committer = GroupCommitter(context, begin, report)
    finished = time.monotonic()
    while True:
        if not channel.has_frame() or time.monotonic() - finished > FINISH_SECONDS:
            context.finish_commits()
            finished = time.monotonic()
        wait = context.publishing.wait
        if wait is not None and not channel.has_frame(wait):
            continue
        frame = channel.receive()
        if frame is None:
            return
        document = frame[0]
        match document["type"]:
            case "requests":
                writes = [Write(*each) for each in read_requests(channel, document["requests"])]
                for number, found in committer.run(writes):
                    channel.hold(*found_frame(number, found))
                channel.send({"type": "done"})
            case "watch":
                set_watched(context.database, document["relations"])
            case _:  # stop
                context.finish_commits(is_last=True)
                return


def run_reader(channel: Channel, context: HandlerContext) -> None:
    """Answer the requests that the front sends, until it sends no more."""
    signal.signal(signal.SIGUSR1, lambda *_: abandon_work())
    is_behind = False
    while True:
        if is_behind and not channel.has_frame(IDLE_SECONDS):
            context.database.refresh()
            is_behind = False
        frame = channel.receive()
        if frame is None:
            return
        document = frame[0]
        match document["type"]:
            case "commit":
                remember_timings(context, document["number"], document["timings"])
                is_behind = True
            case "requests":
                requests = read_requests(channel, document["requests"])
                is_quick = document["is_quick"]
                if not is_quick:
                    channel.send({"type": "begin", "ids": [number for number, *_ in requests]})
                send = channel.hold if is_quick else channel.send
                with context.within(document["seconds"]):
                    for number, found in answer_batch(context, requests):
                        send(*found_frame(number, found))
                is_behind = False
                channel.send({"type": "done", "commit": context.commit})
            case _:  # stop
                return


if __name__ == "__main__":
    main(int(sys.argv[1]))
