"""The shares of a stratum, as the driver sees them: files, versions, and one job for each run.

Relations of the stratum are shared out by their pivot columns; what the stratum reads, every share
holds as a whole. The shares of a version are the bases that tasks have written, and a log of what
has changed since. A version is made when the driver commits, and only then: until then nobody
refers to what the tasks of a job have written.
"""

import pickle
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from corollary.core.arrow import arrow_type
from corollary.core.engine import Kept, Limits, Made
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.engines.spark.elsewhere import Changes, Delta, Errand
from corollary.engines.spark.plans import ByPlan
from corollary.engines.spark.serving import (
    Base,
    Entry,
    Record,
    Reply,
    Request,
    Result,
    numbered,
    read,
    read_share,
    remaining,
    serve,
    shares_of,
    write,
)
from corollary.engines.spark.session import described
from corollary.errors import InputError
from corollary.rewrite.shares import SHARES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENTRIES = 64
"""When the log is so long, the next job begins with new bases."""

TUPLES = 1 << 17
"""…and when it holds so many tuples, or one in `PART` of all that there are."""

PART = 4

APART = 1 << 17
"""So many tuples of a relation are not brought to the driver to be written from there."""


@dataclass(slots=True)
class Ran:
    """What a job has found, before it is committed.

    Attributes:
        opened: the changes of the relations below, as the tasks know them.
        replies: of the tasks, by share.
    """

    opened: Changes
    replies: list[Reply]

    def size(self, name: str, state: State) -> int:
        """Return how many tuples of a relation have come or gone."""
        at = 0 if state is State.ADDED else 1
        return sum(each.results[name].counts[at] for each in self.replies)


