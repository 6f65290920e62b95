"""Questions: goals, SQL, and the tuples of a relation."""

import operator
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from corollary.analysis.phrases import suggest_name
from corollary.core.arrow import arrow_type, sort_rows
from corollary.core.program import Column, Declaration, Relation, TypeName
from corollary.core.types import Type
from corollary.core.values import format_value, parse_value
from corollary.database.access.principals import Principal
from corollary.database.changes import json_rows
from corollary.database.program.goals import arrange
from corollary.database.program.names import list_names
from corollary.errors import InputError
from corollary.serve import requests
from corollary.serve.answers import Answer
from corollary.serve.handlers.context import HandlerContext, PagedRequest
from corollary.serve.handlers.cursors import Cursor
from corollary.serve.type_texts import parse_type

if TYPE_CHECKING:
    import pyarrow as pa

CONDITION = re.compile(r"(.*?)(!=|<=|>=|=|<|>|~)(.*)", re.DOTALL)
COMPARISONS = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def answer_query(context: HandlerContext, who: Principal, request: requests.QueryRequest) -> Answer:
    """Answer a goal."""
    database, commit, first = context.page(who, request)
    shape, table = database.answers(request.goal)
    return answer_rows(request, commit, shape, arrange(table, request.order), first)


def answer_sql(context: HandlerContext, who: Principal, request: requests.SqlRequest) -> Answer:
    """Answer a question in SQL."""
    database, commit, first = context.page(who, request)
    answer = database.ask(request.sql, None, request.parameters)
    table = answer.arrow() if answer.is_ordered else sort_rows(answer.arrow())
    return answer_rows(request, commit, answer.shape, table, first)


def answer_sql_given(
    context: HandlerContext, who: Principal, request: requests.SqlGivenRequest
) -> Answer:
    """Answer a question in SQL about tables that come with it."""
    from corollary.frontends.sql.statements.questions import GivenTable

    database, commit = context.view(who, request.at)
    given = []
    for name, (listed, is_bag, file) in request.given.items():
        types = [(each, TypeName.of(parse_type(text))) for each, text in listed]
        columns = tuple(Column(each, type_) for each, type_ in types)
        table = Declaration(name, columns, storage="stored", is_bag=is_bag)
        given.append(GivenTable(table, read_arrow_file(file)))
    answer = database.ask(request.sql, None, request.parameters, tuple(given))
    table = answer.arrow() if answer.is_ordered else sort_rows(answer.arrow())
    return Answer(commit, table=table, types=tuple(map(str, answer.shape.types)))


def answer_sql_shape(
    context: HandlerContext, who: Principal, request: requests.SqlShapeRequest
) -> Answer:
    """Return the columns of a question in SQL, and their types."""
    database, commit = context.view(who)
    shape = database.question_shape(request.sql, request.parameters)
    columns = [
        {"name": name, "type": str(type_)}
        for name, type_ in zip(shape.columns, shape.types, strict=True)
    ]
    return Answer.of(commit, {"columns": columns, "commit": commit})


def answer_relation_rows(
    context: HandlerContext, who: Principal, request: requests.RelationRowsRequest
) -> Answer:
    """Return the tuples of a relation that satisfy conditions, in an order."""
    database, commit, first = context.page(who, request)
    view = database.relation(request.relation)
    shape = view.shape
    table = view.arrow()
    for text in request.where:
        table = table.filter(_condition(text, shape, table))
    return answer_rows(request, commit, shape, arrange(table, request.sort), first)


def answer_rows(
    request: PagedRequest, commit: int, shape: Relation, table: "pa.Table", first: int
) -> Answer:
    """Return a page of rows, as JSON or as a table."""
    rows = table.num_rows
    limit = request.limit
    if limit is not None and limit < 0:
        text = f"`{limit}` is not a number of rows."
        raise InputError.of("C0906", text, None, "write 0 or more")
    if request.arrow:
        page = table.slice(first, limit) if table.num_columns else table
        return Answer(commit, table=page, types=tuple(map(str, shape.types)))
    count = requests.JSON_MAX_ROWS if limit is None else min(limit, requests.JSON_MAX_ROWS)
    page = table.slice(first, count) if table.num_columns else table
    cursor = None
    if first + count < rows and table.num_columns:
        cursor = Cursor(commit, first + count).encode(request)
    found: dict[str, Any] = {
        "columns": list(shape.columns),
        "rows": json_rows(page, shape, is_sorted=True),
        "commit": commit,
        "cursor": cursor,
    }
    return Answer.of(commit, found)


def read_arrow_file(path: str) -> "pa.Table":
    """Return the rows of a file, which stay there until they are used."""
    import pyarrow as pa

    with pa.memory_map(path) as file:
        return pa.ipc.open_file(file).read_all()


# --- conditions ---------------------------------------------------------------------------------


def _condition(text: str, shape: Relation, table: "pa.Table") -> "pa.ChunkedArray":
    """Return which tuples satisfy a condition such as `src=a`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, sign, value = _parts(text, shape)
    at = shape.columns.index(column)
    type_, values = shape.types[at], table.column(at)
    if sign == "~":
        return _containing(values, type_, value)
    try:
        wanted = parse_value(value, type_)
    except ValueError as error:
        cure = f"write a value of the type `{type_}` after `{sign}`"
        raise InputError.of("C1604", f"In the condition `{text}`: {error}.", None, cure) from None
    if wanted is None:
        found = pc.is_null(values)
        return found if sign == "=" else pc.invert(found)
    compare: Callable[..., Any] = operator.attrgetter(COMPARISONS[sign])(pc)
    return pc.fill_null(compare(values, pa.scalar(wanted, arrow_type(type_))), sign == "!=")


def _parts(text: str, shape: Relation) -> tuple[str, str, str]:
    """Return the column, the sign and the value of a condition."""
    for column in sorted(shape.columns, key=len, reverse=True):
        found = CONDITION.fullmatch(text.removeprefix(column)) if text.startswith(column) else None
        if found and not found[1].strip():
            return column, found[2], found[3].strip()
    return _refuse_condition(text, shape.name, shape.columns)


def _refuse_condition(text: str, relation: str, columns: Sequence[str]) -> tuple[str, str, str]:
    found = CONDITION.fullmatch(text)
    name = found[1].strip() if found else text
    near = suggest_name(name, columns) if found else None
    cure = near or f"write `column=value`; the columns of `{relation}` are {list_names(columns)}"
    raise InputError.of("C1604", f"`{text}` is not a condition on `{relation}`.", None, cure)


def _containing(values: "pa.ChunkedArray", type_: Type, text: str) -> "pa.ChunkedArray":
    """Return which values have a text in them, as they are written, whatever their case."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not type_.is_symbol:
        distinct = pc.unique(values)
        written = [format_value(each, type_) for each in distinct.to_pylist()]
        matching = [text.lower() in each.lower() for each in written]
        kept = distinct.filter(pa.array(matching, pa.bool_()))
        return pc.is_in(values, value_set=kept)
    found = pc.match_substring(values.cast(pa.string()), text, ignore_case=True)
    return pc.fill_null(found, False)
