"""The statements of a text, told apart by their first words.

The text is split into tokens once, by sqlglot; queries and writes stay so until they are parsed.
"""

import re
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.parse import BoundedParser, split_statements
from corollary.frontends.sql.statements.tokens import TokenCursor, text_of
from corollary.serve.postgres.problems import PgError, not_supported
from corollary.source import SourceFile


class _Parser(BoundedParser, PostgresParser):
    """PostgreSQL's parser, with a bound on its work."""


class PostgresSession(Postgres):
    """PostgreSQL's dialect, in which statements about the session are tokens, too."""

    class Tokenizer(Postgres.Tokenizer):
        """PostgreSQL's tokens; no statement is a text after its first word."""

        COMMANDS: ClassVar[set[TokenType]] = set()

    Parser = _Parser


@dataclass(frozen=True, slots=True)
class StatementSource:
    """The tokens of a query or a write, and the text that they are in."""

    tokens: Sequence[Token]
    file: SourceFile


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """SELECT, WITH, VALUES or TABLE."""

    source: StatementSource


@dataclass(frozen=True, slots=True)
class WriteStatement:
    """INSERT, DELETE or UPDATE."""

    source: StatementSource


@dataclass(frozen=True, slots=True)
class DefinitionStatement:
    """CREATE, ALTER, DROP, TRUNCATE or COMMENT of tables and views."""

    source: StatementSource


@dataclass(frozen=True, slots=True)
class ExplainStatement:
    """EXPLAIN a query."""

    source: StatementSource


@dataclass(frozen=True, slots=True)
class BeginStatement:
    """BEGIN or START TRANSACTION, with its modes in capital letters."""

    modes: str


@dataclass(frozen=True, slots=True)
class TransactionStatement:
    """COMMIT, ROLLBACK, SAVEPOINT or RELEASE, as the command tag says.

    Attributes:
        name: of the savepoint; None if a transaction ends.
    """

    action: str
    name: str | None = None


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
class SubscribeStatement:
    """SUBSCRIBE to a relation or a query.

    Attributes:
        has_snapshot: whether the rows that are there come first.
        has_progress: whether it is told up to which commit all is known.
        since: the commit after which it begins; the last one if it is None.
    """

    source: StatementSource | exp.Select
    has_snapshot: bool = True
    has_progress: bool = False
    since: int | None = None


@dataclass(frozen=True, slots=True)
class CopyStatement:
    """COPY a query, or a relation, TO STDOUT; or what a subscription gives."""

    source: StatementSource | exp.Select
    format: str = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'
    has_header: bool = False
    subscription: SubscribeStatement | None = None


@dataclass(frozen=True, slots=True)
class CopyFromStatement:
    """COPY columns of a relation FROM STDIN; the form has a query that names them."""

    form: CopyStatement


@dataclass(frozen=True, slots=True)
class DeclareStatement:
    """DECLARE a cursor for a query, or for a subscription."""

    name: str
    source: StatementSource | exp.Select
    is_held: bool
    subscription: SubscribeStatement | None = None


@dataclass(frozen=True, slots=True)
class FetchStatement:
    """FETCH rows of a cursor, or MOVE over them; `count` None is all of them.

    Attributes:
        seconds: how long to wait for more changes of a subscription; if None, for the first.
    """

    name: str
    count: int | None
    is_move: bool
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SessionStatement:
    """CLOSE, DEALLOCATE or DISCARD what has a name; None stands for all of it.

    Views have their rows whatever happens, so REFRESH does nothing.
    """

    action: str
    name: str | None


@dataclass(frozen=True, slots=True)
class NotifyStatement:
    """LISTEN, UNLISTEN (to all channels if there is no name), or NOTIFY with a payload."""

    action: str
    channel: str | None
    payload: str = ""


class EmptyStatement:
    """Nothing but spaces and comments."""


StatementWithTree = (
    SelectStatement
    | WriteStatement
    | CopyStatement
    | SubscribeStatement
    | DeclareStatement
    | ExplainStatement
)
PgStatement = (
    StatementWithTree
    | CopyFromStatement
    | DefinitionStatement
    | BeginStatement
    | TransactionStatement
    | SetStatement
    | ShowStatement
    | FetchStatement
    | SessionStatement
    | NotifyStatement
    | EmptyStatement
)

# --- from text to statements --------------------------------------------------------------------

