"""What a transaction changed: for each relation the tuples added and removed."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.analysis.bags import COPIES_COLUMN, rows_name
from corollary.analysis.relevance import BOTH_SIGNS, Signs
from corollary.core.arrow import empty_table, from_python, sort_rows, to_python
from corollary.core.engine import Engine, LocalTable, TableHandle, TaskPool
from corollary.core.once import in_order
from corollary.core.plans import watched_name, working_relation
from corollary.core.program import NormalProgram, Relation
from corollary.core.records.record_structs import TEXT
from corollary.core.states import CHANGES, State
from corollary.core.types import Type
from corollary.core.values import value_to_json
from corollary.data_class import dataclass
from corollary.database.arguments import COUNT, checked
from corollary.database.engines import SparkFrames
from corollary.database.program.parts import describe_parts
from corollary.database.program.transitions import ASIDE_SUFFIX
from corollary.errors import InputError
from corollary.maintain.update import Update
from corollary.warehouse.copies import CopiesHandle, change_of_copies, difference_of_copies
from corollary.warehouse.sources.tasks.staged_rows import compare_counts
from corollary.warehouse.warehouse import ChangeHandles

CHANGE_TYPE = "_change_type"
JSON_MAX_ROWS = 1000
"""The maximum number of rows of a list in JSON, unless asked otherwise."""


@dataclass(frozen=True, slots=True, repr=False)
class Change:
    """The change of one relation; the tuples are decoded when they are read.

    Attributes:
        is_full: whether the relation is new or has other columns: what was stored is replaced.
        before: the relation that it replaces, if that has other columns: those of `removed`.
    """

    relation: Relation
    _added: TableHandle
    _removed: TableHandle
    _frames: SparkFrames
    is_full: bool = False
    before: Relation | None = None
    _every: TableHandle | None = None
    """All tuples of a full change, if not all of them are added."""
    _copies: tuple[TableHandle, TableHandle] | None = None
    """The copies that came and went, if the relation has counts and replaces another one."""

    @property
    def added(self) -> pa.Table:
        """The tuples added."""
        return self._added.table()

    @property
    def removed(self) -> pa.Table:
        """The tuples removed."""
        return self._removed.table()

    @property
    def handles(self) -> ChangeHandles:
        """The tuples added and removed, not read yet; of a full change, all tuples."""
        if self.is_full:
            every = self._added if self._every is None else self._every
            return ChangeHandles(every, is_full=True)
        return ChangeHandles(self._added, self._removed)

    @property
    def counts(self) -> tuple[int, int]:
        """How many tuples were added and removed."""
        return len(self._added), len(self._removed)

    @property
    def summary(self) -> str:
        """How many tuples were added and removed, such as `+3 −1`."""
        added, removed = self.counts
        return f"+{added:,} −{removed:,}"

    def of_copies(self, bag: Relation, tasks: TaskPool | None) -> "Change":
        """Return the change of a relation with copies, of that of its counts.

        Tasks compare what is large, if there are any.
        """
        compare = None if tasks is None else partial(compare_counts, tasks, self.relation)
        added, removed = self._copies or change_of_copies(self._added, self._removed, compare)
        every = CopiesHandle(self.handles.added) if self.is_full else None
        return Change(bag, added, removed, self._frames, self.is_full, self.before, every)

    def __repr__(self) -> str:
        return f"<Change of {self.relation.name}: {self.summary}>"

    def arrow(self) -> pa.Table:
        """Return both as one Arrow table, with the column `_change_type`.

        Tuples that went with columns that are no more are not in it.
        """
        tables = [
            table.append_column(CHANGE_TYPE, pa.array([kind] * table.num_rows, pa.string()))
            for table, kind in ((handle.table(), kind) for handle, kind in self._sides)
        ]
        return pa.concat_tables(tables)

    def pandas(self) -> Any:
        """Return both as one pandas frame, with the column `_change_type`."""
        return self.arrow().to_pandas()

    @checked(view=str, records=str)
    def spark(self, view: str | None = None, records: str = TEXT) -> Any:
        """Return both as one Spark frame with `_change_type`; `view` names a temp view of it.

        Many tuples are read by tasks, from the files of the commit.
        """
        parts = [(handle, {CHANGE_TYPE: pa.scalar(kind)}) for handle, kind in self._sides]
        return self._frames.create_frame(parts, self.relation, view, records)

    @property
    def _sides(self) -> list[tuple[TableHandle, str]]:
        """The tuples with the columns that there are, and what has become of them."""
        gone = [] if self.before else [(self._removed, "delete")]
        return [(self._added, "insert"), *gone]

    @checked(max_rows=COUNT)
    def as_json(self, max_rows: int = JSON_MAX_ROWS) -> dict[str, Any]:
        """Return the change as JSON: rows as arrays, sorted, cut at `max_rows`."""
        found: dict[str, Any] = {
            "added": json_rows(self.added, self.relation, max_rows),
            "removed": json_rows(self.removed, self.before or self.relation, max_rows),
        }
        added, removed = self.counts
        if max(added, removed) > max_rows:
            found |= {"truncated": True, "counts": {"added": added, "removed": removed}}
        return found


def json_rows(
    table: pa.Table, relation: Relation, max_rows: int | None = None, *, is_sorted: bool = False
) -> list[list[Any]]:
    """Return the rows of a relation as JSON arrays, sorted if they are not, up to a maximum."""
    ordered = table if is_sorted else sort_rows(table)
    if ordered.num_columns:  # Arrow does not know how many rows a table without columns has
        ordered = ordered.slice(0, max_rows)
    return [
        [value_to_json(value, type_) for value, type_ in zip(row, relation.types, strict=True)]
        for row in to_python(ordered)[:max_rows]
    ]


def feed_as_json(relation: Relation, table: pa.Table) -> dict[str, Any]:
    """Return a feed of changes as `changes` prints it."""
    rows = json_rows(table, relation, is_sorted=True)
    return {"relation": relation.name, "columns": list(relation.columns), "rows": rows}


class UnknownChangeError(InputError, KeyError):
    """The changes of a relation were not asked for, or it does not exist."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # that of `KeyError` is a `repr`


