"""ALTER TABLE: read token by token, and what it makes of the statement that created a table."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from corollary.analysis.phrases import one_of
from corollary.core.types import is_wider
from corollary.errors import InputError
from corollary.frontends.sql.parse import split_statements
from corollary.frontends.sql.statements import nodes, table_parser
from corollary.frontends.sql.statements.table_text import quoted
from corollary.frontends.sql.statements.tables import find_column
from corollary.frontends.sql.statements.tokens import SqlName, TokenCursor
from corollary.source import SourceFile, Span

_Item = TypeVar("_Item")


def read_alter_table(cursor: TokenCursor) -> nodes.AlterTable:
    """Return an ALTER TABLE.

    Raises:
        InputError: it is not as Spark writes it, or does what has no meaning here.
    """
    cursor.expect("ALTER", "TABLE")
    plain = nodes.AlterTable(table_parser.read_relation_name(cursor), cursor.span_from(0))
    found = _read_change(cursor, plain)
    cursor.finish()
    return replace(found, span=cursor.span_from(0))


def _read_change(cursor: TokenCursor, plain: nodes.AlterTable) -> nodes.AlterTable:
    if cursor.accept("RENAME", "TO"):
        return replace(plain, new_name=table_parser.read_relation_name(cursor))
    if cursor.accept("RENAME", "COLUMN"):
        old = cursor.name("a column")
        cursor.expect("TO")
        return replace(plain, renamed=((old, cursor.name("a name")),))
    if cursor.accept("SET", "TBLPROPERTIES"):
        given = table_parser.read_properties(cursor)
        return replace(plain, properties=tuple((each.name, each) for each in given))
    if cursor.accept("UNSET", "TBLPROPERTIES"):
        _ = cursor.accept("IF", "EXISTS")
        cursor.expect("(")
        gone = _list(cursor, lambda: cursor.string("the name of a property"))
        cursor.expect(")")
        return replace(plain, properties=tuple((name, None) for name in gone))
    if cursor.accept("ADD"):
        return _read_addition(cursor, plain)
    if cursor.accept("DROP"):
        return _read_drop(cursor, plain)
    if cursor.accept("ALTER"):
        _ = cursor.accept("COLUMN")
        return replace(plain, columns=tuple(_list(cursor, lambda: _read_column_change(cursor))))
    word = " ".join(filter(None, (cursor.word(), cursor.word(1))))
    raise InputError.of(
        "C1363",
        f"`ALTER TABLE … {word}` is not supported." if word else "ALTER TABLE says no change.",
        cursor.span,
        "write `ADD`, `DROP`, `RENAME`, `ALTER COLUMN` or `SET TBLPROPERTIES`; where rows are "
        "stored cannot be chosen",
    )


def _list(cursor: TokenCursor, read: Callable[[], _Item]) -> list[_Item]:
    found = [read()]
    while cursor.accept(","):
        found.append(read())
    return found


def _read_addition(cursor: TokenCursor, plain: nodes.AlterTable) -> nodes.AlterTable:
    constraints: list[nodes.Constraint] = []
    if not (cursor.accept("COLUMN") or cursor.accept("COLUMNS")):
        if not table_parser.read_table_constraint(cursor, constraints):
            cursor.fail("`COLUMN`, `COLUMNS` or a constraint")
        return replace(plain, constraints=tuple(constraints))

    def column() -> tuple[nodes.TableColumn, nodes.ColumnPlace | None]:
        return table_parser.read_column(cursor, constraints), _read_place(cursor)

    is_bracketed = cursor.accept("(")
    added = _list(cursor, column)
    if is_bracketed:
        cursor.expect(")")
    return replace(plain, added=tuple(added), constraints=tuple(constraints))


def _read_place(cursor: TokenCursor) -> nodes.ColumnPlace | None:
    if cursor.accept("FIRST"):
        return nodes.ColumnPlace(None)
    return nodes.ColumnPlace(cursor.name("a column")) if cursor.accept("AFTER") else None


def _read_drop(cursor: TokenCursor, plain: nodes.AlterTable) -> nodes.AlterTable:
    if cursor.is_next("PRIMARY", "KEY"):
        gone = SqlName("PRIMARY KEY", cursor.span)
        cursor.accept("PRIMARY", "KEY")
        if_exists = cursor.accept("IF", "EXISTS")
    elif cursor.accept("CONSTRAINT"):
        if_exists = cursor.accept("IF", "EXISTS")
        gone = cursor.name("a constraint")
    else:
        if not cursor.accept("COLUMNS"):
            cursor.expect("COLUMN")
        if_exists = cursor.accept("IF", "EXISTS")
        is_bracketed = cursor.is_next("(")
        names = cursor.names("a column") if is_bracketed else (cursor.name("a column"),)
        while not is_bracketed and cursor.accept(","):
            names += (cursor.name("a column"),)
        return replace(plain, dropped=names, if_exists=if_exists)
    _ = cursor.accept("RESTRICT") or cursor.accept("CASCADE")
    return replace(plain, dropped_constraint=gone, if_exists=if_exists)


def _read_column_change(cursor: TokenCursor) -> nodes.ColumnChange:
    plain = nodes.ColumnChange(cursor.name("a column"))
    if cursor.accept("SET", "NOT", "NULL"):
        return replace(plain, is_nullable=False)
    if cursor.accept("DROP", "NOT", "NULL"):
        return replace(plain, is_nullable=True)
    if cursor.accept("SET", "DEFAULT"):
        return replace(plain, default=table_parser.read_default(cursor))
    if cursor.accept("DROP", "DEFAULT"):
        return replace(plain, default=nodes.Default(None, ""))
    if cursor.accept("COMMENT"):
        return replace(plain, comment=cursor.string("a comment"))
    place = _read_place(cursor)
    if place is not None:
        return replace(plain, place=place)
    if not cursor.accept("TYPE"):
        cursor.fail("`TYPE`, `SET NOT NULL`, `SET DEFAULT`, `DROP`, `COMMENT`, `FIRST` or `AFTER`")
    return replace(plain, type=table_parser.read_declared_type(cursor))


# --- what it makes of a table --------------------------------------------------------------------


def altered_table(table: nodes.CreateTable, alter: nodes.AlterTable) -> nodes.CreateTable:
    """Return a table after an ALTER TABLE.

    Raises:
        InputError: it does not fit the table.
    """
    columns, constraints = list(table.columns), list(table.constraints)
    options = table.options

    def find(name: SqlName) -> int:
        return find_column(table.name.text, [each.name.text for each in columns], name)

    def put(column: nodes.TableColumn, place: nodes.ColumnPlace | None) -> None:
        at = len(columns)
        if place is not None:
            at = 0 if place.after is None else find(place.after) + 1
        columns.insert(at, column)

    for column, place in alter.added:
        known = [each.name.text for each in columns]
        if column.name.text.lower() in map(str.lower, known):
            raise _misfit(
                f"`{table.name.text}` has a column `{column.name.text}` already.",
                column.name.span,
                "give the new one another name",
            )
        if not column.type.type.nullable and column.default is None:
            raise _misfit(
                f"`{column.name.text}` is NOT NULL, and rows that are there have no value for it.",
                column.name.span,
                "give it a `DEFAULT`, or add it without `NOT NULL` and `SET NOT NULL` later",
            )
        put(column, place)
    for name in alter.dropped:
        known = [each.name.text.lower() for each in columns]
        if alter.if_exists and name.text.lower() not in known:
            continue
        at = find(name)
        for constraint in constraints:
            if _mentions(constraint, columns[at].name.text):
                raise _misfit(
                    f"`{name.text}` cannot be dropped: {_describe(constraint)} uses it.",
                    name.span,
                    "drop the constraint first",
                )
        del columns[at]
    for old, new in alter.renamed:
        at = find(old)
        was = columns[at].name.text
        columns[at] = replace(columns[at], name=new)
        constraints = [_renamed(each, table.name.text, was, new) for each in constraints]
        options = tuple(
            replace(each, value=new.text)
            if each.name.lower() == "order" and each.value.lower() == was.lower()
            else each
            for each in options
        )
    for change in alter.columns:
        at = find(change.name)
        column = _changed(columns[at], change)
        if change.place is None:
            columns[at] = column
        else:
            del columns[at]
            put(column, change.place)
    properties = {each.name: each for each in table.properties}
    for key, value in alter.properties:
        properties.pop(key, None)
        if value is not None:
            properties[key] = value
    if alter.dropped_constraint is not None:
        constraints = _without(constraints, table, alter.dropped_constraint, alter)
    for added in alter.constraints:
        if added.name and any(added.name == each.name for each in constraints):
            raise _misfit(
                f"`{table.name.text}` has a constraint `{added.name}` already.",
                added.span,
                "give it another name",
            )
        constraints.append(added)
    return replace(
        table,
        name=alter.new_name or table.name,
        columns=tuple(columns),
        constraints=tuple(constraints),
        options=options,
        properties=tuple(properties.values()),
        comment=table.comment if alter.comment is None else alter.comment,
    )


def follow_references(table: nodes.CreateTable, alter: nodes.AlterTable) -> nodes.CreateTable:
    """Return a table whose foreign keys name what another table, or a column of it, is now."""
    new_names = {old.text.lower(): new for old, new in alter.renamed}

    def followed(constraint: nodes.Constraint) -> nodes.Constraint:
        if not isinstance(constraint, nodes.ForeignKey):
            return constraint
        if constraint.table.text.lower() != alter.name.text.lower():
            return constraint
        targets = tuple(new_names.get(each.text.lower(), each) for each in constraint.targets)
        return replace(constraint, table=alter.new_name or constraint.table, targets=targets)

    return replace(table, constraints=tuple(map(followed, table.constraints)))


def _misfit(message: str, span: Span, cure: str) -> InputError:
    return InputError.of("C1381", message, span, cure)


def _changed(column: nodes.TableColumn, change: nodes.ColumnChange) -> nodes.TableColumn:
    type_ = column.type
    if change.type is not None:
        if not _is_wider(type_, change.type):
            raise _misfit(
                f"`{column.name.text}` is {type_.written}, and not all of its values fit "
                f"{change.type.written}.",
                change.name.span,
                "name a type that has all values of the old one; or add a column, fill it with "
                "`UPDATE … SET new = CAST(…)`, and drop the old one",
            )
        type_ = replace(change.type, type=change.type.type.with_null(type_.type.nullable))
    if change.is_nullable is not None:
        type_ = replace(type_, type=type_.type.with_null(change.is_nullable))
    default = column.default if change.default is None else change.default
    return replace(
        column,
        type=type_,
        default=None if default is None or default.value is None else default,
        comment=column.comment if change.comment is None else change.comment,
    )


def _is_wider(was: nodes.DeclaredType, now: nodes.DeclaredType) -> bool:
    """Whether all values of a type are values of another one, as Spark widens types."""
    if was.type.is_symbol and now.type.is_symbol and not was.type.members:
        return now.length is None or (was.length is not None and was.length <= now.length)
    old, new = (replace(each.type, bits=each.bits) for each in (was, now))
    if old.is_number and new.is_number:
        return was.bits <= now.bits
    return is_wider(old, new)


def _describe(constraint: nodes.Constraint) -> str:
    if constraint.name:
        return f"the constraint `{constraint.name}`"
    match constraint:
        case nodes.KeyConstraint(is_primary=True):
            return "the primary key"
        case nodes.KeyConstraint():
            return "a `UNIQUE`"
        case nodes.CheckConstraint(text=text):
            return f"`CHECK ({' '.join(text.split())})`"
        case nodes.ForeignKey():
            return "a foreign key"


def _mentions(constraint: nodes.Constraint, column: str) -> bool:
    match constraint:
        case nodes.CheckConstraint(text=text):
            return _with_name(text, column, None) != text
        case _:
            return column.lower() in (each.text.lower() for each in constraint.columns)


def _renamed(constraint: nodes.Constraint, table: str, was: str, new: SqlName) -> nodes.Constraint:
    def named(names: Iterable[SqlName]) -> tuple[SqlName, ...]:
        return tuple(new if each.text.lower() == was.lower() else each for each in names)

    match constraint:
        case nodes.CheckConstraint(text=text):
            return replace(constraint, text=_with_name(text, was, new))
        case nodes.KeyConstraint(columns=columns):
            return replace(constraint, columns=named(columns))
        case nodes.ForeignKey(columns=columns, table=parent, targets=targets):
            is_own = parent.text.lower() == table.lower()
            targets = named(targets) if is_own else targets
            return replace(constraint, columns=named(columns), targets=targets)


def _with_name(text: str, was: str, new: SqlName | None) -> str:
    """Return a condition in which a column has another name; None takes the name away."""
    (tokens,) = split_statements(SourceFile("CHECK", text))
    cursor = TokenCursor(tokens, SourceFile("CHECK", text))
    made = text
    for at in reversed(range(len(tokens))):
        token = tokens[at]
        is_name = token.text.lower() == was.lower()
        cursor.position = at
        if is_name and (cursor.word() or not cursor.is_string()) and cursor.word(1) != "(":
            written = "" if new is None else quoted(new)
            made = made[: token.start] + written + made[token.end + 1 :]
    return made


def _without(
    constraints: Sequence[nodes.Constraint],
    table: nodes.CreateTable,
    gone: SqlName,
    alter: nodes.AlterTable,
) -> list[nodes.Constraint]:
    def is_meant(each: nodes.Constraint) -> bool:
        is_key = isinstance(each, nodes.KeyConstraint) and each.is_primary
        return is_key if gone.text == "PRIMARY KEY" else each.name.lower() == gone.text.lower()

    kept = [each for each in constraints if not is_meant(each)]
    if len(kept) == len(constraints) and not alter.if_exists:
        names = [each.name for each in constraints if each.name]
        cure = "write `IF EXISTS` if that is no error; only what has a name can be named"
        text = f"`{table.name.text}` has no constraint `{gone.text}`."
        if gone.text == "PRIMARY KEY":
            text = f"`{table.name.text}` has no primary key."
        elif names:
            cure = f"its constraints are {one_of(f'`{each}`' for each in names)}"
        raise _misfit(text, gone.span, cure)
    return kept
