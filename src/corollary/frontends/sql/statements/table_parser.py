"""CREATE TABLE: columns, constraints, where the data comes from."""

from dataclasses import replace

from corollary.core.spark_times import SIZES
from corollary.errors import InputError
from corollary.frontends.sql.column_types import read_type
from corollary.frontends.sql.parse import parse_condition, parse_type
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.nodes import DeclaredType
from corollary.frontends.sql.statements.tokens import SqlName, TokenCursor, text_of

_REFUSED = {
    "DEFAULT": "give the value in the INSERT",
    "GENERATED": "compute it in a view",
    "COLLATE": "leave it out: texts are compared by code point",
}


def read_table(cursor: TokenCursor, name: SqlName) -> nodes.CreateTable:
    """Return the table whose name was read, up to the end of the statement.

    Raises:
        InputError: it is not as Spark writes it, or uses what is not supported.
    """
    if cursor.is_next("AS"):
        raise _made_of_query(cursor)
    if cursor.is_next("USING") or cursor.has_ended():
        cursor.fail("a list of columns in brackets")
    cursor.expect("(")
    columns: list[nodes.TableColumn] = []
    constraints: list[nodes.Constraint] = []
    while True:
        if not _read_table_constraint(cursor, constraints):
            columns.append(_read_column(cursor, constraints))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    source_format: SqlName | None = None
    options: tuple[nodes.TableOption, ...] = ()
    duplicates = nodes.Duplicates.COUNT
    while not cursor.has_ended():
        if cursor.accept("USING"):
            source_format = cursor.name("a format")
        elif cursor.accept("OPTIONS"):
            options += read_options(cursor)
        elif cursor.is_next("LOCATION"):
            span = cursor.span
            cursor.position += 1
            options += (nodes.TableOption("path", cursor.string("a path"), span),)
        elif cursor.accept("COMMENT"):
            cursor.string("a comment")
        elif cursor.accept("PARTITIONED", "BY"):
            cursor.names("a column")  # how Spark would store the table
        elif cursor.is_next("AS"):
            raise _made_of_query(cursor)
        elif cursor.accept("TBLPROPERTIES"):
            duplicates = _duplicates(read_options(cursor), duplicates)
        else:
            cursor.fail("`USING`, `OPTIONS`, `TBLPROPERTIES`, `COMMENT` or the end")
    span = cursor.span_from(0)
    return nodes.CreateTable(
        name, tuple(columns), tuple(constraints), source_format, options, duplicates,
        if_not_exists=False, text="", span=span,
    )  # fmt: skip


def _made_of_query(cursor: TokenCursor) -> InputError:
    return InputError.of(
        "C1363",
        "A table is not made of a query here.",
        cursor.span,
        "write `CREATE MATERIALIZED VIEW` for one that follows its query, or `INSERT INTO … "
        "SELECT` after the `CREATE TABLE`",
    )


def read_options(cursor: TokenCursor) -> tuple[nodes.TableOption, ...]:
    """Return the entries in brackets that come next: `path 'x.csv'` or `'path' = 'x.csv'`."""
    cursor.expect("(")
    found: list[nodes.TableOption] = []
    while True:
        start = cursor.position
        name = _option_name(cursor)
        _ = cursor.accept("=")
        if cursor.is_string():
            value = cursor.string("a value")
        else:
            if cursor.has_ended() or cursor.is_next(")") or cursor.is_next(","):
                cursor.fail("a value")
            value = cursor.word().lower()
            cursor.position += 1
        found.append(nodes.TableOption(name, value, cursor.span_from(start)))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(found)


def _option_name(cursor: TokenCursor) -> str:
    if cursor.is_string():
        return cursor.string("the name of an option")
    parts = [cursor.name("the name of an option").text]
    while cursor.accept("."):
        parts.append(cursor.name("the name of an option").text)
    return ".".join(parts)


def _duplicates(
    options: tuple[nodes.TableOption, ...], duplicates: nodes.Duplicates
) -> nodes.Duplicates:
    for each in options:
        if each.name.lower() == "duplicates":
            if each.value.lower() not in set(nodes.Duplicates):
                raise InputError.of(
                    "C1366",
                    f"`{each.value}` does not say what happens to equal rows.",
                    each.span,
                    "write `count` (as SQL does), `drop` or `refuse`",
                )
            duplicates = nodes.Duplicates(each.value.lower())
    return duplicates


# --- columns and constraints -------------------------------------------------------------------


def _read_column(cursor: TokenCursor, constraints: list[nodes.Constraint]) -> nodes.TableColumn:
    name = cursor.name("a column or a constraint")
    type_ = read_declared_type(cursor)
    is_nullable = True
    while not (cursor.has_ended() or cursor.is_next(",") or cursor.is_next(")")):
        if cursor.accept("NOT", "NULL"):
            is_nullable = False
        elif cursor.accept("NULL"):
            is_nullable = True
        elif cursor.accept("COMMENT"):
            cursor.string("a comment")
        elif not _read_constraint(cursor, constraints, (name,)):
            word = cursor.word()
            if word in _REFUSED:
                text = f"`{word}` of a column is not supported."
                raise InputError.of("C1363", text, cursor.span, _REFUSED[word])
            cursor.fail("`NOT NULL`, a constraint, `COMMENT`, `,` or `)`")
    found = nodes.DeclaredType(
        type_.type.with_null(is_nullable), type_.written, type_.bits, type_.length
    )
    return nodes.TableColumn(name, found)


