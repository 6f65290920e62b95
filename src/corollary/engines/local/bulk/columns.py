"""Between packed tuples and the Arrow columns that DuckDB reads and returns.

NumPy arrays become Arrow arrays and back by their buffers: nothing is copied, and pyarrow's own
conversions, which import pandas where it is installed, are not used.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.states import State
from corollary.core.types import Kind, Type
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values import native
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.sql.compiled import Form, OutputColumn

ARROW_TYPES = {
    np.dtype(np.int64): pa.int64(),
    np.dtype(np.uint64): pa.uint64(),
    np.dtype(np.float64): pa.float64(),
}

UNIT_COLUMN = "unit"
"""The column of a table of which only the number of tuples matters."""


def array_of(values: npt.NDArray[Any], nulls: Mask | None = None) -> pa.Array:
    """Return numbers as an Arrow array, with the nulls of a mask."""
    values = np.ascontiguousarray(values)
    valid = None
    if nulls is not None and np.count_nonzero(nulls):
        valid = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    buffers = [valid, pa.py_buffer(values)]
    return pa.Array.from_buffers(ARROW_TYPES[values.dtype], len(values), buffers)


def numbers_of(array: pa.Array) -> tuple[npt.NDArray[Any], Mask | None]:
    """Return an Arrow array of numbers as one of NumPy, and the mask of its nulls."""
    dtype = next(each for each, type_ in ARROW_TYPES.items() if type_ == array.type)
    valid, data = array.buffers()
    values = np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)
    if not array.null_count:
        return values, None
    return values, ~_bits(valid, array)


def truths_of(array: pa.Array) -> Mask:
    """Return an Arrow array of truths without nulls as one of NumPy."""
    return _bits(array.buffers()[1], array)


def _bits(buffer: pa.Buffer, array: pa.Array) -> Mask:
    packed = np.frombuffer(buffer, np.uint8)
    bits = np.unpackbits(packed, count=array.offset + len(array), bitorder="little")
    return bits[array.offset :].astype(np.bool_)


def read_columns(
    table: Table, state: State, columns: Sequence[tuple[Form, int]], dictionary: Dictionary
) -> pa.Table:
    """Return columns of a table in a state, as codes (`c0`) and as values (`v0`)."""
    words, layout = table.tuples(state), table.layout
    needed = {at for _, at in columns}
    codes = {at: layout.unpack_column(words, at) for at in needed}
    return arrow_table(codes, table.types, len(words), columns, dictionary)


def arrow_table(
    codes: Mapping[int, Codes],
    types: Sequence[Type],
    count: int,
    columns: Sequence[tuple[Form, int]],
    dictionary: Dictionary,
) -> pa.Table:
    """Return columns, given by their codes, as codes (`c0`) and as values (`v0`)."""
    names = [f"{form}{at}" for form, at in columns]
    arrays = [
        array_of(codes[at]) if form is Form.CODE else _values(codes[at], types[at], dictionary)
        for form, at in columns
    ]
    if not arrays:
        names, arrays = [UNIT_COLUMN], [array_of(np.zeros(count, np.int64))]
    return pa.Table.from_arrays(arrays, names=names)


def _values(codes: Codes, type_: Type, dictionary: Dictionary) -> pa.Array:
    if type_.kind is Kind.SYMBOL:
        return dictionary.decode_arrow(codes, type_)
    return array_of(dictionary.decode(codes, type_), codes == 0)


def encode_columns(
    batch: pa.RecordBatch, outputs: Sequence[OutputColumn], dictionary: Dictionary
) -> list[Codes]:
    """Return the columns of a result as codes."""
    arrays = iter(batch.columns)
    found: list[Codes] = []
    for output in outputs:
        if output.form is None:
            assert output.constant is not None
            code = dictionary.encode_value(output.constant.value, output.type)
            found.append(np.full(batch.num_rows, code, np.int64))
        elif output.form is Form.CODE:
            found.append(numbers_of(next(arrays))[0])
        else:
            found.append(encode_array(next(arrays), output.type, dictionary))
    return found


def encode_array(array: pa.Array, type_: Type, dictionary: Dictionary) -> Codes:
    """Return the codes of values that DuckDB has computed."""
    if type_.kind is Kind.SYMBOL:
        return dictionary.encode_arrow(pa.chunked_array([array]), type_)
    values, nulls = numbers_of(array)
    if type_.kind is Kind.FLOAT:
        values = native.canonical_floats(values)
    return dictionary.encode(values, nulls, type_)
