"""What a server answers: JSON, or an Arrow table; an event; an error with its HTTP status."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from corollary.data_class import dataclass
from corollary.errors import Diagnostic

if TYPE_CHECKING:
    import pyarrow as pa

JSON_TYPE = "application/json"


def encode_json(value: Any) -> bytes:
    """Return a JSON document."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ")).encode(
        "utf-8", "surrogatepass"
    )


@dataclass(frozen=True)
class Answer:
    """The answer to a request.

    Attributes:
        commit: the commit that it has seen.
        body: the document, encoded; empty if there is a table.
        table: rows, if they were asked for as Arrow.
        types: the type of each column of the table, as programs write them.
        media_type: of the body.
    """

    commit: int
    body: bytes = b""
    table: "pa.Table | None" = None
    types: tuple[str, ...] = ()
    media_type: str = JSON_TYPE

    @classmethod
    def of(cls, commit: int, document: Mapping[str, Any]) -> "Answer":
        """Return an answer of JSON."""
        return cls(commit, encode_json(document))

    @cached_property
    def json(self) -> Any:
        """The document, decoded."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The body as a text."""
        return self.body.decode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Event:
    r"""An event of a subscription, as server-sent events have it; many subscribers get the same.

    Attributes:
        event: `change`, `alert`, `reset` or `bye`; empty if only the commit is told.
        data: a JSON object, encoded.
        id: the commit, on the last event of a commit.

    >>> Event("change", '{"commit": 42}', 42).lines
    b'id: 42\nevent: change\ndata: {"commit": 42}\n\n'
    """

    event: str
    data: str
    id: int | None = None

    @classmethod
    def of(cls, event: str, data: Mapping[str, Any], number: int | None = None) -> "Event":
        """Return an event whose data is encoded."""
        return cls(event, json.dumps(data, ensure_ascii=False), number)

    @cached_property
    def json(self) -> Any:
        """The data, decoded."""
        return json.loads(self.data)

    def rows(self, sign: str, bound: Sequence[tuple[int, Any]]) -> list[list[Any]]:
        """Return the rows of a change that have given values in some of their columns.

        Args:
            sign: `added` or `removed`.
            bound: positions of columns, and their values.
        """
        rows: list[list[Any]] = self.json[sign]
        if not bound:
            return rows
        (position, value), *others = bound
        index = self._indexes.get((sign, position))
        if index is None:
            index = self._indexes[sign, position] = defaultdict(list)
            for row in rows:
                index[row[position]].append(row)
        found = index.get(value, [])
        return [row for row in found if all(row[at] == other for at, other in others)]

    @cached_property
    def _indexes(self) -> dict[tuple[str, int], dict[Any, list[list[Any]]]]:
        """Rows by sign, position of a column, and its value, as far as they were asked for."""
        return {}

    @cached_property
    def lines(self) -> bytes:
        """The text that is sent; one without a name tells the commit only."""
        lines = [] if self.id is None else [f"id: {self.id}"]
        if self.event:
            lines += [f"event: {self.event}", f"data: {self.data}"]
        # JSON has no line breaks outside of texts, where they are escaped.
        return ("\n".join(lines) + "\n\n").encode("utf-8", "surrogatepass")


@dataclass(eq=False)
class ServiceError(Exception):
    """A request that has no answer.

    Attributes:
        status: the status of HTTP.
        message: what went wrong, with all diagnostics, as a command prints it.
        diagnostics: what is wrong, in detail, as JSON objects.
        exit_code: the exit status of a command that meets this error.
        retry_after: the seconds after which it may be tried again, if that helps.
        details: other keys of the JSON document, such as `why`.
        limit: the limit that it has met, if any: `seconds`, `memory` …
    """

    status: int
    message: str
    diagnostics: tuple[Mapping[str, Any], ...] = ()
    exit_code: int = 1
    retry_after: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    limit: str | None = None

    def __post_init__(self) -> None:
        super().__init__(self.message)

    def has_code(self, code: str) -> bool:
        """Return whether a finding has a code."""
        return any(each.get("code") == code for each in self.diagnostics)

    @classmethod
    def of(
        cls,
        status: int,
        code: str,
        message: str,
        note: str | None = None,
        *,
        exit_code: int = 1,
        retry_after: int | None = None,
    ) -> "ServiceError":
        """Return an error with a single finding."""
        return cls.with_findings(
            status, [Diagnostic(code, message, None, note)], exit_code, retry_after
        )

    @classmethod
    def with_findings(
        cls,
        status: int,
        diagnostics: Iterable[Diagnostic],
        exit_code: int = 1,
        retry_after: int | None = None,
    ) -> "ServiceError":
        """Return an error with some findings."""
        found = tuple(diagnostics)
        text = "\n".join(map(str, found))
        return cls(status, text, tuple(each.as_json() for each in found), exit_code, retry_after)

    def as_json(self) -> dict[str, Any]:
        """Return the document of the error."""
        return {
            "error": self.message,
            "diagnostics": list(self.diagnostics),
            "status": self.exit_code,
            **self.details,
        }
