"""The SQL files of a project: datasets and flows, with queries that may read streams.

`CREATE [OR REFRESH] MATERIALIZED VIEW | STREAMING TABLE`, `CREATE [TEMPORARY] VIEW` and
`CREATE FLOW … AS INSERT INTO … | AUTO CDC INTO …`, as Spark 4.3 has them.
"""

import re
from collections.abc import Callable, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from corollary.errors import Diagnostic, InputError
from corollary.frontends.sql.parse import parse_condition, parse_query, split_statements
from corollary.frontends.sql.statements.table_parser import read_columns, read_options
from corollary.frontends.sql.statements.tokens import SqlName, TokenCursor, text_of
from corollary.pipelines import graph
from corollary.source import SourceFile

NameOf = Callable[[Sequence[str]], str]
"""Returns the relation that the parts of a name mean."""
Definitions = tuple[list[graph.Dataset], list[graph.Flow], list[graph.AutoCdcFlow]]

_CDC_CLAUSES = ("APPLY", "SEQUENCE", "COLUMNS", "STORED", "TRACK")
_KINDS = "a `MATERIALIZED VIEW`, `STREAMING TABLE`, `TEMPORARY VIEW` or `FLOW`"


def parse_stream_query(file: SourceFile) -> exp.Expr:
    """Return the tree of the one query of a text; tables read as streams are marked.

    Raises:
        InputError: it is no query, or not one alone.
    """
    statements = split_statements(file)
    if len(statements) != 1:
        note = "write one query; a project says in files of SQL what else it defines"
        raise InputError.of("C1706", "This is not one query.", None, note)
    return _query(statements[0], file)


def table_of(table: exp.Table) -> tuple[list[str], bool]:
    """Return the parts of the name of a table, and whether it is read as a stream."""
    words = [table.args.get(key) for key in ("catalog", "db", "this")]
    return [each.name for each in words if each is not None], graph.STREAM in table.meta


def read_file(file: SourceFile, name_of: NameOf) -> Definitions:
    """Return what a file of SQL defines.

    Raises:
        InputError: with the errors of all statements.
    """
    found: Definitions = ([], [], [])
    findings: list[Diagnostic] = []
    for tokens in split_statements(file):
        try:
            _Statement(TokenCursor(tokens, file), name_of, found).read()
        except InputError as error:
            findings += error.diagnostics
    if findings:
        raise InputError(findings)
    return found


def _query(tokens: Sequence[Token], file: SourceFile) -> exp.Expr:
    """Parse a query in which `STREAM t` and `STREAM(t)` are tables that are marked."""
    kept, streams = _without_stream(tokens)
    tree = parse_query(kept, file)
    for table in tree.find_all(exp.Table):
        if table.parts[0].meta.get("start") in streams:
            table.meta[graph.STREAM] = True
    return tree


def _without_stream(tokens: Sequence[Token]) -> tuple[list[Token], set[int]]:
    """Return the tokens without the word, and where the names begin that stood after it."""
    kept: list[Token] = []
    streams: set[int] = set()
    closing: list[int] = []
    depth = at = 0
    while at < len(tokens):
        token = tokens[at]
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        before = kept[-1].text.upper() if kept else ""
        is_table = before in ("FROM", "JOIN", ",") or before.endswith(" JOIN")
        if is_table and token.text.upper() == "STREAM" and following is not None:
            if following.token_type is TokenType.L_PAREN and at + 2 < len(tokens):
                closing.append(depth)
                streams.add(tokens[at + 2].start)
                at += 2
                continue
            if following.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
                streams.add(following.start)
                at += 1
                continue
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if token.token_type is TokenType.R_PAREN and closing and depth < closing[-1]:
            depth = closing.pop()
        else:
            kept.append(token)
        at += 1
    return kept, streams


