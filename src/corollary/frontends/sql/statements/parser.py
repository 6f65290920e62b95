"""Statements from SQL text.

sqlglot reads queries, conditions, INSERT, DELETE and UPDATE. The rest is read here, token by token:
sqlglot does not know assertions and alerts, and keeps no places of what it knows of tables.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from corollary.analysis import replicas
from corollary.analysis.phrases import suggest_name
from corollary.core.table_options import (
    POLICY_PROPERTY,
    PROPERTIES,
    TARGET_LAG_PROPERTY,
    expected_value,
)
from corollary.errors import Diagnostic, InputError
from corollary.frontends.sql import parse
from corollary.frontends.sql.statements import nodes, table_parser
from corollary.frontends.sql.statements.alter_table import read_alter_table
from corollary.frontends.sql.statements.tokens import SqlName, TokenCursor, text_of
from corollary.source import SourceFile, Span

QUESTION_WORDS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")
"""What a question can begin with."""
_CURES = {
    "ALTER": "write `ALTER TABLE` or `ALTER VIEW`",
    "USE": "leave it out: a warehouse has one schema",
    "SET": "leave it out: settings are options of the commands",
    "GRANT": "write `corollary grant W READER RELATION`, or `db.grant(…)`",
    "REVOKE": "write `corollary revoke W READER RELATION`, or `db.revoke(…)`",
    "REFRESH": "leave it out: views are always up to date",
    "DECLARE": "pass a parameter, `:x`, or keep the value in a table: a session has no variables",
    "CACHE": "leave it out: a `MATERIALIZED VIEW` is stored",
    "UNCACHE": "leave it out: drop a `MATERIALIZED VIEW` that need not be stored",
    "ANALYZE": "leave it out: sizes are measured when they change",
    "OPTIMIZE": "leave it out, or run `corollary gc W`",
    "VACUUM": "run `corollary gc W`",
    "EXECUTE": "make the text in the program that asks, with parameters, `:x`",
    "REPLACE": "write `INSERT OVERWRITE` for other rows, and `ALTER TABLE` for other columns",
    "CALL": "write a trigger, or the statements themselves",
}
_WORDS = (
    *(
        "CREATE",
        "ALTER",
        "DROP",
        "INSERT",
        "DELETE",
        "UPDATE",
        "MERGE",
        "TRUNCATE",
        "SELECT",
        "WITH",
    ),
    *("VALUES", "BEGIN", "SHOW", "DESCRIBE", "EXPLAIN"),
)
_CREATE_CURES = {
    "TEMPORARY": "leave out `TEMPORARY`: a `VIEW` is never stored, and belongs to the program",
    "TEMP": "leave out `TEMP`: a `VIEW` is never stored, and belongs to the program",
    "EXTERNAL": "leave out `EXTERNAL`: `USING` and `OPTIONS` say where the data comes from",
    "SCHEMA": "leave it out: a warehouse has one schema",
    "DATABASE": "leave it out: a warehouse has one schema",
    "INDEX": "leave it out: relations are kept sorted as they are read",
}
_KINDS = ("TABLE", "VIEW", "ASSERTION", "ALERT", "TRIGGER", "FUNCTION")
_BOUNDARIES = {
    ("BEGIN",): nodes.Boundary.BEGIN,
    ("START", "TRANSACTION"): nodes.Boundary.BEGIN,
    ("COMMIT",): nodes.Boundary.COMMIT,
    ("ROLLBACK",): nodes.Boundary.ROLLBACK,
}


def parse_statements(file: SourceFile) -> list[nodes.Statement]:
    """Return the statements of a text.

    Raises:
        InputError: with the errors of all statements.

    >>> [type(each).__name__ for each in parse_statements(SourceFile("q", "SELECT 1; BEGIN"))]
    ['QueryStatement', 'TransactionBoundary']
    """
    found: list[nodes.Statement] = []
    findings: list[Diagnostic] = []
    for tokens in parse.split_statements(file):
        try:
            found.append(parse_statement(tokens, file))
        except InputError as error:
            findings += error.diagnostics
    if findings:
        raise InputError(findings)
    return found


def parse_statement(tokens: Sequence[Token], file: SourceFile) -> nodes.Statement:
    """Return one statement.

    Raises:
        InputError: it is not one that is known.
    """
    cursor = TokenCursor(tokens, file)
    word = cursor.word()
    if word == "WITH" and (start := _write_after_with(cursor)):
        return _insert(TokenCursor(tokens[start:], file), tokens[:start])
    if word in QUESTION_WORDS:
        return nodes.QueryStatement(parse.parse_query(tokens, file), _whole(cursor))
    match word:
        case "CREATE":
            return _create(cursor)
        case "ALTER" if cursor.is_next("ALTER", "VIEW"):
            return _alter_view(cursor)
        case "ALTER" if cursor.is_next("ALTER", "TABLE"):
            return read_alter_table(cursor)
        case "COMMENT":
            return _comment(cursor)
        case "DROP":
            return _drop(cursor)
        case "INSERT":
            return _insert(cursor)
        case "DELETE":
            return _delete(cursor)
        case "UPDATE":
            return _update(cursor)
        case "MERGE":
            return _merge(cursor)
        case "TRUNCATE":
            return _truncate(cursor)
        case "SHOW" | "DESCRIBE" | "DESC" | "EXPLAIN":
            return _show(cursor)
        case _:
            return _boundary(cursor)


def _write_after_with(cursor: TokenCursor) -> int:
    """Return where the INSERT after common table expressions begins; 0 if a query follows them.

    Raises:
        InputError: another statement follows them.
    """
    depth = 0
    for at in range(len(cursor.tokens)):
        word = cursor.word(at)
        depth += (word == "(") - (word == ")")
        if depth or word not in ("INSERT", "DELETE", "UPDATE", "MERGE"):
            continue
        if word == "INSERT":
            return at
        place = "source, after `USING`" if word == "MERGE" else f"condition, after `{word}`"
        raise InputError.of(
            "C1363",
            f"`WITH` cannot stand before `{word}`.",
            cursor.span_of(cursor.tokens[at]),
            f"write `WITH` in a subquery of the {place}",
        )
    return 0


def _whole(cursor: TokenCursor) -> Span:
    return parse.span_between(cursor.file, cursor.tokens[0].start, cursor.tokens[-1].end + 1)


def _boundary(cursor: TokenCursor) -> nodes.TransactionBoundary:
    for words, boundary in _BOUNDARIES.items():
        if cursor.accept(*words):
            _ = cursor.accept("TRANSACTION") or cursor.accept("WORK")
            cursor.finish()
            return nodes.TransactionBoundary(boundary, _whole(cursor))
    word = cursor.word() or cursor.tokens[0].text
    near = suggest_name(word, _WORDS)
    cure = _CURES.get(word) or near or "write a query, CREATE, DROP, INSERT, DELETE or UPDATE"
    raise InputError.of("C1363", f"Corollary has no statement `{word}` in SQL.", cursor.span, cure)


# --- definitions -------------------------------------------------------------------------------


def _create(cursor: TokenCursor) -> nodes.Definition | nodes.CreateTableAs:
    cursor.expect("CREATE")
    is_replacing = cursor.accept("OR", "REPLACE")
    is_materialized = cursor.accept("MATERIALIZED")
    kind, span = cursor.word(), cursor.span
    if kind not in _KINDS:
        listed = ", ".join(f"`{each}`" for each in _KINDS)
        near = _CREATE_CURES.get(kind) or suggest_name(kind, _KINDS)
        cure = near or f"what can be created is {listed}"
        raise InputError.of("C1363", f"`CREATE {kind}` is not supported.", span, cure)
    if is_replacing and kind == "TABLE":
        reason = "A table cannot be replaced: views read it, and its history has its columns."
        cure = "write `INSERT OVERWRITE` for other rows, and `ALTER TABLE` for other columns"
        raise InputError.of("C1363", reason, span, cure)
    if (is_replacing and kind not in ("VIEW", "FUNCTION")) or (is_materialized and kind != "VIEW"):
        cursor.fail("`VIEW`")
    cursor.position += 1
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = table_parser.read_relation_name(cursor)
    text = text_of(cursor.tokens, cursor.file)
    match kind:
        case "TABLE" if cursor.accept("LIKE"):
            like = (
                exp.select("*")
                .from_(exp.table_(table_parser.read_relation_name(cursor).text, quoted=True))
                .where("false")
            )
            cursor.finish()
            return nodes.CreateTableAs(name, like, if_not_exists, _whole(cursor))
        case "TABLE" if cursor.is_next("USING"):
            raise InputError.of(
                "C1363",
                "A table that is made of a query has no `USING`.",
                cursor.span,
                "leave it out: the warehouse keeps the rows; `USING` says where others come from",
            )
        case "TABLE" if cursor.is_next("AS"):
            return nodes.CreateTableAs(name, _query(cursor), if_not_exists, _whole(cursor))
        case "TABLE":
            return replace(
                table_parser.read_table(cursor, name),
                if_not_exists=if_not_exists,
                text=text,
                span=_whole(cursor),
            )
        case "VIEW":
            columns = _view_columns(cursor)
            parameters = _table_parameters(cursor, is_materialized=is_materialized)
            query = _query(cursor)
            return nodes.CreateView(
                name, columns, query, is_materialized, is_replacing, if_not_exists, text,
                _whole(cursor), parameters,
            )  # fmt: skip
        case "ASSERTION":
            cursor.expect("CHECK")
            condition = parse.parse_condition(cursor.bracketed(), cursor.file)
            cursor.finish()
            return nodes.CreateAssertion(name, condition, text, _whole(cursor))
        case "ALERT":
            message = cursor.string("the message") if cursor.accept("MESSAGE") else None
            options = table_parser.read_options(cursor) if cursor.accept("OPTIONS") else ()
            return nodes.CreateAlert(name, message, options, _query(cursor), text, _whole(cursor))
        case "FUNCTION":
            return replace(
                _function(cursor, name),
                is_replacing=is_replacing,
                if_not_exists=if_not_exists,
                text=text,
            )
        case _:
            return _trigger(cursor, name, text)


def _table_parameters(cursor: TokenCursor, *, is_materialized: bool) -> tuple[tuple[str, str], ...]:
    """Return the options of a view's table, which come next, as those of `.output`."""
    found: dict[str, str] = {}
    while True:
        start, span = cursor.position, cursor.span
        if cursor.accept("COMMENT"):
            cursor.string("a comment")
            continue
        if is_materialized and (
            cursor.accept("PARTITIONED", "BY") or cursor.accept("CLUSTER", "BY")
        ):
            cursor.names("a column")  # how Spark would store its rows
            continue
        if cursor.accept("TBLPROPERTIES"):
            given = table_parser.read_options(cursor)
        elif (
            (is_policy := cursor.accept("REFRESH", "POLICY"))
            or cursor.accept("TARGET", "LAG")
            or cursor.accept("REFRESH", "EVERY")
        ):
            if not is_materialized:
                raise InputError.of(
                    "C1363",
                    f"A view that is not stored has no {'refresh policy' if is_policy else 'lag'}.",
                    span,
                    "write `CREATE MATERIALIZED VIEW`",
                )
            if is_policy:
                value = cursor.word().lower()
                cursor.position += 1
                value += " strict" if cursor.accept("STRICT") else ""
            elif cursor.is_string():
                value = cursor.string("a duration")
            else:
                value = f"{cursor.word()} {cursor.word(1)}".lower()
                cursor.position += 2
            name = POLICY_PROPERTY if is_policy else TARGET_LAG_PROPERTY
            given = (nodes.TableOption(name, value, cursor.span_from(start)),)
        else:
            return tuple(found.items())
        for each in given:
            name = each.name.lower()
            parameter = PROPERTIES.get(name) or replicas.PROPERTIES.get(name)
            if parameter is None:
                continue
            if expected := expected_value(parameter, each.value):
                raise InputError.of(
                    "C1366",
                    f"`{each.value}` is not a value for `{each.name}`.",
                    each.span,
                    f"write {expected}",
                )
            found[parameter] = each.value


