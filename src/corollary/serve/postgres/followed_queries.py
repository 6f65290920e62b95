"""Queries that are followed: which changes matter to them, and their answers, once for all.

What a commit changes is read once for all subscribers; a query whose conditions bind columns to
constants concerns the rows with these values alone, which an index of the change finds:

| query                                           | a change of `t` gives                     |
|-------------------------------------------------|-------------------------------------------|
| `SELECT * FROM t`, `SELECT a, b FROM t`         | its rows                                  |
| the same with `WHERE k = 'x' AND l = 5`         | those with these values                   |
| any other with `t.k = 'x'` among its conditions | nothing if no row has the value, else the |
|                                                 | difference of two answers                 |
| others                                          | the difference of two answers             |

An answer is asked for once at a commit, and compared once, for all who follow the same query.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from corollary.core.arrow import group_rows
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.database.access.principals import AccessRole, Principal
from corollary.serve.answers import Event
from corollary.serve.postgres.parameters import ParameterValue
from corollary.serve.postgres.relations import VisibleRelation, VisibleRelations
from corollary.serve.postgres.translation import (
    TranslatedStatement,
    parameter_number,
    tables_of,
)
from corollary.serve.requests import SqlRequest
from corollary.serve.service import Service

ASKED_AT_ONCE = 8
"""How many answers are asked for at the same time: a token has other requests, too."""

Bound = tuple[tuple[int, str | int], ...]
"""Columns of a relation, by their positions, and the values that its rows must have there."""


@dataclass(frozen=True, slots=True)
class FollowedQuery:
    """What of the changes of relations matters to a query.

    Attributes:
        names: the relations that it reads.
        reads: for each relation, by its name in lower case, which rows matter: those that have all
            values of one of these.
        relation: the rows of the answer, if they are those of one relation, each by itself.
        positions: the columns of that relation that the answer has.
    """

    names: tuple[str, ...]
    reads: Mapping[str, Sequence[Bound]] = field(default_factory=dict)
    relation: Relation | None = None
    positions: tuple[int, ...] = ()

    def is_affected(self, events: Sequence[Event]) -> bool:
        """Return whether the answer may be another one after a commit."""
        return any(
            each.event != "change"
            or any(
                each.rows(sign, bound)
                for bound in self.reads.get(each.json["relation"].lower(), [()])
                for sign in ("added", "removed")
            )
            for each in events
        )

    def changed_rows(self, events: Sequence[Event], sign: str) -> list[list[Any]]:
        """Return the rows of `relation` that have come or gone."""
        ((bound,),) = self.reads.values()
        rows = (row for each in events for row in each.rows(sign, bound))
        return [[row[at] for at in self.positions] for row in rows]


def analyse_query(
    tree: exp.Expr, values: Sequence[ParameterValue], relations: VisibleRelations
) -> FollowedQuery:
    """Return what matters to a query.

    Args:
        tree: the query.
        values: of its parameters.
        relations: what can be read.
    """
    tables = list(tables_of(tree))
    read = {each.name.lower(): each.name for each in tables}
    names = tuple(relations[key].name if key in relations else read[key] for key in sorted(read))
    reads: dict[str, list[Bound]] = {}
    count = 0
    for scope in traverse_scope(tree):
        for node, source in scope.selected_sources.values():
            if isinstance(source, exp.Table) and source.name in relations:
                count += 1
                relation = relations[source.name]
                bound = tuple(_bound(scope, node.alias_or_name, relation, values))
                reads.setdefault(source.name.lower(), []).append(bound)
    if count != len(tables):  # a form of reading that is not known here
        return FollowedQuery(names)
    if len(tables) == 1:
        ((bound,),) = reads.values()
        relation = relations[names[0]]
        columns = _columns_read(tree, relation, len(bound))
        if columns is not None:
            positions = tuple(columns.values())
            types = tuple(relation.columns[at].type for at in positions)
            rows = Relation(relation.name, tuple(columns), types, is_derived=False)
            return FollowedQuery(names, reads, rows, positions)
    return FollowedQuery(names, reads)


def _bound(
    scope: Scope, alias: str, relation: VisibleRelation, values: Sequence[ParameterValue]
) -> Iterator[tuple[int, str | int]]:
    """Yield the columns that all rows which matter have equal to a constant."""
    names = [each.name.lower() for each in relation.columns]
    is_alone = len(scope.selected_sources) == 1
    for condition in _conditions(scope.expression):
        if not isinstance(condition, exp.EQ):
            continue
        column, value = condition.this, condition.expression
        if not isinstance(column, exp.Column):
            column, value = value, column
        if not isinstance(column, exp.Column) or column.name.lower() not in names:
            continue
        is_own = column.table.lower() == alias.lower() if column.table else is_alone
        position = names.index(column.name.lower())
        constant = _constant(value, values)
        # Values of these types are equal in the JSON of events if and only if they are so in SQL.
        type_ = relation.columns[position].type
        wanted = str if type_.is_symbol else int if type_.is_number else None
        if is_own and isinstance(constant, str | int) and type(constant) is wanted:
            yield position, constant


def _conditions(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conditions of a query that all have to hold."""
    where = tree.args.get("where")
    if where is not None:
        whole = where.this.unnest()
        yield from whole.flatten() if isinstance(whole, exp.And) else (whole,)


