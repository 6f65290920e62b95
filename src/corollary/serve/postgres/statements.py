"""The statements of a text, told apart by their first words; queries and writes stay texts."""

import re
from collections.abc import Iterator
from dataclasses import field

from corollary.data_class import dataclass
from corollary.serve.postgres.problems import PgError, not_supported


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """SELECT, WITH, VALUES or TABLE."""

    text: str


@dataclass(frozen=True, slots=True)
class WriteStatement:
    """INSERT, DELETE or UPDATE."""

    text: str


@dataclass(frozen=True, slots=True)
class BeginStatement:
    """BEGIN or START TRANSACTION, with its modes in capital letters."""

    modes: str


class CommitStatement:
    """COMMIT or END."""


class RollbackStatement:
    """ROLLBACK or ABORT."""


@dataclass(frozen=True, slots=True)
class SavepointStatement:
    """SAVEPOINT, RELEASE or ROLLBACK TO a savepoint; `action` is its command tag."""

    action: str
    name: str


@dataclass(frozen=True, slots=True)
class SetStatement:
    """SET a setting; `value` None is RESET, and with the name `all` of all settings."""

    name: str
    value: str | None
    is_local: bool = False


@dataclass(frozen=True, slots=True)
class ShowStatement:
    """SHOW a setting, or all of them."""

    name: str


@dataclass(frozen=True, slots=True)
class CopyStatement:
    """COPY a query TO STDOUT."""

    query: str
    format: str = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'
    has_header: bool = False


@dataclass(frozen=True, slots=True)
class DeclareStatement:
    """DECLARE a cursor for a query."""

    name: str
    query: str
    is_held: bool


@dataclass(frozen=True, slots=True)
class FetchStatement:
    """FETCH rows of a cursor, or MOVE over them; `count` None is all of them."""

    name: str
    count: int | None
    is_move: bool


@dataclass(frozen=True, slots=True)
class CloseStatement:
    """CLOSE a cursor, or all of them (None)."""

    name: str | None


@dataclass(frozen=True, slots=True)
class DeallocateStatement:
    """DEALLOCATE a prepared statement, or all of them (None)."""

    name: str | None


@dataclass(frozen=True, slots=True)
class DiscardStatement:
    """DISCARD: `all` resets the session."""

    what: str


@dataclass(frozen=True, slots=True)
class PassiveStatement:
    """A statement that has nothing to do here, such as UNLISTEN; `tag` is its command tag."""

    tag: str


class EmptyStatement:
    """Nothing but spaces and comments."""


StatementWithTree = SelectStatement | WriteStatement | CopyStatement | DeclareStatement
PgStatement = (
    StatementWithTree
    | BeginStatement
    | CommitStatement
    | RollbackStatement
    | SavepointStatement
    | SetStatement
    | ShowStatement
    | FetchStatement
    | CloseStatement
    | DeallocateStatement
    | DiscardStatement
    | PassiveStatement
    | EmptyStatement
)

# --- from text to statements --------------------------------------------------------------------

_PIECE = re.compile(
    r"""(?P<space>\s++|--[^\n]*+|/\*.*?\*/)
    |/\*.*+
    |[eE]'(?:[^'\\]++|\\.|'')*+(?:'|\Z)
    |'(?:[^']++|'')*+(?:'|\Z)
    |"(?:[^"]++|"")*+(?:"|\Z)
    |(?P<parameter>\$\d++)
    |\$(?P<tag>(?:[A-Za-z_]\w*+)?)\$.*?(?:\$(?P=tag)\$|\Z)
    |(?P<end>;)
    |\w++
    |.""",
    re.VERBOSE | re.DOTALL,
)
"""What a text is made of. What is opened and never closed goes to the end of the text, so that
nothing is read twice."""
STATEMENT_MAX_BYTES = 1 << 20
NAME_MAX = 1000
_NAME = r'("(?:[^"]|"")+"|[A-Za-z_][\w$]*)'


def split_statements(text: str) -> list[str]:
    r"""Return the statements of a text without the semicolons and comments between them.

    Raises:
        PgError: the text is too long.

    >>> split_statements("SELECT ';'; -- one\n COMMIT;")
    ["SELECT ';'", 'COMMIT']
    """
    if len(text.encode()) > STATEMENT_MAX_BYTES:
        raise PgError(
            "54000",
            f"A statement has at most {STATEMENT_MAX_BYTES:,} bytes.",
            "send fewer rows at once, or bind long values to parameters",
        )
    return [found for found in (each.strip() for each in _pieces(text)) if found]


