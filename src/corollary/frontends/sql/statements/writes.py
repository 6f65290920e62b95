"""INSERT, DELETE and UPDATE as questions whose rows are written.

| SQL | the question has |
|---|---|
| `INSERT INTO t (b) query` | the rows to insert: all columns of `t`, null where none is given |
| `DELETE FROM t WHERE c` | the rows to delete |
| `UPDATE t SET b = e WHERE c` | the rows before, then, in further columns, the rows after |
| `MERGE INTO t USING s ON c WHEN …` | those of a write for each `WHEN`, with `s` joined |
| `INSERT … ON CONFLICT (k) DO …` | those of a MERGE with the rows to insert, named `excluded` |

Values that are assigned are converted as Spark's ANSI mode does: numbers to other numbers, dates to
timestamps, anything to text; text to nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from corollary.core.types import SQL_NUMERIC, Type
from corollary.errors import InputError
from corollary.frontends.sql.binder.bind import Finish
from corollary.frontends.sql.binder.session import BindingSession
from corollary.frontends.sql.binder.session import type_name as sql_type
from corollary.frontends.sql.binder.values.conversions import cast
from corollary.frontends.sql.binder.widening import finished, wrapped
from corollary.frontends.sql.catalog import TableDefinition
from corollary.frontends.sql.parse import span_of
from corollary.frontends.sql.query_tree import (
    ColumnReference,
    ConstantValue,
    Expression,
    Query,
    QueryColumn,
    Select,
)
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.questions import visible_columns
from corollary.frontends.sql.statements.tables import find_column
from corollary.frontends.sql.statements.tokens import SqlName
from corollary.source import SourceFile, Span


def rows_to_insert(statement: nodes.Insert, table: TableDefinition) -> Finish:
    """Return what makes rows of a table of the rows that an INSERT gives.

    Raises:
        InputError: there are more or fewer values than columns, or one does not fit.
    """
    names = [column.name for column in table.columns]
    targets = [find_column(table.relation, names, each) for each in statement.columns]
    if len(set(targets)) < len(targets):
        text = f"A column of `{table.relation}` is named twice."
        raise InputError.of("C1374", text, statement.columns[0].span, "name each column once")
    targets = targets or list(range(len(names)))

    def finish(query: Query, session: BindingSession) -> Query:
        given = visible_columns(query)
        if len(given) != len(targets):
            raise InputError.of(
                "C1374",
                f"`{table.relation}` gets {len(given)} of the {len(targets)} values that it needs.",
                statement.span,
                "give one value for each column",
            )
        query = finished(query, session, [table.columns[at].type for at in targets])
        source = wrapped(query, session.next_source())
        columns = []
        for at, column in enumerate(table.columns):
            if at in targets:
                number = targets.index(at)
                type_ = source.columns[number].type
                reference = ColumnReference(source.number, number, type_, span=statement.span)
                value = _assigned(reference, table, column, statement.span)
            elif column.type.nullable:
                value = ConstantValue(None, column.type)
            else:
                raise InputError.of(
                    "C1374",
                    f"`{column.name}` of `{table.relation}` is NOT NULL, and gets no value.",
                    statement.span,
                    "name it in the INSERT, and give it a value",
                )
            columns.append((QueryColumn(column.name, value.type), value))
        return Select(tuple(columns), source, span=query.span)

    return finish


def default_value(
    column: nodes.TableColumn, table: TableDefinition
) -> tuple[exp.Expr, Finish] | None:
    """Return the question for the default of a column; None if it has none.

    Raises:
        InputError: its type does not fit.
    """
    if column.default is None or column.default.value is None:
        return None
    query = exp.select(exp.alias_(column.default.value.copy(), "c"))
    insert = nodes.Insert(column.name, (column.name,), query, column.name.span)
    only = tuple(each for each in table.columns if each.name == column.name.text)
    return query, rows_to_insert(insert, replace(table, columns=only))


def default_row(
    table: TableDefinition, defaults: Mapping[str, exp.Expr], name: SqlName
) -> tuple[exp.Expr, Finish] | None:
    """Return the question for the defaults that columns of a table have, as one row; or None."""
    known = [each for each in table.columns if each.name.lower() in defaults]
    if not known:
        return None
    query = exp.select(*(exp.alias_(defaults[each.name.lower()].copy(), "c") for each in known))
    named = tuple(SqlName(each.name, name.span) for each in known)
    insert = nodes.Insert(name, named, query, name.span)
    return query, rows_to_insert(insert, replace(table, columns=tuple(known)))


def with_defaults(
    statement: nodes.Write, table: TableDefinition, defaults: Mapping[str, exp.Expr]
) -> nodes.Write:
    """Return a write in which the defaults of columns stand where it says `DEFAULT`, or nothing.

    Args:
        statement: what is written.
        table: to which it writes.
        defaults: of its columns, by their names in small letters.
    """

    def default(name: str) -> exp.Expr:
        found = defaults.get(name.lower())
        return exp.Null() if found is None else found.copy()

    match statement:
        case nodes.UpdateStatement(assignments=assignments):
            if not any(map(_is_default, (value for _, value in assignments))):
                return statement
            assigned = (
                (name, default(name.text) if _is_default(value) else value)
                for name, value in assignments
            )
            return replace(statement, assignments=tuple(assigned))
        case nodes.Insert(columns=columns, query=query):
            given = [each.text for each in columns] or [each.name for each in table.columns]
            known = {each.lower() for each in given}
            names = [name for name in defaults if name not in known] if columns else []
            if not names and not any(_is_default(cell) for row in _rows(query) for cell in row):
                return statement
            query = query.copy()
            rows: list[exp.Select | exp.Tuple] = [query] if isinstance(query, exp.Select) else []
            if isinstance(query, exp.Values):
                rows += [exp.Tuple(expressions=list(row)) for row in _rows(query)]
                query.set("expressions", rows)
            for row in rows:
                cells = row.expressions
                placed = [
                    default(name) if _is_default(cell) else cell
                    for cell, name in zip(cells, given, strict=False)
                ]
                row.set("expressions", [*placed, *cells[len(placed) :]])
            more = tuple(SqlName(name, statement.span) for name in names)
            if isinstance(query, exp.Values):
                for row in rows if names else ():
                    row.set("expressions", [*row.expressions, *map(default, names)])
            elif names and isinstance(query, exp.Query):
                added = [exp.alias_(default(name), f"default{at}") for at, name in enumerate(names)]
                query = exp.select("*", *added).from_(query.subquery("given"))
            return replace(statement, columns=(*columns, *more), query=query)
        case _:
            return statement


def _rows(query: exp.Expr) -> Iterator[Sequence[exp.Expr]]:
    """Yield what stands in the rows of VALUES, or in the list of a SELECT."""
    for each in query.expressions if isinstance(query, exp.Values) else [query]:
        yield _cells(each)


def _cells(row: exp.Expr) -> Sequence[exp.Expr]:
    return row.expressions if isinstance(row, exp.Tuple | exp.Select) else [row]


def _is_default(cell: exp.Expr) -> bool:
    is_word = isinstance(cell, exp.Var) or (
        isinstance(cell, exp.Column) and not cell.table and not cell.this.args.get("quoted")
    )
    return is_word and cell.name.upper() == "DEFAULT"


def rows_to_delete(statement: nodes.Delete, table: TableDefinition) -> exp.Expr:
    """Return the question for the rows that a DELETE removes."""
    rows = exp.select(exp.column(exp.Star(), table=_quoted(statement.alias)))
    rows = _joined(rows.from_(_aliased(table, statement.alias)), statement.join)
    return rows if statement.condition is None else rows.where(statement.condition)


def rows_to_update(
    statement: nodes.UpdateStatement, table: TableDefinition
) -> tuple[exp.Expr, Finish]:
    """Return the question for the rows that an UPDATE replaces, each beside the new one.

    Raises:
        InputError: a value does not fit.
    """
    names = [column.name for column in table.columns]
    assigned: dict[int, exp.Expr] = {}
    for name, value in statement.assignments:
        at = find_column(table.relation, names, name)
        if at in assigned:
            text = f"`{name.text}` is assigned twice."
            raise InputError.of("C1374", text, name.span, "assign each column once")
        assigned[at] = value
    values = [
        *(exp.column(name, table=statement.alias, quoted=True) for name in names),
        *assigned.values(),
    ]
    labels = [exp.alias_(each, f"c{at}") for at, each in enumerate(values)]
    rows = _joined(exp.select(*labels).from_(_aliased(table, statement.alias)), statement.join)
    if statement.condition is not None:
        rows = rows.where(statement.condition)

    def finish(query: Query, session: BindingSession) -> Query:
        targets = [*range(len(names)), *assigned]
        query = finished(query, session, [table.columns[at].type for at in targets])
        assert isinstance(query, Select)
        before, given = query.columns[: len(names)], query.columns[len(names) :]
        after = list(before)
        for at, (_, value) in zip(assigned, given, strict=True):
            found = _assigned(value, table, table.columns[at], statement.span)
            after[at] = QueryColumn(f"after{at}", found.type), found
        return replace(query, columns=(*before, *after))

    return rows, finish


def merge_writes(
    statement: nodes.Merge, table: TableDefinition, file: SourceFile
) -> list[nodes.Write]:
    """Return the writes of a MERGE, one for each `WHEN`; all of them see the rows before it.

    Raises:
        InputError: a `WHEN` does not fit, or comes after one that leaves it no rows.
    """
    source, on = statement.tree.args["using"], statement.tree.args["on"]
    names = [column.name for column in table.columns]
    earlier: dict[str, list[exp.Expr | None]] = {}
    found: list[nodes.Write] = []
    for when in statement.tree.args["whens"].expressions:
        kind = "MATCHED" if when.args.get("matched") else "NOT MATCHED"
        kind += " BY SOURCE" if when.args.get("source") else ""
        before = earlier.setdefault(kind, [])
        condition, then = when.args.get("condition"), when.args["then"]
        span = span_of(then, file)
        if None in before:
            text = f"A `WHEN {kind}` without a condition leaves no rows for this one."
            raise InputError.of("C1374", text, span, "write the one without a condition last")
        tests = [exp.Not(this=_is_true(each)) for each in before if each is not None]
        tests += [] if condition is None else [condition.copy()]
        test = exp.and_(*tests) if tests else None
        before.append(condition)
        is_anti = kind != "MATCHED"
        join = exp.Join(this=source.copy(), on=on.copy(), kind="ANTI" if is_anti else None)
        target, alias = statement.table, statement.alias
        match then:
            case exp.Insert() if kind == "NOT MATCHED":
                columns, values = _inserted(then, source, names)
                rows = exp.select(*values).from_(source.copy())
                other = exp.Join(this=_aliased(table, alias), on=on.copy(), kind="ANTI")
                query = _joined(rows, other)
                query = query if test is None else query.where(test)
                given = tuple(SqlName(each.name, span_of(each, file)) for each in columns)
                found.append(nodes.Insert(target, given, query, span))
            case exp.Var() if kind != "NOT MATCHED" and then.name.upper() == "DELETE":
                found.append(nodes.Delete(target, alias, test, span, join))
            case exp.Update() if kind != "NOT MATCHED":
                assigned = [
                    (SqlName(each.this.name, span_of(each, file)), each.args["expression"])
                    for each in _assignments(then, source, names)
                ]
                found.append(
                    nodes.UpdateStatement(target, alias, tuple(assigned), test, span, join)
                )
            case _:
                text = f"`WHEN {kind}` cannot do this."
                note = "rows that match are updated or deleted, others of the source inserted"
                raise InputError.of("C1374", text, span, note)
    return found


EXCLUDED = "excluded"
"""What the rows that were to be inserted are called in ON CONFLICT."""


def merge_of_conflict(
    statement: nodes.Insert, table: TableDefinition, defaults: Mapping[str, exp.Expr]
) -> nodes.Merge:
    """Return the MERGE that does what an INSERT with ON CONFLICT says.

    Of several rows with one key that are all new, `DO NOTHING` inserts the first one.

    Raises:
        InputError: the table has no such key.
    """
    conflict = statement.conflict
    assert conflict is not None
    completed = with_defaults(statement, table, defaults)
    assert isinstance(completed, nodes.Insert)
    names = [column.name for column in table.columns]
    wanted = frozenset(find_column(table.relation, names, each) for each in conflict.columns)
    keys = [key for key in table.keys if key == wanted or not wanted]
    if not keys:
        raise InputError.of(
            "C1384",
            f"No key of `{table.relation}` has just these columns.",
            conflict.span,
            "name the columns of its `PRIMARY KEY` or of a `UNIQUE`",
        )
    given = [each.text for each in completed.columns] or names
    query: exp.Expr = completed.query.copy()
    first = exp.column(names[min(keys[0])], quoted=True)
    if isinstance(query, exp.Values):  # the order of the rows is known
        for at, row in enumerate(query.expressions):
            row.replace(exp.Tuple(expressions=[*_cells(row), exp.Literal.number(at)]))
        first, given = exp.column(_ORDER, quoted=True), [*given, _ORDER]
    alias = exp.TableAlias(this=_quoted("given"), columns=[_quoted(each) for each in given])
    if isinstance(query, exp.Values):
        query.set("alias", alias)
    else:
        query = exp.Subquery(this=query, alias=alias)
    known = {each.lower() for each in given}
    source = exp.select(
        *(
            exp.column(each.name, quoted=True)
            if each.name.lower() in known
            else exp.alias_(exp.cast(exp.Null(), spark_type(each.type)), each.name, quoted=True)
            for each in table.columns
        )
    ).from_(query)
    is_several = not isinstance(query, exp.Values) or len(query.expressions) > 1
    if is_several and not conflict.assignments and len(keys) == 1:
        parts = [exp.column(names[at], quoted=True) for at in sorted(keys[0])]
        order = exp.Order(expressions=[exp.Ordered(this=first, nulls_first=True)])
        call = exp.Anonymous(this="row_number")
        number = exp.Window(this=call, partition_by=parts, order=order, over="OVER")
        source.set("qualify", exp.Qualify(this=number.eq(1)))
    whens = [exp.When(matched=False, then=exp.Insert(this=exp.Star()))]
    if conflict.assignments:
        update = exp.Update(expressions=[each.copy() for each in conflict.assignments])
        whens.insert(0, exp.When(matched=True, then=update, condition=conflict.condition))

    def is_same(at: int) -> exp.Expr:
        sides = (exp.column(names[at], table=each, quoted=True) for each in sources)
        return next(sides).eq(next(sides))

    sources = conflict.alias, EXCLUDED
    tree = exp.Merge(
        this=_aliased(table, conflict.alias),
        using=exp.Subquery(this=source, alias=exp.TableAlias(this=_quoted(EXCLUDED))),
        on=exp.or_(*(exp.and_(*map(is_same, sorted(key))) for key in keys)),
        whens=exp.Whens(expressions=whens),
    )
    return nodes.Merge(statement.table, conflict.alias, tree, statement.span)


_ORDER = "corollary_order"


def returned_columns(statement: nodes.Write, table: TableDefinition) -> tuple[tuple[int, str], ...]:
    """Return the numbers of the columns that RETURNING names, and how they are called.

    Raises:
        InputError: it names something else.
    """
    names = [column.name for column in table.columns]
    found: list[tuple[int, str]] = []
    for each in statement.returning:
        inner = each.unalias()
        if each.is_star:
            found += enumerate(names)
        elif isinstance(inner, exp.Column):
            at = find_column(table.relation, names, SqlName(inner.name, statement.span))
            found.append((at, each.alias_or_name))
        else:
            message = "RETURNING gives columns of the rows that are written."
            cure = "name columns, or write `*`, and compute the rest of them"
            raise InputError.of("C1363", message, statement.span, cure)
    return tuple(found)


def _is_true(condition: exp.Expr) -> exp.Expr:
    parts = [condition.copy(), exp.Boolean(this=False)]
    return exp.Anonymous(this="coalesce", expressions=parts)


def _inserted(
    then: exp.Insert, source: exp.Expr, names: list[str]
) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Return the columns and the values of an INSERT of MERGE."""
    if isinstance(then.this, exp.Star):
        columns = [exp.column(name, quoted=True) for name in names]
        return list(columns), [
            exp.column(name, table=source.alias_or_name, quoted=True) for name in names
        ]
    given = [] if then.this is None else list(then.this.expressions)
    values = then.args["expression"]
    return given, list(values.expressions) if isinstance(values, exp.Tuple) else [values]