_PIECE = re.compile(
    r"""--[^\n]*+|/\*.*?\*/
    |/\*.*+
    |[eE]'(?:[^'\\]++|\\.|'')*+(?:'|\Z)
    |'(?:[^']++|'')*+(?:'|\Z)
    |"(?:[^"]++|"")*+(?:"|\Z)
    |(?P<parameter>\$\d++)
    |\$(?P<tag>(?:[A-Za-z_]\w*+)?)\$.*?(?:\$(?P=tag)\$|\Z)
    |\w++
    |.""",
    re.VERBOSE | re.DOTALL,
)
"""What a text is made of. What is opened and never closed goes to the end of the text, so that
nothing is read twice."""
STATEMENT_MAX_BYTES = 1 << 20
TOKENS_MAX = 100_000
"""How many words, values and signs a statement may have, with the elements of lists bound to it."""
NAME_MAX = 1000


def with_placeholders(text: str) -> str:
    """Return a text with `:p1` for `$1`, which sqlglot would take for the mark of a quotation.

    >>> with_placeholders("SELECT $1::int8, '$1'")
    "SELECT :p1 ::int8, '$1'"
    """
    if "$" not in text:
        return text
    return "".join(
        f":p{piece.group()[1:]} " if piece["parameter"] else piece.group()
        for piece in _PIECE.finditer(text)
    )


def read_statements(text: str) -> list[PgStatement]:
    r"""Return the statements of a text.

    Raises:
        PgError: it is too long, or there is no such statement here.

    >>> [type(each).__name__ for each in read_statements("SELECT ';'; -- one\n COMMIT;")]
    ['SelectStatement', 'TransactionStatement']
    """
    if len(text.encode()) > STATEMENT_MAX_BYTES:
        raise PgError(
            "54000",
            f"A statement has at most {STATEMENT_MAX_BYTES:,} bytes.",
            "send fewer rows at once, or bind long values to parameters",
        )
    file = SourceFile("statement.sql", with_placeholders(text))
    try:
        found = split_statements(file, PostgresSession)
    except InputError:
        raise PgError("42601", "The statement cannot be read.") from None
    return [_read_statement(TokenCursor(tokens, file)) for tokens in found]


def parse_source(source: StatementSource) -> exp.Expr:
    """Return the tree of a query or a write.

    Raises:
        PgError: it cannot be read, or is too large.
        RecursionError: it is nested too deeply.
    """
    check_size(len(source.tokens))
    try:
        trees = PostgresSession().parser().parse(list(source.tokens), source.file.text)
    except (ParseError, ValueError) as problem:
        raise PgError("42601", _sentence(problem)) from None
    if len(trees) != 1 or trees[0] is None:
        raise PgError("42601", "One statement is expected.")
    return trees[0]


def check_size(tokens: int) -> None:
    """Refuse a statement that is too large.

    Raises:
        PgError: it is.
    """
    if tokens > TOKENS_MAX:
        raise PgError(
            "54001",
            f"A statement has at most {TOKENS_MAX:,} words, values and signs.",
            "send fewer values at once",
        )


def _sentence(problem: Exception) -> str:
    if isinstance(problem, ParseError) and problem.errors:
        first = problem.errors[0]
        near = str(first.get("highlight") or "").strip()
        if near:
            return f"The statement cannot be read at or near `{near[:40]}`."
    return "The statement cannot be read."


_QUERY_WORDS = frozenset({"(", "SELECT", "WITH", "VALUES", "TABLE"})
_WRITE_WORDS = frozenset({"INSERT", "DELETE", "UPDATE"})
_DEFINITION_WORDS = frozenset({"CREATE", "DROP", "ALTER", "TRUNCATE", "COMMENT"})
_OTHERS = frozenset(
    {
        *("ANALYZE", "CALL", "CHECKPOINT", "CLUSTER", "DO", "EXECUTE", "IMPORT"),
        *("LOAD", "LOCK", "MERGE", "PREPARE", "REASSIGN"),
        *("GRANT", "REINDEX", "REVOKE", "SECURITY", "VACUUM"),
    }
)
"""Statements that PostgreSQL has, and that there are not here."""


