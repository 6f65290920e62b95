"""Functors of maps, on all rows at once, by the pieces of keys and values.

The entries of a stored map are in the order of its keys (`core/records/arrays.py`).
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import fixed_values, index_array, text_scalar
from corollary.core.records import arrays
from corollary.core.types import Type
from corollary.engines.local.evaluation.functions.arrays import (
    ArrayRows,
    count_pieces,
    split_texts,
    values_of,
)
from corollary.engines.local.evaluation.kernels import Kernel, distinct_rows, on_values, spread_rows
from corollary.engines.local.evaluation.value_vector import ValueVector
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values.texts import Texts

NULL_KEY = "a key of a map is null"
KEY_TWICE = "a map has a key twice"
NO_PAIRS = "a map has another number of keys than of values"

_NOTHING = text_scalar("")


def _build(
    owners: Codes, count: int, keys: pa.Array, values: pa.Array
) -> tuple[Texts, list[tuple[Mask, str]]]:
    """Return maps of entries in the order of their owners, and what is wrong with them."""
    nulls, twice = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    nulls[owners[fixed_values(pc.binary_length(keys).cast(pa.int64()), np.int64) == 0]] = True
    offsets = arrays.offsets_of(np.bincount(owners, minlength=count))
    numbers = _numbers(owners, Texts(keys).ranks()[1])
    order = np.argsort(numbers, kind="stable")
    twice[owners[order][1:][np.diff(numbers[order]) == 0]] = True
    return Texts(arrays.join_entries(offsets, keys, values)), [
        (nulls, NULL_KEY),
        (twice, KEY_TWICE),
    ]


def _numbers(owners: Codes, ranks: Codes) -> Codes:
    """Return a number for each pair of a map and a key, in the order of both."""
    return owners * (int(ranks.max(initial=0)) + 1) + ranks


def _from_arrays(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    table = ArrayRows("map_from_arrays", inputs)
    (starts, keys), (others, values) = (arrays.split_pieces(each.array) for each in table.columns)
    bad = np.diff(starts) != np.diff(others)
    count = len(bad)
    kept = [index_array(np.flatnonzero(~bad[arrays.owners_of(each)])) for each in (starts, others)]
    owners = arrays.owners_of(starts)[~bad[arrays.owners_of(starts)]]
    texts, faults = _build(owners, count, keys.take(kept[0]), values.take(kept[1]))
    return table.vector(texts, type_, faults=[(bad, NO_PAIRS), *faults])


def _concat(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    table = ArrayRows("map_concat", inputs)
    parts = [arrays.split_entries(each.array) for each in table.columns]
    owners = np.concatenate([arrays.owners_of(offsets) for offsets, _, _ in parts])
    order = np.argsort(owners, kind="stable")
    keys, values = (
        pa.concat_arrays([part[at] for part in parts]).take(index_array(order)) for at in (1, 2)
    )
    texts, faults = _build(owners[order], len(table.columns[0]), keys, values)
    return table.vector(texts, type_, faults=faults)


def _str_to_map(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    table = ArrayRows("str_to_map", inputs)
    rows, places = distinct_rows(table.columns)
    entries = [
        [(split_texts(each, inside, 2), at) for each in split_texts(text, between, -1)]
        for at, (text, between, inside) in enumerate(zip(*rows, strict=True))
    ]
    flat = [entry for each in entries for entry in each]
    owners = np.array([at for _, at in flat], np.int64)
    keys = Texts.of([parts[0] for parts, _ in flat]).array
    found = [parts[1] if len(parts) > 1 else None for parts, _ in flat]
    values = pa.array(found, pa.large_string())
    texts, faults = _build(owners, len(entries), arrays.to_pieces(keys), arrays.to_pieces(values))
    spread = [(spread_rows(mask, places), reason) for mask, reason in faults]
    return table.vector(spread_rows(texts, places), type_, faults=spread)


def _find(table: ArrayRows) -> tuple[pa.Array, Codes, Mask]:
    """Return the pieces of values, where that of the key of each row is, and if there is one."""
    found, rows = table.columns[0].distinct()
    offsets, keys, values = arrays.split_entries(found.array)
    ranks = Texts(pa.concat_arrays([keys, table.columns[1].array])).ranks()[1]
    both = _numbers(np.concatenate([arrays.owners_of(offsets), rows]), ranks)
    known, wanted = both[: len(keys)], both[len(keys) :]
    places = np.searchsorted(known, wanted)
    has_key = places < len(known)
    has_key[has_key] = known[places[has_key]] == wanted[has_key]
    return values, places, has_key


def _value(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    table = ArrayRows("map_value", inputs)
    pieces, places, has_key = _find(table)
    chosen = index_array(np.where(has_key, places, 0), ~has_key)
    values, nulls = values_of(pieces.take(chosen).fill_null(_NOTHING), type_)
    return table.vector(values, type_, nulls)


def _contains(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    table = ArrayRows("map_contains_key", inputs)
    return table.vector(_find(table)[2].astype(np.int64), type_)


def _list(which: str, maps: Texts) -> Texts:
    offsets, keys, values = arrays.split_entries(maps.array)
    pieces = {"keys": keys, "values": values}.get(which)
    if pieces is None:
        pieces = arrays.to_pieces(arrays.join_fields([keys, values]))
    return Texts(arrays.join_pieces(offsets, pieces))


MAP_COMBINATIONS: dict[str, Callable[[Sequence[ValueVector], Type], ValueVector]] = {
    "map_from_arrays": _from_arrays,
    "map_concat": _concat,
    "str_to_map": _str_to_map,
    "map_value": _value,
    "map_contains_key": _contains,
}

MAP_FUNCTIONS: dict[str, Kernel] = {
    **{f"map_{which}": on_values(partial(_list, which)) for which in ("keys", "values", "entries")},
    "map_size": on_values(lambda texts: count_pieces(texts) // 2),
}
