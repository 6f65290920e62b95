r"""Entries of the shell: SQL up to `;`, Datalog up to `.`; `\d` and `.decl` on one line."""

import re
from collections.abc import Iterator
from enum import StrEnum

from corollary.core.syntax import PRECEDENCE
from corollary.data_class import dataclass

SQL_WORDS = (
    *("select", "with", "values", "from", "create", "drop", "insert", "delete", "update"),
    *("begin", "start", "commit", "rollback", "alter", "merge", "truncate", "show", "describe"),
    *("use", "set", "grant", "revoke", "refresh", "desc", "explain"),
)
"""What a statement in SQL can begin with, also if it is not supported."""

_FIRST_WORD = re.compile(r"\s*\(*\s*([A-Za-z_]\w*)(\(?)", re.ASCII)
_TWO_WORDS = re.compile(
    rf"\s*[A-Za-z_]\w*\s+(?!(?:is|{'|'.join(filter(str.isalpha, PRECEDENCE))})\b)[\w'*`]", re.ASCII
)
_SQL_TEXT = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL
)
_SQL_OPEN = re.compile(r"['\"`]|/\*")
_DATALOG_TEXT = re.compile(
    r'[dt]?"(?:[^"\\\n]|\\.)*"|`(?:[^`\\\n]|\\.)*`|//[^\n]*|/\*.*?\*/', re.DOTALL
)
_DATALOG_OPEN = re.compile(r'["`]|/\*')
_DATALOG_END = re.compile(r"[.?](?=\s|$)")


class EntryKind(StrEnum):
    """What an entry is written in."""

    SQL = "sql"
    DATALOG = "datalog"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry, without the `;` of SQL."""

    kind: EntryKind
    text: str


def kind_of(text: str) -> EntryKind:
    r"""Return what a text is written in, by how it begins.

    >>> str(kind_of("SELECT 1")), str(kind_of("select(x)")), str(kind_of(r"\d"))
    ('sql', 'datalog', 'command')
    """
    if text.lstrip().startswith("\\"):
        return EntryKind.COMMAND
    stripped = re.sub(r"^(?:\s*--[^\n]*\n)+", "", text)
    found = _FIRST_WORD.match(stripped)
    is_call = found is not None and found[2] == "(" and found[1].lower() != "values"
    if found is not None and found[1].lower() in SQL_WORDS and not is_call:
        return EntryKind.SQL
    # In Datalog, no word follows a word but `is` and operators: this is SQL, perhaps misspelled.
    return EntryKind.SQL if _TWO_WORDS.match(stripped) else EntryKind.DATALOG


class EntryBuffer:
    """Lines that do not make a whole entry yet."""

    def __init__(self) -> None:
        self._text = ""

    @property
    def is_empty(self) -> bool:
        """Whether an entry begins with the next line."""
        return not self._text.strip()

    def clear(self) -> None:
        """Forget the lines."""
        self._text = ""

    def feed(self, line: str) -> Iterator[Entry]:
        """Add a line; yield the entries that are complete."""
        self._text += line if line.endswith("\n") else f"{line}\n"
        while True:
            text = self._text.lstrip()
            if not text or (kind_of(text) is EntryKind.SQL and _is_comment(text)):
                return
            kind = kind_of(text)
            is_line = kind is EntryKind.COMMAND or text.startswith(".")
            end = text.find("\n") if is_line else _end(text, kind)
            if end < 0:
                return
            self._text = text[end + 1 :]
            yield _entry(kind, text[: end + 1])

    def finish(self) -> Iterator[Entry]:
        """Yield what is left at the end of the input, as if it were complete."""
        text, self._text = self._text.strip(), ""
        if text:
            yield _entry(kind_of(text), text)


def _entry(kind: EntryKind, text: str) -> Entry:
    text = text.strip()
    return Entry(kind, text.removesuffix(";").strip() if kind is EntryKind.SQL else text)


def _is_comment(text: str) -> bool:
    return not _SQL_TEXT.sub("", text).strip() and text.startswith("--")


def _end(text: str, kind: EntryKind) -> int:
    """Return where the first entry of a text ends; -1 if it does not."""
    is_sql = kind is EntryKind.SQL
    texts = _SQL_TEXT if is_sql else _DATALOG_TEXT
    # Strings and comments become letters of the same number, so that places stay.
    masked = texts.sub(lambda found: "x" * len(found[0]), text)
    opened = (_SQL_OPEN if is_sql else _DATALOG_OPEN).search(masked)
    until = len(masked) if opened is None else opened.start()
    if is_sql:
        return masked.find(";", 0, until)
    found = _DATALOG_END.search(masked, 0, until)
    return -1 if found is None else found.start()
