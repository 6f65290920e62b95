"""What a task of a shared-out stratum does: run a plan on its share with the local engine.

A share is what a directory of index files says, its base, and the entries of a log since. A worker
that has it open from the job before only reads on; any other begins from the base, and reads no
more of the files than the plan asks for. Nothing that a task does is seen by anyone before the
driver takes up its reply: it writes files of its own, and what it holds goes back to how it was.
"""

import pickle
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.engine import Limits
from corollary.core.plan import Aggregate, Derive, Plan, Row, Step, Within, steps_of
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.engines.local.engine import LocalEngine
from corollary.engines.local.native import from_arrow
from corollary.engines.local.shares import share_of
from corollary.engines.spark.elsewhere import Delta
from corollary.errors import CorollaryError
from corollary.rewrite.shares import SHARES

OPEN = 1 << 30
"""The bytes of the shares that a worker keeps open; the last one in any case."""

TUPLE = 60
"""The bytes of a tuple in memory, at the peak."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A version of the shares.

    Attributes:
        common: a file with the changes of relations that all shares hold.
        own: by share, a file with the changes of relations that are shared out.
    """

    version: int
    common: str | None
    own: Mapping[int, str]

    @property
    def files(self) -> set[str]:
        """All files of the version."""
        return {*self.own.values(), *([] if self.common is None else [self.common])}


