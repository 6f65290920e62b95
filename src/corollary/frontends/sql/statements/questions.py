"""Questions: one SELECT, WITH or VALUES as rules of a hidden relation, and what is done after."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from corollary.analysis.bags import rows_name
from corollary.core.logic import Clause, Truth
from corollary.core.program import Declaration, Program
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.binder.bind import Finish, bind_query
from corollary.frontends.sql.binder.widening import finished
from corollary.frontends.sql.catalog import SqlCatalog, catalog_of
from corollary.frontends.sql.lowering.queries import lower_view, question_of
from corollary.frontends.sql.parse import parse_query, span_of, split_statements, text_of
from corollary.frontends.sql.query_tree import Query, QueryColumn, Select, output_columns
from corollary.frontends.sql.statements.tokens import SqlName
from corollary.source import SourceFile, Span


@dataclass(frozen=True, slots=True)
class GivenTable:
    """A table that comes with a question, and that nothing else can name.

    Attributes:
        rows: an Arrow table of its rows, each once; if it is a bag, with their numbers last.
    """

    declaration: Declaration
    rows: Any

    @property
    def stored(self) -> str:
        """The relation that has the rows."""
        name = self.declaration.name
        return rows_name(name) if self.declaration.is_bag else name


@dataclass(frozen=True, slots=True)
class StatementPlace:
    """The text that a statement is in, and the values of its parameters.

    Attributes:
        finish: makes rows of a table of the query of a write.
        given: tables that come with a question.
    """

    file: SourceFile
    parameters: Mapping[str, Any]
    finish: Finish = finished
    given: tuple[GivenTable, ...] = ()

    def bind(self, tree: exp.Expr, catalog: SqlCatalog, *, takes_rows: bool = True) -> Query:
        """Return the query of a tree.

        Raises:
            InputError: it does not fit the relations.
        """
        if self.given:
            catalog = catalog.copy()
            declared = catalog_of(Program(declarations=tuple(e.declaration for e in self.given)))
            for name in declared.names():
                catalog.add(*declared.find(name))
        return bind_query(
            tree, catalog, self.file, self.parameters, takes_rows=takes_rows, finish=self.finish
        )


@dataclass(frozen=True, slots=True)
class CompiledQuestion:
    """A question as rules.

    Attributes:
        relation: the hidden relation that has the answer.
        rules: its declarations and rules.
        is_bag: whether the answer is in `relation.rows`, with the number of copies last.
        columns: all columns of the relation; the user's are the first `width`.
        order: column, whether it descends, whether nulls come first.
        rows: those of relations that are data of the question, by name: tuples, or an Arrow table.
    """

    relation: str
    rules: Program
    is_bag: bool
    columns: tuple[QueryColumn, ...]
    width: int
    order: tuple[tuple[int, bool, bool], ...]
    limit: int | None
    offset: int
    rows: Mapping[str, Any]

    @property
    def is_ordered(self) -> bool:
        """Whether the rows have an order."""
        return bool(self.order) or self.limit is not None or self.offset > 0


def compile_question(
    tree: exp.Expr,
    place: StatementPlace,
    catalog: SqlCatalog,
    relation: str,
    *,
    takes_rows: bool = True,
) -> CompiledQuestion:
    """Return a question as rules of a relation of this name.

    Many literals are data beside the rules, unless `takes_rows` is false.

    Raises:
        InputError: the question does not fit the relations, or has no exact answer.
    """
    found = lower_question(place.bind(tree, catalog, takes_rows=takes_rows), relation)
    if not place.given:
        return found
    declarations = (*(each.declaration for each in place.given), *found.rules.declarations)
    return replace(
        found,
        rules=replace(found.rules, declarations=declarations),
        rows={**found.rows, **{each.stored: each.rows for each in place.given}},
    )


def lower_question(query: Query, relation: str) -> CompiledQuestion:
    """Return a bound question as rules of a relation of this name.

    Raises:
        InputError: it has no exact answer.
    """
    asked = question_of(query)
    given = output_columns(asked.query)
    named = rename_columns(asked.query, distinct_columns(given))
    lowered = lower_view(relation, named, is_materialized=False)
    rules = Program(
        declarations=tuple(
            each if each.name in lowered.rows else replace(each, storage="virtual")
            for each in lowered.declarations
        ),
        clauses=tuple(map(_with_body, lowered.clauses)),
        warnings=tuple(lowered.warnings),
    )
    width = len(given) if asked.width is None else asked.width
    # The names of the answer are those that were asked for, also where two are the same.
    columns = tuple(
        replace(column, name=written.name)
        for column, written in zip(lowered.columns, given, strict=True)
    )
    return CompiledQuestion(
        *(relation, rules, lowered.is_bag, columns, width),
        *(asked.order, asked.limit, asked.offset, lowered.rows),
    )


def _with_body(clause: Clause) -> Clause:
    """Return a rule in place of a fact: a question has no tuples of its own."""
    return clause if clause.body else replace(clause, body=(Truth(True),))


# --- points in history -------------------------------------------------------------------------


def take_version(tree: exp.Expr, place: StatementPlace) -> int | str | None:
    """Take `VERSION AS OF n` or `TIMESTAMP AS OF 't'` out of a tree; return what it says.

    Raises:
        InputError: the tables of a question are of several versions.
    """
    found: dict[object, exp.Expr] = {}
    versioned, plain = 0, 0
    ctes = {each.alias_or_name.lower() for each in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        version = table.args.get("version")
        if version is None:
            plain += table.name.lower() not in ctes
            continue
        versioned += 1
        table.set("version", None)
        found.setdefault(_point(version, place), table)
    if not found:
        return None
    if len(found) > 1 or plain:
        raise InputError.of(
            "C1376",
            "A question reads all its relations at one point in history.",
            span_of(next(iter(found.values())), place.file),
            "give every relation the same `VERSION AS OF`, or the whole question with `--at`",
        )
    (point,) = found
    assert isinstance(point, int | str)
    return point


def _point(version: exp.Expr, place: StatementPlace) -> int | str:
    """Return a commit, or a moment as text."""
    value = version.expression
    kind, given = str(version.this).upper(), value.name if isinstance(value, exp.Literal) else ""
    if isinstance(value, exp.Placeholder):
        given = str(place.parameters.get(str(value.this), ""))
    if kind == "VERSION" and given.isdecimal():
        return int(given)
    if kind == "TIMESTAMP" and given:
        moment = given.strip().replace(" ", "T")
        moment = moment if "T" in moment else f"{moment}T00:00:00"
        has_zone = moment.endswith("Z") or "+" in moment or moment.count("-") > 2
        return moment if has_zone else f"{moment}Z"
    raise InputError.of(
        "C1376",
        "A point in history is expected after `AS OF`.",
        span_of(version, place.file),
        "write `VERSION AS OF 3` or `TIMESTAMP AS OF '2026-11-15 08:00:00'`",
    )


# --- columns -------------------------------------------------------------------------------------


def visible_columns(query: Query) -> tuple[QueryColumn, ...]:
    """Return the columns of a query that are the user's."""
    columns = output_columns(query)
    width = getattr(query, "width", len(columns))
    return columns[:width]