def _pieces(text: str) -> Iterator[str]:
    parts: list[str] = []
    for piece in _PIECE.finditer(text):
        if piece["end"]:
            yield "".join(parts)
            parts = []
        elif not piece["space"]:
            parts.append(piece.group())
        elif parts and parts[-1] != " ":  # one space for many: patterns try each of them
            parts.append(" ")
    yield "".join(parts)


def with_placeholders(text: str) -> str:
    """Return a text with `:p1` for `$1`, which sqlglot would take for the mark of a quotation.

    >>> with_placeholders("SELECT $1::int8, '$1'")
    "SELECT :p1 ::int8, '$1'"
    """
    return "".join(
        f":p{piece.group()[1:]} " if piece["parameter"] else piece.group()
        for piece in _PIECE.finditer(text)
    )


_QUERY_WORDS = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})
_WRITE_WORDS = frozenset({"INSERT", "DELETE", "UPDATE"})
_DEFINITIONS = frozenset(
    {"CREATE", "DROP", "ALTER", "GRANT", "REVOKE", "TRUNCATE", "COMMENT", "REINDEX", "VACUUM"}
)


_OTHERS = frozenset(
    {
        *("ANALYZE", "CALL", "CHECKPOINT", "CLUSTER", "DO", "EXECUTE", "EXPLAIN", "IMPORT"),
        *("LISTEN", "LOAD", "LOCK", "MERGE", "NOTIFY", "PREPARE", "REASSIGN", "REFRESH"),
        "SECURITY",
    }
)
"""Statements that PostgreSQL has, and that there are not here."""


def read_statements(text: str) -> list[PgStatement]:
    """Return the statements of a text.

    Raises:
        PgError: it is too long, or there is no such statement here.
    """
    return [read_statement(each) for each in split_statements(text)]


def read_statement(text: str) -> PgStatement:
    """Return one statement, as `split_statements` gives it.

    Raises:
        PgError: there is no such statement here.
    """
    words = re.findall(r"[A-Za-z_]+", text[:200].upper()) or [""]
    first = words[0]
    if text.startswith("(") or first in _QUERY_WORDS:
        return SelectStatement(_data_modifying(text))
    if first in _WRITE_WORDS:
        return WriteStatement(text)
    match first:
        case "" if not text:
            return EmptyStatement()
        case "BEGIN" | "START":
            return BeginStatement(text.upper())
        case "COMMIT" | "END":
            return CommitStatement()
        case "ROLLBACK" | "ABORT" if "TO" not in words[1:3]:
            return RollbackStatement()
        case "ROLLBACK" | "SAVEPOINT" | "RELEASE":
            name = _last_name(text)
            return SavepointStatement(first, name)
        case "SET":
            return _read_set(text)
        case "RESET":
            return SetStatement(_last_name(text).lower(), None)
        case "SHOW":
            return ShowStatement(_shown_name(text))
        case "COPY":
            return _read_copy(text)
        case "DECLARE":
            return _read_declare(text)
        case "FETCH" | "MOVE":
            return _read_fetch(text, is_move=first == "MOVE")
        case "CLOSE" | "DEALLOCATE":
            name = _last_name(text)
            named = None if name.lower() == "all" else name
            return CloseStatement(named) if first == "CLOSE" else DeallocateStatement(named)
        case "DISCARD":
            return DiscardStatement(words[-1].lower())
        case "UNLISTEN":
            return PassiveStatement("UNLISTEN")
        case _:
            pass
    if first in _DEFINITIONS:
        raise not_supported(
            f"{first} is not possible here: rules and tables are those of the program.",
            "change the program with `corollary run` or `PUT /v1/program`",
        )
    if first not in _OTHERS:
        raise PgError("42601", f"The statement cannot be read at or near `{text[:20]}`.")
    raise not_supported(
        f"There is no statement {first} here.",
        "there are SELECT, INSERT, DELETE, UPDATE, BEGIN, COMMIT, ROLLBACK, SET, SHOW and COPY TO",
    )