class Changes(Mapping[str, Change]):
    """The changes of a transaction by relation.

    Iteration yields the relations that changed; any stored or watched one can be looked up.
    """

    def __init__(
        self, changes: Mapping[str, Change], others: Callable[[str], Change | None] = lambda _: None
    ) -> None:
        self._changes = changes
        self._others = others

    @classmethod
    def of(
        cls,
        changed: Mapping[str, Change],
        program: NormalProgram,
        watched: Collection[str],
        frames: SparkFrames,
        tasks: TaskPool | None = None,
    ) -> "Changes":
        """Return changes with those of bags, which are changes of copies, instead of their counts.

        Args:
            changed: the changes of relations.
            program: that of the relations.
            watched: the relations that are not stored, and whose changes are known.
            frames: make Spark frames of them.
            tasks: where large changes of bags are looked at.
        """
        of_rows = {rows: bag for bag, rows in program.bags.items()}
        counts: dict[str, Change] = {}
        shown: dict[str, Change] = {}
        for name, each in changed.items():
            is_replaced = each.is_full and len(each.handles.added)
            if name in program.bags or not (any(each.counts) or is_replaced):
                continue  # of a bag, its counts say what has changed
            bag = of_rows.get(name)
            if bag is None:
                shown[name] = each
            else:
                counts[name], shown[bag] = each, each.of_copies(program.relations[bag], tasks)

        def others(name: str) -> Change | None:
            relation = program.relations.get(name)
            if relation is None or not relation.is_declared:
                return None
            if not (relation.is_stored or name in watched or name in program.bags):
                return None
            empty = LocalTable(empty_table(relation))
            return counts.get(name) or Change(relation, empty, empty, frames)

        return cls(shown, others)

    def __getitem__(self, relation: str) -> Change:
        found = self._changes.get(relation) or self._others(relation)
        if found is None:
            raise UnknownChangeError.of(
                "C0926",
                f"The changes of `{relation}` are not known: it is neither stored nor watched.",
                None,
                f'ask for them before the change with `db.watch("{relation}")`',
            )
        return found

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} {each.summary}" for name, each in self._changes.items())
        return f"<Changes: {listed or 'none'}>"

    def __iter__(self) -> Iterator[str]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)


@dataclass(frozen=True, slots=True, repr=False)
class KeptTuples:
    """Tuples of a relation that were to be deleted, and stay: another part asserts them.

    Attributes:
        relation: of the tuples.
        parts: the parts that the relation has besides manual writes.
    """

    relation: Relation
    parts: tuple[str, ...]
    _rows: TableHandle

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        count = f"{len(self):,} tuple{'s' * (len(self) != 1)}"
        return f"<Kept: {count} of {self.relation.name}, from {self.asserted_by}>"

    @property
    def asserted_by(self) -> str:
        """Who asserts them, in words."""
        return describe_parts(self.parts)

    def table(self) -> pa.Table:
        """Return the tuples."""
        return self._rows.table()

    def first(self) -> tuple[Any, ...]:
        """Return one of them, for a message."""
        return to_python(next(iter(self._rows.slices(JSON_MAX_ROWS))).slice(0, 1))[0]

    def of_rows(self, rows: Sequence[tuple[Any, ...]]) -> "KeptTuples":
        """Return some of them."""
        return replace(self, _rows=LocalTable(from_python(rows, self.relation)))

    def as_json(self, max_rows: int) -> dict[str, Any]:
        """Return them as JSON, cut at `max_rows`, with their number."""
        rows = json_rows(self.table(), self.relation, max_rows)
        return {"rows": rows, "count": len(self), "asserted_by": self.asserted_by}


