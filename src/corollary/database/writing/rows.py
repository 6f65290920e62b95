"""Checks the rows that users pass against the columns of a relation, before anything changes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.console import counted
from corollary.core.arrow import arrow_type
from corollary.core.arrow_buffers import bool_array, fixed_array, string_array
from corollary.core.program import Relation
from corollary.core.records.record_values import record_from_python
from corollary.core.types import Kind, Type
from corollary.core.values import SCALARS, is_encodable, is_value
from corollary.errors import InputError
from corollary.warehouse.formats import typed_values
from corollary.warehouse.formats.struct_columns import record_texts

BLOCK_ROWS = 2**16
"""The rows of a table that are converted before faults are reported."""


class MisfitError(Exception):
    """A row of a table, by its place, does not fit; what is wrong with it, and what to do."""

    def __init__(self, row: int, fault: str, cure: str) -> None:
        super().__init__(row, fault, cure)
        self.row, self.fault, self.cure = row, fault, cure

    def reported(self) -> InputError:
        """Return the error that users see."""
        return _error(f"Row {self.row + 1} of the table {self.fault}.", self.cure)


def check_rows(rows: Any, relation: Relation) -> list[tuple[Any, ...]] | pa.Table:
    """Return rows that fit a relation: tuples, or an Arrow table with its columns in order.

    Args:
        rows: an iterable of tuples (a value counts as a tuple of one) or of mappings from the names
            of columns, an Arrow table or record batch, a NumPy array, or anything that has
            `to_arrow` or is a pandas frame.
        relation: the relation they are for.

    Raises:
        InputError: a row does not fit; the message names it.
    """
    if isinstance(rows, np.ndarray):
        rows = _from_numpy(rows, relation)
    table = _as_arrow(rows, relation)
    if table is not None:
        try:
            return checked_table(table, relation)
        except MisfitError as misfit:
            raise misfit.reported() from None
    given = list(rows)
    has_records = any(type_.record is not None for type_ in relation.types)
    if not has_records and _fit_by_column(given, relation):
        return given
    found = []
    for number, row in enumerate(given, 1):
        values = _values(row, number, relation)
        if has_records:
            values = _with_records(values, number, relation)
        _check_row(values, number, relation)
        found.append(values)
    return found


def is_frame(rows: Any) -> bool:
    """Return whether rows are a frame of Spark that has an end."""
    return hasattr(rows, "mapInArrow") and not rows.isStreaming


def _with_records(row: tuple[Any, ...], number: int, relation: Relation) -> tuple[Any, ...]:
    """Return a row with the texts of its records."""
    if len(row) != relation.arity:
        return row
    values = []
    for value, column, type_ in zip(row, relation.columns, relation.types, strict=True):
        if type_.record is None or (value is None and type_.nullable):
            values.append(value)
            continue
        try:
            values.append(record_from_python(value, type_.record, SCALARS, _field))
        except ValueError as error:
            raise _error(
                f"Row {number} does not fit the column `{column}` of `{relation.name}`: {error}.",
                "give a tuple with one value for each field"
                if not type_.record.is_algebraic
                else "give a tuple with the name of the branch and one value for each field",
            ) from None
    return tuple(values)


def _field(value: Any, type_: Type) -> Any:
    """Return a value that fits a field of a record."""
    if not is_value(value, type_):
        raise ValueError(f"{value!r} is not a `{type_}`")
    return value


def _values(row: Any, number: int, relation: Relation) -> tuple[Any, ...]:
    """Return the values of a row in the order of the columns."""
    if isinstance(row, np.ndarray):
        row = row.tolist()
    if isinstance(row, Mapping):
        row = _in_order(row, number, relation)
    elif isinstance(row, str | bytes) or not isinstance(row, Sequence):
        row = (row,)
    return tuple(value.item() if isinstance(value, np.generic) else value for value in row)


def _in_order(row: Mapping[Any, Any], number: int, relation: Relation) -> list[Any]:
    """Return the values of a mapping; what it does not have is null."""
    unknown = [name for name in row if name not in relation.columns]
    missing = [
        name
        for name, type_ in zip(relation.columns, relation.types, strict=True)
        if name not in row and not type_.nullable
    ]
    if unknown or missing:
        fault = f"`{unknown[0]}`, which is no column" if unknown else f"no `{missing[0]}`"
        raise _error(
            f"Row {number} for `{relation.name}` has {fault}.",
            f"the columns are {', '.join(relation.columns) or 'none'}",
        )
    return [row.get(name) for name in relation.columns]


def _from_numpy(array: "np.ndarray[Any, Any]", relation: Relation) -> Any:
    """Return the rows of an array: a table, or tuples where values are Python objects."""
    names = array.dtype.names
    if names is not None and array.ndim == 1:
        columns = [array[name] for name in names]
    elif array.ndim == 1 and relation.arity == 1:
        columns = [array]
    elif array.ndim == 2:
        columns = list(array.T)
    else:
        raise _error(
            f"The array for `{relation.name}` has {counted(array.ndim, 'dimension')}.",
            "give one with two dimensions: a row for each tuple, a column for each value",
        )
    arrays = [_from_numpy_column(column) for column in columns]
    if not arrays or any(each is None for each in arrays):
        listed = [column.tolist() for column in columns]
        rows = list(zip(*listed, strict=True)) if listed else [()] * len(array)
        return [dict(zip(names, row, strict=True)) for row in rows] if names else rows
    return pa.table(arrays, names=names or [f"column {at}" for at in range(1, len(arrays) + 1)])


def _from_numpy_column(column: "np.ndarray[Any, Any]") -> pa.Array | None:
    """Return a column of numbers, truth values or texts; None if it has others."""
    match column.dtype.kind:
        case "b":
            return bool_array(column)
        case "i":
            return fixed_array(column.astype(np.int64), pa.int64())
        case "u":
            return fixed_array(column.astype(np.uint64), pa.uint64())
        case "f":
            return fixed_array(column.astype(np.float64), pa.float64())
        case "U":
            texts = column.tolist()  # Arrow's own conversion ends a text at its first NUL
            return string_array(texts, pa.string()) if all(map(is_encodable, texts)) else None
        case _:
            return None


def _fit_by_column(rows: list[Any], relation: Relation) -> bool:
    """Return whether rows certainly fit, looking at columns and not at each value by itself."""
    if set(map(type, rows)) != {tuple} or set(map(len, rows)) != {relation.arity}:
        return False
    return all(map(_fits_by_class, zip(*rows, strict=True), relation.types))


def _fits_by_class(values: Sequence[Any], type_: Type) -> bool:
    classes = set(map(type, values))
    if type(None) in classes:
        if not type_.nullable:
            return False
        classes.remove(type(None))
        values = [value for value in values if value is not None]
    if not classes <= set(type_.spec.python):  # exact classes: `bool` is an `int`
        return False
    match type_.logical_kind:
        case Kind.SYMBOL:
            if all(map(str.isascii, values)):
                return "\0" not in "".join(values)
            return all(map(is_encodable, values))
        case Kind.NUMBER | Kind.UNSIGNED:
            low, high = type_.spec.bounds
            return not values or (low <= min(values) and max(values) <= high)
        case Kind.DECIMAL | Kind.FLOAT32 | Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ:
            return all(is_value(value, type_) for value in values)
        case Kind.DURATION | Kind.MONTHS | Kind.TIME_OF_DAY:
            return all(is_value(value, type_) for value in values)
        case Kind.ARRAY | Kind.STRUCT | Kind.MAP:
            return all(is_value(value, type_) for value in values)
        case _:
            return True


def _as_arrow(rows: Any, relation: Relation) -> pa.Table | None:
    """Return rows that are a table or a frame as an Arrow table; None if they are neither."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if getattr(rows, "isStreaming", False) is True:
        raise _error(
            f"The frame for `{relation.name}` is a streaming one, which has no end.",
            f'let it change the relation with `db.stream(frame, into="{relation.name}")`',
        )
    if is_frame(rows):
        from corollary.engines.spark.frames import all_rows

        return all_rows(rows)
    if hasattr(rows, "to_arrow"):
        return _as_arrow(rows.to_arrow(), relation)
    if type(rows).__module__.partition(".")[0] == "pandas":
        try:
            return pa.Table.from_pandas(rows, preserve_index=False)
        except (pa.ArrowException, AttributeError, TypeError) as error:
            raise _misfit(relation, error) from error
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise _error(
            f"The rows for `{relation.name}` are a `{type(rows).__name__}`.",
            "give a list of tuples or dictionaries, an Arrow table, a NumPy array or a data frame",
        )
    return None