def _alter_view(cursor: TokenCursor) -> nodes.AlterView:
    cursor.expect("ALTER", "VIEW")
    name = table_parser.read_relation_name(cursor)
    if cursor.is_next("RENAME"):
        message = "`ALTER VIEW … RENAME` is not supported."
        cure = "make a view of the new name, and drop this one: what reads it names it"
        raise InputError.of("C1363", message, cursor.span, cure)
    if not cursor.is_next("AS"):
        cursor.fail("`AS` and a query, the only thing of a view that can be altered,")
    text = text_of(cursor.tokens[cursor.position :], cursor.file)
    _query(cursor)
    return nodes.AlterView(name, text, _whole(cursor))


def _comment(cursor: TokenCursor) -> nodes.AlterTable:
    """Return COMMENT ON TABLE."""
    cursor.expect("COMMENT", "ON")
    if not cursor.accept("TABLE"):
        cursor.fail("`TABLE`: what else there is keeps the comments of its statement")
    name = table_parser.read_relation_name(cursor)
    cursor.expect("IS")
    comment = "" if cursor.accept("NULL") else cursor.string("a comment")
    cursor.finish()
    return nodes.AlterTable(name, _whole(cursor), comment=comment)


def _view_columns(cursor: TokenCursor) -> tuple[SqlName, ...]:
    if not cursor.accept("("):
        return ()
    found = [cursor.name("a column")]
    while True:
        if cursor.accept("COMMENT"):
            cursor.string("a comment")
        if not cursor.accept(","):
            break
        found.append(cursor.name("a column"))
    cursor.expect(")")
    return tuple(found)