@dataclass(frozen=True, slots=True)
class Base:
    """A directory of index files, and the version that they are of."""

    version: int
    directory: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """What all tasks of a job are told.

    Attributes:
        owner: who asks; a worker serves several.
        root: a directory that the driver and all tasks see.
        relations: those that the shares hold; those in `pivots` are shared out by a column.
        version: what the log goes up to.
        plan: what to run, pickled; empty if there is nothing to run.
        opened: a file with the open changes of relations, and with working relations.
        is_folding: whether to write a new base first.
        use: what to make of a relation, if that is all that is asked for.
        job: of which this is the request; the names of all files that it makes tell.
    """

    owner: str
    title: str
    root: str
    relations: Mapping[str, Relation]
    pivots: Mapping[str, int]
    shares: int
    version: int
    bases: tuple[Base, ...]
    log: tuple[Entry, ...]
    plan: bytes
    opened: str
    limits: Limits
    is_folding: bool
    use: tuple[str, Callable[[pa.Table], Any]] | None = None
    job: str = field(default_factory=lambda: uuid4().hex)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a relation in a share.

    Attributes:
        size: its tuples in NEW.
        distinct: about how many values each column has, if that was looked at.
        counts: how many tuples were added and removed.
        delta: how it has changed, or the file that says so; None where nothing has, or where it
            held nothing before, and the base of the reply says all.
    """

    size: int
    distinct: tuple[int, ...]
    counts: tuple[int, int]
    delta: Delta | str | None


@dataclass(slots=True)
class Record:
    """A recorder that adds up, so that the driver can tell its own."""

    steps: Mapping[int, int] = field(default_factory=dict)
    """The number of each step by its identity."""
    sizes: Counter[int] = field(default_factory=Counter)
    led: Counter[int] = field(default_factory=Counter)
    probes: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    handled: int = 0
    switched: set[int] = field(default_factory=set)
    rows: list[tuple[int, Mapping[str, tuple[pa.Table, ...]]]] = field(default_factory=list)

    def procedure(self, name: str) -> None:
        """Nothing to note."""

    def end(self, name: str, handled: int) -> None:  # noqa: ARG002
        """Note the rows so far."""
        self.handled = handled

    def step(self, step: Derive | Aggregate, size: int, led: int) -> None:
        """Add to what a step gave."""
        number = self.steps[id(step)]
        self.sizes[number] += size
        self.led[number] += led

    def round(self, count: int = 1) -> None:
        """Count rounds."""
        self.rounds += count

    def probe(self, relation: str, rows: int) -> None:
        """Add to the look-ups in a relation."""
        self.probes[relation] += rows

    def switch(self, within: Within) -> None:
        """Note what was given up."""
        self.switched.add(self.steps[id(within)])

    def row(self, row: Row, relations: Mapping[str, tuple[pa.Table, ...]]) -> None:
        """Keep a row of a trace."""
        self.rows.append((self.steps[id(row)], relations))


@dataclass(frozen=True, slots=True)
class Reply:
    """What a task has found.

    Attributes:
        folded: the base that it wrote of the version it was asked for.
        base: the base that it wrote of what the plan has made of that.
        made: what was made of a relation, if it holds anything.
    """

    share: int
    results: Mapping[str, Result] = field(default_factory=dict)
    record: Record = field(default_factory=Record)
    folded: str | None = None
    base: str | None = None
    made: tuple[Any, ...] = ()
    error: CorollaryError | None = None

    @property
    def files(self) -> set[str]:
        """The files and directories that it tells of."""
        places = (self.folded, self.base, *(each.delta for each in self.results.values()))
        return {each for each in places if isinstance(each, str)}


def serve(request: Request, share: int) -> bytes:
    """Answer for a share; Spark calls this in a task."""
    return pickle.dumps(answer(request, share), protocol=5)


def answer(request: Request, share: int) -> Reply:
    """Run the plan on one share, or make something of a relation there."""
    try:
        if request.use is not None:
            name, use = request.use
            rows = read_share(request, share, name)
            return Reply(share, made=(use(rows),) if rows.num_rows else ())
        opened = _opened(request, share)
        folded = None
        if request.is_folding:
            folded = saved(opened.engine, request, share)
            opened.base = folded
        if not request.plan:
            return Reply(share, folded=folded)
        return replace(_run(request, share, opened), folded=folded)
    except CorollaryError as error:
        _OPEN.pop((request.owner, share), None)
        return Reply(share, error=error)


def _run(request: Request, share: int, opened: "Opened") -> Reply:
    engine, plan = opened.engine, _plan(request.plan)
    working = _open_changes(engine, request)
    record = Record(numbers(plan))
    try:
        engine.run(plan, record, request.limits)
        record.steps = {}
        is_whole = not any(engine.size(name, State.OLD) for name in request.pivots)
        results = {name: _result(engine, name, request, is_whole) for name in request.pivots}
        base = None
        if is_whole and any(each.size for each in results.values()):
            engine.commit()
            base = saved(engine, request, share)
            opened.base, opened.version = base, request.version + 1
        else:
            engine.rollback()
    except BaseException:
        engine.rollback()
        raise
    finally:
        engine.drop(working)
    return Reply(share, results, record, base=base)


def _result(engine: LocalEngine, name: str, request: Request, is_whole: bool) -> Result:
    counts = engine.size(name, State.ADDED), engine.size(name, State.REMOVED)
    delta: Delta | str | None = None
    if not is_whole and any(counts):
        delta = Delta(engine.read(name, State.ADDED), engine.read(name, State.REMOVED))
        if sum(counts) > LARGE:
            delta = write(delta, Path(request.root), request.job)
    spread = engine.distinct(name) if is_whole or request.is_folding else ()
    return Result(engine.size(name), spread, counts, delta)


LARGE = 1 << 14
"""More tuples of a change are written to a file."""


def numbers(plan: Plan) -> dict[int, int]:
    """Return the number of each step of a plan by its identity."""
    return {id(step): number for number, step in enumerate(steps_of(plan))}


def numbered(plan: Plan) -> list[Step]:
    """Return the steps of a plan by number."""
    return list(steps_of(plan))


@lru_cache(maxsize=64)
def _plan(pickled: bytes) -> Plan:
    plan: Plan = pickle.loads(pickled)  # noqa: S301 - made by the driver, as the task itself is
    return plan


# --- shares --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Opened:
    """A share that is open: the base it was read from, and the version it is at."""

    engine: LocalEngine
    base: str | None
    version: int

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return TUPLE * sum(map(self.engine.size, self.engine.relations))


_OPEN: OrderedDict[tuple[str, int], Opened] = OrderedDict()


def read_share(request: Request, share: int, name: str) -> pa.Table:
    """Return what a relation is in a share at the version that is asked for.

    A share that is open at just that version is read; any other is opened for this, and no longer.
    """
    base, found = request.bases[share], _OPEN.get((request.owner, share))
    if (
        found is None
        or base.directory is None
        or (found.base, found.version) != (base.directory, request.version)
    ):
        found = Opened(_restored(request, share, base), base.directory, base.version)
        _read_on(found, request, share)
    return found.engine.read(name)


def _opened(request: Request, share: int) -> Opened:
    """Return a share as it is at the version that is asked for, and keep it open."""
    key, base = (request.owner, share), request.bases[share]
    found = _OPEN.get(key)
    if found is None or found.base != base.directory or found.version > request.version:
        _OPEN.pop(key, None)
        found = Opened(_restored(request, share, base), base.directory, base.version)
        _OPEN[key] = found
    _OPEN.move_to_end(key)
    _read_on(found, request, share)
    _close_others()
    return found


def _close_others() -> None:
    """Let go of the shares that were used least recently, while all together are too large."""
    total = sum(each.bytes for each in _OPEN.values())
    while total > OPEN and len(_OPEN) > 1:
        _, gone = _OPEN.popitem(last=False)
        total -= gone.bytes


def _read_on(found: Opened, request: Request, share: int) -> None:
    """Let a share have all changes up to the version that is asked for."""
    _declare(found.engine, request, share)
    for entry in request.log:
        if entry.version > found.version:
            for path in (entry.common, entry.own.get(share)):
                if path is not None:
                    _apply(found.engine, read(path), request, share)
            found.engine.commit()
            found.version = entry.version
    found.version = request.version


def _restored(request: Request, share: int, base: Base) -> LocalEngine:
    engine = LocalEngine()
    _declare(engine, request, share)
    if base.directory is not None:
        engine.clear([SHARES.name])
        files = sorted(Path(base.directory).iterdir())
        found = engine.restore(
            {each.name: pa.memory_map(str(each)).read_buffer() for each in files}
        )
        engine.insert(SHARES.name, [(share,)])
        engine.commit()
        assert found, f"no index in {base.directory}"
    return engine


def _declare(engine: LocalEngine, request: Request, share: int) -> None:
    wanted = request.relations
    engine.drop([name for name, each in engine.relations.items() if wanted.get(name) != each])
    engine.declare(wanted)
    if not engine.size(SHARES.name):
        engine.insert(SHARES.name, [(share,)])
        engine.commit([SHARES.name])


def _apply(engine: LocalEngine, deltas: Mapping[str, Delta], request: Request, share: int) -> None:
    for name, delta in deltas.items():
        if name not in request.relations:
            continue
        added, removed = (
            rows if rows is None or name not in request.pivots else _own(rows, name, request, share)
            for rows in (delta.added, delta.removed)
        )
        if removed is None:
            engine.clear([name])
        else:
            engine.delete(name, removed)
        engine.insert(name, added)


def _own(rows: pa.Table, name: str, request: Request, share: int) -> pa.Table:
    """Return the tuples that fall to a share."""
    relation, pivot = request.relations[name], request.pivots[name]
    return rows.filter(pa.array(shares_of(rows, relation, pivot, request.shares) == share))


def shares_of(rows: pa.Table, relation: Relation, pivot: int, shares: int) -> npt.NDArray[np.int64]:
    """Return the share that each tuple falls to."""
    type_ = relation.types[pivot]
    return share_of(*from_arrow(rows.column(pivot), type_), type_, shares)


def _open_changes(engine: LocalEngine, request: Request) -> list[str]:
    """Let relations change as they do in the transaction; return the working relations."""
    changes, working = read(request.opened)
    for name, delta in changes.items():
        engine.delete(name, delta.removed)
        engine.insert(name, delta.added)
    engine.declare({name: relation for name, (relation, _) in working.items()})
    for name, (_, rows) in working.items():
        engine.insert(name, rows)
        engine.commit([name])
    return list(working)


# --- files ---------------------------------------------------------------------------------------


def saved(engine: LocalEngine, request: Request, share: int) -> str:
    """Write a base of a share to a directory of its own; return the directory."""
    directory = Path(request.root) / f"base-{share}-{request.job}-{uuid4().hex}"
    directory.mkdir()
    names = [name for name in request.relations if name != SHARES.name]
    for name, data in engine.save(names):
        (directory / name).write_bytes(data)
    return str(directory)


def write(data: Any, root: Path, job: str = "driver") -> str:
    """Write something to a file of its own; return where."""
    path = root / f"data-{job}-{uuid4().hex}"
    with path.open("wb") as file:
        pickle.dump(data, file, protocol=5)
    return str(path)


def read(path: str) -> Any:
    """Return what was written."""
    with Path(path).open("rb") as file:
        return pickle.load(file)  # noqa: S301 - written by the driver or a task of it


def remaining(limits: Limits) -> Limits:
    """Return limits that say how many seconds are left, for another clock."""
    if limits.seconds is None or limits.since is None:
        return limits
    left = limits.seconds - (time.monotonic() - limits.since)
    return replace(limits, seconds=max(0.0, left), since=None)
