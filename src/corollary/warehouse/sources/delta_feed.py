"""The change feed of a Delta table: the rows that versions have added and removed, if it has one.

A version that has rewritten files notes the rows that it changed; of one that has only added or
removed files, these are the rows. The signs of a row are added up over all versions. That is the
change of a set only if no row was in the table twice, which the caller knows.
"""

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from corollary.core.table_options import FEED_PROPERTY
from corollary.warehouse.copies import row_difference
from corollary.warehouse.files.durable_files import CHANGE_COLUMN, INSERT, POSTIMAGE
from corollary.warehouse.files.places import Place
from corollary.warehouse.formats.delta_entries import LOG_DIRECTORY, entry_path, read_actions
from corollary.warehouse.set_difference import distinct
from corollary.warehouse.sources.parquet_file import check_columns, convert_records
from corollary.warehouse.sources.schema_drift import ExpectedColumns

_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
"""The types of columns in a feed that stand for others."""


def feed_bytes(path: Place, after: int, upto: int) -> int | None:
    """Return the size of the files that a feed reads; None if there is none for these versions.

    Args:
        path: the directory of the table.
        after: the version before those that are read.
        upto: the last one.
    """
    total = 0
    try:
        configuration = DeltaTable(str(path), version=after).metadata().configuration or {}
        if configuration.get(FEED_PROPERTY) != "true":
            return None
        for version in range(after + 1, upto + 1):
            actions = read_actions(entry_path(path / LOG_DIRECTORY, version))
            if any("metaData" in each for each in actions):
                return None  # the option, or the columns, may be others since
            noted = [each["cdc"] for each in actions if "cdc" in each]
            files = [each.get("add") or each.get("remove") or {} for each in actions]
            used = noted or [each for each in files if each.get("dataChange", False)]
            total += sum(each.get("size") or 0 for each in used)
    except (OSError, ValueError, DeltaError):
        return None
    return total


def read_feed(
    path: Place, name: str, expected: ExpectedColumns, after: int, upto: int
) -> tuple[pa.Table, pa.Table] | None:
    """Return the rows that versions have added and removed.

    None if the feed cannot be read, or has a malformed row: then files say where that is.

    Raises:
        InputError: `C0950`, a column is missing or of another type.
    """
    try:
        table = DeltaTable(str(path), version=upto)
        found = table.load_cdf(starting_version=after + 1, ending_version=upto)
        rows = pa.table(found)
    except (DeltaError, OSError, pa.ArrowException):
        return None
    types = [_VIEWS.get(each.type, each.type) for each in rows.schema]
    names = rows.column_names
    rows = rows.cast(pa.schema(list(zip(names, types, strict=True))))
    check_columns(rows.schema, name, expected)
    is_added = pc.is_in(rows.column(CHANGE_COLUMN), value_set=pa.array((INSERT, POSTIMAGE)))
    sides = (rows.filter(is_added), rows.filter(pc.invert(is_added)))
    came, went = (_converted(side, name, expected) for side in sides)
    if came is None or went is None:
        return None
    added, removed = row_difference(went, came)
    return distinct(added), distinct(removed)


def _converted(rows: pa.Table, name: str, expected: ExpectedColumns) -> pa.Table | None:
    columns = [rows.column(each) for each in expected.relation.columns]
    table, malformed = convert_records(columns, name, expected, has_order=False)
    return None if malformed else table
