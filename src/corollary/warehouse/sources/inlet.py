"""What all kinds of sources share: the directive and its relation, and what a reading brings up."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from corollary.core.arrow import nullary_table, schema_of
from corollary.core.program import Directive, Relation
from corollary.errors import Diagnostic, InputError
from corollary.warehouse.delimited import MOST_FINDINGS, first_findings
from corollary.warehouse.files import checksum_of
from corollary.warehouse.set_difference import difference, minus
from corollary.warehouse.sources import drift
from corollary.warehouse.sources.drift import MOST_COLUMNS, Expected, Reading
from corollary.warehouse.sources.keys import Key, settle
from corollary.warehouse.sources.listing import Place
from corollary.warehouse.sources.quarantine import BadRow, BadRows, bad_rows_of
from corollary.warehouse.sources.source import Content, Position, SourceChange


@dataclass(frozen=True, slots=True)
class Inlet:
    """An `.input`: which relation it fills, from where, and how strictly."""

    relation: Relation
    directive: Directive
    place: Place
    key: Key
    bad_rows: BadRows

    @property
    def name(self) -> str:
        """What the source is called, the same in every run, and unlike all others."""
        return f"{self.relation.name} < {self.place.name}"

    def form(self, kind: str) -> str:
        """Return a digest of all that makes the same files mean the same rows."""
        said = [pair for pair in self.directive.parameters if pair[0] != "new_columns"]
        types = [str(type_) for type_ in self.relation.types]
        parts = [kind, sorted(said), self.relation.columns, types, self.key.columns]
        return checksum_of(json.dumps(parts).encode())

    def empty(self) -> pa.Table:
        """Return no rows."""
        return schema_of(self.relation).empty_table() if self.relation.types else nullary_table(0)

    def union(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Return the rows of several tables in one."""
        if not self.relation.types:
            return nullary_table(min(1, sum(table.num_rows for table in tables)))
        return pa.concat_tables([self.empty(), *tables])

    def replaced(self, content: Content, now: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return what came and what went if the source has just these rows now."""
        if self.key.columns:
            now = settle(now, self.key, self.relation, self.directive)
        return difference(self.rows(content), now)

    def extended(self, content: Content, fresh: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return what came and what went if the source has these rows beside those before."""
        if not fresh.num_rows:
            return self.empty(), self.empty()
        before = self.rows(content)
        if self.key.columns:
            return self.replaced(before, self.union([before, fresh]))
        return minus(fresh, before), self.empty()

    def rows(self, content: Content) -> pa.Table:
        """Return the rows that the caller has kept, with the columns of the relation in order."""
        kept = content if isinstance(content, pa.Table) else content()
        if not self.relation.types:
            return kept
        return kept.select(list(self.relation.columns)).cast(schema_of(self.relation))


class Collector:
    """Takes what the readings of one run bring up: malformed records, columns, warnings."""

    def __init__(self, inlet: Inlet, before: Position | None) -> None:
        self._inlet = inlet
        before = before or {}
        self.expected = Expected(
            inlet.relation,
            inlet.directive,
            tuple(before.get("named", ())),
            frozenset(before.get("columns", ())),
        )
        self._columns = set(self.expected.known)
        self._bad: dict[str, list[BadRow]] = {}
        self._malformed: list[list[Diagnostic]] = []
        self._warnings: list[Diagnostic] = []

    def take(self, name: str, reading: Reading, rows_before: int = 0) -> pa.Table:
        """Return the good rows of a reading of a file, and note the rest.

        Raises:
            InputError: `C0950` or `C0951`; or there is too much to stop for.
        """
        expected = self.expected
        shown = str(self._inlet.place.base / name)
        drift.refuse_lost_form(expected, shown, reading, rows_before)
        self._warnings += drift.notice_new_columns(expected, shown, reading.columns)
        self._columns |= set(reading.columns)
        # In the first run no column is new, however the files differ.
        known = expected.known | set(reading.columns) if expected.known else expected.known
        named = expected.named or reading.named
        self.expected = replace(expected, named=named, known=known)
        relation, source = expected.relation.name, self._inlet.name
        self._bad[name] = bad_rows_of(relation, source, name, reading.malformed)
        if self._inlet.bad_rows is BadRows.ABORT:
            self._malformed += reading.malformed
            if len(self._malformed) > MOST_FINDINGS:
                self.refuse_malformed()
        return reading.table

    def change(
        self,
        rows: tuple[pa.Table, pa.Table],
        position: Position,
        reread: frozenset[str] | None,
        warnings: Sequence[Diagnostic] = (),
    ) -> SourceChange:
        """Return the change, with what has been noted."""
        noted = {
            **position,
            "columns": sorted(self._columns)[:MOST_COLUMNS],
            "named": list(self.expected.named),
        }
        bad = tuple(row for _, rows in sorted(self._bad.items()) for row in rows)
        return SourceChange(*rows, noted, bad, reread, (*self._warnings, *warnings))

    def refuse_malformed(self) -> None:
        """Raise if there are malformed records, and they are a reason to stop."""
        if self._malformed:
            raise InputError(first_findings(self._malformed, self._inlet.place.shown))
