"""The kernel of `Accumulate`: a change is added to the records of its keys.

    record by key      1. look up the old record of each key of the change: one probe
                       2. new record = old record + change; its first sum 0: the key goes
                       3. old records out, new records in

A change has each key once, and not all of its sums are 0: every record that is found changes.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from corollary.core.plans import Accumulate
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.engines.local.evaluation.matches import concatenate_matches, find_matches
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Layout, Row, Words
from corollary.engines.local.storage.runs import PendingProbe
from corollary.engines.local.storage.sorting import sort_words
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary

Integers = npt.NDArray[np.int64]

Keys = tuple[list[Codes], int]
"""Some keys: their columns, and how many there are."""


def accumulate(
    step: Accumulate, table: Table, change: Table, dictionary: Dictionary
) -> tuple[Keys, Keys]:
    """Add a change to the records of a table; return the keys that are new, and those that go."""
    keys, differences = _fit_change(step, table, change, dictionary)
    count, length = len(differences[0]), len(keys)
    rows, records, layout = _find_records(table, keys, count)
    is_new = np.ones(count, np.bool_)
    is_new[rows] = False
    sums = [difference.copy() for difference in differences]
    for at, each in enumerate(sums, length):
        each[rows] += dictionary.decode(layout.unpack_column(records, at), NUMBER)
    stays = sums[0] != 0
    stays |= is_new
    columns = [each[stays] for each in keys]
    columns += [dictionary.encode(each[stays], None, NUMBER) for each in sums]
    added = sort_words(table.pack(columns, len(columns[-1])))
    table.remove(sort_words(table.layout.convert(records, layout)))
    table.add(added)
    table.cancel_out()
    came, gone = (
        ([each[mask] for each in keys], int(np.count_nonzero(mask))) for mask in (is_new, ~stays)
    )
    return came, gone


def accumulate_rows(
    step: Accumulate, table: Table, change: list[Row], dictionary: Dictionary
) -> tuple[list[Row], list[Row]]:
    """Add a change of few keys; return the keys that are new, and those that go."""
    length, order = len(table.types) - step.additive, table.primary_order
    came: list[Row] = []
    gone: list[Row] = []
    removed: list[Row] = []
    added: list[Row] = []
    for row in change:
        key = row[:length]
        found = table.matching_rows(order, key, State.OLD, 1)
        assert found is not None, "a key has one record"
        if not found:
            added.append(row)
            came.append(key)
            continue
        (record,) = found
        removed.append(record)
        sums = [
            dictionary.decode_integer(one, NUMBER) + dictionary.decode_integer(two, NUMBER)
            for one, two in zip(record[length:], row[length:], strict=True)
        ]
        if sums[0]:
            codes = [dictionary.encode_integer(each, NUMBER) for each in sums]
            added.append((*key, *codes))
        else:
            gone.append(key)
    table.remove(removed)
    table.add(added)
    table.cancel_out()
    return came, gone


def unfetched_records(
    step: Accumulate, table: Table, change: Table, dictionary: Dictionary
) -> Sequence[PendingProbe]:
    """Return what a step has to fetch of the records of a table."""
    if table.remote is None or not table.is_remote(State.OLD) or change.is_remote(State.NEW):
        return ()
    keys, _ = _fit_change(step, table, change, dictionary)
    return table.remote.unfetched(table.primary_order, keys, State.OLD) or ()


def _fit_change(
    step: Accumulate, table: Table, change: Table, dictionary: Dictionary
) -> tuple[list[Codes], list[Integers]]:
    """Return the keys and the sums of a change; the records' layout has room for them then."""
    words, layout = change.tuples(State.NEW), change.layout
    length = len(table.types) - step.additive
    keys = [layout.unpack_column(words, at) for at in range(length)]
    sums = [layout.unpack_column(words, length + at) for at in range(step.additive)]
    # The keys get room in the layout: those that are not there will be.
    table.fit([*keys, *sums], (None,) * len(table.types))
    return keys, [dictionary.decode(each, NUMBER) for each in sums]


def _find_records(table: Table, keys: list[Codes], count: int) -> tuple[Integers, Words, Layout]:
    """Return which keys have a record in OLD, their records, and how these are packed."""
    arrangement = table.arrangement(table.primary_order)
    layout = arrangement.layout
    found = [
        matches
        for layer in arrangement.layers(State.OLD)
        if (matches := find_matches(layer, layout, keys, count)).total
    ]
    if not found:
        return np.empty(0, np.int64), layout.empty, layout
    rows, records = concatenate_matches(found)
    assert rows is not None
    return rows, records, layout
