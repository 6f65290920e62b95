"""What the publisher asks of the warehouse: what has changed since a commit, and all there is.

| history | answers from |
|---|---|
| `StoredHistory` | snapshots and kept changes |
| `FreshHistory` | what the caller has in hand of the last commits; another history for the rest |

A change is effective: it adds what is not there and removes what is. So a tuple's signs, summed
over any run of changes, are +1 (it came), 0 or −1 (it went), and over a snapshot and all changes
since 1 or 0. Grouping takes null for null and NaN for NaN, as the relations do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import nullary_table, schema_of
from corollary.core.engine import Held, Kept
from corollary.core.program import Relation
from corollary.errors import Diagnostic, WarehouseError
from corollary.warehouse.steady import steadily
from corollary.warehouse.warehouse import Delta, Warehouse

_SIGN = "sign"


class History(Protocol):
    """The past of a warehouse, as far as it is kept."""

    def changes(self, relation: Relation, after: int, upto: int) -> Delta | None:
        """Return what the commits behind one and up to another have done to a relation, in all.

        Nothing at all (two tables without rows) is an answer; None means that it is not known: the
        commits are no longer kept, one of them says only what the relation has held since, or the
        relation had columns of other types then.
        """

    def content(self, relation: Relation, at: int) -> Kept:
        """Return all tuples that a relation had at a commit."""


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """The past as the warehouse has it on the disk."""

    warehouse: Warehouse

    def changes(self, relation: Relation, after: int, upto: int) -> Delta | None:
        """Return what some commits have done to a relation, in all."""
        catalog = self.warehouse.catalog
        return steadily(catalog, lambda: self._changes(relation, after, upto))

    def _changes(self, relation: Relation, after: int, upto: int) -> Delta | None:
        catalog = self.warehouse.catalog
        if after < int(catalog.meta("oldest")):
            return None
        stored = catalog.changes(after, upto, relation.name)
        deltas = [self.warehouse.change(each) for _, each in stored]
        if any(each.is_full or not _has_types(each.added, relation) for each in deltas):
            return None
        return net(deltas, relation)

    def content(self, relation: Relation, at: int) -> Kept:
        """Return all tuples that a relation had at a commit.

        Changes of a time when it had columns of other types say nothing about it now.
        """
        snapshot, deltas = self.warehouse.history(relation.name, at)
        if snapshot is not None:
            deltas = [Delta(snapshot, snapshot.slice(0, 0), is_full=True), *deltas]
        parts: list[Delta] = []
        for each in deltas:
            if each.is_full or not _has_types(each.added, relation):
                parts = []
            if _has_types(each.added, relation):
                parts.append(each)
        state = net(parts, relation)
        if state.removed.num_rows:
            raise _does_not_add_up(relation)
        return Held(state.added)


@dataclass(frozen=True, slots=True)
class FreshHistory:
    """The last commits, whose outcome the caller has in hand; nothing of them need be read.

    Attributes:
        after: the commit before them.
        upto: the last one.
        changed: returns what they have done in all to a relation, by name; None for nothing.
        contents: returns all tuples of a relation as it is now, by name.
        rest: answers everything else.
    """

    after: int
    upto: int
    changed: Callable[[str], Delta | None]
    contents: Callable[[str], Kept]
    rest: History

    def changes(self, relation: Relation, after: int, upto: int) -> Delta | None:
        """Return what some commits have done to a relation, in all."""
        if upto != self.upto or after > self.after:
            return self.rest.changes(relation, after, upto)
        fresh = self.changed(relation.name)
        if fresh is not None and fresh.is_full:
            return None
        if after == self.after:
            return net([], relation) if fresh is None else fresh
        earlier = self.rest.changes(relation, after, self.after)
        if earlier is None or fresh is None:
            return earlier
        return net([earlier, fresh], relation)

    def content(self, relation: Relation, at: int) -> Kept:
        """Return all tuples that a relation had at a commit."""
        return self.contents(relation.name) if at == self.upto else self.rest.content(relation, at)


def net(deltas: Sequence[Delta], relation: Relation) -> Delta:
    """Return several changes of a relation, each of which began where another ended, as one.

    Raises:
        WarehouseError: `C0941`, they cannot have followed each other.
    """
    if len(deltas) == 1:
        return deltas[0]
    if not relation.arity:
        total = sum(each.added.num_rows - each.removed.num_rows for each in deltas)
        if abs(total) > 1:
            raise _does_not_add_up(relation)
        return Delta(nullary_table(max(total, 0)), nullary_table(max(-total, 0)))
    schema = schema_of(relation)
    keys = [f"key{at}" for at in range(relation.arity)]
    signed = [
        _signed(table, keys, sign)
        for each in deltas
        for table, sign in ((each.added, 1), (each.removed, -1))
    ]
    sums = pa.concat_tables([_signed(schema.empty_table(), keys, 1), *signed])
    sums = sums.group_by(keys).aggregate([(_SIGN, "sum")])
    sign = sums.column(f"{_SIGN}_sum")
    if pc.any(pc.greater(pc.abs(sign), 1)).as_py():
        raise _does_not_add_up(relation)
    came, went = (sums.filter(pc.equal(sign, wanted)).select(keys) for wanted in (1, -1))
    return Delta(*(pa.Table.from_arrays(each.columns, schema=schema) for each in (came, went)))


def _signed(table: pa.Table, keys: list[str], sign: int) -> pa.Table:
    signs = pa.repeat(pa.scalar(sign, pa.int8()), table.num_rows)
    return pa.table([*table.columns, signs], [*keys, _SIGN])  # whatever may be null in it


def _has_types(table: pa.Table, relation: Relation) -> bool:
    return bool(table.schema.types == schema_of(relation).types)


def _does_not_add_up(relation: Relation) -> WarehouseError:
    text = (
        f"The history of `{relation.name}` does not add up: a tuple came twice, or went without "
        "being there."
    )
    cure = "run `corollary verify` to see what is left of the warehouse"
    return WarehouseError([Diagnostic("C0941", text, None, cure)])