Job = Callable[[Request], list[bytes]]
"""Has a request answered for every share."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Whole:
    """All tuples of a relation, as the files of the shares say."""

    name: str
    size: int
    request: Request
    job: Job

    def __len__(self) -> int:
        return self.size

    def table(self) -> pa.Table:
        """Return the tuples."""
        shares = range(self.request.shares)
        return pa.concat_tables([read_share(self.request, each, self.name) for each in shares])

    @property
    def is_apart(self) -> bool:
        """Whether there are so many tuples that they had better stay where they are."""
        return self.size >= APART

    def each(self, use: Callable[[pa.Table], Made]) -> list[Made]:
        """Return what a function makes of the tuples of each share, in one job."""
        request = replace(self.request, use=(self.name, use), job=uuid4().hex)
        return [made for each in sound(self.job(request)) for made in each.made]

    @property
    def files(self) -> set[str]:
        """The files and directories that say so."""
        return {
            *(each.directory for each in self.request.bases if each.directory is not None),
            *(path for entry in self.request.log for path in entry.files),
        }


@dataclass(slots=True)
class Shares:
    """The shares of one stratum.

    Args:
        job: asks all shares.
        root: a directory that the driver and all tasks see.
        count: how many shares there are.
        title: what Spark shows for a job.

    Attributes:
        held: the relations that the shares hold.
        pivots: those that are shared out, with the column.
        told: the relations of whose open changes the tasks know.
        ran: the job that is not committed yet.
    """

    job: Job
    root: Path
    count: int
    title: str
    held: dict[str, Relation] = field(default_factory=dict)
    pivots: dict[str, int] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    ran: Ran | None = None
    sizes: dict[str, list[int]] = field(default_factory=dict)
    spreads: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    _lent: "WeakSet[Whole]" = field(default_factory=WeakSet)
    _owner: str = field(default_factory=lambda: uuid4().hex)
    _version: int = 0
    _bases: list[Base] = field(default_factory=list)
    _log: list[Entry] = field(default_factory=list)
    _logged: int = 0

    def __post_init__(self) -> None:
        self._bases = [Base(0, None)] * self.count

    @property
    def is_open(self) -> bool:
        """Whether there is a job that is not committed yet."""
        return self.ran is not None

    # --- what they hold ------------------------------------------------------------------------

    def owns(self, name: str) -> bool:
        """Whether a relation is shared out, rather than held by every share."""
        return name in self.pivots

    def is_as(self, name: str, pivot: int | None) -> bool:
        """Whether a relation is held, and shared out by a column."""
        return name in self.held and self.pivots.get(name) == pivot

    def hold(self, relation: Relation, rows: pa.Table, pivot: int | None) -> None:
        """Hold a relation from now on, shared out if there is a pivot."""
        self.held[relation.name] = relation
        if pivot is not None:
            self.pivots[relation.name] = pivot
            self.sizes[relation.name] = [rows.num_rows] + [0] * (self.count - 1)
            self.spreads[relation.name] = [()] * self.count
        self._note({relation.name: Delta(rows, None)}, {})

    def follow(self, name: str, delta: Delta) -> None:
        """Let a relation that is shared out have changed, by what somebody else found."""
        assert delta.removed is not None
        for sign, rows in ((1, delta.added), (-1, delta.removed)):
            found = shares_of(rows, self.held[name], self.pivots[name], self.count)
            for share, count in enumerate(np.bincount(found, minlength=self.count).tolist()):
                self.sizes[name][share] += sign * count
        self._note({name: delta}, {})

    def forget(self, names: Iterable[str]) -> None:
        """Let go of relations: they are somewhere else."""
        for name in names:
            self.held.pop(name, None)
            self.pivots.pop(name, None)

    def size(self, name: str, state: State = State.OLD) -> int:
        """Return the number of tuples of a relation that is shared out."""
        old = sum(self.sizes.get(name, ()))
        if state is State.OLD or self.ran is None:
            return old if state in (State.OLD, State.NEW) else 0
        added, removed = (self.ran.size(name, each) for each in (State.ADDED, State.REMOVED))
        return {State.ADDED: added, State.REMOVED: removed}.get(state, old + added - removed)

    def distinct(self, name: str) -> tuple[int, ...]:
        """Return about how many distinct values each column of such a relation has."""
        spreads = [each for each in self.spreads.get(name, ()) if each]
        pivot = self.pivots[name]
        if not spreads:
            return (max(1, self.size(name)),) * len(self.held[name].types)
        return tuple(
            sum(column) if at == pivot else max(column)
            for at, column in enumerate(zip(*spreads, strict=True))
        )

    def read(self, name: str, state: State) -> pa.Table:
        """Return the tuples of a relation that is shared out, in OLD or as the last job changed it.

        What was empty before is read from what the tasks have written. Without a job that is not
        committed there is no change.
        """
        if state is State.OLD:
            every = [read_share(self._request(), share, name) for share in range(self.count)]
            return pa.concat_tables(every)
        parts = []
        for reply in [] if self.ran is None else self.ran.replies:
            result = reply.results[name]
            if result.delta is not None:
                delta = self.delta(result)
                parts.append(delta.added if state is State.ADDED else delta.removed)
            elif result.counts[0] and state is State.ADDED:
                parts.append(read_share(self._begun(), reply.share, name))
        if parts:
            return pa.concat_tables(parts)
        relation = self.held[name]
        columns = [pa.array([], arrow_type(type_)) for type_ in relation.types]
        return pa.table(columns, names=list(relation.columns))

    def later(self, name: str, state: State) -> Kept | None:
        """Return what has come to a relation that held nothing before the last job.

        Or, between jobs, all that it holds, if that is much.
        """
        if self.ran is None:
            if state not in (State.OLD, State.NEW) or self.size(name) < APART:
                return None
            return self._lend(Whole(name, self.size(name), self._request(), self.job))
        if state not in (State.ADDED, State.NEW) or self.size(name):
            return None
        found = [each.results[name] for each in self.ran.replies]
        if not any(each.counts[0] for each in found) or any(each.delta for each in found):
            return None
        return self._lend(Whole(name, self.size(name, state), self._begun(), self.job))

    def _lend(self, whole: Whole) -> Whole:
        """Let files stay as long as somebody may read them."""
        self._lent.add(whole)
        return whole

    def _begun(self) -> Request:
        """Return a request about what the last job has begun, from nothing."""
        assert self.ran is not None
        version = self._version + 1
        bases = tuple(Base(version, each.base) for each in self.ran.replies)
        return replace(self._request(), version=version, bases=bases, log=())

    @staticmethod
    def delta(result: Result) -> Delta:
        """Return the change of a relation in a share."""
        found = read(result.delta) if isinstance(result.delta, str) else result.delta
        assert isinstance(found, Delta)
        return found

    # --- files ---------------------------------------------------------------------------------

    def manifest(self) -> dict[str, Any]:
        """Return what there is to know beside the files of `fold`, as JSON."""
        return {
            "relations": {name: repr(each.types) for name, each in self.held.items()},
            "pivots": self.pivots,
            "sizes": self.sizes,
            "spreads": self.spreads,
        }

    def restore(
        self, manifest: Mapping[str, Any], relations: Mapping[str, Relation], bases: Sequence[Path]
    ) -> None:
        """Hold what the files of `fold` say."""
        self.held = {name: relations[name] for name in manifest["relations"]}
        self.pivots = dict(manifest["pivots"])
        self.sizes = {name: list(each) for name, each in manifest["sizes"].items()}
        self.spreads = {
            name: [tuple(spread) for spread in each] for name, each in manifest["spreads"].items()
        }
        self._bases = [Base(0, str(each)) for each in bases]

    # --- jobs ----------------------------------------------------------------------------------

    def run(self, errand: Errand, recorder: Recorder) -> int:
        """Run a plan on all shares, in one job; return how many rows have been handled then."""
        is_long = len(self._log) >= ENTRIES or self._logged > max(TUPLES, self._total // PART)
        request = replace(
            self._request(),
            plan=_pickled(errand.plan),
            opened=write((errand.opened, errand.working), self.root),
            limits=remaining(errand.limits),
            is_folding=is_long and self._version > 0,
        )
        recorder.procedure(errand.plan.main)
        try:
            replies = self._answers(request)
        finally:
            discard([request.opened])
        self.ran = Ran(errand.opened, replies)
        self.told = set(errand.opened)
        return _tell(errand, [each.record for each in replies], recorder)

    def fold(self) -> list[Path]:
        """Return the directories of index files that say what the shares hold, all of it."""
        if self._log or any(each.directory is None for each in self._bases):
            self._answers(replace(self._request(), is_folding=True))
        return [Path(each.directory) for each in self._bases if each.directory is not None]

    def _answers(self, request: Request) -> list[Reply]:
        try:
            replies = sound(self.job(request))
        except BaseException:
            self._sweep(request.job, ())
            raise
        self._sweep(request.job, {path for each in replies for path in each.files})
        if request.is_folding:
            self._rebase({reply.share: reply.folded for reply in replies})
        return replies

    def _sweep(self, job: str, told: Collection[str]) -> None:
        """Remove what tasks of a job have written, but for what their replies tell of.

        Of a task that was lost, or done twice, there may be more.
        """
        written = {str(each) for each in self.root.glob(f"*-{job}-*")}
        discard(written.difference(told))

    def _rebase(self, directories: Mapping[int, str | None]) -> None:
        """Let shares begin from new bases; what nobody needs any more is removed."""
        lent = {each for whole in self._lent for each in whole.files}
        before = {self._bases[share].directory for share in directories}
        for share, directory in directories.items():
            self._bases[share] = Base(self._version, directory)
        if all(each.version == self._version for each in self._bases):
            for entry in self._log:
                discard(entry.files - lent)
            self._log.clear()
            self._logged = 0
        discard(before - lent)

    @property
    def _total(self) -> int:
        return sum(map(self.size, self.pivots))

    def _request(self) -> Request:
        return Request(
            owner=self._owner,
            title=self.title,
            root=str(self.root),
            relations={**self.held, SHARES.name: SHARES},
            pivots=dict(self.pivots),
            shares=self.count,
            version=self._version,
            bases=tuple(self._bases),
            log=tuple(self._log),
            plan=b"",
            opened="",
            limits=Limits(),
            is_folding=False,
        )

    def commit(self, changes: Changes) -> None:
        """Make a version of what relations below have changed by, and of what the last job found.

        Args:
            changes: of relations below that the last job was not told of.
        """
        if self.ran is None:
            if changes:
                self._note(changes, {})
            return
        own = {}
        for reply in self.ran.replies:
            deltas = {
                name: self.delta(result)
                for name, result in reply.results.items()
                if result.delta is not None
            }
            if deltas:
                own[reply.share] = write(deltas, self.root)
            for name, known in reply.results.items():
                self.sizes[name][reply.share] = known.size
                if known.distinct:
                    self.spreads[name][reply.share] = known.distinct
        self._note({**self.ran.opened, **changes}, own)
        discard(each.delta for reply in self.ran.replies for each in reply.results.values())
        found = {each.share: each.base for each in self.ran.replies if each.base is not None}
        self.ran = None
        self.told.clear()
        self._rebase(found)

    def rollback(self) -> None:
        """Forget what the last job found."""
        if self.ran is not None:
            lent = {each for whole in self._lent for each in whole.files}
            for reply in self.ran.replies:
                discard({reply.base} - lent)
                discard(each.delta for each in reply.results.values())
        self.ran = None
        self.told.clear()

    def close(self) -> None:
        """Nothing to let go of: the directory is the engine's."""

    def _note(self, changes: Changes, own: Mapping[int, str]) -> None:
        self._version += 1
        common = write(dict(changes), self.root) if changes else None
        self._log.append(Entry(self._version, common, own))
        for each in changes.values():
            self._logged += each.added.num_rows
            self._logged += 0 if each.removed is None else each.removed.num_rows