def _query(cursor: TokenCursor) -> exp.Expr:
    """Return the query after `AS`."""
    cursor.expect("AS")
    if cursor.word() not in QUESTION_WORDS:
        cursor.fail("a query")
    return parse.parse_query(cursor.rest(), cursor.file)


def _function(cursor: TokenCursor, name: SqlName) -> nodes.CreateFunction:
    """Return the function whose name was read: an expression, which calls stand for."""
    parameters: list[nodes.TableColumn] = []
    cursor.expect("(")
    while not cursor.is_next(")"):
        parameters.append(table_parser.read_column(cursor, []))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    cursor.expect("RETURNS")
    if cursor.is_next("TABLE"):
        raise InputError.of(
            "C1363",
            "A function cannot return a table.",
            cursor.span,
            "write a view, and a condition where it is read",
        )
    returns = table_parser.read_declared_type(cursor)
    while not (cursor.has_ended() or cursor.is_next("RETURN")):
        if cursor.accept("COMMENT"):
            cursor.string("a comment")
        elif not any(cursor.accept(*words) for words in _CHARACTERISTICS):
            cursor.fail("`RETURN` and an expression")
    cursor.expect("RETURN")
    span = cursor.span
    body = parse.parse_condition(cursor.rest(), cursor.file)
    if body.find(exp.Query, exp.AggFunc, exp.Window):
        message = "The body of a function is an expression of its parameters."
        cure = "write a view, which others can read, for what reads tables or several rows"
        raise InputError.of("C1363", message, span, cure)
    return nodes.CreateFunction(
        name, tuple(parameters), returns, body, is_replacing=False, if_not_exists=False, text="",
        span=_whole(cursor),
    )  # fmt: skip


