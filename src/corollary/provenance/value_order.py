"""The order of values by which equally good instances are told apart."""

import math

from corollary.core.logic import Value
from corollary.provenance.instance_rows import Instance
from corollary.provenance.nodes import Row


def row_key(row: Row) -> tuple[tuple[int, Value], ...]:
    """Return what to sort a tuple by: null first, NaN last.

    >>> sorted([(2,), (None,), (1,)], key=row_key)
    [(None,), (1,), (2,)]
    """
    return tuple(map(_value_key, row))


def _value_key(value: Value) -> tuple[int, Value]:
    if value is None:
        return 0, 0
    if isinstance(value, float) and math.isnan(value):
        return 2, 0
    return 1, value


def values_key(instance: Instance) -> tuple[object, ...]:
    """Return what to sort instances of one rule by: their premises, then all their values."""
    return tuple(row_key(row) for _, row in instance.premises), row_key(instance.values)