def sound(answers: Iterable[bytes]) -> list[Reply]:
    """Return the replies of all tasks, in the order of the shares.

    Raises:
        CorollaryError: of the first task that met with one.
    """
    replies: list[Reply] = sorted(
        (pickle.loads(each) for each in answers),  # noqa: S301 - our own tasks made it
        key=lambda each: each.share,
    )
    for reply in replies:
        if reply.error is not None:
            raise reply.error
    return replies


def discard(places: Iterable[object]) -> None:
    """Remove files and directories, of what may be such."""
    for each in places:
        if isinstance(each, str):
            path = Path(each)
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def spark_job(session: "SparkSession", request: Request) -> list[bytes]:
    """Have every share answered for by a task of its own, in one job."""
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import col, udf
    from pyspark.sql.types import BinaryType

    # Python functions over rows need neither pandas nor Arrow in Spark, and run on Connect too.
    task = udf(partial(serve, request), BinaryType(), useArrow=False).asNondeterministic()
    shares = session.range(0, request.shares, 1, request.shares)
    try:
        with described(session, f"corollary: {request.title}"):
            return [bytes(row[0]) for row in shares.select(task(col("id"))).collect()]
    except PySparkException as error:
        if "No module named 'corollary" not in str(error):
            raise
        raise InputError.of(
            "C0995",
            "The Python that runs Spark's tasks has no package `corollary`.",
            None,
            "install the same version there, or let `PYSPARK_PYTHON` name a Python that has it",
        ) from None


_pickled = ByPlan(partial(pickle.dumps, protocol=5))
"""The same bytes for the same plan, so that workers know it again."""


def _tell(errand: Errand, records: list[Record], recorder: Recorder) -> int:
    """Tell a recorder what all tasks have recorded together; return the rows handled by then."""
    steps = numbered(errand.plan)
    for number, step in enumerate(steps):
        size = sum(each.sizes[number] for each in records)
        led = sum(each.led[number] for each in records)
        if size or led:
            recorder.step(step, size, led)  # type: ignore[arg-type]
        if any(number in each.switched for each in records):
            recorder.switch(step)  # type: ignore[arg-type]
    for name in {name for each in records for name in each.probes}:
        recorder.probe(name, sum(each.probes[name] for each in records))
    if rounds := max(each.rounds for each in records):
        recorder.round(rounds)
    for each in records:
        for number, relations in each.rows:
            recorder.row(steps[number], relations)  # type: ignore[arg-type]
    handled = errand.handled + sum(each.handled for each in records)
    recorder.end(errand.plan.main, handled)
    return handled