def _read_statement(cursor: TokenCursor) -> PgStatement:
    """Return one statement.

    Raises:
        PgError: there is no such statement here.
    """
    first = cursor.word()
    if first in _QUERY_WORDS:
        return SelectStatement(_query(cursor))
    if first in _WRITE_WORDS:
        return WriteStatement(StatementSource(cursor.tokens, cursor.file))
    if first in _DEFINITION_WORDS:
        return DefinitionStatement(StatementSource(cursor.tokens, cursor.file))
    cursor.position = 1
    match first:
        case "BEGIN" | "START":
            return BeginStatement(text_of(cursor.tokens, cursor.file).upper())
        case "COMMIT" | "END":
            return TransactionStatement("COMMIT")
        case "ROLLBACK" | "ABORT" if "TO" not in (cursor.word(), cursor.word(1)):
            return TransactionStatement("ROLLBACK")
        case "ROLLBACK" | "SAVEPOINT" | "RELEASE":
            return TransactionStatement(first, _last_name(cursor))
        case "SET":
            return _read_set(cursor)
        case "RESET":
            return SetStatement(_last_name(cursor).lower(), None)
        case "SHOW":
            return ShowStatement(_shown_name(text_of(cursor.rest(), cursor.file)))
        case "COPY":
            return _read_copy(cursor)
        case "SUBSCRIBE":
            return _read_subscribe(cursor)
        case "DECLARE":
            return _read_declare(cursor)
        case "EXPLAIN":
            return _read_explain(cursor)
        case "REFRESH":
            return SessionStatement("REFRESH MATERIALIZED VIEW", None)
        case "FETCH" | "MOVE":
            return _read_fetch(cursor, is_move=first == "MOVE")
        case "CLOSE" | "DEALLOCATE" | "DISCARD":
            name = _last_name(cursor)
            return SessionStatement(first, None if name.lower() == "all" else name)
        case "LISTEN" | "UNLISTEN" | "NOTIFY":
            return _read_notify(first, cursor)
        case _:
            pass
    if first not in _OTHERS:
        text = text_of(cursor.tokens, cursor.file)
        raise PgError("42601", f"The statement cannot be read at or near `{text[:20]}`.")
    raise not_supported(
        f"There is no statement {first} here.",
        "there are SELECT, INSERT, DELETE, UPDATE, CREATE, ALTER, DROP, TRUNCATE, BEGIN, COMMIT,"
        " ROLLBACK, SET, SHOW and COPY TO",
    )


def _query(cursor: TokenCursor) -> StatementSource:
    """Return the query that comes next, which only reads, as far as its words show.

    Raises:
        PgError: it begins a write after WITH.
    """
    tokens = cursor.tokens[cursor.position :]
    if cursor.is_next("WITH"):
        for token, following in pairwise(tokens):
            is_end = token.token_type is TokenType.R_PAREN
            if is_end and following.text.upper() in _WRITE_WORDS:
                text = "INSERT, DELETE and UPDATE cannot follow WITH."
                raise not_supported(text, "use a subquery")
    return StatementSource(tokens, cursor.file)


def _read_explain(cursor: TokenCursor) -> ExplainStatement:
    if cursor.is_next("("):
        _ = cursor.bracketed()
    while cursor.word() in ("ANALYZE", "VERBOSE"):
        cursor.position += 1
    return ExplainStatement(_query(cursor))


def _name(cursor: TokenCursor) -> str:
    """Return the name that comes next; it is in small letters unless it is quoted."""
    found = cursor.name("a name").text
    is_quoted = cursor.tokens[cursor.position - 1].token_type is TokenType.IDENTIFIER
    return found if is_quoted else found.lower()


def _last_name(cursor: TokenCursor) -> str:
    cursor.position = len(cursor.tokens) - 1
    if len(cursor.tokens[-1].text) > NAME_MAX:
        raise PgError("54000", f"A name has at most {NAME_MAX:,} characters.")
    try:
        return _name(cursor)
    except InputError:
        raise PgError("42601", "A name is missing at the end of the statement.") from None


def _read_notify(action: str, cursor: TokenCursor) -> NotifyStatement:
    try:
        is_all = action == "UNLISTEN" and cursor.accept("*")
        channel = None if is_all else _name(cursor)
        has_payload = action == "NOTIFY" and cursor.accept(",")
        payload = cursor.string("a payload") if has_payload else ""
        cursor.finish()
    except InputError:
        cure = "write `LISTEN alerts`, or `NOTIFY channel, 'payload'`"
        raise PgError("42601", f"{action} needs a channel.", cure) from None
    return NotifyStatement(action, channel, payload)


# --- settings -----------------------------------------------------------------------------------


def _read_set(cursor: TokenCursor) -> SetStatement:
    is_session, is_local = cursor.accept("SESSION"), cursor.accept("LOCAL")
    _ = cursor.accept("CHARACTERISTICS", "AS")
    if cursor.accept("TRANSACTION"):
        modes = text_of(cursor.rest(), cursor.file).upper()
        return SetStatement("transaction_modes", modes, is_local=not is_session)
    try:
        if cursor.accept("TIME", "ZONE"):
            name = "timezone"
        elif cursor.accept("NAMES"):
            name = "client_encoding"
        else:
            name = _name(cursor)
            if cursor.accept("."):
                name += f".{_name(cursor)}"
            if not cursor.accept("="):
                cursor.expect("TO")
    except InputError:
        message = "SET needs a name and a value."
        raise PgError("42601", message, "write `SET name = value`") from None
    value = text_of(cursor.rest(), cursor.file)
    if value.upper() in ("DEFAULT", "LOCAL"):
        return SetStatement(name.lower(), None, is_local)
    return SetStatement(name.lower(), _setting_value(value), is_local)


