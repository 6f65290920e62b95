"""The engine of a driver: relations are here, or shared out; strata run where their relations are.

What is small is held and computed here by the local engine, and Spark is never started for it. A
stratum that is shared out is maintained by one Spark job. Its relations are then elsewhere: here is
at most how they change in the transaction that is open, or, if something here reads them, a copy.
"""

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corollary.core.engine import Held, Kept, Limits
from corollary.core.pipeline import Reference
from corollary.core.plan import (
    WORKING,
    Place,
    Placement,
    Plan,
    written_by,
)
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.engines.local.engine import LocalEngine
from corollary.engines.local.prepared import Prepared
from corollary.engines.spark.elsewhere import CHANGES, Delta, Elsewhere, Errand
from corollary.engines.spark.plans import ByPlan, Needs, needs_of, parts_of
from corollary.engines.spark.queries import Queries
from corollary.engines.spark.serving import Request
from corollary.engines.spark.session import parallelism, private, release
from corollary.engines.spark.shares import Shares, spark_job
from corollary.rewrite.shares import SHARES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGE = 1 << 24
"""A stratum of so many tuples is shared out; the driver is quicker with fewer..."""

LARGE_BELOW = 1 << 20
"""…and one that is empty so far, where it reads so many."""

MANIFEST = "shares.json"
"""The file of an index that says what is shared out, and how."""

HUGE = 1 << 28
"""A stratum without a pivot that has and reads so many tuples is left to queries."""