_CHARACTERISTICS = (
    *(("LANGUAGE", "SQL"), ("DETERMINISTIC",), ("CONTAINS", "SQL")),
    *(("SQL", "SECURITY", "DEFINER"), ("SQL", "SECURITY", "INVOKER")),
)
"""What may be said of a function, and holds of all of them."""


def _trigger(cursor: TokenCursor, name: SqlName, text: str) -> nodes.CreateTrigger:
    """Return the trigger whose name was read."""
    if cursor.is_next("BEFORE") or cursor.is_next("INSTEAD"):
        raise InputError.of(
            "C1365",
            f"A trigger acts after a change, so `{cursor.word()}` has no meaning.",
            cursor.span,
            "write `AFTER`; what must not happen is a `CHECK` or a `CREATE ASSERTION`",
        )
    cursor.expect("AFTER")
    word = cursor.word().lower()
    if word not in set(nodes.TriggerEvent):
        cursor.fail("`INSERT`, `DELETE` or `UPDATE`")
    cursor.position += 1
    event = nodes.TriggerEvent(word)
    cursor.expect("ON")
    table = table_parser.read_relation_name(cursor)
    old = new = None
    if cursor.accept("REFERENCING"):
        while cursor.is_next("OLD") or cursor.is_next("NEW"):
            is_old = cursor.is_next("OLD")
            cursor.position += 1
            cursor.expect("TABLE")
            _ = cursor.accept("AS")
            found = cursor.name("a name for the rows")
            old, new = (found, new) if is_old else (old, found)
    if cursor.is_next("FOR", "EACH", "ROW"):
        raise InputError.of(
            "C1365",
            "A trigger acts once for all rows of a change, not for each row.",
            cursor.span,
            "write `REFERENCING NEW TABLE n FOR EACH STATEMENT`, and let the action read `n`",
        )
    cursor.expect("FOR", "EACH", "STATEMENT")
    condition = None
    if cursor.accept("WHEN"):
        condition = parse.parse_condition(cursor.bracketed(), cursor.file)
    action_cursor = TokenCursor(cursor.rest(), cursor.file)
    action: nodes.Insert | nodes.Delete
    match action_cursor.word():
        case "INSERT":
            action = _insert(action_cursor)
        case "DELETE":
            action = _delete(action_cursor)
        case _:
            action_cursor.fail("`INSERT INTO` or `DELETE FROM`")
    is_more = bool(action.returning)
    if isinstance(action, nodes.Insert):
        is_more |= action.is_overwriting or action.conflict is not None
    if is_more:
        message = "A trigger cannot overwrite a table, solve conflicts, or return rows."
        raise InputError.of("C1365", message, action.span, "write `INSERT INTO` and a query")
    return nodes.CreateTrigger(
        name, event, table, old, new, condition, action, text, _whole(cursor)
    )


