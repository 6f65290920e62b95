"""Files of updates and of views.

A file of updates has JSON lines with what functions bring, in order, as `watch` reads them:

| key   | means                                                           |
|-------|-----------------------------------------------------------------|
| `fn`  | the function; without one, only time passes                     |
| `xml` | what it brings: XML, JSON or a term; nothing if it is left out  |
| `old` | what it retracts before that                                   |
| `op`  | `add`, `retract` or `replace`, if that is not plain from `xml` and `old` |
| `eos` | whether it brings nothing more after that                       |
| `at`  | when that came, a number or a time; the number of the line if it is left out |
| `doc` | the document; rows for several are for a collection of them     |
| `seq` | the number of the row in its stream; not needed here            |

A file of views has a query in each line, perhaps with a name before it.
"""

import json
import re
from pathlib import Path
from typing import Any

from corollary.data_class import dataclass
from corollary.documents.errors import ActiveDocumentError
from corollary.documents.queries.parse import parse_query
from corollary.documents.saved_document import StreamRow
from corollary.errors import Diagnostic, InputError
from corollary.source import SourceFile, Span

_KEYS = {
    "fn": str,
    "xml": str,
    "old": str,
    "op": str,
    "eos": bool,
    "at": (str, int, float),
    "doc": str,
    "seq": int,
}


@dataclass(frozen=True, slots=True)
class FileUpdate:
    """A line of a file of updates; one without a function only says what time it is."""

    function: str
    data: str | None
    old: str | None
    is_end: bool
    at: str


def read_updates(path: Path, *, is_joint: bool = False) -> list[FileUpdate]:
    """Return the updates of a file.

    Args:
        path: of the file.
        is_joint: whether rows are for several documents; functions are named `doc:fn` then.

    Raises:
        ActiveDocumentError: a line is malformed, or there are rows for several documents.
    """
    try:
        source = SourceFile(path.name, path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ActiveDocumentError.of("C1229", f"`{path}` cannot be read: {error}.") from None
    found: list[FileUpdate] = []
    documents: dict[str, int] = {}
    for number, line in enumerate(source.text.splitlines(), 1):
        if not line.strip():
            continue
        row = _row(line, source, number)
        documents.setdefault(row.get("doc") or "", number)
        if len(documents) > 1 and not is_joint:
            note = "keep the rows of one document, or follow all of them with `documents watch`"
            raise _error(source, number, "The rows are for several documents.", note)
        at, name = row.get("at"), row.get("fn") or ""
        given = StreamRow(name, 0, row.get("xml"), False, row.get("op"), row.get("old"))
        try:
            taken, brought = given.taken_and_brought()
        except InputError as error:
            note = "there are add (xml), retract (xml or old) and replace (old, xml)"
            raise _error(source, number, error.diagnostics[0].message, note) from None
        found.append(
            FileUpdate(
                f"{row['doc']}:{name}" if is_joint and name and row.get("doc") else name,
                brought,
                taken,
                bool(row.get("eos")),
                str(number if at is None else at),
            )
        )
    return found


def _row(line: str, source: SourceFile, number: int) -> dict[str, Any]:
    note = 'write {"fn": "f", "xml": "<a/>", "eos": false}'
    try:
        row = json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        raise _error(source, number, "The line is not JSON.", note) from None
    is_time = isinstance(row, dict) and row.keys() <= {"at", "doc", "seq"} and "at" in row
    if not isinstance(row, dict) or not (row.get("fn") or is_time):
        raise _error(source, number, "The line names no function.", note)
    for key, value in row.items():
        if key not in _KEYS:
            known = ", ".join(f"`{each}`" for each in _KEYS)
            raise _error(
                source, number, f"`{key}` is not a key of an update.", f"there are {known}"
            )
        if value is not None and not isinstance(value, _KEYS[key]):  # type: ignore[arg-type]
            raise _error(source, number, f"The value of `{key}` is of another type.", note)
    return row


def _error(source: SourceFile, number: int, message: str, note: str) -> InputError:
    width = len(source.text.splitlines()[number - 1])
    return ActiveDocumentError.of(
        "C1254", message, Span(source, number, 1, number, 1 + width), note
    )


# --- views ---------------------------------------------------------------------------------------


_NAMED = re.compile(r"\s*(?P<name>[^\W\d]\w*)\s*:(?!:)\s*(?P<query>(/|doc\(|collection\().*)")


def read_views(path: Path) -> dict[str, str]:
    """Return the queries of a file by name; one without a name is `view1`, `view2`, … by its line.

    Raises:
        InputError: with all errors of its queries.
    """
    found: dict[str, str] = {}
    findings: list[Diagnostic] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        named = _NAMED.fullmatch(text)
        name, query = (named["name"], named["query"]) if named else (f"view{number}", text)
        try:
            parse_query(query, f"{path.name}:{number}")
        except InputError as error:
            findings += error.diagnostics
        if name in found:
            findings.append(Diagnostic("C1252", f"`{path}` names two views `{name}`."))
        found[name] = query
    if findings:
        raise InputError(findings)
    if not found:
        message = f"`{path}` has no views."
        raise InputError.of("C1252", message, None, "write a query into each line")
    return found