def _constant(node: exp.Expr, values: Sequence[ParameterValue]) -> Any:
    """Return the value of a constant or of a parameter; None if it is neither."""
    if isinstance(node, exp.Literal):
        if node.is_string:
            return str(node.this)
        return int(node.this) if node.is_int else None
    if isinstance(node, exp.Placeholder) and str(node.this).removeprefix("p").isdecimal():
        number = parameter_number(node)
        return values[number - 1] if number <= len(values) else None
    return None


def _columns_read(tree: exp.Expr, relation: VisibleRelation, bound: int) -> dict[str, int] | None:
    """Return the columns that a query takes from each row by itself, with their positions.

    None if it is another query, or has conditions that do not bind a column.

    Args:
        tree: the query.
        relation: the one that it reads.
        bound: how many conditions bind a column.
    """
    used = {name for name, value in tree.args.items() if value}
    if not isinstance(tree, exp.Select) or not used <= {"expressions", "from_", "where"}:
        return None
    source = tree.args["from_"].this
    plain = {name for name, value in source.args.items() if value}
    if not isinstance(source, exp.Table) or not plain <= {"this", "db", "catalog", "alias"}:
        return None
    if sum(1 for _ in _conditions(tree)) != bound:
        return None
    names = [each.name.lower() for each in relation.columns]
    if len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Star):
        is_plain = not any(tree.expressions[0].args.values())
        found = {each.name: at for at, each in enumerate(relation.columns)}
        return found if is_plain else None
    columns = [(each.alias_or_name, each.unalias()) for each in tree.expressions]
    if not all(isinstance(each, exp.Column) and each.name.lower() in names for _, each in columns):
        return None
    found = {name: names.index(each.name.lower()) for name, each in columns}
    return found if len(found) == len(columns) else None


class CommittedAnswer:
    """The answer to a query at a commit.

    Attributes:
        rows: of the answer, once they are there.
    """

    def __init__(self) -> None:
        self.rows = pa.table({})
        self.asking: asyncio.Task[None] | None = None
        self._differences: WeakKeyDictionary[CommittedAnswer, pa.Table] = WeakKeyDictionary()

    def since(self, before: "CommittedAnswer", column: str) -> pa.Table:
        """Return the rows that have come or gone since another answer.

        Args:
            before: the other one.
            column: the name of the column that says how many copies have.
        """
        found = self._differences.get(before)
        if found is None:
            found = difference(before.rows, self.rows, column)
            self._differences[before] = found
        return found


def difference(before: pa.Table, after: pa.Table, column: str) -> pa.Table:
    """Return the rows of which there are more or fewer, with their difference in a column."""
    signs = pa.array([-1] * before.num_rows + [1] * after.num_rows, pa.int64())
    names = [str(at) for at in range(after.num_columns)]
    both = [before.rename_columns(names), after.rename_columns(names)]
    return consolidate(pa.concat_tables(both).rename_columns(after.column_names), signs, column)


def consolidate(rows: pa.Table, signs: pa.Array, column: str) -> pa.Table:
    """Return each row once, with the sum of its signs in a column; those that go come first."""
    names = [str(at) for at in range(rows.num_columns)]
    found = rows.rename_columns(names).append_column(column, signs)
    found = group_rows(found, names, [(column, "sum")])
    differences = found.column(f"{column}_sum")
    found = found.filter(pc.not_equal(differences, 0)).sort_by(f"{column}_sum")
    kept = found.select(names).rename_columns(rows.column_names)
    return kept.append_column(column, found.column(f"{column}_sum"))


class FollowedAnswers:
    """The answers of followed queries, each as long as a subscription has it.

    Attributes:
        service: what answers.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self._answers: WeakValueDictionary[object, CommittedAnswer] = WeakValueDictionary()
        self._turns = asyncio.Semaphore(ASKED_AT_ONCE)

    async def at(
        self, who: Principal, query: TranslatedStatement, commit: int, *, is_shared: bool = True
    ) -> CommittedAnswer:
        """Return the answer at a commit.

        Args:
            who: who asks; readers share answers with nobody else.
            query: the query.
            commit: the commit.
            is_shared: whether that of another subscription is as good.

        Raises:
            ServiceError: there is none.
        """
        reader = who.name if who.role is AccessRole.READ else None
        key = reader, query.sql, json.dumps(query.parameters, sort_keys=True), commit
        found = self._answers.get(key) if is_shared else None
        if found is None:
            found = self._answers[key] = CommittedAnswer()
            found.asking = asyncio.ensure_future(self._ask(found, who, query, commit))
        assert found.asking is not None
        await asyncio.shield(found.asking)
        return found

    async def _ask(
        self, answer: CommittedAnswer, who: Principal, query: TranslatedStatement, commit: int
    ) -> None:
        request = SqlRequest(query.sql, query.parameters, at=commit, arrow=True, min_commit=commit)
        async with self._turns:
            rows = (await self.service.call(who, request)).table
        assert rows is not None
        answer.rows = rows
