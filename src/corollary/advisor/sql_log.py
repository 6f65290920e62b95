"""A log of SQL queries as a workload: each different query becomes a virtual relation.

    SELECT DISTINCT city FROM sales JOIN customer USING (c);       sql_1, asked twice
    SELECT DISTINCT city FROM sales JOIN customer USING (c);
    SELECT c FROM sales WHERE p = 7;                               sql_2

Queries that have copies are advised on by the relation of their rows before they are counted, which
is a set. Statements that are not queries are counted and left out.
"""

from dataclasses import replace

from corollary.core.program import Program
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.source import SourceFile

LOGGED_RELATION = "sql"
"""Before the number of a query: the name of its relation."""


@dataclass(frozen=True, slots=True)
class LoggedQuery:
    """A query of a log.

    Attributes:
        relation: the relation of its answer; for one with copies, of its rows before counting.
        text: as it is written.
        count: how often the log has it.
    """

    relation: str
    text: str
    count: int


@dataclass(frozen=True, slots=True)
class SqlLog:
    """The queries of a log, and the program with a relation for each of them."""

    program: Program
    queries: tuple[LoggedQuery, ...]
    skipped: int


def read_sql_log(file: SourceFile, program: Program) -> SqlLog:
    """Return the queries of a log over the relations of a program.

    Raises:
        InputError: the text is not SQL, or a query does not fit the relations; or `C1108`: the log
            has no query.
    """
    from corollary.frontends.sql.catalog import visible_catalog
    from corollary.frontends.sql.statements.questions import (
        StatementPlace,
        compile_question,
        read_queries,
    )

    catalog = visible_catalog(program)
    place = StatementPlace(file, {})
    queries, skipped = read_queries(file)
    if not queries:
        raise InputError.of(
            "C1108",
            f"`{file.name}` has no query.",
            None,
            "give a file of SELECT statements, each ended by a semicolon",
        )
    taken = {each.name for each in program.declarations}
    found: list[LoggedQuery] = []
    for number, query in enumerate(queries, 1):
        name = f"{LOGGED_RELATION}_{number}"
        while name in taken:
            name += "_"
        question = compile_question(query.tree, place, catalog, name, takes_rows=False)
        program += replace(question.rules, warnings=())
        each = f"{name}.each"
        declared = {part.name for part in question.rules.declarations}
        relation = each if question.is_bag and each in declared else name
        found.append(LoggedQuery(relation, query.text, query.count))
    return SqlLog(program, tuple(found), skipped)
