"""A version of a Delta table that others write: its files, if they can be read as plain Parquet.

Tables whose files do not contain just their rows (deletion vectors, column mapping) are refused.
"""

import json
import re
from dataclasses import field
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.source import Span
from corollary.warehouse.files.input_files import Fingerprint, fingerprint_of
from corollary.warehouse.files.places import Place
from corollary.warehouse.formats.delta_entries import LOG_DIRECTORY, entry_path, read_actions

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_SUPPORTED_FEATURES = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors"}
"""Reader features that do not matter here, and deletion vectors, as long as none is used."""


@dataclass(frozen=True, slots=True)
class DeltaFile:
    """A file of a Delta table.

    Attributes:
        path: relative to the table, as a file name.
        rows: how many it has, if the log has that.
        partition: the values of the partition columns.
    """

    path: str
    rows: int | None
    partition: dict[str, pa.Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeltaSnapshot:
    """A Delta table at a version."""

    table: str
    version: int
    schema: pa.Schema
    files: dict[str, DeltaFile]


def read_snapshot(
    path: Place, name: str, span: Span | None, version: int | None = None
) -> DeltaSnapshot:
    """Return the table at a version, by default the newest.

    Raises:
        InputError: `C0804`, it is not a Delta table; `C0955`, it cannot be read as it is.
        LookupError: the version no longer exists.
    """
    try:
        table = DeltaTable(str(path), version=version)
        _refuse_features(table, name, span)
        actions = pa.table(table.get_add_actions(flatten=True))
        schema = pa.schema(table.schema().to_arrow())
        files = _files(actions)
        found = DeltaSnapshot(str(table.metadata().id), table.version(), schema, files)
    except TableNotFoundError:
        message = f"`{name}` cannot be read: it is not a Delta table"
        cure = "write the table first, or leave `delta` out to read a folder of plain files"
        raise InputError.of("C0804", message, span, cure) from None
    except DeltaError as error:
        if version is not None:
            raise LookupError(version) from None
        reason = str(error).strip().splitlines()[0]
        raise damaged_log_error(name, reason, span) from None
    _refuse_external_files(files, name, span)
    return found


def arrow_schema(path: str) -> pa.Schema:
    """Return the columns of the newest version of a local table.

    Raises:
        ValueError: there is no table, or it is damaged.
    """
    try:
        return pa.schema(DeltaTable(path).schema().to_arrow())
    except DeltaError as error:
        raise ValueError(str(error)) from None


def check_entries(path: Place, name: str, first: int, last: int, span: Span | None) -> None:
    """Raise (`C0955`) if the entry of one of these versions is truncated; missing ones are fine."""
    for version in range(first, last + 1):
        commit = entry_path(path / LOG_DIRECTORY, version)
        try:
            read_actions(commit)
        except FileNotFoundError:
            continue
        except ValueError:
            raise damaged_log_error(name, f"`{commit.name}` is empty or cut off", span) from None


def damaged_log_error(name: str, reason: str, span: Span | None) -> InputError:
    """Return the error of a log that cannot be trusted."""
    return InputError.of(
        "C0955",
        f"The log of the Delta table `{name}` is damaged: {reason}.",
        span,
        "restore the table from a copy, or let its writer repair it; nothing was changed",
    )


def entry_fingerprint(path: Place, version: int) -> Fingerprint | None:
    """Return the fingerprint of the entry of a version, if it still exists."""
    try:
        return fingerprint_of(entry_path(path / LOG_DIRECTORY, version).stat())
    except OSError:
        return None


def first_needed_version(path: Place) -> int:
    """Return the first version whose entry the current state needs: after the last checkpoint."""
    try:
        return (
            int(json.loads((path / LOG_DIRECTORY / "_last_checkpoint").read_bytes())["version"]) + 1
        )
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _files(actions: pa.Table) -> dict[str, DeltaFile]:
    paths = actions["path"].to_pylist()
    rows = actions["num_records"].to_pylist()
    partitions = [each for each in actions.column_names if each.startswith("partition.")]
    files = {}
    for at, (path, count) in enumerate(zip(paths, rows, strict=True)):
        given = {each.removeprefix("partition."): actions[each][at] for each in partitions}
        files[path] = DeltaFile(unquote(path), count, given)
    return files


def _refuse_external_files(files: dict[str, DeltaFile], name: str, span: Span | None) -> None:
    for path in files:
        if path.startswith("/") or _URL.match(path):
            raise InputError.of(
                "C0955",
                f"The Delta table `{name}` has files outside of its folder: `{path}`.",
                span,
                "write a copy of the table that has all its files; nothing was changed",
            )


def _refuse_features(table: DeltaTable, name: str, span: Span | None) -> None:
    features = set(table.protocol().reader_features or ())
    mode = (table.metadata().configuration or {}).get("delta.columnMapping.mode", "none")
    if mode != "none":
        features.add("columnMapping")
    foreign = sorted(features - _SUPPORTED_FEATURES)
    if not foreign and "deletionVectors" in features and _has_deletion_vectors(table):
        raise InputError.of(
            "C0955",
            f"The Delta table `{name}` has deletion vectors, which are not supported.",
            span,
            "let its writer apply them: `REORG TABLE … APPLY (PURGE)`; nothing was changed",
        )
    if foreign:
        listed = ", ".join(f"`{feature}`" for feature in foreign)
        raise InputError.of(
            "C0955",
            f"The Delta table `{name}` uses {listed}, which is not supported.",
            span,
            "write a copy of the table without it; nothing was changed",
        )


def _has_deletion_vectors(table: DeltaTable) -> bool:
    try:
        return any(batch.num_rows for batch in table.deletion_vectors())
    except DeltaError:  # there is one that cannot be read
        return True