class PlacedEngine(LocalEngine):
    """Relations on the driver and in shares; plans run here but for strata that are shared out.

    Args:
        spark: the session to work beside; a local one is started if there is none.
        placement: where strata run that have a pivot; `auto` goes by size.
        shares: how many tasks share a stratum; as many as run at once if it is not given.
        scratch: a directory that the driver and all tasks see, for the files of shares.
    """

    def __init__(
        self,
        spark: "SparkSession | None" = None,
        *,
        placement: str = "auto",
        shares: int | None = None,
        scratch: Path | None = None,
    ) -> None:
        super().__init__()
        self._spark = spark
        self._placement = placement
        self._wanted_shares = shares
        self._scratch = scratch
        self._strata: dict[str, Shares] = {}
        self._elsewhere: dict[str, Elsewhere] = {}
        """Relations that are maintained elsewhere, with where."""
        self._copied: set[str] = set()
        """Those of them of which there is a copy here."""
        self._needs = ByPlan(needs_of)
        self._parts = ByPlan(parts_of)
        self._limits = Limits()
        super().declare({SHARES.name: SHARES})

    # --- Spark ---------------------------------------------------------------------------------

    @cached_property
    def _session(self) -> "SparkSession":
        return private(self._spark)

    @cached_property
    def _root(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="corollary-shares-", dir=self._scratch))

    @cached_property
    def _queries(self) -> Queries:
        from corollary.engines.spark.engine import SparkEngine

        return Queries(SparkEngine(self._spark, scratch=self._scratch))

    @property
    def _places(self) -> list[Elsewhere]:
        queries = [self._queries] if "_queries" in self.__dict__ else []
        return [*self._strata.values(), *queries]

    @property
    def home(self) -> str:
        """Where strata run that are placed nowhere else, in one word."""
        return "driver"

    @cached_property
    def shares(self) -> int:
        """How many tasks share the work of a stratum."""
        if self._wanted_shares is not None:
            return self._wanted_shares
        return parallelism(self._session)

    def placement(
        self, relations: Sequence[str], below: Sequence[str], *, has_pivot: bool
    ) -> Placement:
        """Return where a stratum should run."""
        if self._placement != "auto":
            wanted = Placement(self._placement)
            return wanted if has_pivot or wanted is not Placement.TASKS else Placement.DRIVER
        places = {type(self._elsewhere[name]) for name in relations if name in self._elsewhere}
        if places:
            return Placement.TASKS if Shares in places else Placement.SQL
        if self._spark is None and find_spec("pyspark") is None:
            return Placement.DRIVER
        size = sum(self.size(name, State.OLD) for name in relations if name in self._relations)
        lower = sum(self.size(name) for name in below if name in self._relations)
        if has_pivot and (size >= LARGE or (not size and lower >= LARGE_BELOW)):
            return Placement.TASKS
        return Placement.SQL if size + lower >= HUGE else Placement.DRIVER

    def close(self) -> None:
        """Let go of files."""
        for place in self._places:
            place.close()
        self._strata.clear()
        self._elsewhere.clear()
        if "_session" in self.__dict__:
            release(self._session)
            del self._session
        if "_root" in self.__dict__:
            shutil.rmtree(self._root, ignore_errors=True)

    def _job(self, request: Request) -> list[bytes]:
        """Have a request answered for every share."""
        return spark_job(self._session, request)

    # --- relations -----------------------------------------------------------------------------

    def drop(self, relations: Iterable[str]) -> None:
        """Forget relations."""
        names = list(relations)
        self._let_go(names)
        super().drop(names)

    def rename(self, old: str, new: str) -> None:
        """Give a relation another name, which no relation has."""
        self._bring(old)
        self._let_go([old])
        super().rename(old, new)

    def copy(self, source: str, target: str) -> None:
        """Make the NEW tuples of one relation the OLD and NEW ones of another."""
        self._bring(source)
        self._let_go([target])
        super().copy(source, target)

    def clear(self, relations: Iterable[str]) -> None:
        """Let relations hold nothing, in any state."""
        names = list(relations)
        self._let_go(names)
        super().clear(names)

    def insert(self, relation: str, rows: Sequence[tuple[Any, ...]] | pa.Table) -> None:
        """Add tuples to the NEW state of a relation; those already there are no change."""
        self._bring_home(relation)
        super().insert(relation, rows)

    def delete(self, relation: str, rows: Sequence[tuple[Any, ...]] | pa.Table) -> None:
        """Take tuples out of the NEW state of a relation; those not there are no change."""
        self._bring_home(relation)
        super().delete(relation, rows)

    def change(self, relation: str, added: pa.Table, removed: pa.Table) -> None:
        """Let a relation change by just these tuples, for good: they come, and those were there."""
        place = self._elsewhere.get(relation)
        if place is not None:
            place.follow(relation, Delta(added, removed))
        if not self._is_away(relation):
            super().delete(relation, removed)
            super().insert(relation, added)

    # --- index files ---------------------------------------------------------------------------

    def save(self, relations: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the files of an index of relations, as they are in OLD now: name and bytes."""
        names = list(relations)
        yield from super().save(name for name in names if name not in self._elsewhere)
        manifest = []
        for number, (procedure, shares) in enumerate(self._strata.items()):
            if not set(shares.pivots) & set(names):
                continue
            for share, directory in enumerate(shares.fold()):
                for file in sorted(directory.iterdir()):
                    yield f"{_prefix(number, share)}{file.name}", file.read_bytes()
            manifest.append({"number": number, "procedure": procedure, **shares.manifest()})
        if manifest:
            told = {"shares": self.shares, "strata": manifest}
            yield MANIFEST, json.dumps(told).encode()

    def restore(self, files: Mapping[str, pa.Buffer]) -> set[str]:
        """Let declared relations hold what the files of an index say; return which ones do."""
        found = super().restore(files)
        if MANIFEST not in files:
            return found
        manifest = json.loads(files[MANIFEST].to_pybytes())
        self.__dict__["shares"] = manifest["shares"]
        for each in manifest["strata"]:
            held = each["relations"].keys() - each["pivots"].keys()
            if held <= found and all(
                name in self._relations and repr(self._relations[name].types) == types
                for name, types in each["relations"].items()
            ):
                found |= self._restore(each, files)
        return found

    def _restore(self, manifest: Mapping[str, Any], files: Mapping[str, pa.Buffer]) -> set[str]:
        """Hold the shares of a stratum as the files of an index say; return its relations."""
        directories = []
        for share in range(self.shares):
            prefix = _prefix(manifest["number"], share)
            directory = self._root / f"{prefix}restored"
            directory.mkdir()
            for name, data in files.items():
                if name.startswith(prefix):
                    (directory / name.removeprefix(prefix)).write_bytes(data)
            directories.append(directory)
        shares = self._new_shares(manifest["procedure"], manifest["pivots"])
        shares.restore(manifest, self._relations, directories)
        self._elsewhere |= dict.fromkeys(shares.pivots, shares)
        return set(shares.pivots)

    def _new_shares(self, procedure: str, pivots: Iterable[str]) -> Shares:
        """Return the shares of a stratum, which hold nothing yet."""
        shares = Shares(self._job, self._root, self.shares, ", ".join(pivots))
        self._strata[procedure] = shares
        return shares

    # --- what is elsewhere ---------------------------------------------------------------------

    def _is_away(self, relation: str) -> bool:
        """Whether a relation is elsewhere, and no copy of it here."""
        return relation in self._elsewhere and relation not in self._copied

    def _bring(self, relation: str) -> None:
        """Have a copy of a relation here, with the change that is open."""
        if not self._is_away(relation):
            return
        place, table = self._elsewhere[relation], self._tables[relation]
        rows = place.read(relation, State.OLD)
        table.clear()
        super().insert(relation, rows)
        table.commit()
        if place.is_open:
            self._change(relation, place)
        self._copied.add(relation)

    def _change(self, relation: str, place: Elsewhere) -> None:
        """Let a copy change as was found elsewhere."""
        super().delete(relation, place.read(relation, State.REMOVED))
        super().insert(relation, place.read(relation, State.ADDED))

    def _bring_home(self, relation: str) -> None:
        """Hold a relation here, and not elsewhere."""
        if relation in self._elsewhere:
            self._bring(relation)
            self._let_go([relation])

    def _let_go(self, relations: Iterable[str]) -> None:
        """Let relations be held here only; what shares have of them is no longer true."""
        names = list(relations)
        for name in names:
            self._elsewhere.pop(name, None)
            self._copied.discard(name)
        for place in self._places:
            place.forget(names)

    # --- changes -------------------------------------------------------------------------------

    def commit(self, relations: Iterable[str] | None = None) -> None:
        """Make NEW the OLD of some relations, or of all."""
        named = None if relations is None else list(relations)
        if named is None:
            told = [(place, self._changes_for(place)) for place in self._places]
            for place, changes in told:
                place.commit(changes)
        else:
            self._let_go(named)
        super().commit(named)
        for name in self._elsewhere:
            if self._is_away(name):
                self._tables[name].clear()

    def _changes_for(self, place: Elsewhere) -> dict[str, Delta]:
        """Return the open changes of relations that a place holds, and has not been told of."""
        return {
            name: Delta(*(self.read(name, sign) for sign in CHANGES))
            for name in place.held
            if not place.owns(name)
            and name not in place.told
            and any(self.size(name, sign) for sign in CHANGES)
        }

    def rollback(self) -> None:
        """Make OLD the NEW of every relation."""
        for place in self._places:
            place.rollback()
        for name in self._elsewhere:
            if self._is_away(name):
                self._tables[name].clear()
        super().rollback()

    # --- reading -------------------------------------------------------------------------------

    def read(self, relation: str, state: State = State.NEW) -> pa.Table:
        """Return the tuples of a relation in a state, as an Arrow table."""
        place = self._elsewhere.get(relation)
        if place is not None and relation not in self._copied:
            if state is State.NEW and not place.is_open:
                state = State.OLD
            elif state is State.NEW and not place.size(relation, State.OLD):
                state = State.ADDED
            if state is not State.NEW:
                return place.read(relation, state)
            self._bring(relation)
        return super().read(relation, state)

    def keep(self, relation: str, state: State = State.NEW) -> Kept:
        """Return the tuples of a relation in a state as they are now, to be decoded when asked."""
        if not self._is_away(relation):
            return super().keep(relation, state)
        later = self._elsewhere[relation].later(relation, state)
        return Held(self.read(relation, state)) if later is None else later

    def size(self, relation: str, state: State = State.NEW) -> int:
        """Return the number of tuples of a relation in a state."""
        if self._is_away(relation):
            return self._elsewhere[relation].size(relation, state)
        return super().size(relation, state)

    def distinct(self, relation: str) -> tuple[int, ...]:
        """Return about how many distinct values each column of a relation has."""
        if self._is_away(relation):
            return self._elsewhere[relation].distinct(relation)
        return super().distinct(relation)

    # --- plans ---------------------------------------------------------------------------------

    def run(self, plan: Plan, recorder: Recorder, limits: Limits) -> int:
        """Run the main procedure of a plan; return how many rows it handled.

        If it fails, the relations that the plan writes have no open change; those that `insert` and
        `delete` have changed keep theirs.
        """
        needs = self._needs(plan)
        for name in needs.written & self._elsewhere.keys():
            self._bring_home(name)
        for name in needs.copies & self._elsewhere.keys():
            self._bring(name)
        self._limits = limits
        if not self.size(SHARES.name) and SHARES.name in plan.types:
            super().insert(SHARES.name, [(number,) for number in range(self.shares)])
            super().commit([SHARES.name])
        try:
            return super().run(plan, recorder, limits)
        except BaseException:
            for place in self._places:
                place.rollback()
            raise

    def _place(self, prepared: Prepared, step: Place) -> bool:
        """Run the procedure of a stratum elsewhere."""
        place: Elsewhere
        if step.placement is Placement.TASKS:
            known = self._strata.get(step.procedure)
            place = known or self._new_shares(step.procedure, dict(step.columns))
        else:
            place = self._queries
        part = self._parts(prepared.plan)[step.procedure]
        held = [each for each in part.types if each in self._relations]
        columns = dict(step.columns)
        owned = {
            each: columns[owner]
            for each in held
            if (owner := each.partition(WORKING)[0]) in columns
        }
        for name in held:
            if name != SHARES.name and not place.is_as(name, owned.get(name)):
                if name in owned:
                    self._bring_home(name)
                place.hold(self._relations[name], self.read(name, State.OLD), owned.get(name))
        errand = Errand(
            part,
            frozenset(owned),
            self._changes_for(place),
            self._working(part, prepared),
            prepared.budget.handled,
            self._limits,
        )
        try:
            prepared.budget.handled = place.run(errand, prepared.recorder)
        except BaseException:
            place.forget([name for name in owned if name not in self._elsewhere])
            raise
        needs = self._needs(prepared.plan)
        for name in owned:
            self._settle(name, place, needs)
        return True

    def _working(self, part: Plan, prepared: Prepared) -> dict[str, tuple[Relation, pa.Table]]:
        """Return the working relations that a part of a plan reads and does not make."""
        made = set(written_by(part))
        found = {}
        for name, types in part.types.items():
            if name not in self._relations and name not in made:
                rows = prepared.read(Reference(name))
                columns = tuple(rows.column_names)
                found[name] = Relation(name, columns, types, False, is_declared=False), rows
        return found

    def _settle(self, relation: str, place: Elsewhere, needs: Needs) -> None:
        """A run has changed a relation: it is elsewhere from now on."""
        if relation in self._elsewhere:
            if relation in self._copied:
                self._change(relation, place)
            elif relation in needs.changes:
                self._stand_in(relation, place)
            return
        self._elsewhere[relation] = place
        if relation in needs.copies or relation in needs.changes:
            self._copied.add(relation)
            self._change(relation, place)
        else:
            self._tables[relation].clear()

    def _stand_in(self, relation: str, place: Elsewhere) -> None:
        """Let the table of a relation that is away have the right changes, and nothing else."""
        table = self._tables[relation]
        table.clear()
        super().insert(relation, place.read(relation, State.REMOVED))
        table.commit()
        self._change(relation, place)


def _prefix(number: int, share: int) -> str:
    return f"share-{number}-{share}-"
