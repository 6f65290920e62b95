"""Guards against sources that are broken rather than changed; what they refuse changes nothing.

| refused                                                     | unless                            |
|-------------------------------------------------------------|-----------------------------------|
| more than half of the records of a source are malformed     | `max_bad` allows more             |
| a source deletes more than half of a relation with at least | `max_deletes` allows more         |
| 1,000 rows                                                  |                                   |
| a file that promises a header had rows and is empty now     | `max_deletes` is off              |
| with `--bad-rows abort`: records of a source are in         | they are read again, and good now |
| quarantine                                                  |                                   |

Of a relation with a key, a row that gets other values is not deleted; nor is one that moves from
one source to another.

A batch of a stream is judged by itself, as a share of it if it has at least 1,000 records: one
malformed record among few is no reason to stop. Its files are read once: none can have lost rows.
Change events say row by row what is deleted, and may delete all, but where they are all read again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from corollary.core.arrow import expand_table
from corollary.core.engine import TableHandle, TaskPool
from corollary.core.program import ROW_BOUND_FORMS, Directive, Relation, RowBound
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError
from corollary.warehouse.copies import CopiesHandle, minus, repeat_rows, row_difference
from corollary.warehouse.files.file_rows import table_of
from corollary.warehouse.sources.source import Rows, Source, SourceChange
from corollary.warehouse.sources.tasks.staged_rows import count_deleted

HALF = RowBound(share=0.5)
"""What is accepted where nothing else is said."""
SMALL_MAX_ROWS = 1000
"""A relation with fewer rows is small: a share of so few rows says little."""
_SHOWN_RECORDS_MAX = 3


@dataclass(frozen=True, slots=True)
class SourceGuards:
    """What a run accepts of its sources, where an `.input` does not say otherwise.

    Attributes:
        max_bad: how many records of a source may be malformed.
        max_deletes: how many rows of a relation a source may delete.
    """

    max_bad: RowBound = HALF
    max_deletes: RowBound = HALF

    def check_records(
        self, source: Source, change: SourceChange, good: int, bad: int, *, is_stream: bool = False
    ) -> None:
        """Raise if too many records of a source are malformed, or a file of it has lost all.

        Args:
            source: the source.
            change: what has changed in it.
            good: how many good records it has now, read in this run or before.
            bad: how many malformed ones.
            is_stream: whether they are events, of which a share says little while they are few.

        Raises:
            InputError: `C0944` or `C0946`.
        """
        bound = _bound(source.directive, "max_bad", self.max_bad)
        is_small = is_stream and good + bad < SMALL_MAX_ROWS and bound.share is not None
        if bad and not is_small and bound.is_exceeded(bad, good + bad):
            place = f"`{_place(source.name)}`"
            message = _too_many_bad(bound, place, good, bad, change.bad_rows)
            raise _refusal("C0944", message, source.directive, "max_bad", source.relation.name)
        if change.emptied_files and not self._deletes(source.directive).is_off:
            raise _refusal(
                "C0946",
                f"`{change.emptied_files[0]}` is empty, without the header that it promises, and "
                "had rows before.",
                source.directive,
                "max_deletes",
                source.relation.name,
            )

    def check_batch(
        self,
        batch: "SourceDifference",
        good: int,
        bad: pa.Table,
        size: int,
        *,
        held: TableHandle,
        tasks: TaskPool | None,
    ) -> None:
        """Raise if too many records of a batch are malformed, or if it deletes too much.

        Args:
            batch: what it adds and removes.
            good: how many good records it has.
            bad: the malformed ones.
            size: how many rows the relation has.
            held: these; where equal rows are copies, with their counts.
            tasks: where large relations are looked at.

        Raises:
            InputError: `C0944` or `C0947`.
        """
        name = batch.relation.name
        bound = _bound(batch.directive, "max_bad", self.max_bad)
        total = good + bad.num_rows
        is_small = total < SMALL_MAX_ROWS and bound.share is not None
        if bad.num_rows and not is_small and bound.is_exceeded(bad.num_rows, total):
            message = _too_many_bad(bound, batch.place, good, bad.num_rows, bad)
            is_frame = batch.directive is None
            raise _refusal("C0944", message, batch.directive, "max_bad", name, is_frame=is_frame)
        if self._is_accepted(batch.directive, len(batch.removed), size):
            return
        # A stream may delete what is not there.
        if tasks is not None and (_is_elsewhere(batch.removed) or held.is_distributed):
            deleted = count_deleted(
                batch.relation,
                batch.key,
                tasks,
                removed=batch.removed,
                added=[batch.added],
                present=CopiesHandle(held) if batch.has_copies else held,
                has_copies=batch.has_copies,
            )
        else:
            present = repeat_rows(held.table()) if batch.has_copies else held.table()
            present = expand_table(present, batch.relation)
            removed = expand_table(table_of(batch.removed), batch.relation).cast(present.schema)
            less = _minus_copies if batch.has_copies else minus
            gone = replace(batch, removed=less(removed, less(removed, present)))
            deleted = _count_deleted(gone, [table_of(batch.added)])
        self._refuse_deletes(batch, deleted, size)

    def _is_accepted(self, directive: Directive | None, deleted: int, size: int) -> bool:
        bound = self._deletes(directive)
        is_small = size < SMALL_MAX_ROWS and bound.share is not None
        return is_small or not bound.is_exceeded(deleted, size)

    def check_deletes(
        self,
        changes: "Sequence[SourceDifference]",
        sizes: Mapping[str, int],
        tasks: TaskPool | None = None,
    ) -> None:
        """Raise if a source deletes too much of its relation.

        Args:
            changes: what all sources that were read add and remove.
            sizes: how many rows each relation had.
            tasks: where large changes are looked at.

        Raises:
            InputError: `C0947`.
        """
        for each in changes:
            name = each.relation.name
            if each.is_stream or self._is_accepted(each.directive, len(each.removed), sizes[name]):
                continue
            added = [other.added for other in changes if other.relation.name == name]
            if tasks is not None and any(map(_is_elsewhere, (each.removed, *added))):
                deleted = count_deleted(
                    each.relation,
                    each.key,
                    tasks,
                    removed=each.removed,
                    added=added,
                    has_copies=each.has_copies,
                )
            else:
                deleted = _count_deleted(each, [table_of(rows) for rows in added])
            self._refuse_deletes(each, deleted, sizes[name])

    def _refuse_deletes(self, change: "SourceDifference", deleted: int, size: int) -> None:
        """Raise if a change deletes more rows than it may."""
        name, bound = change.relation.name, self._deletes(change.directive)
        if not bound.is_exceeded(deleted, size):
            return
        what = (
            f"{change.place} would delete"
            if change.directive is not None or change.batch is not None
            else f"The program does not read `{_place(change.source)}` any more, which deletes"
        )
        raise _refusal(
            "C0947",
            f"{what} {deleted:,} of the {size:,} rows of `{name}`, and {_at_most(bound)} may "
            "be deleted at once.",
            change.directive,
            "max_deletes",
            name,
            is_frame=change.batch is not None and change.directive is None,
        )

    def _deletes(self, directive: Directive | None) -> RowBound:
        return _bound(directive, "max_deletes", self.max_deletes)


@dataclass(frozen=True, slots=True)
class SourceDifference:
    """What a source adds to its relation and removes from it.

    Attributes:
        source: its name.
        key: the columns of the key of the relation.
        directive: its `.input`; None if the program no longer has it, or it is a frame.
        has_copies: whether equal rows are copies.
        batch: the number of the batch, if the source is a stream.
        is_stream: whether what is removed was said by events, one by one.
    """

    source: str
    relation: Relation
    added: Rows
    removed: Rows
    key: tuple[str, ...] = ()
    directive: Directive | None = None
    has_copies: bool = False
    batch: int | None = None
    is_stream: bool = False

    @property
    def place(self) -> str:
        """What messages call it."""
        if self.batch is None:
            return f"`{_place(self.source)}`"
        is_frame = self.directive is None
        stream = f"the stream into `{self.relation.name}`" if is_frame else _place(self.source)
        return f"batch {self.batch} of {stream if is_frame else f'`{stream}`'}"


def parse_bound(name: str, value: str | int) -> RowBound:
    """Return the bound that an argument gives.

    Raises:
        InputError: `C0927`, it is none.
    """
    found = None if isinstance(value, bool) else RowBound.parse(str(value))
    if found is None:
        message = f"`{value}` is not a value for `{name}`."
        raise InputError.of("C0927", message, None, f"give {ROW_BOUND_FORMS}")
    return found


def refuse_quarantined(held: pa.Table, source: Source) -> None:
    """Raise if records of a source are in quarantine.

    Raises:
        InputError: `C0948`, with the first of them.
    """
    number = held.num_rows
    if not number:
        return
    ordered = held.sort_by([("file", "ascending"), ("line", "ascending")])
    shown = [
        f"line {row['line']} of `{row['file']}`: {row['reason']}"
        for row in ordered.slice(0, _SHOWN_RECORDS_MAX).to_pylist()
    ]
    what = "malformed record of `{}` is" if number == 1 else "malformed records of `{}` are"
    raise InputError.of(
        "C0948",
        f"{number:,} {what.format(_place(source.name))} in quarantine since an earlier run: "
        f"{'; '.join(shown)}{'; …' if number > len(shown) else ''}.",
        source.directive.span,
        "correct the file, or leave them there with `--bad-rows quarantine`; nothing was changed",
    )


def _count_deleted(change: SourceDifference, added: Sequence[pa.Table]) -> int:
    """Return how many removed rows no source adds again; by key, if there is one."""
    relation, removed = change.relation, table_of(change.removed)
    if not relation.types:
        return removed.num_rows if not any(each.num_rows for each in added) else 0
    now = pa.concat_tables([expand_table(each, relation) for each in added])
    then = expand_table(removed, relation).cast(now.schema)
    if change.has_copies:
        return int(_minus_copies(then, now).num_rows)
    columns = list(change.key or relation.columns)
    return int(minus(then.select(columns), now.select(columns)).num_rows)


def _is_elsewhere(rows: Rows) -> bool:
    """Return whether rows are outside of this process."""
    return not isinstance(rows, pa.Table) and rows.is_distributed


def _minus_copies(left: pa.Table, right: pa.Table) -> pa.Table:
    """Return the rows of the left table without those of the right one, one for one."""
    return row_difference(right, left)[0]


def _bound(directive: Directive | None, parameter: str, default: RowBound) -> RowBound:
    text = "" if directive is None else directive.parameter(parameter)
    return (RowBound.parse(text) if text else None) or default


def _place(source: str) -> str:
    """Return the place in the name of a source."""
    return source.partition(" < ")[2]


def _at_most(bound: RowBound) -> str:
    return f"at most {bound}" if bound.share or bound.count else "none"


def _too_many_bad(bound: RowBound, place: str, good: int, bad: int, records: pa.Table) -> str:
    return (
        f"{bad:,} of the {good + bad:,} records of {place} are malformed, and {_at_most(bound)} "
        f"may be{_first_reason(records)}"
    )


def _first_reason(records: pa.Table) -> str:
    if not records.num_rows:
        return "."
    (first,) = records.slice(0, 1).to_pylist()
    return (
        f"; the first is line {first['line']} of `{first['file']}`: {first['reason'].rstrip('.')}."
    )


def _refusal(
    code: str,
    message: str,
    directive: Directive | None,
    parameter: str,
    relation: str,
    *,
    is_frame: bool = False,
) -> InputError:
    if is_frame:
        cure = f'correct the frame, or allow it with `db.stream(…, {parameter}="off")`'
        return InputError([Diagnostic(code, message, None, f"{cure}; nothing was changed")])
    ways = [f'`.input {relation}({parameter}="off")`'] if directive is not None else []
    if directive is None or not directive.parameter(parameter):
        ways.insert(0, f"`--{parameter.replace('_', '-')} off`")
    span = None if directive is None else directive.span
    cure = f"correct the source, or allow it with {' or '.join(ways)}; nothing was changed"
    return InputError([Diagnostic(code, message, span, cure)])
