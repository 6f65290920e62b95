"""Files of events, JSON lines, to which lines are added, in a folder to which files are added.

Each line is read once: files in the order of their last change, then by name; of each the lines
that it has got. A last line that is not whole yet is left until it is. Compressed files are read as
a whole, when they are new.
"""

import gzip
import json
from typing import NamedTuple

import pyarrow as pa

from corollary.errors import InputError
from corollary.warehouse.files.input_files import open_file
from corollary.warehouse.files.places import place_of
from corollary.warehouse.formats.dialect import GZIP_SUFFIX
from corollary.warehouse.sources.events.messages import NO_MESSAGES, Delivery, message_table
from corollary.warehouse.sources.file_listing import ListedFile, SourceLocation, list_files
from corollary.warehouse.sources.source import Position

BLOCK_BYTES = 1 << 26
"""So much of a file is read at once."""


class _Read(NamedTuple):
    """How far a file was read, in a position a JSON array.

    Attributes:
        size: that of the file when there was nothing more to read in it.
    """

    bytes: int = 0
    lines: int = 0
    size: int = -1


class EventFiles:
    """Brings the lines of files.

    Args:
        location: the file, folder or pattern.
    """

    def __init__(self, location: SourceLocation) -> None:
        self._location = location

    def has_more(self, before: Position | None) -> bool:
        """Return whether a file was added or has got longer."""
        known = before or {}
        files = list_files(self._location)
        return any(_size(each) != _Read(*known.get(each.name, ())).size for each in files)

    def read(self, before: Position | None, most: int) -> Delivery:
        """Return the lines that were not read yet; the lag counts files that have more.

        Raises:
            InputError: `C1735`, a file has become shorter.
        """
        position, lag = dict(before or {}), 0
        found = [NO_MESSAGES]
        files = sorted(
            list_files(self._location), key=lambda each: (each.fingerprint[1], each.name)
        )
        for file in files:
            read = _Read(*position.get(file.name, ()))
            if _size(file) < read.bytes:
                raise InputError.of(
                    "C1735",
                    f"`{self._location.shown(file.name)}` has {_size(file):,} bytes, and "
                    f"{read.bytes:,} of it were read: it was overwritten.",
                    self._location.span,
                    "add events to its end, or write them to a new file; nothing was changed",
                )
            while most and read.size != _size(file):
                read, messages = self._read_block(file, read, most)
                found.append(messages)
                most -= messages.num_rows
            position[file.name] = list(read)
            lag += read.size != _size(file)
        return Delivery(pa.concat_tables(found), position, lag)

    def _read_block(self, file: ListedFile, read: _Read, most: int) -> tuple[_Read, pa.Table]:
        """Return how far a file is read after its next lines, and these."""
        size, shown = _size(file), self._location.shown(file.name)
        with open_file(place_of(file.path), shown, self._location.span) as opened:
            if file.name.endswith(GZIP_SUFFIX):
                lines = gzip.decompress(opened.read()).splitlines()[read.lines :]
                is_end = len(lines) <= most
                lines = lines[:most]
                after, open_lines = size if is_end else 0, 0
            else:
                opened.seek(read.bytes)
                data = opened.read(min(BLOCK_BYTES, size - read.bytes))
                while b"\n" not in data and read.bytes + len(data) < size:
                    data += opened.read(min(BLOCK_BYTES, size - read.bytes - len(data)))
                is_end = read.bytes + len(data) >= size
                end = data.rfind(b"\n") + 1
                if is_end and _is_whole(data[end:]):
                    end = len(data)
                lines = data[:end].removesuffix(b"\n").split(b"\n") if end else []
                if len(lines) > most:
                    lines, is_end = lines[:most], False
                    end = sum(map(len, lines)) + most
                open_lines = int(0 < end <= len(data) and data[end - 1 : end] != b"\n")
                after = read.bytes + end
        first = read.lines + 1
        numbered = [each for each in enumerate(lines, first) if each[1].strip()]
        values = [line for _, line in numbered]
        messages = message_table(
            [None] * len(values), values, file.name, [at for at, _ in numbered]
        )
        count = read.lines + len(lines) - open_lines  # its end may come yet
        return _Read(after, count, size if is_end else -1), messages


def _size(file: ListedFile) -> int:
    return file.fingerprint[0]


def _is_whole(line: bytes) -> bool:
    """Return whether a last line without an end is one that its writer has finished."""
    if not line.rstrip().endswith(b"}"):
        return False
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