def _data_modifying(text: str) -> str:
    """Return the text of a query that only reads, as far as its words show.

    Raises:
        PgError: it begins a write after WITH, or takes locks.
    """
    if re.search(r"\)\s*(INSERT|DELETE|UPDATE)\s", text, re.IGNORECASE) and re.match(
        r"WITH\s", text, re.IGNORECASE
    ):
        raise not_supported("INSERT, DELETE and UPDATE cannot follow WITH.", "use a subquery")
    return re.sub(
        r"\sFOR\s+(NO\s+KEY\s+UPDATE|KEY\s+SHARE|UPDATE|SHARE)(\s+(NOWAIT|SKIP\s+LOCKED))?\s*$",
        "",
        text,
        flags=re.IGNORECASE,
    )


def unquoted(name: str) -> str:
    """Return a name as it is meant.

    >>> unquoted('"a ""b"'), unquoted("Abc")
    ('a "b', 'abc')
    """
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _last_name(text: str) -> str:
    if len(text) > NAME_MAX:
        raise PgError("54000", f"Such a statement has at most {NAME_MAX:,} characters.")
    found = re.search(rf"{_NAME}\s*$", text)
    if found is None:
        raise PgError("42601", "A name is missing at the end of the statement.")
    return unquoted(found[1])


# --- settings -----------------------------------------------------------------------------------

_SET = re.compile(
    rf"SET\s+(?:(SESSION|LOCAL)\s+)?(?:(TIME\s+ZONE)|(NAMES)|{_NAME}(?:\.{_NAME})?\s*(?:=|\sTO\s))"
    r"\s*(.*)$",
    re.IGNORECASE | re.DOTALL,
)
_SET_TRANSACTION = re.compile(
    r"SET\s+(?:SESSION\s+CHARACTERISTICS\s+AS\s+|LOCAL\s+|SESSION\s+)?TRANSACTION\s+(.*)$",
    re.IGNORECASE | re.DOTALL,
)


def _read_set(text: str) -> PgStatement:
    modes = _SET_TRANSACTION.match(text)
    if modes is not None:
        return SetStatement("transaction_modes", modes[1].upper(), is_local="SESSION" not in text)
    found = _SET.match(text)
    if found is None:
        raise PgError("42601", "SET needs a name and a value.", "write `SET name = value`")
    scope, zone, names, name, rest, value = found.groups()
    if zone:
        setting = "timezone"
    elif names:
        setting = "client_encoding"
    else:
        setting = unquoted(name) + (f".{unquoted(rest)}" if rest else "")
    is_local = (scope or "").upper() == "LOCAL"
    given = value.strip()
    if given.upper() in ("DEFAULT", "LOCAL"):
        return SetStatement(setting.lower(), None, is_local)
    return SetStatement(setting.lower(), _setting_value(given), is_local)


def _setting_value(text: str) -> str:
    """Return the value of a setting without its quotes.

    >>> _setting_value("'it''s'"), _setting_value("pg_catalog, public")
    ("it's", 'pg_catalog, public')
    """
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text.strip('"')


def _shown_name(text: str) -> str:
    name = re.sub(r"^SHOW\s+", "", text, flags=re.IGNORECASE).strip()
    spelled = re.sub(r"\s+", " ", name.lower())
    named = {"transaction isolation level": "transaction_isolation", "time zone": "timezone"}
    return named.get(spelled, unquoted(spelled))


# --- cursors ------------------------------------------------------------------------------------

_DECLARE = re.compile(
    rf"DECLARE\s+{_NAME}\s+(?P<options>(?:\w+\s+)*?)CURSOR\s+(?P<hold>WITH\s+HOLD\s+|WITHOUT\s+HOLD\s+)?"
    r"FOR\s+(?P<query>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_FETCH = re.compile(
    r"(?:FETCH|MOVE)\s+(?:(?P<way>NEXT|FORWARD|ALL|PRIOR|FIRST|LAST|ABSOLUTE|RELATIVE|BACKWARD)\b\s*)?"
    rf"(?P<count>-?\d+|ALL)?\s*(?:FROM\s+|IN\s+)?{_NAME}\s*$",
    re.IGNORECASE,
)


def _read_declare(text: str) -> DeclareStatement:
    found = _DECLARE.match(text)
    if found is None:
        raise PgError("42601", "DECLARE needs a name and a query: `DECLARE c CURSOR FOR SELECT …`.")
    options = found["options"].upper().split()
    if "BINARY" in options or ("SCROLL" in options and "NO" not in options):
        raise not_supported("Cursors only go forward, and give texts.", "leave the option out")
    is_held = (found["hold"] or "").upper().startswith("WITH ")
    return DeclareStatement(unquoted(found[1]), _data_modifying(found["query"]), is_held)