def _read_table_constraint(cursor: TokenCursor, constraints: list[nodes.Constraint]) -> bool:
    is_constraint = (
        cursor.is_next("PRIMARY", "KEY")
        or cursor.is_next("UNIQUE", "(")
        or cursor.is_next("CHECK", "(")
        or cursor.is_next("FOREIGN", "KEY")
        or (cursor.is_next("CONSTRAINT") and cursor.word(2).split(" ")[0] in _CONSTRAINT_WORDS)
    )
    return is_constraint and _read_constraint(cursor, constraints, ())


_CONSTRAINT_WORDS = ("PRIMARY", "UNIQUE", "CHECK", "FOREIGN")


def _read_constraint(
    cursor: TokenCursor, constraints: list[nodes.Constraint], column: tuple[SqlName, ...]
) -> bool:
    """Read a constraint, if one comes next; that of a column has no list of columns."""
    start = cursor.position
    label = cursor.name("the name of the constraint").text if cursor.accept("CONSTRAINT") else ""
    if cursor.is_next("PRIMARY", "KEY") or cursor.is_next("UNIQUE"):
        is_primary = cursor.accept("PRIMARY", "KEY")
        if not is_primary:
            cursor.position += 1
        columns = column or cursor.names("a column")
        is_enforced = _is_enforced(cursor)
        constraints.append(
            nodes.KeyConstraint(columns, is_primary, is_enforced, cursor.span_from(start))
        )
        return True
    if cursor.accept("CHECK"):
        inside = cursor.bracketed()
        condition = parse_condition(inside, cursor.file)
        text = text_of(inside, cursor.file)
        is_enforced = _is_enforced(cursor)
        constraints.append(
            nodes.CheckConstraint(condition, text, label, is_enforced, cursor.span_from(start))
        )
        return True
    if cursor.is_next("FOREIGN", "KEY") or (column and cursor.is_next("REFERENCES")):
        if cursor.accept("FOREIGN", "KEY"):
            column = cursor.names("a column")
        constraints.append(_foreign_key(cursor, column, start))
        return True
    if label:
        cursor.fail("`PRIMARY KEY`, `UNIQUE`, `CHECK` or `FOREIGN KEY`")
    return False


def _foreign_key(cursor: TokenCursor, columns: tuple[SqlName, ...], start: int) -> nodes.ForeignKey:
    cursor.expect("REFERENCES")
    table = cursor.name("a table")
    targets = cursor.names("a column") if cursor.is_next("(") else ()
    action = nodes.DeleteAction.REFUSE
    while cursor.is_next("ON"):
        span = cursor.span
        is_delete = cursor.accept("ON", "DELETE")
        if not is_delete:
            cursor.expect("ON", "UPDATE")
        if cursor.accept("CASCADE"):
            found = nodes.DeleteAction.CASCADE
        elif cursor.accept("SET", "NULL"):
            found = nodes.DeleteAction.SET_NULL
        elif cursor.accept("NO", "ACTION") or cursor.accept("RESTRICT"):
            found = nodes.DeleteAction.REFUSE
        else:
            cursor.fail("`CASCADE`, `SET NULL` or `NO ACTION`")
        if not is_delete and found is not nodes.DeleteAction.REFUSE:
            raise InputError.of(
                "C1363",
                "What happens to references when a key changes cannot be chosen.",
                span,
                "leave out `ON UPDATE`: the references must be changed in the same transaction",
            )
        action = found if is_delete else action
    is_enforced = _is_enforced(cursor)
    return nodes.ForeignKey(columns, table, targets, action, is_enforced, cursor.span_from(start))


def _is_enforced(cursor: TokenCursor) -> bool:
    is_enforced = True
    while True:
        if cursor.accept("NOT", "ENFORCED"):
            is_enforced = False
        elif not (cursor.accept("ENFORCED") or cursor.accept("RELY") or cursor.accept("NORELY")):
            return is_enforced


# --- types ---------------------------------------------------------------------------------------


_CURES = {
    "CHAR": "write `VARCHAR(n)` or `STRING`: Spark would add blanks to a CHAR",
    "CHARACTER": "write `VARCHAR(n)` or `STRING`: Spark would add blanks to a CHAR",
    "TEXT": "write `STRING`",
}


def read_declared_type(cursor: TokenCursor) -> DeclaredType:
    """Return the type that comes next; it may be null.

    Raises:
        InputError: there is no such type here.
    """
    start, span, word = cursor.position, cursor.span, cursor.word()
    if not word.isidentifier():
        cursor.fail("the type of a column")
    cursor.position += 1
    inside = cursor.bracketed() if cursor.is_next("(") else []
    if word == "INTERVAL" and cursor.word() in SIZES:
        cursor.position += 1
        if cursor.accept("TO"):
            cursor.position += 1
    depth = cursor.word().count("<") if word in ("ARRAY", "STRUCT", "MAP") else 0
    while depth > 0 and not cursor.has_ended():
        cursor.position += 1
        depth += cursor.word().count("<") - cursor.word().count(">")
        cursor.position += depth == 0
    tokens = cursor.tokens[start : cursor.position]
    if word in _CURES:
        text = f"`{word}` is not a type that columns can have here."
        raise InputError.of("C1362", text, span, _CURES[word])
    found = read_type(parse_type(tokens, cursor.file), cursor.file)
    length = None
    if found.type.is_symbol and inside:
        length = int(inside[0].text) if inside[0].text.isdecimal() else 0
        if len(inside) > 1 or not length:
            raise InputError.of(
                "C1362", f"`{word}` has one length, 1 or more.", span, "write `VARCHAR(20)`"
            )
    separator = " " if found.type.is_interval else ""
    written = separator.join(token.text.upper() for token in tokens)
    written = found.type.spark_name if found.type.members else written
    bits = found.bits if found.type.is_number else 0
    type_ = replace(found.type, nullable=True, bits=bits)
    return DeclaredType(type_, written, found.bits, length)
