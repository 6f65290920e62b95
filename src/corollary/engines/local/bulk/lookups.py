"""Joins by lookup: the largest relation of a join, with columns of those that it refers to.

A relation whose tuples are told apart by one column with few codes, such as an id, is a table to
look up in: an array with a row for each code. Looking up takes a few milliseconds for a million
tuples, and keeps their order, where a join in DuckDB, which knows nothing of the codes, builds and
probes a table of hashes. What is left of the pipeline reads the wider relation instead.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from corollary.core.engine import BULK_MIN_TUPLES
from corollary.core.logic import Constant, Variable
from corollary.core.pipeline import Compute, Pipeline, Probe, Reference, names_read, slot_names
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.engines.local.storage.code_range import CodeRange, Codes
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.storage.table import Table

WIDE_RELATION = "•wide"
"""The name of the wider relation in the pipeline that is left."""

LOOKUP_MAX_BITS = 24
"""The maximum width of a column that is looked up…"""

LOOKUP_MAX_CODES_PER_TUPLE = 8
"""…and how many codes it may have for each tuple that looks one up."""


@dataclass(frozen=True, slots=True)
class WideRows:
    """The tuples of a relation with columns of others.

    Attributes:
        pipeline: what is left to do; its first stage reads them.
        types: the types of their columns.
        columns: the codes of their columns.
        count: how many there are.
    """

    pipeline: Pipeline
    types: tuple[Type, ...]
    columns: tuple[Codes, ...]
    count: int


def join_by_lookup(
    pipeline: Pipeline,
    tables: Mapping[str, Table],
    encode: Callable[[Constant], int],
    min_tuples: int = BULK_MIN_TUPLES,
) -> WideRows | None:
    """Return the rows of the joins of a pipeline that can be looked up, None if there are none.

    Args:
        pipeline: the pipeline.
        tables: what it reads.
        encode: the codes of constants.
        min_tuples: with fewer in its largest relation, nothing is looked up.
    """
    joined = _Lookups(pipeline, tables, encode)
    return joined.rows() if joined.run(min_tuples) else None


class _Lookups:
    """The join under way: only columns that are looked up are made before all else is known."""

    def __init__(
        self, pipeline: Pipeline, tables: Mapping[str, Table], encode: Callable[[Constant], int]
    ) -> None:
        self._pipeline = pipeline
        self._tables = tables
        self._encode = encode
        computed = {s.variable.name for s in pipeline.stages if isinstance(s, Compute)}
        # A variable that is computed is compared with a column, which only the query can do.
        self._probes = [
            stage
            for stage in pipeline.stages
            if isinstance(stage, Probe)
            and stage.extreme is None
            and _has_distinct_variables(stage)
            and not any(isinstance(s, Variable) and s.name in computed for s in stage.slots)
        ]
        self._shared, self._needed = _needed_names(pipeline)
        self._failed: set[tuple[int, int]] = set()
        self._columns: dict[str, Codes] = {}
        self._ranges: dict[str, CodeRange] = {}
        self._types: dict[str, Type] = {}
        # For each probe that is done, how to read a column, and where in it each row is.
        self._done: list[tuple[Probe, Callable[[int], Codes]]] = []
        self._places: list[Codes | None] = []
        self._count = 0

    # --- lookups -------------------------------------------------------------------------------

    def run(self, min_tuples: int) -> bool:
        """Begin with the largest relation, and look up what can be; return whether anything was."""
        fact = max(self._probes, key=self._size, default=None)
        if fact is None or len(self._probes) < 2 or self._size(fact) < min_tuples:
            return False
        others = sorted((each for each in self._probes if each is not fact), key=self._size)
        known = slot_names(fact.slots)
        if not any(self._key_of(each, known) is not None for each in others):
            return False
        self._scan(fact)
        while (found := self._next_lookup(others)) is not None:
            stage, key = found
            if self._look_up(stage, key):
                others.remove(stage)
            else:
                self._failed.add((id(stage), key))
        return len(self._done) > 1

    def _next_lookup(self, stages: Sequence[Probe]) -> tuple[Probe, int] | None:
        """Return a probe, and the column to look it up by, if there is one."""
        for stage in stages:
            key = self._key_of(stage, self._columns.keys())
            if key is not None:
                return stage, key
        return None

    def _size(self, stage: Probe) -> int:
        return self._tables[stage.source.relation].size(stage.source.state)

    def _key_of(self, stage: Probe, known: Collection[str]) -> int | None:
        """Return a column of a probe that is known, and may be looked up."""
        table = self._tables[stage.source.relation]
        for at, slot in enumerate(stage.slots):
            is_narrow = table.layout.columns[at].width <= LOOKUP_MAX_BITS
            is_known = isinstance(slot, Variable) and slot.name in known
            if is_known and is_narrow and (id(stage), at) not in self._failed:
                return at
        return None

    def _scan(self, stage: Probe) -> None:
        """Begin with the tuples of a relation, those that fit the constants."""
        table = self._tables[stage.source.relation]
        words, layout = table.tuples(stage.source.state), table.layout
        mask = self._constants_mask(stage, lambda at: layout.unpack_column(words, at))
        if mask is not None:
            words = words[mask]
        self._count = len(words)

        def read(at: int) -> Codes:
            rows = self._places[0]
            return layout.unpack_column(words if rows is None else words[rows], at)

        self._add(stage, read, None, None)

    def _constants_mask(self, stage: Probe, column: Callable[[int], Codes]) -> Mask | None:
        mask: Mask | None = None
        for at, slot in enumerate(stage.slots):
            if isinstance(slot, Constant):
                found = column(at) == self._encode(slot)
                mask = found if mask is None else mask & found
        return mask

    def _add(
        self, stage: Probe, read: Callable[[int], Codes], places: Codes | None, key: int | None
    ) -> None:
        """Add a probe; its columns that others share are made at once."""
        table = self._tables[stage.source.relation]
        number = len(self._done)
        self._done.append((stage, read))
        self._places.append(places)
        for at, slot in enumerate(stage.slots):
            if at == key or not isinstance(slot, Variable) or slot.name not in self._shared:
                continue
            codes = read(at)
            if number and codes.min(initial=0) < 0:
                self._keep(codes >= 0)
                codes = read(at)
            known = self._columns.get(slot.name)
            if known is not None:
                self._keep(known == codes)
                continue
            self._columns[slot.name] = codes
            self._ranges[slot.name] = table.layout.columns[at]
            self._types[slot.name] = table.types[at]

    def _keep(self, mask: Mask) -> None:
        """Leave out rows."""
        kept = mask.nonzero()[0]
        if len(kept) == len(mask):
            return
        self._columns = {name: codes[kept] for name, codes in self._columns.items()}
        self._places = [kept if places is None else places[kept] for places in self._places]
        self._count = len(kept)

    def _look_up(self, stage: Probe, key: int) -> bool:
        """Look up a relation by one of its columns; return whether that is a key."""
        table = self._tables[stage.source.relation]
        words, layout = table.tuples(stage.source.state), table.layout
        range_ = layout.columns[key]
        size = 1 << range_.width
        if size > LOOKUP_MAX_CODES_PER_TUPLE * max(self._count, len(words)):
            return False
        distances = layout.plain.unpack_column(words, key)
        numbers = np.arange(len(words))
        index = np.full(size + 1, -1)  # the last one is for codes outside of the range
        index[distances] = numbers
        if not np.array_equal(index[distances], numbers):
            return False
        mask = self._constants_mask(stage, lambda at: layout.unpack_column(words, at))
        if mask is not None:
            index[distances[~mask]] = -1
        slot = stage.slots[key]
        assert isinstance(slot, Variable)
        number = len(self._done)

        def read(at: int) -> Codes:
            # A column for all codes is small, and one step instead of two for each row.
            places = self._places[number]
            assert places is not None
            return _by_code(layout.unpack_column(words, at), index)[places]

        places = self._distances(slot.name, range_)
        others = (s for at, s in enumerate(stage.slots) if at != key and isinstance(s, Variable))
        self._add(stage, read, places, key)
        if not any(each.name in self._shared for each in others):
            self._keep((index >= 0)[places])  # no column has said so yet
        return True

    def _distances(self, name: str, range_: CodeRange) -> Codes:
        """Return the distances of codes from the base of a range; its size where they have none."""
        codes = self._columns[name]
        distances = codes - range_.base
        if not range_.includes(self._ranges[name]):
            size = 1 << range_.width
            is_outside = distances.view(np.uint64) >= np.uint64(size)
            # The base itself is where null is, and no code of the range.
            is_outside |= distances == 0
            distances[is_outside] = size
        if self._ranges[name].has_null:
            distances[codes == 0] = 0 if range_.has_null else 1 << range_.width
        return distances

    # --- what is left --------------------------------------------------------------------------

    def rows(self) -> WideRows:
        """Return the rows, and the pipeline that goes on from there."""
        for stage, read in self._done:
            row = self._tables[stage.source.relation].types
            for at, slot in enumerate(stage.slots):
                if not isinstance(slot, Variable) or slot.name in self._columns:
                    continue
                if slot.name in self._needed:
                    self._columns[slot.name] = read(at)
                    self._types[slot.name] = row[at]
        names = [name for name in self._columns if name in self._needed]
        types = tuple(self._types[name] for name in names)
        slots = tuple(Variable(name, type_) for name, type_ in zip(names, types, strict=True))
        first = Probe(Reference(WIDE_RELATION), slots, ())
        done = {id(stage) for stage, _ in self._done}
        stages = (first, *(each for each in self._pipeline.stages if id(each) not in done))
        pipeline = replace(self._pipeline, stages=stages)
        columns = tuple(self._columns[name] for name in names)
        return WideRows(pipeline, types, columns, self._count)


def _needed_names(pipeline: Pipeline) -> tuple[set[str], set[str]]:
    """Return the variables that several probes have, and those that anything else needs, too."""
    needed = slot_names(pipeline.head)
    shared: set[str] = set()
    seen: set[str] = set()
    for stage in pipeline.stages:
        own = names_read(stage)
        if isinstance(stage, Probe):
            shared |= own & seen
            seen |= own
        else:
            needed |= own
    return shared, needed | shared


def _by_code(codes: Codes, index: Codes) -> Codes:
    """Return a column of a table by the codes of its key, -1 where there is none."""
    result = np.full(len(index), -1)
    is_there = index >= 0
    result[is_there] = codes[index[is_there]]
    return result


def _has_distinct_variables(stage: Probe) -> bool:
    names = [slot.name for slot in stage.slots if isinstance(slot, Variable)]
    return len(names) == len(set(names))