def _by_name_or_place(table: pa.Table, relation: Relation) -> pa.Table:
    """Return the columns of a relation: by name if all are there, by place if none is."""
    names = table.column_names
    if all(names.count(column) == 1 for column in relation.columns):
        return table.select(list(relation.columns))
    if set(names) & set(relation.columns):
        listed = ", ".join(f"`{name}`" for name in names)
        raise _error(
            f"The columns of the table, {listed}, are not those of `{relation.name}`.",
            f"name them {', '.join(relation.columns)}, each once; or give none of these names, "
            "and the same order",
        )
    return table


def _without_structs(table: pa.Table, relation: Relation) -> pa.Table:
    """Return a table with the texts of records that are given as structs."""
    for at, (column, type_) in enumerate(zip(relation.columns, relation.types, strict=True)):
        record = type_.record
        if record is None or not pa.types.is_struct(table.column(at).type):
            continue
        texts, failures = record_texts(table.column(at), type_, typed_values.SCALAR_COLUMNS)
        for row, reason in failures.items():
            fault = f"does not fit the column `{column}` of `{relation.name}`: {reason}"
            raise MisfitError(row, fault, f"give structs with the fields of `{record.name}`")
        table = table.set_column(at, table.column_names[at], texts)
    return table


def checked_table(table: pa.Table, relation: Relation) -> pa.Table:
    """Return a table with the columns of a relation, in order.

    Raises:
        InputError: its columns do not fit.
        MisfitError: one of its rows does not.
    """
    table = _by_name_or_place(table, relation)
    if table.num_columns != relation.arity:
        columns = ", ".join(relation.columns)
        raise _error(
            f"The table has {counted(table.num_columns, 'column')}, "
            f"`{relation.name}` has {relation.arity}.",
            f"give one column for each of {columns}",
        )
    if not relation.arity:  # Arrow's casts lose the number of rows of a table without columns
        return table
    table = _without_structs(table, relation)
    for at, (column, type_) in enumerate(zip(relation.columns, relation.types, strict=True)):
        if not type_.nullable and table.column(at).null_count:
            raise _error(
                f"The table has null in the column `{column}` of `{relation.name}`.",
                f"leave these rows out, or declare the column as `{type_}?`",
            )
        _check_column_type(table.column(at).type, column, type_, relation)
    blocks = [
        _converted(table.slice(first, BLOCK_ROWS), first, relation)
        for first in range(0, max(1, table.num_rows), BLOCK_ROWS)
    ]
    return pa.concat_tables(blocks)


