"""The local engine: relations in one process, and the plans that run on them."""

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.core import engine, plans
from corollary.core.arrow import NO_VIOLATIONS, DependencyCheck, Violations, to_python
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import CHANGES, State
from corollary.core.statistics import Statistics
from corollary.core.types import Type
from corollary.engines.local import table_handle
from corollary.engines.local.evaluation import row_stages
from corollary.engines.local.evaluation.matches import agreeing_words
from corollary.engines.local.interpreter import Interpreter
from corollary.engines.local.prepared_plan import PlanHooks, PreparedPlan, RemoteSteps
from corollary.engines.local.storage import index_files
from corollary.engines.local.storage.arrangement import Arrangement
from corollary.engines.local.storage.blocks import file_identity
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import LayoutFamily, Row, Words
from corollary.engines.local.storage.rows import permutation
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary

TUPLES_SUFFIX = ".tuples"
TUPLES_FILE = re.compile(rf"\d+{re.escape(TUPLES_SUFFIX)}")
"""The names of the files of an index that hold tuples; there may be other files beside them."""

MATCHES_MAX_TUPLES = 64
"""So many tuples that may agree with an added one are compared one by one."""

PREPARED_PLANS_MAX = 64
"""The maximum number of plans that stay prepared for their next run."""


class TablesOnDemand(dict[str, Table]):
    """The tables of relations, some of which are filled when they are first looked up.

    Attributes:
        sizes: how many tuples those have that are not filled yet.
        fill: fills one of them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[str, int] = {}
        self.fill: Callable[[str], None] | None = None

    def __getitem__(self, name: str) -> Table:
        if name in self.sizes:
            self._fill_waiting(name)
        return super().__getitem__(name)

    def __delitem__(self, name: str) -> None:
        self.sizes.pop(name, None)
        super().__delitem__(name)

    def _fill_waiting(self, name: str) -> None:
        """Fill a table; one that cannot be filled is empty, and still waits."""
        size, fill = self.sizes.pop(name), self.fill
        assert fill is not None
        try:
            fill(name)
        except BaseException:
            self[name].clear()
            self.sizes[name] = size
            raise


class LocalEngine:
    """Relations as coded, packed, sorted arrays; plans run step by step."""

    def __init__(self, bulk: engine.BulkMode | None = None) -> None:
        self._bulk = engine.bulk_mode() if bulk is None else bulk
        self._dictionary = Dictionary()
        self._relations: dict[str, Relation] = {}
        self._tables = TablesOnDemand()
        self._prepared: OrderedDict[int, PreparedPlan] = OrderedDict()
        self._written: set[str] = set()
        """The relations that may have an open change, so that nobody looks at the others."""

    # --- relations -----------------------------------------------------------------------------

    def declare(self, relations: Mapping[str, Relation]) -> None:
        """Add relations; those that exist stay as they are."""
        for name, relation in relations.items():
            if name not in self._relations:
                self._relations[name] = relation
                self._tables[name] = self._new_table(relation)
                self._unprepare(name)

    def _new_table(self, relation: Relation) -> Table:
        return Table(relation.types)

    def drop(self, relations: Iterable[str]) -> None:
        """Remove relations."""
        for name in relations:
            del self._relations[name], self._tables[name]
            self._written.discard(name)
            self._unprepare(name)

    def rename(self, old: str, new: str) -> None:
        """Give a relation another name, which must be unused."""
        assert new not in self._relations, f"`{new}` is taken"
        self._relations[new] = replace(self._relations.pop(old), name=new)
        self._tables[new] = self._tables[old]
        del self._tables[old]
        if old in self._written:
            self._written.add(new)
        self._unprepare(old)
        self._unprepare(new)

    def relabel(self, relation: Relation) -> None:
        """Give the columns of a relation the names that it has here; the types are the same."""
        self._relations[relation.name] = relation

    def copy(self, source: str, target: str) -> None:
        """Make the NEW tuples of one relation the OLD and NEW ones of another."""
        copy_tuples(self._tables[source], self._tables[target])

    def fill_later(self, sizes: Mapping[str, int], fill: Callable[[str], None]) -> None:
        """Have relations filled when they are first used; until then they have given sizes."""
        self._tables.sizes, self._tables.fill = dict(sizes), fill

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The declared relations by name."""
        return self._relations

    # --- changes -------------------------------------------------------------------------------

    def insert(self, relation: str, rows: Sequence[tuple[Any, ...]] | pa.Table) -> None:
        """Add tuples to the NEW state of a relation; those that it contains have no effect."""
        self._written.add(relation)
        table = self._tables[relation]
        if len(rows) <= row_stages.FEW_TUPLES:
            table.insert_rows(self._encode_few(rows, table.types))
        else:
            table.insert(*self._encode(relation, rows))

    def delete(self, relation: str, rows: Sequence[tuple[Any, ...]] | pa.Table) -> None:
        """Remove tuples from the NEW state of a relation; those not in it have no effect."""
        self._written.add(relation)
        table = self._tables[relation]
        if len(rows) <= row_stages.FEW_TUPLES:
            table.delete_rows(self._encode_few(rows, table.types))
        else:
            table.delete(*self._encode(relation, rows))

    def prefetch(self, lookups: Iterable[engine.RowLookup]) -> None:
        """Do nothing: all tuples are here."""

    def _encode_few(
        self, rows: Sequence[tuple[Any, ...]] | pa.Table, types: tuple[Type, ...]
    ) -> list[Row]:
        """Return the codes of few rows."""
        values = rows if isinstance(rows, Sequence) else to_python(rows)
        return self._dictionary.encode_rows(values, types)

    def _encode(
        self,
        relation: str,
        rows: Sequence[tuple[Any, ...]] | pa.Table,
        columns_given: tuple[int, ...] | None = None,
    ) -> tuple[list[Codes], int]:
        types = self._tables[relation].types
        if columns_given is not None:
            types = tuple(types[column] for column in columns_given)
        if isinstance(rows, Sequence):
            columns = [
                self._dictionary.encode_python((row[index] for row in rows), type_)
                for index, type_ in enumerate(types)
            ]
            return columns, len(rows)
        columns = [
            self._dictionary.encode_arrow(rows.column(index), type_)
            for index, type_ in enumerate(types)
        ]
        return columns, rows.num_rows

    def apply_change(self, relation: str, added: pa.Table, removed: pa.Table) -> None:
        """Change a relation by tuples that are not in it and tuples that are."""
        if len(removed):
            self.delete(relation, removed)
        if len(added):
            self.insert(relation, added)

    def commit(self, relations: Iterable[str] | None = None) -> None:
        """Make NEW the OLD of some relations, or of all."""
        names = self.changed()
        changed = [self._tables[name] for name in (names if relations is None else relations)]
        # All reading of files comes first: after the first `commit` nothing may fail.
        self._prepare_commit(changed)
        for table in changed:
            table.commit()
        self._written = set() if relations is None else names

    def _prepare_commit(self, changed: Sequence[Table]) -> None:
        """Read all that `commit` may need."""
        for table in changed:
            table.prefetch()

    def clear(self, relations: Iterable[str]) -> None:
        """Remove all tuples of relations, in every state."""
        for name in relations:
            self._tables[name].clear()

    def rollback(self) -> None:
        """Make OLD the NEW of every relation."""
        for name in self.changed():
            self._tables[name].rollback()
        self._written.clear()

    # --- reading -------------------------------------------------------------------------------

    def read(self, relation: str, state: State = State.NEW) -> pa.Table:
        """Return the tuples of a relation in a state, as an Arrow table."""
        names = self._relations[relation].columns
        return table_handle.decode_table(self._tables[relation], state, names, self._dictionary)

    def handle(self, relation: str, state: State = State.NEW) -> engine.TableHandle:
        """Return a handle to the present tuples of a relation in a state, decoded when read."""
        table, names = self._tables[relation], self._relations[relation].columns
        if state in CHANGES and (rows := table.loose_rows(state)) is not None:
            return table_handle.RowsHandle(rows, table.types, names, self._dictionary)
        return table_handle.EncodedTableHandle(table, state, names, self._dictionary)

    def size(self, relation: str, state: State = State.NEW) -> int:
        """Return the number of tuples of a relation in a state."""
        if relation in self._tables.sizes:
            return 0 if state in CHANGES else self._tables.sizes[relation]
        return self._tables[relation].size(state)

    def changed(self) -> set[str]:
        """Return the relations that have an open change."""
        return {
            name
            for name in self._written
            if (table := self._tables.get(name)) is not None and table.has_change
        }

    def duplicates(self, relation: str, columns: Sequence[int]) -> pa.Table:
        """Return the tuples of NEW that agree with another one in some columns."""
        table, names = self._tables[relation], self._relations[relation].columns
        words = find_duplicates(table, tuple(columns))
        return table_handle.decode_words(words, table.layout, table.types, names, self._dictionary)

    def violations(self, relation: str, check: DependencyCheck) -> Violations:
        """Return pairs of tuples of NEW that violate a functional dependency."""
        return check.violations(self.duplicates(relation, check.determinants))

    def clashes(self, relation: str, check: DependencyCheck) -> Violations | None:
        """Return that there are none, if no tuple agrees with an added one; None otherwise."""
        is_clear = not has_match(self._tables[relation], check.determinants)
        return NO_VIOLATIONS if is_clear else None

    def within(self, relation: str, boxes: Sequence[Mapping[int, engine.ValueRange]]) -> pa.Table:
        """Return the tuples of NEW in one of several boxes, each once, perhaps with others."""
        table, names = self._tables[relation], self._relations[relation].columns
        coded = [
            {
                column: codes
                for column, values in box.items()
                if (codes := self._dictionary.code_interval(values, table.types[column]))
            }
            for box in boxes
        ]
        words = table.arrangement(table.primary_order).within(coded)
        return table_handle.decode_words(words, table.layout, table.types, names, self._dictionary)

    def lookup(
        self,
        relation: str,
        bound: tuple[int, ...],
        rows: Sequence[tuple[Any, ...]] | pa.Table,
        columns: Sequence[int],
        max_rows: int | None = None,
    ) -> list[pa.Array | pa.ChunkedArray] | None:
        """Return columns of the tuples of NEW with some values; None if many, or elsewhere."""
        table = self._tables[relation]
        if table.is_remote(State.NEW):
            return None
        order, length = table.probe_order(bound)
        codes, count = self._encode(relation, rows, bound)
        arrangement = table.arrangement(order)
        given = dict(zip(bound, codes, strict=True))
        words = agreeing_words(arrangement, given, count, length)
        if max_rows is not None and len(words) > max_rows:
            return None
        decode, unpack = self._dictionary.decode_arrow, arrangement.layout.unpack_column
        return [decode(unpack(words, order.index(at)), table.types[at]) for at in columns]

    # --- index files ---------------------------------------------------------------------------

    def arrange(
        self,
        relation: str,
        orders: Iterable[tuple[int, ...]],
        probed: Iterable[Collection[int]],
    ) -> None:
        """Sort the tuples of a relation for plans and the index, unless they are found quickly."""
        table = self._tables[relation]
        for order in orders:
            table.want(order)
        for columns in probed:
            order, _ = table.probe_order(tuple(sorted(columns)), is_single=True)
            table.arrangement(order)

    def save(self, relations: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the files of an index of the OLD state of relations: name and bytes.

        Changes to the relations while the files are yielded have no effect on them.
        """
        dictionary = index_files.build_dictionary_file(self._dictionary.dump())
        saved = [index_files.TableSnapshot.of(name, self._tables[name]) for name in relations]
        yield index_files.DICTIONARY_FILE, dictionary
        for number, each in enumerate(saved):
            yield f"{number}{TUPLES_SUFFIX}", each.build_file(file_identity(dictionary))

    def restore(
        self,
        files: Mapping[str, pa.Buffer],
        paths: engine.IndexPlaces | None = None,  # noqa: ARG002 - for engines with tasks
    ) -> set[str]:
        """Load the files of an index; return the relations that were loaded.

        Relations must have been declared, and those without a file must be empty. Files that are
        missing, of another format or index, or of relations that are declared differently, are
        ignored.

        Raises:
            WarehouseError: a file is damaged. Blocks that are read later are checked later.
        """
        buffer = files.get(index_files.DICTIONARY_FILE)
        dictionary = None if buffer is None else index_files.open_dictionary(buffer)
        if dictionary is None:
            return set()
        opened = [
            index_files.open_table(name, each)
            for name, each in files.items()
            if TUPLES_FILE.fullmatch(name)
        ]
        stored = {
            each.relation: each
            for each in opened
            if each is not None
            and each.dictionary == dictionary.identity
            and each.relation in self._tables
            and each.is_compatible(self._tables[each.relation])
        }
        others = self._relations.keys() - stored.keys()
        assert not any(self.size(name) for name in others), "codes are about to change"
        self._dictionary.restore(dictionary.domains)
        self._prepared.clear()  # their constants are codes of the old dictionary
        for name, each in stored.items():
            each.restore(self._tables[name])
        return set(stored)

    def held_tuples(self) -> int:
        """Return how many tuples all relations have together, payload included."""
        return sum(self.size(name) for name in self._relations)

    def statistics(self) -> Statistics:
        """Return the sizes of relations and, for those with tuples, distinct values by column.

        Of relations that wait to be filled, the distinct values are not known.
        """
        sizes = {name: self.size(name) for name in self._relations}
        nonempty = [name for name, size in sizes.items() if size and name not in self._tables.sizes]
        return Statistics(sizes, {name: self.distinct(name) for name in nonempty})

    def distinct(self, relation: str) -> tuple[int, ...]:
        """Return an estimate of the number of distinct values of each column of a relation."""
        return self._tables[relation].distinct_values()

    def close(self) -> None:
        """Do nothing: there are no resources outside this process."""

    # --- placement: one process ----------------------------------------------------------------

    @property
    def default_placement(self) -> str:
        """The name of the place where strata run by default."""
        return "local"

    @property
    def tasks(self) -> engine.TaskPool | None:
        """None: there are no other processes."""
        return None

    @property
    def reads_partitions(self) -> bool:
        """False: it reads no files of an index that tasks have written."""
        return False

    def placement(
        self,
        relations: Sequence[str],  # noqa: ARG002 - the protocol's parameters
        below: Sequence[str],  # noqa: ARG002
        *,
        has_pivot: bool,  # noqa: ARG002
    ) -> plans.Placement:
        """Return where a stratum should run: on the driver."""
        return plans.Placement.DRIVER

    def residency(self, relation: str) -> engine.Residency:  # noqa: ARG002
        """Return where the tuples of a relation are: here."""
        return engine.Residency("local", "the engine is in one process")

    # --- plans ---------------------------------------------------------------------------------

    def run(self, plan: plans.Plan, recorder: Recorder, limits: engine.Limits) -> int:
        """Run the main procedure of a plan; return the number of rows that it handled.

        If it fails, the changes of the relations that the plan writes are rolled back; those of the
        relations that `insert` and `delete` have changed stay.
        """
        self._dictionary.release()
        prepared = self._prepare(plan)
        self._written |= prepared.written
        prepared.begin_run(recorder, limits)
        try:
            Interpreter(prepared).run()
        except BaseException:
            self._prepared.pop(id(plan), None)  # its working tables are in an undefined state
            for step in plans.steps_of(plan):
                if isinstance(
                    step, plans.StoreRelation | plans.Remove | plans.Add | plans.CancelOut
                ):
                    prepared.tables[step.relation].rollback()
            raise
        prepared.end_run()
        return prepared.budget.handled_rows

    def _place(self, prepared: PreparedPlan, step: plans.PlacedCall) -> bool:  # noqa: ARG002 - one place only
        """Run a procedure outside this process; return whether it was run."""
        return False

    def _working_table(
        self,
        name: str,  # noqa: ARG002 - an engine with other places names tables
        types: tuple[Type, ...],
        family: LayoutFamily | None,
        plan: plans.Plan,  # noqa: ARG002
    ) -> Table:
        """Return the table of a working relation of a plan."""
        return Table(types, family)

    def _remote_steps(self, plan: plans.Plan, tables: Mapping[str, Table]) -> RemoteSteps | None:  # noqa: ARG002
        """Return what runs steps outside this process, None if nothing does."""
        return None

    def _unprepare(self, relation: str) -> None:
        """Discard the prepared plans that read or write a relation, as its table is replaced."""
        for key in [k for k, each in self._prepared.items() if relation in each.plan.types]:
            del self._prepared[key]

    def _prepare(self, plan: plans.Plan) -> PreparedPlan:
        # The identity is a safe key while the prepared plan is here: it references the plan.
        prepared = self._prepared.get(id(plan))
        if prepared is None:
            prepared = PreparedPlan(
                plan,
                self._tables,
                self._relations,
                self._dictionary,
                PlanHooks(self._place, self._working_table, self._remote_steps),
                bulk=self._bulk,
            )
            self._prepared[id(plan)] = prepared
            if len(self._prepared) > PREPARED_PLANS_MAX:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(id(plan))
        return prepared


def copy_tuples(source: Table, target: Table) -> None:
    """Replace the contents of a table by what another one has in NEW, as OLD."""
    words = source.tuples(State.NEW)
    target.widen(source.layout.columns)
    target.assign(target.layout.convert(words, source.layout))
    target.commit()


def find_duplicates(table: Table, columns: tuple[int, ...]) -> Words:
    """Return the tuples of NEW that agree with another one in some columns."""
    order = table.order_for(columns)
    is_sorted = table.has_order(order)
    words = table.tuples(State.NEW, order if is_sorted else None)
    primary = table.layout
    layout = primary.permute(order)
    if not is_sorted:  # for this once: an arrangement would be maintained from now on
        words = Arrangement(order, layout).sort_words(words, primary)
    keys = layout.prefix_keys(words, len(columns))
    is_equal = keys[1:] == keys[:-1]
    if not np.count_nonzero(is_equal):
        return primary.empty
    mask = np.zeros(len(words), np.bool_)
    mask[1:] = is_equal
    mask[:-1] |= is_equal
    found = layout.unpack(words[mask])
    by_column = [found[order.index(column)] for column in table.primary_order]
    return np.sort(primary.pack(by_column, len(found[0])))


def has_match(table: Table, columns: tuple[int, ...]) -> bool:
    """Whether another tuple of NEW agrees with an added one in some columns."""
    order, length = table.probe_order(columns)
    rows = table.loose_rows(State.ADDED)
    if rows is not None:
        key_of, most = permutation(order[:length]), MATCHES_MAX_TUPLES
        same = permutation(tuple([order.index(each) for each in columns]))
        for row in rows:
            found = table.matching_rows(order, key_of(row), State.NEW, most)
            if found is None and length < len(columns):
                break  # too many to compare them one by one
            wanted = permutation(columns)(row)
            # Each agrees with itself.
            if found is None or sum(same(each) == wanted for each in found) > 1:
                return True
        else:
            return False
    arrangement = table.arrangement(order)
    added = arrangement.words(State.ADDED)
    compared = [order.index(each) for each in columns if each not in order[:length]]
    return arrangement.count_matches(added, length, compared) > len(added)  # beside themselves
