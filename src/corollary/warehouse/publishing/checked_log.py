"""The log of a published table, verified entry by entry.

`deltalake` takes an empty or truncated entry for a version without changes, and everybody may write
to a table. So each version of ours names our application (`txn`) and carries a *mark*: the commit
that it shows, and how many actions it has. The entries are read back to the last one that is known
to be good: one that the catalog has recorded, or the start of the table. Whatever is not ours on
the way is a finding.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from corollary.data_class import dataclass
from corollary.errors import Diagnostic, WarehouseError
from corollary.warehouse.files.places import Place
from corollary.warehouse.formats.delta_entries import entry_path, list_versions, read_actions

MARK_FIELD = "corollary"
"""The field of an entry's `commitInfo` that holds our mark."""

_FILE_ACTIONS = {"add", "remove", "cdc"}


class TableDefect(StrEnum):
    """The kinds of defects of a published table."""

    NOT_OURS = "stranger"
    """The directory contains something that is not a table of this warehouse."""
    FOREIGN_WRITE = "foreign"
    """Another writer made a version."""
    DAMAGE = "damage"
    """The log is torn, or cannot be read."""
    FEATURE = "feature"
    """The table uses a feature with which its files do not contain just its rows."""
    CONTENT = "content"
    """The files, or their rows, are not as they were written."""
    UNKNOWN_COMMIT = "time"
    """The table shows a commit that the warehouse does not have."""


@dataclass(frozen=True, slots=True)
class TableFinding:
    """A defect of a published table."""

    defect: TableDefect
    message: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class VersionMark:
    """What each version of ours says about itself; the log holds these fields as JSON.

    Attributes:
        warehouse: the id of the warehouse.
        commit: the commit that the version shows.
        created: when that commit was made, which distinguishes it from one of the same number that
            was made after the warehouse was restored from a backup.
        columns: a digest of the names and types of the table's columns.
        rows: how many rows the table has.
        actions: how many files the version adds and removes, with those of change data.
        is_start: whether nothing before this version matters.
        options: a digest of the options of the table, if it has others than the default ones.
    """

    warehouse: str
    commit: int
    created: str
    columns: str
    rows: int
    actions: int
    is_start: bool = False
    options: str = ""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A version in the log: with our mark, or with a finding."""

    version: int
    mark: VersionMark | None = None
    finding: TableFinding | None = None


def read_entry(log: Place, version: int, application: str) -> LogEntry:
    """Return the entry of a version, verified."""
    try:
        actions = read_actions(entry_path(log, version))
    except OSError as error:
        return _damaged(version, f"cannot be read: {error.strerror}")
    except ValueError:
        return _damaged(version, "is empty or cut off")
    info: Mapping[str, Any] = next((e["commitInfo"] for e in actions if "commitInfo" in e), {})
    applications = {each["txn"].get("appId") for each in actions if "txn" in each}
    fields = info.get(MARK_FIELD)
    if fields and not applications:
        return _damaged(version, "is cut off")
    if not fields or application not in applications:
        what = f"is {info.get('operation', 'a change')} by another writer"
        return LogEntry(version, None, TableFinding(TableDefect.FOREIGN_WRITE, what, version))
    try:
        mark = VersionMark(**fields)
    except TypeError:
        return _damaged(version, "has the mark of another version of corollary")
    if sum(bool(each.keys() & _FILE_ACTIONS) for each in actions) != mark.actions:
        return _damaged(version, "is cut off")
    return LogEntry(version, mark)


def _damaged(version: int, what: str) -> LogEntry:
    return LogEntry(version, None, TableFinding(TableDefect.DAMAGE, what, version))


def recent_entries(log: Place, application: str, recorded: int | None) -> Iterator[LogEntry]:
    """Yield the entries from the newest back to the last one that is known to be good."""
    versions = list_versions(log)
    for before, version in enumerate(reversed(versions)):
        if version != versions[-1] - before:
            return  # older entries were removed; or one is missing, which `deltalake` reports
        entry = read_entry(log, version, application)
        yield entry
        if entry.mark is not None and (entry.mark.is_start or version == recorded):
            return


def table_error(relation: str, directory: Place, findings: list[TableFinding]) -> WarehouseError:
    """Return the error about the defects of a published table, with the cure."""
    parts = [
        finding.message
        if finding.version is None
        else f"version {finding.version} {finding.message}"
        for finding in findings
    ]
    shown = "; ".join(parts[:3]) + (f"; and {len(parts) - 3} more" if len(parts) > 3 else "")
    is_stranger = any(each.defect is TableDefect.NOT_OURS for each in findings)
    cure = (
        f"move `{directory}` away; the next `corollary run PROGRAM --warehouse WAREHOUSE` publishes"
        if is_stranger
        else "the warehouse is unharmed; `corollary verify WAREHOUSE --repair` rebuilds the table"
    )
    text = f"The published table of `{relation}` is not as it was left: {shown}."
    return WarehouseError([Diagnostic("C0940", text, None, cure)])