class _Statement:
    """Reads one statement, and adds what it defines."""

    def __init__(self, cursor: TokenCursor, name_of: NameOf, found: Definitions) -> None:
        self.cursor = cursor
        self.file = cursor.file
        self.name_of = name_of
        self.datasets, self.flows, self.cdc_flows = found

    def read(self) -> None:
        cursor = self.cursor
        if not cursor.accept("CREATE"):
            text = (
                f"A file of a pipeline only creates things, and this begins with `{cursor.word()}`."
            )
            raise InputError.of("C1706", text, cursor.span, f"create {_KINDS}")
        if cursor.accept("FLOW"):
            self._flow()
            return
        _ = cursor.accept("OR", "REFRESH") or cursor.accept("OR", "REPLACE")
        _ = cursor.accept("PRIVATE")
        span = cursor.span
        for words, kind in (
            (("MATERIALIZED", "VIEW"), graph.DatasetKind.MATERIALIZED_VIEW),
            (("STREAMING", "TABLE"), graph.DatasetKind.STREAMING_TABLE),
            (("TEMPORARY", "VIEW"), graph.DatasetKind.TEMPORARY_VIEW),
            (("TEMP", "VIEW"), graph.DatasetKind.TEMPORARY_VIEW),
            (("VIEW",), graph.DatasetKind.TEMPORARY_VIEW),
        ):
            if cursor.accept(*words):
                self._dataset(kind)
                return
        raise InputError.of(
            "C1706", f"`CREATE {cursor.word()}` is not of pipelines.", span, f"create {_KINDS}"
        )

    def _name(self) -> SqlName:
        """Return the relation that is named next."""
        parts = [self.cursor.name("a name")]
        while self.cursor.accept("."):
            parts.append(self.cursor.name("a name"))
        return SqlName(
            self.name_of([each.text for each in parts]), parts[0].span.to(parts[-1].span)
        )

    def _dataset(self, kind: graph.DatasetKind) -> None:
        cursor = self.cursor
        _ = cursor.accept("IF", "NOT", "EXISTS")
        name = self._name()
        columns = None
        is_view = kind is graph.DatasetKind.TEMPORARY_VIEW
        if cursor.is_next("(") and not is_view:
            columns, constraints = read_columns(cursor)
            if constraints:
                text = "A dataset of a pipeline has no constraints."
                raise InputError.of("C1706", text, constraints[0].span, "leave them out")
        comment = format_ = None
        properties: dict[str, str] = {}
        partitions: tuple[str, ...] = ()
        clusters: tuple[str, ...] = ()
        while not (cursor.has_ended() or cursor.is_next("AS") or cursor.is_next("FLOW")):
            if cursor.accept("COMMENT"):
                comment = cursor.string("a comment")
            elif cursor.accept("USING"):
                format_ = cursor.name("a format").text
            elif cursor.accept("PARTITIONED", "BY"):
                partitions = tuple(each.text for each in cursor.names("a column"))
            elif cursor.accept("CLUSTER", "BY"):
                clusters = tuple(each.text for each in cursor.names("a column"))
            elif cursor.accept("TBLPROPERTIES"):
                properties.update((each.name, each.value) for each in read_options(cursor))
            else:
                cursor.fail(
                    "`COMMENT`, `USING`, `PARTITIONED BY`, `CLUSTER BY`, `TBLPROPERTIES` or `AS`"
                )
        self.datasets.append(
            graph.Dataset(
                name.text, kind, name.span, columns, comment, properties, partitions, clusters,
                format_,
            )
        )  # fmt: skip
        is_stream = kind is graph.DatasetKind.STREAMING_TABLE
        if is_stream and cursor.accept("FLOW", "AUTO", "CDC"):
            self._auto_cdc(name.text, name)
        elif cursor.accept("AS"):
            self._add_flow(name.text, name)
        elif not (is_stream and cursor.has_ended()):
            cursor.fail("`AS` and a query")

    def _add_flow(self, name: str, target: SqlName) -> None:
        rest = self.cursor.rest()
        if not rest:
            self.cursor.fail("a query")
        tree, text = _query(rest, self.file), text_of(rest, self.file)
        query = graph.RecordedQuery(target.span, self.file, tree=tree, text=text)
        self.flows.append(graph.Flow(name, target.text, query, target.span))

    def _flow(self) -> None:
        cursor = self.cursor
        name = self._name()
        if cursor.accept("COMMENT"):
            cursor.string("a comment")
        cursor.expect("AS")
        if cursor.accept("AUTO", "CDC"):
            cursor.expect("INTO")
            self._auto_cdc(name.text, self._name())
            return
        cursor.expect("INSERT")
        cursor.expect("INTO")
        target = self._name()
        cursor.expect("BY")
        cursor.expect("NAME")
        self._add_flow(name.text, target)

    def _auto_cdc(self, name: str, target: SqlName) -> None:
        cursor, span = self.cursor, target.span
        cursor.expect("FROM")
        is_stream = cursor.accept("STREAM")
        is_bracketed = is_stream and cursor.accept("(")
        source = self._name()
        if is_bracketed:
            cursor.expect(")")
        cursor.expect("KEYS")
        keys = tuple(each.text for each in cursor.names("a column"))
        deletes = sequence = None
        kept: tuple[str, ...] | None = None
        tracked: tuple[str, ...] | None = None
        left_out: tuple[str, ...] = ()
        untracked: tuple[str, ...] = ()
        scd_type = 1
        while not cursor.has_ended():
            if cursor.accept("APPLY", "AS", "DELETE", "WHEN"):
                deletes = parse_condition(self._until_clause(), self.file)
            elif cursor.accept("SEQUENCE", "BY"):
                sequence = parse_condition(self._until_clause(), self.file)
            elif cursor.accept("COLUMNS"):
                kept, left_out = self._columns()
            elif cursor.accept("STORED", "AS", "SCD", "TYPE"):
                number = cursor.tokens[cursor.position : cursor.position + 1]
                scd_type = int(number[0].text) if number and number[0].text in ("1", "2") else 0
                if not scd_type:
                    cursor.fail("`1` or `2`")
                cursor.position += 1
            elif cursor.accept("TRACK", "HISTORY", "ON"):
                tracked, untracked = self._columns()
            else:
                cursor.fail(", ".join(f"`{each} …`" for each in _CDC_CLAUSES))
        if sequence is None:
            text = "AUTO CDC needs an order of changes."
            raise InputError.of("C1706", text, span, "write `SEQUENCE BY` and a column")
        self.cdc_flows.append(
            graph.AutoCdcFlow(
                name, target.text, source.text, keys, sequence, span, self.file, deletes,
                kept, left_out, scd_type, tracked, untracked,
            )
        )  # fmt: skip

    def _columns(self) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """Return the columns of `(a, b)`, or those that `* EXCEPT (a, b)` leaves out."""
        if self.cursor.accept("*"):
            self.cursor.expect("EXCEPT")
            return None, tuple(each.text for each in self.cursor.names("a column"))
        return tuple(each.text for each in self.cursor.names("a column")), ()

    def _until_clause(self) -> list[Token]:
        """Return the tokens up to the next clause of AUTO CDC."""
        cursor, start, depth = self.cursor, self.cursor.position, 0
        while not cursor.has_ended():
            word = cursor.word()
            depth += (word == "(") - (word == ")")
            if not depth and re.split(r"\s", word)[0] in _CDC_CLAUSES:
                break
            cursor.position += 1
        return list(cursor.tokens[start : cursor.position])