def _converted(block: pa.Table, first: int, relation: Relation) -> pa.Table:
    """Return some rows of a table, whose first has this number, with the types of a relation."""
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in block.columns
    ]
    converted, failures = typed_values.convert_columns(columns, relation, typed_values.from_arrow)
    if failures:
        row, reasons = min(failures.items())
        cure = "correct the value, or the type of the column"
        raise MisfitError(first + row, f"does not fit: {reasons[0]}", cure)
    return converted


def _check_column_type(found: pa.DataType, column: str, type_: Type, relation: Relation) -> None:
    """Raise if Arrow's cast would make values of another kind, as numbers of texts."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_null(found):
        return
    # A whole float is the integer: pandas has no other column for integers with gaps.
    is_whole_float = pa.types.is_floating(found) and type_.is_integral
    if not is_whole_float and not typed_values.is_readable(found, type_):
        raise _error(
            f"The table has `{found}` in the column `{column}` of `{relation.name}`, "
            f"which is a `{type_}`.",
            f"convert it to `{arrow_type(type_)}` first",
        )
    if pa.types.is_timestamp(found) and found.tz is None and type_.is_timestamp:
        raise _error(
            f"The table has `{found}` in the column `{column}` of `{relation.name}`: times "
            "without a time zone.",
            "give them one, such as UTC",
        )


def _misfit(relation: Relation, reason: object) -> InputError:
    return _error(
        f"The table does not fit `{relation.name}`: {str(reason).rstrip('.')}.",
        f"convert its columns to the types of `{relation.name}` first",
    )


def _check_row(row: tuple[Any, ...], number: int, relation: Relation) -> None:
    if len(row) != relation.arity:
        raise _error(
            f"Row {number} has {counted(len(row), 'value')}, `{relation.name}` has "
            f"{counted(relation.arity, 'column')}.",
            f"give one value for each of {', '.join(relation.columns)}"
            if relation.arity
            else "write the empty tuple, ()",
        )
    for value, column, type_ in zip(row, relation.columns, relation.types, strict=True):
        if not is_value(value, type_):
            raise _error(
                f"Row {number} has {value!r} in the column `{column}` of `{relation.name}`, "
                f"which is a `{type_}`.",
                _cure(value, type_),
            )


def _cure(value: Any, type_: Type) -> str:
    if value is None:
        return f"leave the row out, or declare the column as `{type_}?`"
    if type_.is_symbol and isinstance(value, str):
        return "remove NUL and lone surrogates, which are not characters of a text"
    if type_.is_timestamp and isinstance(value, datetime):
        return "give it a time zone, such as `datetime.UTC`"
    if type_.is_timestamp_ntz and isinstance(value, datetime):
        return "take its time zone away"
    if isinstance(value, type_.spec.python) and not isinstance(value, bool):
        return f"give a value in the range of `{type_}`"
    names = " or ".join(f"`{each.__name__}`" for each in type_.spec.python)
    return f"convert it to {names} first"


def _error(message: str, cure: str) -> InputError:
    return InputError.of("C0910", message, None, cure)
