"""A reader: answers questions on the committed state, and follows the commits of the writer."""

import signal

from corollary.core.engine import abandon_work
from corollary.serve.answers import ServiceError
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.processes.channel import (
    Channel,
    answer_frame,
    error_frame,
    read_requests,
)
from corollary.serve.processes.goal_batches import answer_batch
from corollary.serve.processes.group_commit import remember_timings

IDLE_SECONDS = 0.05
"""After this time without requests, a reader catches up with commits that it was told about."""


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
                        if isinstance(found, ServiceError):
                            send(error_frame(number, found))
                        else:
                            send(*answer_frame(number, found))
                is_behind = False
                channel.send({"type": "done", "commit": context.commit})
            case _:  # stop
                return