def _read_fetch(text: str, *, is_move: bool) -> FetchStatement:
    found = _FETCH.match(text)
    if found is None:
        raise PgError("42601", "FETCH needs a cursor: `FETCH 10 FROM c`.")
    way, count = (found["way"] or "").upper(), (found["count"] or "").upper()
    if way not in ("", "NEXT", "FORWARD", "ALL") or count.startswith("-"):
        raise not_supported("Cursors only go forward.", "write `FETCH 10 FROM c`")
    is_all = "ALL" in (way, count)
    name = unquoted(text[found.start(3) : found.end(3)])
    return FetchStatement(name, None if is_all else int(count or 1), is_move)


# --- COPY ---------------------------------------------------------------------------------------

_OPTION = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\w+|[(),]|\S")


@dataclass(slots=True)
class _CopyOptions:
    """The options of COPY while they are read."""

    format: str = "text"
    values: dict[str, str] = field(default_factory=dict)
    has_header: bool = False


def _read_copy(text: str) -> CopyStatement:
    body = text[4:].strip()
    source, rest = _copied(body)
    way = re.match(r"(TO|FROM)\s+(STDOUT|STDIN|PROGRAM|'(?:[^']|'')*')\s*", rest, re.IGNORECASE)
    if way is None:
        raise PgError("42601", "COPY needs a relation or a query, and `TO STDOUT`.")
    if way[1].upper() == "FROM":
        raise not_supported("COPY FROM is not supported.", "use INSERT, or `corollary apply`")
    if way[2].upper() != "STDOUT":
        raise PgError("42501", "COPY cannot write files of the server.", "write `TO STDOUT`")
    options = _copy_options(rest[way.end() :])
    is_csv = options.format == "csv"
    found = CopyStatement(
        source,
        options.format,
        options.values.get("delimiter", "," if is_csv else "\t"),
        options.values.get("null", "" if is_csv else "\\N"),
        options.values.get("quote", '"'),
        options.has_header,
    )
    if len(found.delimiter) != 1 or len(found.quote) != 1 or set("\r\n") & set(found.delimiter):
        raise PgError("22023", "DELIMITER and QUOTE are one character each.")
    return found


def _copied(body: str) -> tuple[str, str]:
    """Return the query that COPY reads, and what follows."""
    if body.startswith("("):
        depth = 0
        for piece in _PIECE.finditer(body):
            depth += {"(": 1, ")": -1}.get(piece.group(), 0)
            if depth == 0:
                return body[1 : piece.start()], body[piece.end() :].strip()
        raise PgError("42601", "A `)` is missing.")
    found = re.match(rf"({_NAME}(?:\.{_NAME})?)\s*(\([^)]*\))?\s*", body)
    if found is None:
        raise PgError("42601", "COPY needs a relation or a query.")
    columns = (found[4] or "")[1:-1] or "*"
    return f"SELECT {columns} FROM {found[1]}", body[found.end() :]  # noqa: S608 - parsed again


def _copy_options(text: str) -> _CopyOptions:
    """Read `WITH (FORMAT csv, HEADER)` or, as it was written before, `WITH CSV HEADER`."""
    options = _CopyOptions()
    tokens = [each for each in _OPTION.findall(text) if each not in ("(", ")", ",")]
    at = 0
    while at < len(tokens):
        word = tokens[at].upper()
        following = tokens[at + 1] if at + 1 < len(tokens) else ""
        at += 1
        if word in ("WITH", "AS"):
            continue
        if word == "FORMAT":
            options.format = following.strip("'").lower()
            at += 1
        elif word in ("CSV", "BINARY", "TEXT"):
            options.format = word.lower()
        elif word == "HEADER":
            is_said = following.lower() in ("true", "false", "on", "off", "0", "1", "match")
            options.has_header = following.lower() not in ("false", "off", "0")
            at += is_said
        elif word in ("DELIMITER", "NULL", "QUOTE"):
            if following.upper() == "AS" and at + 1 < len(tokens):
                at, following = at + 1, tokens[at + 1]
            options.values[word.lower()] = _setting_value(following).replace("\\t", "\t")
            at += 1
        elif word == "ENCODING":
            at += 1
        else:
            raise not_supported(f"The option {tokens[at - 1]} of COPY is not supported.")
    if options.format not in ("text", "csv", "binary"):
        raise PgError("22023", "The formats of COPY are text, csv and binary.")
    return options