def _assignments(then: exp.Update, source: exp.Expr, names: list[str]) -> list[exp.Expr]:
    """Return the assignments of an UPDATE of MERGE; `*` assigns the columns of the same names."""
    if not isinstance(then.expressions[0], exp.Star):
        return list(then.expressions)
    return [
        exp.EQ(
            this=exp.column(name, quoted=True),
            expression=exp.column(name, table=source.alias_or_name, quoted=True),
        )
        for name in names
    ]


def _joined(rows: exp.Select, join: exp.Join | None) -> exp.Select:
    if join is not None:
        rows.append("joins", join.copy())
    return rows


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _aliased(table: TableDefinition, alias: str) -> exp.Table:
    return exp.Table(this=_quoted(table.relation), alias=exp.TableAlias(this=_quoted(alias)))


def _assigned(
    value: Expression, table: TableDefinition, column: QueryColumn, span: Span | None
) -> Expression:
    """Return a value as it is assigned to a column.

    Raises:
        InputError: the types do not fit.
    """
    given, wanted = value.type, column.type
    if given.with_null(True) == wanted.with_null(True) and not wanted.is_struct:
        return value
    is_numeric = {given.logical_kind, wanted.logical_kind} <= SQL_NUMERIC
    is_moment = given.is_time and wanted.is_time
    is_interval = wanted.is_interval and given.logical is wanted.logical
    is_fitting = is_numeric or is_moment or is_interval or wanted.is_symbol
    is_fitting = is_fitting or bool(wanted.members)
    found = cast(value, wanted.with_null(False), 64) if is_fitting else None
    if found is None:
        raise InputError.of(
            "C1374",
            f"A value of type {sql_type(given)} does not fit `{column.name}` of "
            f"`{table.relation}`, which is {sql_type(wanted)}.",
            span,
            f"write `CAST(… AS {sql_type(wanted)})`",
        )
    return found


def spark_type(type_: Type) -> exp.DataType:
    """Return a type as a cast names it."""
    return exp.DataType.build(sql_type(type_), dialect="spark")
