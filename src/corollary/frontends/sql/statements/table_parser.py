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
    "GENERATED": "compute it in a view; numbers that a table gives out itself would depend on the "
    "order in which rows come, so give each row its number, or a `uuid`, in the INSERT",
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
    columns, constraints = read_columns(cursor)
    source_format: SqlName | None = None
    options: tuple[nodes.TableOption, ...] = ()
    properties: tuple[nodes.TableOption, ...] = ()
    comment = ""
    partitions: tuple[SqlName, ...] = ()
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
            comment = cursor.string("a comment")
        elif cursor.accept("PARTITIONED", "BY"):
            partitions = cursor.names("a column")  # how Spark would store the table
        elif cursor.is_next("AS"):
            raise _made_of_query(cursor)
        elif cursor.accept("TBLPROPERTIES"):
            properties += read_properties(cursor)
        else:
            cursor.fail("`USING`, `OPTIONS`, `TBLPROPERTIES`, `COMMENT` or the end")
    span = cursor.span_from(0)
    return nodes.CreateTable(
        name, columns, constraints, source_format, options, properties,
        comment, partitions, if_not_exists=False, text="", span=span,
    )  # fmt: skip


def read_columns(
    cursor: TokenCursor,
) -> tuple[tuple[nodes.TableColumn, ...], tuple[nodes.Constraint, ...]]:
    """Return the columns and constraints in brackets that come next."""
    cursor.expect("(")
    columns: list[nodes.TableColumn] = []
    constraints: list[nodes.Constraint] = []
    while True:
        if not read_table_constraint(cursor, constraints):
            columns.append(read_column(cursor, constraints))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(columns), tuple(constraints)


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


def read_properties(cursor: TokenCursor) -> tuple[nodes.TableOption, ...]:
    """Return the properties in brackets that come next.

    Raises:
        InputError: one that has a meaning here has a value that has none.
    """
    found = read_options(cursor)
    for each in found:
        is_known = each.value.lower() in set(nodes.Duplicates)
        if each.name.lower() == nodes.DUPLICATES and not is_known:
            raise InputError.of(
                "C1366",
                f"`{each.value}` does not say what happens to equal rows.",
                each.span,
                "write `count` (as SQL does), `drop` or `refuse`",
            )
    return found


def read_relation_name(cursor: TokenCursor) -> SqlName:
    """Return the name of a relation, which has one part.

    Raises:
        InputError: it has a schema or a catalog before it.
    """
    name = cursor.name("a name")
    if cursor.is_next("."):
        raise InputError.of(
            "C1364",
            f"`{name.text}` is a schema, and a warehouse has only one.",
            name.span,
            "write the name of the relation alone; a name that has a point stands in backquotes",
        )
    return name


# --- columns and constraints -------------------------------------------------------------------


def read_column(cursor: TokenCursor, constraints: list[nodes.Constraint]) -> nodes.TableColumn:
    """Return the column that comes next; its constraints are added to a list."""
    name = cursor.name("a column or a constraint")
    type_ = read_declared_type(cursor)
    is_nullable, default, comment = True, None, ""
    ends = (",", ")", "FIRST", "AFTER")
    while not (cursor.has_ended() or cursor.word() in ends):
        if cursor.accept("NOT", "NULL"):
            is_nullable = False
        elif cursor.accept("NULL"):
            is_nullable = True
        elif cursor.accept("COMMENT"):
            comment = cursor.string("a comment")
        elif cursor.accept("DEFAULT"):
            default = read_default(cursor)
        elif not read_constraint(cursor, constraints, (name,)):
            word = cursor.word()
            if word in _REFUSED:
                text = f"`{word}` of a column is not supported."
                raise InputError.of("C1363", text, cursor.span, _REFUSED[word])
            cursor.fail("`NOT NULL`, a constraint, `COMMENT`, `,` or `)`")
    found = nodes.DeclaredType(
        type_.type.with_null(is_nullable), type_.written, type_.bits, type_.length
    )
    return nodes.TableColumn(name, found, default, comment)


def read_default(cursor: TokenCursor) -> nodes.Default:
    """Return the value after `DEFAULT`; whether it fits is checked with its column."""
    start, depth = cursor.position, 0
    while not cursor.has_ended() and (depth or cursor.word() not in (",", ")")):
        is_end = cursor.word() in _AFTER_DEFAULT and cursor.word(1) not in ("(", ".")
        if not depth and cursor.position > start and (is_end or cursor.is_next("NOT", "NULL")):
            break
        depth += (cursor.word() == "(") - (cursor.word() == ")")
        cursor.position += 1
    if cursor.position == start:
        cursor.fail("a value")
    tokens = cursor.tokens[start : cursor.position]
    return nodes.Default(parse_condition(tokens, cursor.file), text_of(tokens, cursor.file))


_AFTER_DEFAULT = (
    *("COMMENT", "CHECK", "PRIMARY", "PRIMARY KEY", "UNIQUE", "REFERENCES", "CONSTRAINT", "NULL"),
    *("FIRST", "AFTER"),
)
"""What may follow a default."""


def read_table_constraint(cursor: TokenCursor, constraints: list[nodes.Constraint]) -> bool:
    """Read a constraint of a table into a list, if one comes next."""
    is_constraint = (
        cursor.is_next("PRIMARY", "KEY")
        or cursor.is_next("UNIQUE", "(")
        or cursor.is_next("CHECK", "(")
        or cursor.is_next("FOREIGN", "KEY")
        or (cursor.is_next("CONSTRAINT") and cursor.word(2).split(" ")[0] in _CONSTRAINT_WORDS)
    )
    return is_constraint and read_constraint(cursor, constraints, ())


_CONSTRAINT_WORDS = ("PRIMARY", "UNIQUE", "CHECK", "FOREIGN")


def read_constraint(
    cursor: TokenCursor, constraints: list[nodes.Constraint], column: tuple[SqlName, ...]
) -> bool:
    """Read a constraint into a list, if one comes next; that of a column has no list of columns."""
    start = cursor.position
    label = cursor.name("the name of the constraint").text if cursor.accept("CONSTRAINT") else ""
    if cursor.is_next("PRIMARY", "KEY") or cursor.is_next("UNIQUE"):
        is_primary = cursor.accept("PRIMARY", "KEY")
        if not is_primary:
            cursor.position += 1
        columns = column or cursor.names("a column")
        is_enforced = _is_enforced(cursor)
        constraints.append(
            nodes.KeyConstraint(columns, is_primary, is_enforced, cursor.span_from(start), label)
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
        constraints.append(_foreign_key(cursor, column, start, label))
        return True
    if label:
        cursor.fail("`PRIMARY KEY`, `UNIQUE`, `CHECK` or `FOREIGN KEY`")
    return False


def _foreign_key(
    cursor: TokenCursor, columns: tuple[SqlName, ...], start: int, label: str
) -> nodes.ForeignKey:
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
    span = cursor.span_from(start)
    return nodes.ForeignKey(columns, table, targets, action, is_enforced, span, label)


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
