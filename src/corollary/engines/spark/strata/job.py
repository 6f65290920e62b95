"""One Spark job for each run of a partitioned stratum: a task for every partition."""

import pickle
from collections.abc import Iterable
from functools import partial

from corollary.core.plans import steps_of
from corollary.core.recorder import Recorder
from corollary.engines.spark.remote import RemoteRun
from corollary.engines.spark.strata.messages import PartitionRequest, Reply, TaskRecorder
from corollary.engines.spark.strata.worker import serve
from corollary.engines.spark.task_runner import TaskRunner


def run_spark_job(runner: TaskRunner, request: PartitionRequest) -> list[bytes]:
    """Return the pickled replies for all partitions."""
    return runner.run(partial(serve, request), range(request.partitions), request.title)


def unpickle_replies(pickled: Iterable[bytes]) -> list[Reply]:
    """Return the replies of all tasks, in the order of the partitions.

    Raises:
        CorollaryError: the error of the first task that failed.
    """
    replies: list[Reply] = sorted(
        (pickle.loads(each) for each in pickled),  # noqa: S301 - our own tasks made it
        key=lambda each: each.partition,
    )
    for reply in replies:
        if reply.error is not None:
            raise reply.error
    return replies


def report_run(remote_run: RemoteRun, records: list[TaskRecorder], recorder: Recorder) -> int:
    """Report the sum over all tasks to a recorder; return the rows that were handled by then."""
    steps = list(steps_of(remote_run.plan))
    for number, step in enumerate(steps):
        size = sum(each.sizes[number] for each in records)
        led = sum(each.led[number] for each in records)
        if size or led:
            recorder.step(step, size, led)  # type: ignore[arg-type]
        if given_up := sum(each.switched[number] for each in records):
            recorder.switch(step, given_up)  # type: ignore[arg-type]
    for name in {name for each in records for name in each.probes}:
        recorder.probe(name, sum(each.probes[name] for each in records))
    if rounds := max(each.rounds for each in records):
        recorder.round(rounds)
    for each in records:
        for number, relations, in_round in each.rows:
            recorder.row(steps[number], relations, in_round)  # type: ignore[arg-type]
    handled = remote_run.handled + sum(each.handled for each in records)
    recorder.end(remote_run.plan.main, handled)
    return handled