def virtual_changes(
    engine: Engine, signs: Signs, program: NormalProgram
) -> Iterator[tuple[str, TableHandle, TableHandle]]:
    """Yield what a warehouse records of virtual relations: its name, tuples gained, tuples lost.

    All that are watched for both are recorded, also where nothing has changed: a commit without
    such a record was not watched.
    """
    for name, watched in signs.items():
        relation = program.relations.get(name)
        is_shown = relation is not None and relation.is_declared and not relation.is_stored
        if is_shown and watched == BOTH_SIGNS:
            gained, lost = (engine.handle(working_relation(name, each)) for each in CHANGES)
            yield watched_name(name), gained, lost


def collect_changes(
    engine: Engine,
    update: Update,
    watched: Collection[str],
    frames: SparkFrames,
    created: Collection[str] = (),
) -> Changes:
    """Return what an update changes, also in watched virtual relations, before it is committed.

    A relation that was created for it gains all its tuples; one that replaces another loses those
    of that one, too.
    """
    found: dict[str, Change] = {}
    for name in in_order(update.new, (*engine.changed(), *watched, *created)):
        relation = update.new.relations[name]
        if relation.is_declared and (name in watched or not relation.is_virtual):
            added, removed = (
                engine.handle(working_relation(name, sign))
                if update.is_virtual(name)
                else engine.handle(name, sign)
                for sign in CHANGES
            )
            change = Change(relation, added, removed, frames)
            if name in created and relation.is_stored:
                change = _full_change(engine, update, change)
            found[name] = change
    return Changes.of(found, update.new, watched, frames, engine.tasks)


def _full_change(engine: Engine, update: Update, change: Change) -> Change:
    """Return the change of a relation that is new, or that replaces another one."""
    name, now = change.relation.name, change.relation
    every = engine.handle(name)
    was = update.old.relations.get(name)
    if was is not None and was.columns != now.columns:  # other names of the columns alone
        return replace(change, is_full=True, _every=every)
    full = replace(change, _added=every, _removed=LocalTable(empty_table(now)), is_full=True)
    has_copies = name in update.new.bags.values()
    old = _replaced_relation(update, name)
    if old is None:
        return full
    had_copies = old.name.startswith(rows_name(name)) or (has_copies and old.name.startswith(name))
    rows = engine.handle(old.name, State.OLD)
    before: Relation | None = _without_counts(old) if had_copies else old
    after = _without_counts(now) if has_copies else now
    came, went = (
        CopiesHandle(handle) if is_bag else handle
        for handle, is_bag in ((every, has_copies), (rows, had_copies))
    )
    is_distributed = every.is_distributed or rows.is_distributed
    if before is not None and _plain_types(before) == _plain_types(after) and not is_distributed:
        counts = _counted(every, after, has_copies), _counted(rows, after, had_copies)
        came, went = map(LocalTable, difference_of_copies(*counts))
        before = None
    if has_copies:
        return replace(full, _copies=(came, went), before=before)
    return replace(full, _added=came, _removed=went, before=before, _every=every)


def _replaced_relation(update: Update, name: str) -> Relation | None:
    """Return the stored relation that a new one replaces, perhaps a set a bag or the reverse."""
    bags = {rows: bag for bag, rows in update.new.bags.items()}
    candidates = [name + ASIDE_SUFFIX, bags.get(name, name) + ASIDE_SUFFIX]
    if rows_name(name) not in update.new.relations:
        candidates.append(rows_name(name))
    found = (update.old.relations.get(each) for each in candidates)
    return next((each for each in found if each is not None and each.is_stored), None)


def _without_counts(relation: Relation) -> Relation:
    return replace(relation, columns=relation.columns[:-1], types=relation.types[:-1])


def _plain_types(relation: Relation) -> list[Type]:
    """Return the types of columns, whether they may be null or not."""
    return [each.with_null(nullable=True) for each in relation.types]


def _counted(rows: TableHandle, shape: Relation, has_counts: bool) -> pa.Table:
    """Return rows with counts, all columns with the names of a relation."""
    table = rows.table()
    columns = [*table.columns] if has_counts else [*table.columns, np.ones(len(rows), np.int64)]
    return pa.Table.from_arrays(columns, [*shape.columns, COPIES_COLUMN])