def _drop(cursor: TokenCursor) -> nodes.Drop:
    cursor.expect("DROP")
    _ = cursor.accept("MATERIALIZED")
    kind = cursor.word()
    if kind not in _KINDS:
        cursor.fail("`TABLE`, `VIEW`, `ASSERTION`, `ALERT`, `TRIGGER` or `FUNCTION`")
    cursor.position += 1
    if_exists = cursor.accept("IF", "EXISTS")
    name = table_parser.read_relation_name(cursor)
    cascades = cursor.accept("CASCADE")
    _ = cursor.accept("RESTRICT")
    cursor.finish()
    return nodes.Drop(nodes.DroppedKind(kind.lower()), name, if_exists, _whole(cursor), cascades)


# --- writes ------------------------------------------------------------------------------------


def _insert(cursor: TokenCursor, tables: Sequence[Token] = ()) -> nodes.Insert:
    """Return an INSERT; the common table expressions before it belong to its query."""
    cursor.expect("INSERT")
    is_overwriting = cursor.accept("OVERWRITE")
    if not is_overwriting:
        cursor.expect("INTO")
    _ = cursor.accept("TABLE")
    table = table_parser.read_relation_name(cursor)
    alias = cursor.name("another name of the table").text if cursor.accept("AS") else table.text
    columns: tuple[SqlName, ...] = ()
    by_name = cursor.accept("BY", "NAME")
    if cursor.is_next("(") and cursor.word(1) not in ("SELECT", "WITH", "VALUES", "("):
        columns = cursor.names("a column")
    if cursor.word() not in QUESTION_WORDS:
        cursor.fail("`VALUES` or a query")
    if tables and cursor.is_next("WITH"):
        cursor.fail("a query without a `WITH` of its own")
    span, end = cursor.span, _clauses_after(cursor)
    query = parse.parse_query([*tables, *cursor.tokens[cursor.position : end]], cursor.file)
    if by_name:
        names = query.named_selects if isinstance(query, exp.Query) else []
        if not names or "" in names or "*" in names:
            message = "`BY NAME` needs a query whose columns have names."
            raise InputError.of("C1363", message, span, "name each column of the SELECT")
        columns = tuple(SqlName(each, span) for each in names)
    found = nodes.Insert(table, columns, query, _whole(cursor), is_overwriting)
    if end == len(cursor.tokens):
        return found
    if is_overwriting:
        cursor.position = end
        cursor.finish()
    whole = parse.parse_query(cursor.tokens, cursor.file)
    return replace(found, conflict=_conflict(cursor, whole, alias), returning=_returning(whole))