def _setting_value(text: str) -> str:
    """Return the value of a setting without its quotes.

    >>> _setting_value("'it''s'"), _setting_value("pg_catalog, public")
    ("it's", 'pg_catalog, public')
    """
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text.strip('"')


def _shown_name(text: str) -> str:
    spelled = " ".join(text.lower().split())
    named = {"transaction isolation level": "transaction_isolation", "time zone": "timezone"}
    return named.get(spelled, spelled.strip('"'))


# --- cursors ------------------------------------------------------------------------------------


def _read_declare(cursor: TokenCursor) -> DeclareStatement:
    options = []
    try:
        name = _name(cursor)
        while not cursor.accept("CURSOR"):
            options.append(cursor.name("CURSOR").text.upper())
        is_held = cursor.accept("WITH", "HOLD")
        _ = cursor.accept("WITHOUT", "HOLD")
        cursor.expect("FOR")
    except InputError:
        message = "DECLARE needs a name and a query: `DECLARE c CURSOR FOR SELECT …`."
        raise PgError("42601", message) from None
    if "BINARY" in options or ("SCROLL" in options and "NO" not in options):
        raise not_supported("Cursors only go forward, and give texts.", "leave the option out")
    if cursor.accept("SUBSCRIBE"):
        followed = _read_subscribe(cursor)
        return DeclareStatement(name, followed.source, is_held, followed)
    return DeclareStatement(name, _query(cursor), is_held)


_SECONDS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*(ms|millisecond|s|sec|second|m|min|minute|h|hour)?s?\s*"
)
_SWITCHES = {"TRUE": True, "FALSE": False, "ON": True, "OFF": False, "1": True, "0": False}


def _read_subscribe(cursor: TokenCursor) -> SubscribeStatement:
    """Read what is after SUBSCRIBE, as Materialize has it.

    Raises:
        PgError: it is something else.
    """
    switches = {"SNAPSHOT": True, "PROGRESS": False}
    since = None
    try:
        _ = cursor.accept("TO")
        source = _copied(cursor)
        if cursor.accept("WITH"):
            cursor.expect("(")
            while not cursor.accept(")"):
                name = cursor.name("SNAPSHOT or PROGRESS").text.upper()
                if name not in switches:
                    raise not_supported(f"The option {name} of SUBSCRIBE is not supported.")
                _ = cursor.accept("=")
                switches[name] = _SWITCHES.get(cursor.word(), True)
                cursor.position += cursor.word() in _SWITCHES
                _ = cursor.accept(",")
        if cursor.accept("AS", "OF"):
            _ = cursor.accept("AT", "LEAST")
            since = int(cursor.word()) if cursor.word().isdecimal() else cursor.fail("a commit")
            cursor.position += 1
        if cursor.word() in ("ENVELOPE", "WITHIN", "UP"):
            raise not_supported(f"{cursor.word()} of SUBSCRIBE is not supported.", "leave it out")
        cursor.finish()
    except InputError:
        message = "SUBSCRIBE needs a relation or a query: `SUBSCRIBE (SELECT …) WITH (PROGRESS)`."
        raise PgError("42601", message) from None
    return SubscribeStatement(source, switches["SNAPSHOT"], switches["PROGRESS"], since)


def _read_timeout(cursor: TokenCursor) -> float | None:
    """Read `WITH (TIMEOUT = '1s')` of FETCH, if it comes."""
    if not cursor.accept("WITH"):
        return None
    cursor.expect("(")
    cursor.expect("TIMEOUT")
    _ = cursor.accept("=")
    found = _DURATION.fullmatch(cursor.string("a duration").lower())
    cursor.expect(")")
    if found is None:
        raise PgError("22007", "The timeout of FETCH is a duration such as `1s` or `500ms`.")
    unit = found[2] or "s"
    return float(found[1]) * (_SECONDS.get(unit) or _SECONDS["ms" if "ll" in unit else unit[0]])


_FORWARD = ("NEXT", "FORWARD", "ALL")
_BACKWARD = ("PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE", "BACKWARD")


