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
"""The longest time for which alerts wait while writes come in."""


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
                    if isinstance(found, ServiceError):
                        channel.hold(error_frame(number, found))
                    else:
                        channel.hold(*answer_frame(number, found))
                channel.send({"type": "done"})
            case "watch":
                set_watched(context.database, document["relations"])
            case _:  # stop
                context.finish_commits(is_last=True)
                return
