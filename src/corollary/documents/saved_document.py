"""What is kept of a document between two batches of its streams; the rows, and the events."""

import json
from dataclasses import field
from typing import Any, NamedTuple

from corollary.data_class import dataclass
from corollary.errors import InputError

MAX_SEQ_RANGES = 1000
"""Ranges of the numbers of a function's rows that are remembered; the lowest are merged."""


class StreamRow(NamedTuple):
    """A row of a stream: what a function brings, or (without a name) the document itself.

    Its number `seq` is at least 0; a negative one stands for a row without a number. A row without
    a name and without data says that it is a later time.

    Of several documents that are one collection, `function` is `orders:web`, and a row for
    `orders:` brings the document `orders`.
    """

    function: str
    seq: int
    data: str | None
    is_end: bool
    op: str | None = None
    old: str | None = None
    at: str | None = None

    @property
    def is_document(self) -> bool:
        """Whether it brings a document, and not what a function of one brings."""
        return self.data is not None and (not self.function or self.function.endswith(":"))

    @property
    def is_mere_time(self) -> bool:
        """Whether it only says what time it is."""
        return self.data is None and (not self.function or self.function.endswith(":"))

    @property
    def operation(self) -> str:
        """What is done; if the row does not say it, what its data says."""
        inferred = "add" if self.old is None else "retract" if self.data is None else "replace"
        return self.op or inferred

    def taken_and_brought(self) -> tuple[str | None, str | None]:
        """Return what it retracts, and what it brings.

        Raises:
            InputError: it has no such operation, or not what that needs.
        """
        match self.operation:
            case "add" if self.old is None:
                return None, self.data
            case "retract" if (self.old is None) != (self.data is None):
                return self.data if self.old is None else self.old, None
            case "replace" if self.old is not None and self.data is not None:
                return self.old, self.data
        message = f"The row is not an operation: op `{self.op}` with these trees. "
        message += "There are add (xml), retract (xml or old) and replace (old, xml)."
        raise InputError.of("C1254", message)


class DocumentEvent(NamedTuple):
    """A change of a document's answers, or a row that is refused: see the table above."""

    op: str
    view: str = ""
    text: str = ""
    value: float = 0.0
    before: float = 0.0
    seq: int = 0
    since: str = ""


@dataclass(slots=True)
class SavedDocument:
    """The state of a document between two batches.

    Attributes:
        stamp: identifies this state; a document that is open is used if it has the same one.
        document: in term syntax; None before it has come.
        names: of several documents that are one collection.
        states: of functions that are not live.
        seen: for each function the numbers of rows that have come, as ranges.
        waiting: rows for functions that are not called yet.
        values: the truth of each view as it was last reported.
        waits: the functions that each view waits for, as they were last reported, since when.
        needed: how many nodes the last collection of garbage has left.
        origins: positions of trees in the document, and of the calls that they were brought beside.
        start, time: when the document came, and what time it is in it.
        arrivals: positions of nodes that came later, by the time at which they came.
    """

    stamp: str = ""
    document: str | None = None
    names: list[str] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    seen: dict[str, list[list[int]]] = field(default_factory=dict)
    waiting: list[list[Any]] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)
    waits: dict[str, dict[str, str]] = field(default_factory=dict)
    needed: int = 0
    origins: list[list[int]] = field(default_factory=list)
    start: str = "0"
    time: str = "0"
    arrivals: dict[str, list[int]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_json(cls, text: str | None) -> "SavedDocument":
        """Return the state of a JSON text; the initial one if there is none."""
        return cls() if text is None else cls(**json.loads(text))


def note_seen(ranges: list[list[int]], seq: int) -> bool:
    """Note the number of a row; return whether it is new.

    >>> ranges = [[1, 3]]
    >>> note_seen(ranges, 5), note_seen(ranges, 4), note_seen(ranges, 2), ranges
    (True, True, False, [[1, 5]])
    """
    if any(low <= seq <= high for low, high in ranges):
        return False
    ranges.append([seq, seq])
    ranges.sort()
    merged = [ranges[0]]
    for low, high in ranges[1:]:
        if low <= merged[-1][1] + 1:
            merged[-1][1] = high
        else:
            merged.append([low, high])
    if len(merged) > MAX_SEQ_RANGES:  # rows in the lowest gap count as seen from now on
        merged[:2] = [[merged[0][0], merged[1][1]]]
    ranges[:] = merged
    return True
