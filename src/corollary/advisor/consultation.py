"""Advice for a database: ask for it, read, verify, measure and apply it.

>>> from corollary.database.opening import open_database
>>> db = open_database(None, engine="local")
>>> _ = db.load(
...     text=".decl e(x: number, y: number) .decl q(x: number) virtual "
...     "q(x) :- e(x, y), e(y, z), e(z, x)."
... )
>>> print(consult(db, ["q"]).report().splitlines()[0])
q/1   N^3 -> N^1   (bushy without storage N^3, Spark pipeline N^3)   est. ... row-ops
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from corollary.advisor import inputs
from corollary.advisor.advice import Advice
from corollary.advisor.advise import advise
from corollary.advisor.apply import apply, reformulate
from corollary.advisor.check.measurement import (
    Measurements,
    calibrate_from_commits,
    measure,
)
from corollary.advisor.check.scratch_database import read_base_tables
from corollary.advisor.check.verification import CheckResult, verify
from corollary.advisor.inputs import SqlLog, read_sql_log
from corollary.advisor.measured_sizes import measure_sizes
from corollary.advisor.model.scheme import Options, SelectionMode, ViewNaming, WorkloadQuery
from corollary.advisor.model.scheme_reader import read_scheme
from corollary.advisor.render.text import report
from corollary.analysis.check import check
from corollary.core.program import Program
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of
from corollary.database.transaction import Transaction
from corollary.source import SourceFile

DEFAULT_OPTIONS = Options(selection=SelectionMode.MINIMAL, partial_clusters=True)
"""The defaults of `corollary advise`."""


@dataclass(frozen=True, slots=True)
class Consultation:
    """Advice for the program of a database, and the program with the advice applied."""

    database: Database
    advice: Advice
    before: Program
    after: Program

    def report(self) -> str:
        """Return the advice as text."""
        return "\n".join(report(self.advice, calibrate_from_commits(self.database)))

    def verify(self) -> list[CheckResult]:
        """Compare both programs, on copies of the data."""
        return list(verify(self.advice, self.before, self.after, read_base_tables(self.database)))

    def measure(self, engine: str = "local") -> Measurements:
        """Time the queries before and after, on copies of the data."""
        tables = read_base_tables(self.database)
        return measure(self.advice, self.before, self.after, tables, engine=engine)

    def apply(self) -> Transaction:
        """Store the views and rewrite the rules, in one transaction."""
        return apply(self.database, self.advice, self.before, self.after)


def consult(
    database: Database, queries: Iterable[str] = (), options: Options = DEFAULT_OPTIONS
) -> Consultation:
    """Ask for advice on the program of a database, with its sizes, its query log and its history.

    Args:
        database: the database.
        queries: such as `view` or `view^bf`; if none is given, those of the query log.
        options: how to decide.

    Raises:
        InputError: a query is not a relation that has rules.
    """
    logged, loaded = inputs.read_logged_queries(database), state_of(database).loaded
    known = {each.relation: each.frequency for each in inputs.merge_logged_queries(logged, {})}
    chosen = inputs.parse_queries(queries, loaded.normal, known)
    chosen = chosen or inputs.default_queries(loaded.normal, logged, {})
    if not options.updates:
        options = replace(
            options,
            updates=inputs.measure_update_rates(database),
            commits_per_hour=inputs.measure_commit_rate(database),
        )
    scheme = read_scheme(loaded.program, loaded.checked, chosen, options.opaque)
    advice = advise(scheme, options, measure_sizes(database))
    after = reformulate(loaded.checked, loaded.program, advice)
    return Consultation(database, advice, loaded.program, after)


def consult_on_log(
    database: Database, text: str, budget_bytes: float | None = None, names: Sequence[str] = ()
) -> tuple[Consultation, SqlLog]:
    """Ask for advice on a log of SQL queries, chosen together; return it with what was read.

    Args:
        database: with the relations that the queries read.
        text: SELECT statements, each ended by a semicolon; how often one is there is how often it
            is asked in an hour.
        budget_bytes: the maximum size of all views together.
        names: of new views, in order.

    Raises:
        InputError: the log has no query, or one that does not fit the relations.
    """
    log = read_sql_log(SourceFile("log.sql", text), state_of(database).loaded.program)
    checked = check(log.program)
    options = Options(
        SelectionMode.BUDGET,
        partial_clusters=True,
        budget_bytes=budget_bytes,
        updates=inputs.measure_update_rates(database),
        commits_per_hour=inputs.measure_commit_rate(database),
        naming=ViewNaming(tuple(names)),
    )
    queries = [WorkloadQuery(each.relation, frequency=each.count) for each in log.queries]
    scheme = read_scheme(log.program, checked, queries, options.opaque)
    advice = advise(scheme, options, measure_sizes(database))
    after = reformulate(checked, log.program, advice)
    return Consultation(database, advice, log.program, after), log