def _clauses_after(cursor: TokenCursor) -> int:
    """Return where ON CONFLICT or RETURNING begins after a write, or its end."""
    depth = 0
    for at in range(len(cursor.tokens) - cursor.position):
        word = cursor.word(at)
        depth += (word == "(") - (word == ")")
        is_conflict = (word, cursor.word(at + 1)) == ("ON", "CONFLICT")
        is_clause = is_conflict and cursor.word(at + 2) in ("(", "DO", "ON")
        if not depth and (is_clause or word in ("RETURNING", "ON CONFLICT")):
            return cursor.position + at
    return len(cursor.tokens)


def _conflict(cursor: TokenCursor, whole: exp.Expr, alias: str) -> nodes.OnConflict | None:
    found = whole.args.get("conflict")
    if found is None:
        return None
    span = parse.span_of(whole.this, cursor.file)
    if found.args.get("constraint") or found.args.get("index_predicate"):
        message = "ON CONFLICT names the columns of a key."
        raise InputError.of("C1363", message, span, "write `ON CONFLICT (column, …)`")
    keys = [each.this if isinstance(each, exp.Ordered) else each
            for each in found.args.get("conflict_keys") or ()]  # fmt: skip
    where = found.args.get("where")
    return nodes.OnConflict(
        alias,
        tuple(SqlName(each.name, parse.span_of(each, cursor.file)) for each in keys),
        tuple(found.expressions),
        None if where is None else where.this,
        span,
    )


def _returning(whole: exp.Expr) -> tuple[exp.Expr, ...]:
    found = whole.args.get("returning")
    return () if found is None else tuple(found.expressions)


def _delete(cursor: TokenCursor) -> nodes.Delete:
    cursor.expect("DELETE")
    cursor.expect("FROM")
    end = _clauses_after(cursor)
    whole = (
        parse.parse_query(cursor.tokens, cursor.file) if end < len(cursor.tokens) else exp.Delete()
    )
    cursor.tokens = cursor.tokens[:end]
    table = table_parser.read_relation_name(cursor)
    alias = _alias(cursor, table, "WHERE")
    condition = _where(cursor)
    return nodes.Delete(table, alias, condition, _whole(cursor), returning=_returning(whole))


def _merge(cursor: TokenCursor) -> nodes.Merge:
    tree = parse.parse_query(cursor.tokens, cursor.file)
    cursor.expect("MERGE")
    cursor.expect("INTO")
    table = table_parser.read_relation_name(cursor)
    alias = _alias(cursor, table, "USING")
    cursor.expect("USING")
    known = ("this", "using", "on", "whens")
    if not isinstance(tree, exp.Merge) or any(
        value for name, value in tree.args.items() if name not in known
    ):
        cursor.fail("`source ON condition WHEN …`")
    return nodes.Merge(table, alias, tree, _whole(cursor))


def _truncate(cursor: TokenCursor) -> nodes.Delete:
    """Return TRUNCATE TABLE, which is a DELETE of all rows."""
    cursor.expect("TRUNCATE")
    cursor.expect("TABLE")
    table = table_parser.read_relation_name(cursor)
    cursor.finish()
    return nodes.Delete(table, table.text, None, _whole(cursor))


def _alias(cursor: TokenCursor, table: SqlName, following: str) -> str:
    if cursor.accept("AS") or not (cursor.has_ended() or cursor.is_next(following)):
        return cursor.name("another name of the table").text
    return table.text


def _where(cursor: TokenCursor) -> exp.Expr | None:
    condition = None
    if cursor.accept("WHERE"):
        if cursor.has_ended():
            cursor.fail("a condition")
        condition = parse.parse_condition(cursor.rest(), cursor.file)
    cursor.finish()
    return condition


