"""Between packed tuples and the Arrow columns that DuckDB reads and returns.

NumPy arrays become Arrow arrays and back by their buffers: nothing is copied. Decimals of more than
64 bits are HUGEINTs there: it reads them as such, without a conversion, and gives them back as
decimals without a scale.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import NUMPY_TYPES, fixed_array, fixed_values, null_mask
from corollary.core.states import State
from corollary.core.types import Type
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values import native
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.decimal_domain import DecimalDomain
from corollary.sqlgen.compiled import OutputColumn, Representation

ARROW_TYPES = {np.dtype(dtype): type_ for type_, dtype in NUMPY_TYPES.items()}

HUGEINT_BYTES = pa.binary(16)
HUGEINT_TYPE = pa.opaque(HUGEINT_BYTES, "hugeint", "DuckDB")
"""What DuckDB reads as integers of 128 bits."""

DICTIONARY_MIN_USES = 8
"""A column of texts has a dictionary if each of them occurs so often, on average."""

UNIT_COLUMN = "unit"
"""The column of a table of which only the number of tuples matters."""


def number_array(values: npt.NDArray[Any], nulls: Mask | None = None) -> pa.Array:
    """Return numbers as an Arrow array, with the nulls of a mask."""
    return fixed_array(values, ARROW_TYPES[values.dtype], nulls)


def read_columns(
    table: Table,
    state: State,
    columns: Sequence[tuple[Representation, int]],
    dictionary: Dictionary,
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
    columns: Sequence[tuple[Representation, int]],
    dictionary: Dictionary,
) -> pa.Table:
    """Return columns, given by their codes, as codes (`c0`) and as values (`v0`)."""
    names = [f"{form}{at}" for form, at in columns]
    arrays = [
        number_array(codes[at])
        if form is Representation.CODE
        else _values(codes[at], types[at], dictionary)
        for form, at in columns
    ]
    if not arrays:
        names, arrays = [UNIT_COLUMN], [number_array(np.zeros(count, np.int64))]
    return pa.Table.from_arrays(arrays, names=names)


def _values(codes: Codes, type_: Type, dictionary: Dictionary) -> pa.Array:
    domain = dictionary.domain(type_)
    if type_.stores_texts:
        return _texts(codes, type_.stored, dictionary)
    if isinstance(domain, DecimalDomain) and type_.is_long_decimal:
        stored = domain.decode_arrow(codes, HUGEINT_BYTES)
        return pa.ExtensionArray.from_storage(HUGEINT_TYPE, stored)
    return number_array(dictionary.decode(codes, type_), codes == 0)


def _texts(codes: Codes, type_: Type, dictionary: Dictionary) -> pa.Array | pa.ChunkedArray:
    """Return texts, as an Arrow dictionary if that has few."""
    found = pc.dictionary_encode(number_array(codes, codes == 0))
    if len(found.dictionary) * DICTIONARY_MIN_USES > len(codes):
        return dictionary.decode_arrow(codes, type_)
    texts = dictionary.decode_arrow(fixed_values(found.dictionary, np.int64), type_)
    if isinstance(texts, pa.ChunkedArray):  # more than one array of `string` holds
        return dictionary.decode_arrow(codes, type_)
    return pa.DictionaryArray.from_arrays(found.indices, texts)


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
        elif output.form is Representation.CODE:
            found.append(fixed_values(next(arrays), np.int64))
        else:
            found.append(encode_array(next(arrays), output.type, dictionary))
    return found


def encode_array(array: pa.Array, type_: Type, dictionary: Dictionary) -> Codes:
    """Return the codes of values that DuckDB has computed."""
    type_ = type_.stored
    if type_.stores_texts:
        return dictionary.encode_arrow(pa.chunked_array([array]), type_)
    domain = dictionary.domain(type_)
    if isinstance(domain, DecimalDomain) and pa.types.is_decimal(array.type):
        return domain.encode_arrow(array)
    values = fixed_values(array, NUMPY_TYPES[array.type])
    if type_.stores_floats:
        values = native.canonical_floats(values)
    return dictionary.encode(values, null_mask(array), type_)