def _read_fetch(cursor: TokenCursor, *, is_move: bool) -> FetchStatement:
    way = next((each for each in (*_FORWARD, *_BACKWARD) if cursor.accept(each)), "")
    is_all = way == "ALL" or cursor.accept("ALL")
    is_back = cursor.accept("-") or way in _BACKWARD
    count = 1
    if cursor.word().isdecimal():
        count = int(cursor.word())
        cursor.position += 1
    _ = cursor.accept("FROM") or cursor.accept("IN")
    try:
        name = _name(cursor)
        seconds = _read_timeout(cursor)
        cursor.finish()
    except InputError:
        raise PgError("42601", "FETCH needs a cursor: `FETCH 10 FROM c`.") from None
    if is_back:
        raise not_supported("Cursors only go forward.", "write `FETCH 10 FROM c`")
    return FetchStatement(name, None if is_all else count, is_move, seconds)


# --- COPY ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _CopyOptions:
    """The options of COPY while they are read."""

    format: str = "text"
    values: dict[str, str] = field(default_factory=dict)
    has_header: bool = False


def _read_copy(cursor: TokenCursor) -> CopyStatement | CopyFromStatement:
    subscription = None
    try:
        if cursor.is_next("(", "SUBSCRIBE"):
            inner = TokenCursor(cursor.bracketed(), cursor.file)
            inner.expect("SUBSCRIBE")
            subscription = _read_subscribe(inner)
            source = subscription.source
        else:
            source = _copied(cursor)
        is_from = cursor.accept("FROM")
        if not is_from:
            cursor.expect("TO")
        is_file = cursor.is_string() or cursor.is_next("PROGRAM")
        if not (is_file or cursor.accept("STDOUT") or cursor.accept("STDIN")):
            cursor.fail("STDOUT")
    except InputError:
        message = "COPY needs a relation or a query, and `TO STDOUT`."
        raise PgError("42601", message) from None
    if is_file:
        cure = "write `TO STDOUT` or `FROM STDIN`, in psql `\\copy`"
        raise PgError("42501", "COPY cannot read or write files of the server.", cure)
    options = _copy_options(cursor.rest())
    is_csv = options.format == "csv"
    found = CopyStatement(
        source,
        options.format,
        options.values.get("delimiter", "," if is_csv else "\t"),
        options.values.get("null", "" if is_csv else "\\N"),
        options.values.get("quote", '"'),
        options.has_header,
        subscription,
    )
    if len(found.delimiter) != 1 or len(found.quote) != 1 or set("\r\n") & set(found.delimiter):
        raise PgError("22023", "DELIMITER and QUOTE are one character each.")
    if subscription is not None and (is_from or found.format == "binary"):
        raise not_supported("What a subscription gives is copied to STDOUT as text or CSV.")
    if not is_from:
        return found
    if not isinstance(source, exp.Select):
        raise PgError("42601", "COPY FROM needs a relation.", "write `COPY t FROM STDIN`")
    if found.format == "binary" or not f"{found.delimiter}{found.quote}".isascii():
        raise not_supported("COPY FROM reads text and CSV with signs of ASCII.", "use FORMAT csv")
    return CopyFromStatement(found)


def _copied(cursor: TokenCursor) -> StatementSource | exp.Select:
    """Return the query that COPY reads."""
    if cursor.is_next("("):
        return StatementSource(cursor.bracketed(), cursor.file)
    names = [_name(cursor)]
    if cursor.accept("."):
        names.append(_name(cursor))
    columns = cursor.names("a column") if cursor.is_next("(") else ()
    selected: list[exp.Expr] = [exp.column(each.text, quoted=True) for each in columns]
    schema = names[0] if len(names) > 1 else None
    table = exp.table_(names[-1], db=schema, quoted=True)
    return exp.select(*selected or [exp.Star()]).from_(table)


def _copy_options(given: Sequence[Token]) -> _CopyOptions:
    """Read `WITH (FORMAT csv, HEADER)` or, as it was written before, `WITH CSV HEADER`."""
    options = _CopyOptions()
    signs = (TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA)
    tokens = [each.text for each in given if each.token_type not in signs]
    at = 0
    while at < len(tokens):
        word = tokens[at].upper()
        following = tokens[at + 1] if at + 1 < len(tokens) else ""
        at += 1
        if word in ("WITH", "AS"):
            continue
        if word == "FORMAT":
            options.format = following.lower()
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
            options.values[word.lower()] = following.replace("\\t", "\t")
            at += 1
        elif word == "ENCODING":
            at += 1
        else:
            raise not_supported(f"The option {tokens[at - 1]} of COPY is not supported.")
    if options.format not in ("text", "csv", "binary"):
        raise PgError("22023", "The formats of COPY are text, csv and binary.")
    return options