def _update(cursor: TokenCursor) -> nodes.UpdateStatement:
    whole = parse.parse_query(cursor.tokens, cursor.file)
    cursor.expect("UPDATE")
    table = table_parser.read_relation_name(cursor)
    alias = _alias(cursor, table, "SET")
    cursor.expect("SET")
    if not isinstance(whole, exp.Update) or whole.args.get("from_") is not None:
        cursor.fail("an assignment such as `column = value`")
    assignments: list[tuple[SqlName, exp.Expr]] = []
    for each in whole.expressions:
        column = each.this if isinstance(each, exp.EQ) else None
        if not isinstance(column, exp.Column):
            cursor.fail("an assignment such as `column = value`")
        place = parse.span_of(column, cursor.file)
        assignments.append((SqlName(column.name, place), each.expression))
    if not assignments:
        cursor.fail("an assignment such as `column = value`")
    where = whole.args.get("where")
    condition = where.this if isinstance(where, exp.Where) else None
    return nodes.UpdateStatement(
        table, alias, tuple(assignments), condition, _whole(cursor), returning=_returning(whole)
    )


# --- what is there -----------------------------------------------------------------------------


def _show(cursor: TokenCursor) -> nodes.Show:
    """Return SHOW, DESCRIBE or EXPLAIN."""
    span = _whole(cursor)
    if cursor.accept("EXPLAIN"):
        if cursor.is_next("CREATE"):
            view = _create(TokenCursor(cursor.rest(), cursor.file))
            if isinstance(view, nodes.CreateView) and view.is_materialized:
                return nodes.Show(nodes.Shown.PLAN, span, view=view)
            message = "Only what a materialized view does can be explained before it is made."
            cure = "write `EXPLAIN CREATE MATERIALIZED VIEW`, or `EXPLAIN SELECT`"
            raise InputError.of("C1363", message, span, cure)
        _ = any(cursor.accept(word) for word in ("EXTENDED", "FORMATTED", "COST", "CODEGEN"))
        if cursor.word() not in QUESTION_WORDS:
            cursor.fail("a question")
        text = text_of(cursor.rest(), cursor.file)
        return nodes.Show(nodes.Shown.PLAN, span, text=text)
    if cursor.accept("SHOW"):
        for shown in (nodes.Shown.TABLES, nodes.Shown.VIEWS, nodes.Shown.FUNCTIONS):
            if cursor.accept(shown.upper()):
                is_like = cursor.accept("LIKE") or not cursor.has_ended()
                pattern = cursor.string("a pattern of names") if is_like else "*"
                cursor.finish()
                return nodes.Show(shown, span, pattern=pattern)
        if cursor.accept("CREATE", "TABLE") or cursor.accept("CREATE", "VIEW"):
            shown = nodes.Shown.DEFINITION
        elif cursor.accept("TBLPROPERTIES"):
            shown = nodes.Shown.PROPERTIES
        elif cursor.accept("COLUMNS"):
            if not cursor.accept("IN"):
                cursor.expect("FROM")
            shown = nodes.Shown.COLUMNS
        else:
            cursor.fail(
                "`TABLES`, `VIEWS`, `COLUMNS`, `FUNCTIONS`, `TBLPROPERTIES` or `CREATE TABLE`"
            )
    else:
        cursor.position += 1
        if cursor.accept("FUNCTION"):
            _ = cursor.accept("EXTENDED")
            function = cursor.name("a function")
            cursor.finish()
            return nodes.Show(nodes.Shown.FUNCTION, span, function)
        if cursor.accept("QUERY") or cursor.word() in ("SELECT", "WITH", "VALUES", "FROM"):
            query = parse.parse_query(cursor.rest(), cursor.file)
            return nodes.Show(nodes.Shown.DESCRIPTION, span, query=query)
        _ = cursor.accept("TABLE")
        is_extended = cursor.accept("EXTENDED") or cursor.accept("FORMATTED")
        shown = nodes.Shown.DETAILS if is_extended else nodes.Shown.DESCRIPTION
    relation, pattern = table_parser.read_relation_name(cursor), "*"
    if shown is nodes.Shown.PROPERTIES and cursor.accept("("):
        pattern = cursor.string("the name of a property")
        cursor.expect(")")
    cursor.finish()
    return nodes.Show(shown, span, relation, pattern)
