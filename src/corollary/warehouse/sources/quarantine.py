"""Malformed records: they abort the run, or are quarantined while the good rows are taken.

The relation `quarantine` follows the files: when a file is read again, its records of earlier
readings are removed, and those that are still malformed are added again.
"""

from collections.abc import Iterable
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import empty_table, from_python
from corollary.core.program import Relation
from corollary.core.types import NUMBER, SYMBOL
from corollary.errors import Diagnostic
from corollary.warehouse.copies import difference

RAW_MAX_CHARACTERS = 1000
"""The maximum characters of a malformed record that are stored."""
QUARANTINE = Relation(
    "quarantine",
    ("relation", "source", "file", "line", "code", "reason", "raw"),
    (SYMBOL, SYMBOL, SYMBOL, NUMBER, SYMBOL, SYMBOL, SYMBOL),
    is_derived=False,
)
"""The relation of quarantined records.

| column     | is                                                                             |
|------------|--------------------------------------------------------------------------------|
| `relation` | the relation that the record was meant for                                     |
| `source`   | the name of its source                                                         |
| `file`     | the name of its file                                                           |
| `line`     | the number of its first line, or in a format without lines of the row; from 1  |
| `code`     | that of the diagnostic, as in `docs/diagnostics.md`                            |
| `reason`   | the message of the diagnostic                                                  |
| `raw`      | its text, truncated if it is long                                              |
"""
NO_BAD_ROWS = empty_table(QUARANTINE)
"""No malformed records."""


class BadRowPolicy(StrEnum):
    """The policies for malformed records (`--bad-rows`)."""

    ABORT = "abort"
    QUARANTINE = "quarantine"


def to_bad_rows(
    relation: str, source: str, file: str, malformed: Iterable[list[Diagnostic]]
) -> pa.Table:
    """Return the malformed records of a file; of several findings the first is the reason."""
    found = []
    for first, *_ in malformed:
        assert first.span is not None
        record = first.span.file
        raw = (
            record.text
            if len(record.text) <= RAW_MAX_CHARACTERS
            else record.text[:RAW_MAX_CHARACTERS] + "…"
        )
        line = record.first_line
        found.append((relation, source, file, line, first.code, first.message, raw))
    return from_python(found, QUARANTINE) if found else NO_BAD_ROWS


def quarantine_change(
    quarantined: pa.Table, source: str, bad: pa.Table, reread_files: frozenset[str] | None
) -> tuple[pa.Table, pa.Table]:
    """Return the rows to add to the quarantine and those to remove, after reading a source.

    Args:
        quarantined: the rows in quarantine.
        source: the name of the source.
        bad: its malformed records, from `SourceChange.bad_rows`.
        reread_files: the files whose earlier records no longer count, from
            `SourceChange.reread_files`; None for all, also for a source that is no longer read.
    """
    quarantined = quarantined.cast(bad.schema)
    others = quarantined.filter(pc.not_equal(quarantined.column("source"), source))
    left = remaining(quarantined, source, reread_files)
    return difference(quarantined, pa.concat_tables([others, left, bad]))


def remaining(
    quarantined: pa.Table, source: str, reread_files: frozenset[str] | None = frozenset()
) -> pa.Table:
    """Return the quarantined records of a source that still count after reading it."""
    held = quarantined.filter(pc.equal(quarantined.column("source"), source))
    if reread_files is None:
        return held.slice(0, 0)
    names = pa.array(sorted(reread_files), pa.string())
    return held.filter(pc.invert(pc.is_in(held.column("file"), value_set=names)))
