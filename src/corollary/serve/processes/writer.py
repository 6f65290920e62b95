"""The writer: the one process that commits, watches and delivers."""

import time
from dataclasses import asdict

from corollary.serve.answers import ServiceError
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.processes.channel import (
    Channel,
    answer_frame,
    error_frame,
    read_requests,
)
from corollary.serve.processes.group_commit import CommitReport, GroupCommitter, Write
from corollary.serve.subscriptions.watching import set_watched

FINISH_SECONDS = 0.5
"""The longest time for which published tables and alerts wait while writes come in."""


def run_writer(channel: Channel, context: HandlerContext) -> None:
    """Do what the front sends, until it sends no more.

    Tables are published and alerts delivered when no write waits, or after half a second: their
    requests are answered already.
    """

    def report(commit: CommitReport) -> None:
        channel.send({"type": "commit", **asdict(commit)})

    def begin(numbers: object) -> None:
        channel.send({"type": "begin", "ids": numbers})

    committer = GroupCommitter(context, begin, report)
    finished = time.monotonic()
    while True:
        if not channel.has_frame() or time.monotonic() - finished > FINISH_SECONDS:
            committer.finish()
            finished = time.monotonic()
        frame = channel.receive()
        if frame is None:
            return
        document = frame[0]
        match document["type"]:
            case "requests":
                writes = [Write(*each) for each in read_requests(channel, document["requests"])]
                for number, found in committer.run(writes):
                    if isinstance(found, ServiceError):
                        channel.send(error_frame(number, found))
                    else:
                        channel.send(*answer_frame(number, found))
                channel.send({"type": "done"})
            case "watch":
                set_watched(context.database, document["relations"])
            case _:  # stop
                committer.finish()
                return
