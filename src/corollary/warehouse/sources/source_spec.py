"""What all kinds of sources share: the specification, and collecting the results of a run."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import field, replace

import pyarrow as pa

from corollary.analysis.bags import COPIES_COLUMN
from corollary.console import Console, SilentConsole
from corollary.core.arrow import empty_table, expand_table, nullary_table, schema_of
from corollary.core.engine import TaskPool
from corollary.core.program import Directive, Relation
from corollary.core.types import NUMBER
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError
from corollary.warehouse.copies import difference, distinct, minus, row_difference
from corollary.warehouse.files.durable_files import checksum_of
from corollary.warehouse.files.input_files import file_error
from corollary.warehouse.formats.delimited import SHOWN_FINDINGS_MAX, first_findings
from corollary.warehouse.sources import schema_drift
from corollary.warehouse.sources.file_listing import SourceLocation
from corollary.warehouse.sources.quarantine import NO_BAD_ROWS, BadRowPolicy, to_bad_rows
from corollary.warehouse.sources.schema_drift import (
    RECORDED_COLUMNS_MAX,
    ExpectedColumns,
    FileRecords,
    FileSummary,
)
from corollary.warehouse.sources.source import EarlierRows, Position, Rows, SourceChange
from corollary.warehouse.sources.source_keys import SourceKey, resolve_keys

READ_ATTEMPTS = 5
"""How often the files are listed again when one was removed meanwhile."""
_POLICIES = ("new_columns", "max_bad", "max_deletes")
"""The parameters that say what is refused, and not what the rows are."""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """An `.input`: its relation, location and key, and the policy for malformed records.

    Attributes:
        console: shows how far the reading of files has come.
        has_copies: whether equal rows are copies, and not one row.
        tasks: where large files are read; None if there are no other processes.
    """

    relation: Relation
    directive: Directive
    location: SourceLocation
    key: SourceKey
    bad_rows: BadRowPolicy
    console: Console = field(default_factory=SilentConsole)
    has_copies: bool = False
    tasks: TaskPool | None = None

    @property
    def name(self) -> str:
        """The unique name of the source, the same in every run."""
        return f"{self.relation.name} < {self.location.name}"

    def tasks_for(self, rows: int) -> TaskPool | None:
        """Return where files with about so many rows are read; None if that is here."""
        has_rivals = self.has_copies and self.key.columns
        if self.tasks is None or has_rivals or not self.relation.types:
            return None
        return self.tasks if self.tasks.is_large(rows) else None

    @property
    def counts(self) -> Relation:
        """The relation that has each row of the source once, with the number of its copies."""
        columns, types = self.relation.columns, self.relation.types
        return replace(self.relation, columns=(*columns, COPIES_COLUMN), types=(*types, NUMBER))

    def settings_digest(self, kind: str) -> str:
        """Return a digest of all settings with which the same files have the same rows."""
        settings = [pair for pair in self.directive.parameters if pair[0] not in _POLICIES]
        types = [str(type_) for type_ in self.relation.types]
        parts = [kind, sorted(settings), self.relation.columns, types, self.key.columns]
        parts += ["copies"] if self.has_copies else []
        return checksum_of(json.dumps(parts).encode())

    def empty_table(self) -> pa.Table:
        """Return a table without rows."""
        return empty_table(self.relation)

    def union(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Return the rows of several tables as one; their chunks are not copied."""
        if not self.relation.types:
            return nullary_table(min(1, sum(table.num_rows for table in tables)))
        if len({table.schema for table in tables}) > 1:  # those of large files are compact
            tables = [expand_table(table, self.relation) for table in tables]
        return pa.concat_tables(tables) if tables else self.empty_table()

    @property
    def identifying_columns(self) -> tuple[int, ...]:
        """The columns of the key, or all if there is none: rows that agree in them compete."""
        columns = self.relation.columns
        return tuple(map(columns.index, self.key.columns)) or tuple(range(len(columns)))

    def replacement(self, earlier: EarlierRows, now: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return the added and removed rows if the source now has exactly these rows."""
        now = self._resolved(now)
        before = self.in_order(earlier.table())
        if not before.num_rows:
            return now, before
        compare = row_difference if self.has_copies else difference
        return compare(before, expand_table(now, self.relation))

    def extension(self, earlier: EarlierRows, new: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return the added and removed rows if these rows were added to the source."""
        return self.revision(earlier, new, self.empty_table())

    def revision(
        self, earlier: EarlierRows, found: pa.Table, lost: pa.Table
    ) -> tuple[pa.Table, pa.Table]:
        """Return the added and removed rows if only a part of the source was compared.

        Args:
            earlier: the rows that the source had.
            found: rows that it has; all those that it did not have, and perhaps others.
            lost: earlier rows that it no longer has.
        """
        if not found.num_rows:
            return self.empty_table(), lost
        if self.has_copies or not len(earlier):
            return self._resolved(found), lost
        if not self.relation.types:
            return difference(earlier.table(), found)[0], lost
        found = expand_table(found, self.relation)
        # Only rows that agree with one of those found can make a difference.
        rivals = earlier.matching(found, self.identifying_columns)
        before = distinct(self.union([self.in_order(rivals), lost]))
        now = self._resolved(self.union([found, minus(before, lost)]))
        return difference(before, now)

    def in_order(self, rows: pa.Table) -> pa.Table:
        """Return earlier rows with the columns and types of the relation."""
        if not self.relation.types:
            return rows
        return rows.select(list(self.relation.columns)).cast(schema_of(self.relation))

    def _resolved(self, rows: pa.Table) -> pa.Table:
        """Return rows with one for each key."""
        if not self.key.columns:
            return rows
        return resolve_keys(rows, self.key, self.relation, self.directive)


class InputSource(ABC):
    """A source of any kind: position → changed files → rows → difference → quarantine → position.

    The kinds say with `_change` what is read of them, and how it is compared.

    Args:
        spec: the `.input`.
        kind: the kind of source, for the digest of its settings.
    """

    def __init__(self, spec: SourceSpec, kind: str) -> None:
        self._spec = spec
        self._form = spec.settings_digest(kind)

    @property
    def name(self) -> str:
        """The unique name of the source, the same in every run."""
        return self._spec.name

    @property
    def relation(self) -> Relation:
        """The relation that it fills."""
        return self._spec.relation

    @property
    def directive(self) -> Directive:
        """The `.input` that it is read for."""
        return self._spec.directive

    def _comparable(self, before: Position | None) -> Position | None:
        """Return a position if it was recorded with the same settings; else all is read again."""
        return before if before is not None and before.get("form") == self._form else None

    def change_since(self, before: Position | None, earlier: EarlierRows) -> SourceChange:
        """Return what has changed since a position.

        Raises:
            InputError: the source cannot be read, or has rows that are not acceptable.
        """
        before, spec = self._comparable(before), self._spec
        for _ in range(READ_ATTEMPTS):
            try:
                change = self._change(before, earlier, RunCollector(spec, before))
            except FileNotFoundError:
                continue
            except OSError as error:
                shown, span = spec.location.display_name, spec.directive.span
                raise file_error(shown, "read", error, span) from None
            return replace(change, position={"form": self._form, **change.position})
        message, cure = self._missing_files()
        raise InputError.of("C0953", message, spec.directive.span, f"{cure}; nothing was changed")

    @abstractmethod
    def _change(
        self, before: Position | None, earlier: EarlierRows, collector: "RunCollector"
    ) -> SourceChange:
        """Return what has changed since a position that was recorded with the same settings.

        Raises:
            InputError: it cannot be read, or has rows that are not acceptable.
            FileNotFoundError: a file was removed meanwhile.
        """

    def _missing_files(self) -> tuple[str, str]:
        """Return the message about files that are gone at every attempt, and the cure."""
        files = f"Files of `{self._spec.location.display_name}`"
        message = f"{files} vanish while they are read; {READ_ATTEMPTS} attempts failed."
        return message, "run it again when their writer is done"

    def _replacement(
        self,
        records: FileRecords,
        rows_before: int,
        earlier: EarlierRows,
        collector: "RunCollector",
    ) -> tuple[tuple[pa.Table, pa.Table], int]:
        """Return the added and removed rows if these are all records now, and how many are good."""
        rows = collector.add_file(self._spec.location.name, records, rows_before)
        collector.raise_if_malformed()
        return self._spec.replacement(earlier, rows), rows.num_rows


class RunCollector:
    """Collects malformed records, columns and warnings from the files that one run reads."""

    def __init__(self, spec: SourceSpec, before: Position | None) -> None:
        self._spec = spec
        before = before or {}
        self.expected = ExpectedColumns(
            spec.relation,
            spec.directive,
            tuple(before.get("named", ())),
            frozenset(before.get("columns", ())),
        )
        self._columns = set(self.expected.known_columns)
        self._bad: dict[str, pa.Table] = {}
        self._malformed: list[list[Diagnostic]] = []
        self._warnings: list[Diagnostic] = []
        self._emptied: list[str] = []

    def add_file(self, name: str, records: FileRecords, rows_before: int = 0) -> pa.Table:
        """Return the good rows of a file, and collect the rest.

        Raises:
            InputError: `C0950` or `C0951`; or there are too many malformed records to go on.
        """
        relation, source = self._spec.relation.name, self._spec.name
        bad = to_bad_rows(relation, source, name, records.malformed)
        self.add_summary(name, records.summary, bad, rows_before)
        return records.table

    def add_summary(
        self, name: str, records: FileSummary, bad: pa.Table, rows_before: int = 0
    ) -> None:
        """Collect what is known of a file whose rows are elsewhere.

        Raises:
            InputError: `C0950` or `C0951`; or there are too many malformed records to go on.
        """
        expected = self.expected
        shown = self._spec.location.shown(name)
        schema_drift.check_any_good_row(expected, shown, records, rows_before)
        if schema_drift.has_lost_everything(expected, records, rows_before):
            self._emptied.append(shown)
        self._warnings += schema_drift.check_new_columns(expected, shown, records.columns)
        self._columns |= set(records.columns)
        # In the first run no column counts as new, even if the files differ.
        known = (
            expected.known_columns | set(records.columns)
            if expected.known_columns
            else expected.known_columns
        )
        named = expected.header_names or records.header_names
        self.expected = replace(expected, header_names=named, known_columns=known)
        self._bad[name] = bad
        if self._spec.bad_rows is BadRowPolicy.ABORT:
            self._malformed += records.malformed
            if len(self._malformed) > SHOWN_FINDINGS_MAX:
                self.raise_if_malformed()

    def to_source_change(
        self,
        rows: tuple[Rows, Rows],
        position: Position,
        reread: frozenset[str] | None,
        warnings: Sequence[Diagnostic] = (),
        good_records: int | None = None,
    ) -> SourceChange:
        """Return the change, with everything collected."""
        recorded = {
            **position,
            "columns": sorted(self._columns)[:RECORDED_COLUMNS_MAX],
            "named": list(self.expected.header_names),
        }
        bad = pa.concat_tables([NO_BAD_ROWS, *(each for _, each in sorted(self._bad.items()))])
        warnings = (*self._warnings, *warnings)
        emptied = tuple(self._emptied)
        return SourceChange(*rows, recorded, bad, reread, warnings, good_records, emptied)

    def raise_if_malformed(self) -> None:
        """Raise if there are malformed records, and the policy is to abort."""
        if self._malformed:
            raise InputError(first_findings(self._malformed, self._spec.location.display_name))
