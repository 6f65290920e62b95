"""Checks the rows that users pass against the columns of a relation, before anything changes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from corollary.core.arrow import schema_of
from corollary.core.program import Relation
from corollary.core.types import Kind, Type
from corollary.core.values import is_decimal, is_encodable
from corollary.errors import InputError

PYTHON_TYPES: dict[Kind, Any] = {
    Kind.SYMBOL: (str,),
    Kind.NUMBER: (int,),
    Kind.UNSIGNED: (int,),
    Kind.FLOAT: (float, int),
    Kind.DECIMAL: (Decimal, int),
    Kind.BOOL: (bool,),
    Kind.DATE: (date,),
    Kind.TIMESTAMP: (datetime,),
}
INTEGER_RANGES = {Kind.NUMBER: (-(2**63), 2**63 - 1), Kind.UNSIGNED: (0, 2**64 - 1)}


def check_rows(rows: Any, relation: Relation) -> list[tuple[Any, ...]] | pa.Table:
    """Return rows that fit a relation: tuples, or an Arrow table with its columns in order.

    Args:
        rows: an iterable of tuples (a value counts as a tuple of one), an Arrow table or record
            batch, or anything that has `to_arrow` or is a pandas frame.
        relation: the relation they are for.

    Raises:
        InputError: a row does not fit; the message names it.
    """
    table = _as_arrow(rows)
    if table is not None:
        return _checked_table(table, relation)
    given = list(rows)
    if _fit_by_column(given, relation):
        return given
    found = []
    for number, row in enumerate(given, 1):
        if isinstance(row, Mapping):
            raise _error(
                f"Row {number} for `{relation.name}` is a mapping, not a tuple.",
                f"give the values in the order of the columns: {', '.join(relation.columns)}",
            )
        values = tuple(row) if isinstance(row, Sequence) and not isinstance(row, str) else (row,)
        _check_row(values, number, relation)
        found.append(values)
    return found


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
    if not classes <= set(PYTHON_TYPES[type_.kind]):  # exact classes: `bool` is an `int`
        return False
    match type_.kind:
        case Kind.SYMBOL:
            return all(map(str.isascii, values)) or all(map(is_encodable, values))
        case Kind.NUMBER | Kind.UNSIGNED:
            low, high = INTEGER_RANGES[type_.kind]
            return not values or (low <= min(values) and max(values) <= high)
        case Kind.DECIMAL | Kind.TIMESTAMP:
            return all(_fits(value, type_) for value in values)
        case _:
            return True


def _as_arrow(rows: Any) -> pa.Table | None:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    for method in ("toArrow", "to_arrow"):
        if hasattr(rows, method):
            return _as_arrow(getattr(rows, method)())
    if type(rows).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(rows, preserve_index=False)
    if not isinstance(rows, Iterable):
        raise TypeError(f"rows are tuples, an Arrow table or a data frame, not {type(rows)}")
    return None


def _checked_table(table: pa.Table, relation: Relation) -> pa.Table:
    if set(table.column_names) >= set(relation.columns):
        table = table.select(list(relation.columns))
    if table.num_columns != relation.arity:
        columns = ", ".join(relation.columns)
        raise _error(
            f"The table has {_counted(table.num_columns, 'column')}, "
            f"`{relation.name}` has {relation.arity}.",
            f"give one column for each of {columns}",
        )
    if not relation.arity:  # Arrow's casts lose the number of rows of a table without columns
        return table
    for at, (column, type_) in enumerate(zip(relation.columns, relation.types, strict=True)):
        if not type_.nullable and table.column(at).null_count:
            raise _error(
                f"The table has null in the column `{column}` of `{relation.name}`.",
                f"leave these rows out, or declare the column as `{type_}?`",
            )
    try:
        return table.rename_columns(list(relation.columns)).cast(schema_of(relation))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise _error(
            f"The table does not fit `{relation.name}`: {error}.",
            f"cast its columns to the types of `{relation.name}` first",
        ) from error


def _check_row(row: tuple[Any, ...], number: int, relation: Relation) -> None:
    if len(row) != relation.arity:
        raise _error(
            f"Row {number} has {_counted(len(row), 'value')}, `{relation.name}` has "
            f"{_counted(relation.arity, 'column')}.",
            f"give one value for each of {', '.join(relation.columns)}"
            if relation.arity
            else "write the empty tuple, ()",
        )
    for value, column, type_ in zip(row, relation.columns, relation.types, strict=True):
        if not _fits(value, type_):
            raise _error(
                f"Row {number} has {value!r} in the column `{column}` of `{relation.name}`, "
                f"which is a `{type_}`.",
                _cure(value, type_),
            )


def _cure(value: Any, type_: Type) -> str:
    if value is None:
        return f"leave the row out, or declare the column as `{type_}?`"
    if type_.kind is Kind.SYMBOL and isinstance(value, str):
        return "remove lone surrogates, which are not characters: decode texts strictly"
    if type_.kind is Kind.TIMESTAMP and isinstance(value, datetime):
        return "give it a time zone, such as `datetime.UTC`"
    if isinstance(value, PYTHON_TYPES[type_.kind]) and not isinstance(value, bool):
        return f"give a value in the range of `{type_}`"
    names = " or ".join(f"`{each.__name__}`" for each in PYTHON_TYPES[type_.kind])
    return f"convert it to {names} first"


def _fits(value: Any, type_: Type) -> bool:
    if value is None:
        return type_.nullable
    if isinstance(value, bool) and type_.kind is not Kind.BOOL:
        return False
    if isinstance(value, datetime) and type_.kind is Kind.DATE:
        return False
    if not isinstance(value, PYTHON_TYPES[type_.kind]):
        return False
    match type_.kind:
        case Kind.SYMBOL:
            return is_encodable(value)
        case Kind.NUMBER | Kind.UNSIGNED:
            low, high = INTEGER_RANGES[type_.kind]
            return low <= int(value) <= high
        case Kind.DECIMAL:
            return is_decimal(Decimal(value), type_)
        case Kind.TIMESTAMP:
            return getattr(value, "tzinfo", None) is not None
        case _:
            return True


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _error(message: str, cure: str) -> InputError:
    return InputError.of("C0910", message, None, cure)
