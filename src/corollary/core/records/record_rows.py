"""Rows of Arrow tables as Python values, in which records are tuples."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from corollary.core.arrow import to_python
from corollary.core.records.record_values import record_to_python
from corollary.core.types import Type
from corollary.core.values import SCALARS


def to_python_rows(table: pa.Table, types: Sequence[Type]) -> list[tuple[Any, ...]]:
    """Return the rows of a table with columns of some types; each distinct record is read once."""
    rows = to_python(table)
    places = [at for at, type_ in enumerate(types) if type_.record is not None]
    if not places:
        return rows
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(types)
    for at in places:
        record = types[at].record
        assert record is not None
        texts = {text for text in columns[at] if text is not None}
        made = {text: record_to_python(text, record, SCALARS) for text in texts}
        columns[at] = [None if text is None else made[text] for text in columns[at]]
    return list(zip(*columns, strict=True))
