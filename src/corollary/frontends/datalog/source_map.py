"""The map from offsets of the preprocessed text to spans of the user's files."""

from bisect import bisect_right
from dataclasses import field

from corollary.data_class import dataclass
from corollary.source import SourceFile, Span


@dataclass(frozen=True, slots=True)
class Segment:
    """A range of the expanded text and the range of a file that it comes from.

    Attributes:
        start: its first offset in the expanded text.
        file: the file.
        source_start: the first offset in the file.
        source_end: the offset in the file after the last.
        is_verbatim: whether the characters correspond one to one; if not, every character comes
            from the whole range of the file (a macro's expansion from its invocation).
    """

    start: int
    file: SourceFile
    source_start: int
    source_end: int
    is_verbatim: bool


@dataclass(frozen=True, slots=True)
class ExpandedText:
    """The text after preprocessing, with the map to the user's files."""

    text: str
    segments: tuple[Segment, ...]
    _starts: list[int] = field(default_factory=list)
    _lines: dict[int, list[int]] = field(default_factory=dict)

    def span(self, start: int, end: int) -> Span:
        """Return the span in the user's files of a range of the expanded text."""
        if not self._starts:
            self._starts.extend(piece.start for piece in self.segments)
        first = self._piece(start)
        source_end = first.source_end - first.source_start + first.start
        if first.is_verbatim and end <= source_end and "\n" not in self.text[start:end]:
            line, column = self._place(first.file, first.source_start + start - first.start)
            return Span(first.file, line, column, line, column + max(0, end - start))
        last = self._piece(max(start, end - 1))
        if last.file is not first.file:  # a span is in one file
            last, end = first, start + 1
        begin = first.source_start + (start - first.start if first.is_verbatim else 0)
        finish = last.source_start + (end - last.start) if last.is_verbatim else last.source_end
        line, column = self._place(first.file, begin)
        end_line, end_column = self._place(first.file, max(begin, finish))
        return Span(first.file, line, column, end_line, end_column)

    def _piece(self, offset: int) -> Segment:
        return self.segments[max(0, bisect_right(self._starts, offset) - 1)]

    def _place(self, file: SourceFile, offset: int) -> tuple[int, int]:
        lines = self._lines.get(id(file))
        if lines is None:
            lines = self._lines[id(file)] = line_starts(file.text)
        index = bisect_right(lines, offset) - 1
        return index + 1, offset - lines[index] + 1


def line_starts(text: str) -> list[int]:
    r"""Return the offset at which each line begins.

    >>> line_starts("a\nbc\n")
    [0, 2, 5]
    """
    starts = [0]
    position = text.find("\n")
    while position >= 0:
        starts.append(position + 1)
        position = text.find("\n", position + 1)
    return starts


def identity_map(file: SourceFile) -> ExpandedText:
    """Return the identity map of a file."""
    return ExpandedText(file.text, (Segment(0, file, 0, len(file.text), True),))
