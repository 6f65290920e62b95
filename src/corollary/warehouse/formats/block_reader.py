"""Reads a block of records: by vectors where they are regular, the others one by one.

| records                                              | are found by                          |
|------------------------------------------------------|---------------------------------------|
| with NUL, a lone carriage return, bytes that are not | the offsets of these bytes            |
| UTF-8, irregular quotes, a line that is too long     |                                       |
| with another number of fields than the others        | counting delimiters outside of quotes |
| with a text that is not plain (`text_columns`)       | patterns, column by column            |

These go to the exact reader, which makes a row or findings of each; rows stay in order.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.arrow import from_python, nullary_table, schema_of
from corollary.core.arrow_buffers import bool_array, index_array
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.errors import Diagnostic
from corollary.warehouse.files.input_files import BYTE_ORDER_MARK
from corollary.warehouse.formats import exact_reader, vectorized_reader
from corollary.warehouse.formats.dialect import Dialect
from corollary.warehouse.formats.record_blocks import RecordBlock
from corollary.warehouse.formats.text_columns import Mask, are_plain, convert_texts
from corollary.warehouse.formats.vectorized_reader import SUBSTITUTE

Malformed = list[list[Diagnostic]]
"""The findings about each malformed record."""


def read_block(
    block: RecordBlock,
    name: str,
    relation: Relation,
    dialect: Dialect,
    max_malformed: int | None = None,
) -> tuple[pa.Table, Malformed]:
    """Return the good rows of a block, and the findings about each malformed record.

    Args:
        block: the records, without header.
        name: the name of the file in messages.
        relation: the relation of the rows.
        dialect: the syntax of the file.
        max_malformed: the number of malformed records after which reading stops.
    """
    if block.has_regular_quotes:
        data, plain = vectorized_reader.outside_brackets(block.data, dialect)
        table = vectorized_reader.read(data, relation, plain)
        if table is not None:
            return table, []
    return _IrregularBlock(block, name, relation, dialect, max_malformed).read()


@dataclass(frozen=True, slots=True)
class _IrregularBlock:
    """A block in which at least one record is irregular."""

    block: RecordBlock
    name: str
    relation: Relation
    dialect: Dialect
    max_malformed: int | None

    def read(self) -> tuple[pa.Table, Malformed]:
        """Return the rows and the findings."""
        if self.dialect.brackets:
            rows, _, malformed = self.read_exactly([(self.block.first_line, self.block.data)])
            return rows, malformed
        if not self.relation.types:
            rows, _, malformed = self.read_exactly([(self.block.first_line, self.block.data)])
            return nullary_table(min(1, rows.num_rows)), malformed
        records = _Records(self.block, self.dialect)
        is_odd = records.odd_ones()
        regular = self.read_regular(records, is_odd)
        if regular is None:
            rows, _, malformed = self.read_exactly([(self.block.first_line, self.block.data)])
            return rows, malformed
        exact, good, malformed = self.read_exactly(records.pieces(is_odd))
        if not exact.num_rows:
            return regular, malformed
        # Sorted by the number of the record: later rows of a stream replace earlier ones.
        numbers = np.concatenate([np.flatnonzero(~is_odd), np.flatnonzero(is_odd)[good]])
        together = pa.concat_tables([regular, exact]).combine_chunks()
        return together.take(index_array(np.argsort(numbers, kind="stable"))), malformed

    def read_regular(self, records: "_Records", is_odd: Mask) -> pa.Table | None:
        """Return the rows of the records that are not odd, and note which others are odd, too."""
        texts = vectorized_reader.read_texts(
            records.text_without(is_odd), self.relation, self.dialect
        )
        regular = np.flatnonzero(~is_odd)
        if texts is None or len(texts[0]) != len(regular):
            return None
        typed = list(zip(texts, self.relation.types, strict=True))
        columns = [convert_texts(*each) for each in typed]
        is_good = np.ones(len(regular), np.bool_)
        for (text, type_), column in zip(typed, columns, strict=True):
            if column is None:
                is_good &= are_plain(text, type_)
        selected = bool_array(is_good)
        columns = [
            convert_texts(text.filter(selected), type_)
            if column is None
            else column.filter(selected)
            for (text, type_), column in zip(typed, columns, strict=True)
        ]
        if any(column is None for column in columns):
            return None
        is_odd[regular[~is_good]] = True
        return pa.Table.from_arrays(columns, schema=schema_of(self.relation))

    def read_exactly(
        self, pieces: "list[tuple[int, bytes]] | Iterator[tuple[int, bytes]]"
    ) -> tuple[pa.Table, list[int], Malformed]:
        """Return the rows of records, which of the records they are, and the findings."""
        rows, good = [], []
        malformed: Malformed = []
        read = exact_reader.read(pieces, self.name, self.relation, self.dialect)
        for number, row in enumerate(read):
            if isinstance(row, tuple):
                rows.append(row)
                good.append(number)
                continue
            malformed.append(row)
            if self.max_malformed is not None and len(malformed) >= self.max_malformed:
                break
        return from_python(rows, self.relation), good, malformed


class _Records:
    """The records of a block, and which of them Arrow would not read as we do."""

    def __init__(self, block: RecordBlock, dialect: Dialect) -> None:
        self._block = block
        self._dialect = dialect
        index = block.records(dialect)
        ends = index.ends
        if index.end < len(block.data):  # a quote that is never closed
            ends = np.append(ends, len(block.data))
        self._ends = ends
        self._starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        self._irregular = index.irregular
        self._has_open_quote = index.end < len(block.data)
        self._quotes = index.quotes
        self._content = np.frombuffer(block.data, np.uint8)

    def odd_ones(self) -> Mask:
        """Return which records have to be read one by one, whatever their values are."""
        data, content = self._block.data, self._content
        is_odd = np.zeros(len(self._ends), np.bool_)
        is_odd[self._irregular] = True
        if self._has_open_quote:
            is_odd[-1] = True
        for odd in (b"\0", SUBSTITUTE.encode() if len(self._delimiter) > 1 else b""):
            if odd and odd in data:
                is_odd[self._records_at(np.flatnonzero(content == odd[0]))] = True
        if b"\r" in data:
            returns = np.flatnonzero(content == ord("\r"))
            is_odd[self._records_at(returns[content[returns + 1] != ord("\n")])] = True
        if not data.isascii() and not _is_utf8(data):
            is_odd[self._records_at(np.flatnonzero(content >= 128))] = True
        if BYTE_ORDER_MARK in data:
            # Arrow would leave it out at the start of what it reads, whichever record that is.
            is_odd[[data.startswith(BYTE_ORDER_MARK, at) for at in self._starts.tolist()]] = True
        longest = self._dialect.line_max_bytes
        if longest is not None and len(data) > longest:
            breaks = np.flatnonzero(content == ord("\n"))
            lengths = np.diff(breaks, prepend=-1) - 1
            is_odd[self._records_at(breaks[lengths > longest])] = True
        delimiters = self._delimiters(is_odd)
        expected = max(self._dialect.positions)
        if self._dialect.has_other_columns and not is_odd.all():
            # Arrow reads records of one width only: that of most.
            expected = max(expected, int(np.bincount(delimiters[~is_odd]).argmax()))
        is_odd[delimiters != expected] = True
        return is_odd

    def pieces(self, selected: Mask) -> Iterator[tuple[int, bytes]]:
        """Yield the text of some records, each with the number of its first line."""
        breaks = np.flatnonzero(self._content == ord("\n"))
        starts, ends = self._starts[selected], self._ends[selected]
        lines = np.searchsorted(breaks, starts) + self._block.first_line
        for line, start, end in zip(lines.tolist(), starts.tolist(), ends.tolist(), strict=True):
            yield line, self._block.data[start:end]

    def text_without(self, is_left_out: Mask) -> bytes:
        """Return the text of the other records."""
        data, here = self._block.data, 0
        if not is_left_out.any():
            return data
        kept = []
        starts, ends = self._starts[is_left_out], self._ends[is_left_out]
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            kept.append(data[here:start])
            here = end
        kept.append(data[here:])
        return b"".join(kept)

    @property
    def _delimiter(self) -> bytes:
        return self._dialect.delimiter.encode()

    def _records_at(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the numbers of the records that contain some offsets."""
        return np.searchsorted(self._ends, offsets, side="right")

    def _delimiters(self, is_odd: Mask) -> npt.NDArray[np.int64]:
        """Return how many delimiters each record has outside of quotes; any number for odd ones."""
        content, ends, delimiter = self._content, self._ends, self._delimiter
        if len(delimiter) > 1:
            if len(self._quotes):
                is_odd[:] = True
                return np.zeros(len(ends), np.int64)
            text = self._block.data.replace(delimiter, SUBSTITUTE.encode())
            content, delimiter = np.frombuffer(text, np.uint8), SUBSTITUTE.encode()
            ends = np.flatnonzero(content == ord("\n")) + 1
        found = np.flatnonzero(content == delimiter[0])
        if len(self._quotes):
            # A delimiter is outside if an even number of quotes precedes it in its record.
            before = np.searchsorted(self._quotes, self._starts)
            inside = np.searchsorted(self._quotes, found) - before[self._records_at(found)]
            found = found[inside % 2 == 0]
        return np.bincount(np.searchsorted(ends, found, side="right"), minlength=len(ends))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
