"""The inputs of advice for a database: queries, their frequencies and update rates."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from corollary.advisor.model.scheme import WorkloadQuery
from corollary.core.program import NormalProgram, Program, relations_read
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of, warehouse_of
from corollary.database.program.names import readable_relation
from corollary.errors import InputError
from corollary.source import SourceFile
from corollary.warehouse.catalog.query_log import logged_queries

HISTORY_MIN_SECONDS = 3600.0
"""A shorter history counts as if it lasted so long: a burst of commits is not a rate."""


# --- queries -------------------------------------------------------------------------------------


def parse_queries(
    texts: Iterable[str], program: NormalProgram, frequencies: Mapping[str, float]
) -> list[WorkloadQuery]:
    """Return the queries that texts such as `view` or `view^bf` name.

    Args:
        texts: the queries; after `^`, a letter for each column: b if it is bound, f if free.
        program: the program with the relations.
        frequencies: queries per hour, by relation.

    Raises:
        InputError: there is no such relation, it has no rules, or the letters do not fit it.
    """
    found: dict[str, WorkloadQuery] = {}
    for text in texts:
        name, mark, pattern = text.partition("^")
        relation = readable_relation(program, name)
        if not relation.is_derived:
            raise InputError.of(
                "C1100",
                f"`{name}` is a base relation: it has no rules that could be rewritten.",
                None,
                "ask for advice on a relation that rules define",
            )
        if mark and (len(pattern) != relation.arity or set(pattern) - {"b", "f"}):
            raise InputError.of(
                "C1101",
                f"`{text}` does not say for each column of `{name}` whether it is given.",
                None,
                f"write b or f for each of its {relation.arity} columns, such as "
                f"{name}^{'b' * min(1, relation.arity)}{'f' * max(0, relation.arity - 1)}",
            )
        found[name] = WorkloadQuery(name, _bound_columns(pattern), frequencies.get(name, 1.0))
    return list(found.values())


def default_queries(
    program: NormalProgram, logged: Sequence[WorkloadQuery], frequencies: Mapping[str, float]
) -> list[WorkloadQuery]:
    """Return the queries of the log; if there are none, the relations that no other one reads."""
    if logged:
        return merge_logged_queries(logged, frequencies)
    reads = relations_read(program.rules, program.aggregations)
    read = {name for reader, below in reads.items() for name in below if name != reader}
    return [
        WorkloadQuery(name, frequency=frequencies.get(name, 1.0))
        for name, relation in program.relations.items()
        if relation.is_derived and relation.is_declared and name not in read
    ]


def read_logged_queries(database: Database) -> list[WorkloadQuery]:
    """Return the queries of derived relations in the query log, with their frequencies."""
    warehouse = warehouse_of(database)
    if warehouse is None:
        return []
    relations = state_of(database).loaded.normal.relations
    found = []
    for entry in logged_queries(warehouse.catalog):
        name, _, pattern = entry.form.rpartition("^")
        relation = relations.get(name)
        if relation is not None and relation.is_derived and relation.arity == len(pattern):
            found.append(WorkloadQuery(name, _bound_columns(pattern), entry.per_hour))
    return found


def merge_logged_queries(
    logged: Iterable[WorkloadQuery], frequencies: Mapping[str, float]
) -> list[WorkloadQuery]:
    """Return one query for each relation: its most frequent form, with the total frequency."""
    found: dict[str, WorkloadQuery] = {}
    totals: dict[str, float] = {}
    for each in sorted(logged, key=lambda query: -query.frequency):
        found.setdefault(each.relation, each)
        totals[each.relation] = totals.get(each.relation, 0.0) + each.frequency
    return [
        WorkloadQuery(name, each.bound, frequencies.get(name, totals[name]))
        for name, each in found.items()
    ]


def _bound_columns(pattern: str) -> frozenset[int]:
    return frozenset(at for at, letter in enumerate(pattern) if letter == "b")


# --- rates ---------------------------------------------------------------------------------------


def measure_commit_rate(database: Database) -> float:
    """Return the commits per hour, by the retained history; the first one is the initial load."""
    warehouse = warehouse_of(database)
    commits = [] if warehouse is None else warehouse.commits()
    if len(commits) < 2:
        return 0.0
    hours = max(HISTORY_MIN_SECONDS, commits[0].created - commits[-1].created) / 3600.0
    return (len(commits) - 1) / hours


def measure_update_rates(database: Database) -> Mapping[str, float]:
    """Return the changed tuples of base relations per hour, by the retained history.

    The first retained commit counts as the initial load and not as a change; where that commit has
    only the program, the first commit with tuples does.
    """
    warehouse = warehouse_of(database)
    if warehouse is None:
        return {}
    commits = warehouse.commits()
    if len(commits) < 2:
        return {}
    newest, oldest = commits[0], commits[-1]
    hours = max(HISTORY_MIN_SECONDS, newest.created - oldest.created) / 3600.0
    rates: dict[str, float] = {}
    relations = state_of(database).loaded.normal.relations
    counts = list(warehouse.catalog.change_counts(oldest.number - 1, newest.number))
    first = oldest.number if oldest.number > 1 else min((each[0] for each in counts), default=1)
    for number, name, added, removed in counts:
        relation = relations.get(name) if number > first else None
        if relation is not None and relation.is_declared and not relation.is_derived:
            rates[name] = rates.get(name, 0.0) + (added + removed) / hours
    return rates


# --- a log of SQL queries ------------------------------------------------------------------------


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

    Each different query becomes a virtual relation:

        SELECT DISTINCT city FROM sales JOIN customer USING (c);       sql_1, asked twice
        SELECT DISTINCT city FROM sales JOIN customer USING (c);
        SELECT c FROM sales WHERE p = 7;                               sql_2

    Queries that have copies are advised on by the relation of their rows before they are counted,
    which is a set. Statements that are not queries are counted and left out.

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