def with_column_names(
    name: str, query: Query, columns: Sequence[SqlName], span: Span | None
) -> Query:
    """Return a query whose columns have other names, if there are any; check that they differ.

    Raises:
        InputError: there are more or fewer names than columns, or two are the same.
    """
    found = output_columns(query)
    visible = visible_columns(query)
    if columns:
        if len(columns) != len(visible):
            raise InputError.of(
                "C1370",
                f"The names of `{name}` are {len(columns)}, and the columns of its query "
                f"{len(visible)}.",
                columns[0].span,
                "name each column of the query once",
            )
        renamed = tuple(
            replace(column, name=given.text, span=given.span)
            for column, given in zip(visible, columns, strict=True)
        )
        query = rename_columns(query, (*renamed, *found[len(visible) :]))
    seen: set[str] = set()
    for column in visible_columns(query):
        if column.name.lower() in seen:
            raise InputError.of(
                "C1370",
                f"`{name}` has two columns `{column.name}`; case does not matter.",
                column.span or span,
                "give one of them another name with `AS`",
            )
        seen.add(column.name.lower())
    return query


def rename_columns(query: Query, columns: tuple[QueryColumn, ...]) -> Query:
    """Return a query whose output has other columns."""
    if isinstance(query, Select):
        pairs = zip(columns, query.columns, strict=True)
        return replace(query, columns=tuple((column, each) for column, (_, each) in pairs))
    return replace(query, columns=columns)


def distinct_columns(columns: Sequence[QueryColumn]) -> tuple[QueryColumn, ...]:
    """Return columns whose names differ."""
    seen: set[str] = set()
    found: list[QueryColumn] = []
    for column in columns:
        name, number = column.name, 1
        while name.lower() in seen:
            number += 1
            name = f"{column.name}{number}"
        seen.add(name.lower())
        found.append(replace(column, name=name))
    return tuple(found)


# --- logs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RepeatedQuery:
    """A query, its text where it is first, and how often it is there."""

    tree: exp.Query
    text: str
    count: int


def read_queries(file: SourceFile) -> tuple[list[RepeatedQuery], int]:
    """Return the different queries of a text, and the number of statements that are not queries.

    What is done to the rows in the end (`ORDER BY`, `LIMIT`) makes no other query.

    Raises:
        InputError: the text is not SQL.
    """
    found: dict[str, RepeatedQuery] = {}
    skipped = 0
    for tokens in split_statements(file):
        tree = parse_query(tokens, file)
        if isinstance(tree, exp.Query):
            key = _without_order(tree).sql(dialect="spark", comments=False)
            first = found.get(key)
            found[key] = (
                RepeatedQuery(tree, text_of(tree, file), 1)
                if first is None
                else RepeatedQuery(first.tree, first.text, first.count + 1)
            )
        else:
            skipped += 1
    return list(found.values()), skipped


def _without_order(tree: exp.Query) -> exp.Query:
    found = tree.copy()
    for part in ("order", "limit", "offset"):
        found.set(part, None)
    return found
