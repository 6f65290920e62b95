"""DataFrame functions as views of a database: `@corollary.view(db)`."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql.types import StructField, StructType
from sqlglot import exp

from corollary.database.database import Database, state_of
from corollary.errors import InputError
from corollary.frontends.datalog.preprocessor import read_source
from corollary.frontends.sql.catalog import visible_catalog
from corollary.frontends.sql.parse import SparkWithPlaces
from corollary.frontends.sql.statements.definitions import PlacedDefinition
from corollary.frontends.sql.statements.kept_texts import edit_program
from corollary.frontends.sql.statements.nodes import CreateView
from corollary.frontends.sql.statements.tokens import SqlName
from corollary.pipelines.graph import BinderQuery, ExternalSource, RecordedQuery
from corollary.pipelines.lowering.expressions import LeftToSparkError
from corollary.pipelines.lowering.lower import lower_query
from corollary.pipelines.lowering.reading import Surroundings
from corollary.pipelines.lowering.relations import RelationLowering
from corollary.pipelines.recording import (
    OfflineClient,
    Places,
    RecordingSession,
    ddl_type,
    recording,
    telling,
)
from corollary.source import SourceFile

ViewFunction = Callable[..., Any]


def view(
    database: Database, *, name: str | None = None, stored: bool = True
) -> Callable[[ViewFunction], ViewFunction]:
    """Make the DataFrame that a function returns a view of a database, which is maintained.

    The function is called once, without a server: it gets a session that records what is done to
    its tables, the relations of the database. It may ask for no rows.

    Args:
        database: the database.
        name: that of the view, if it is not that of the function.
        stored: whether it is stored and published, as `CREATE MATERIALIZED VIEW` is.

    Raises:
        InputError: it has a mistake, or something that only Spark computes.

    >>> import corollary
    >>> db = corollary.open(None, engine="local")
    >>> _ = db.sql("CREATE TABLE sale (city STRING, amount INT)")
    >>> @corollary.view(db)
    ... def totals(spark):
    ...     return spark.table("sale").groupBy("city").sum("amount")
    >>> _ = db.sql("INSERT INTO sale VALUES ('Bern', 2), ('Bern', 3)")
    >>> db.sql("SELECT * FROM totals").rows()
    [('Bern', 5)]
    """

    def decorate(function: ViewFunction) -> ViewFunction:
        query = record(function, database)
        lowered = lower_recorded(query, database)
        statement = view_statement(name or function.__name__, lowered, query, is_stored=stored)
        definition = PlacedDefinition(statement, lowered.file)
        with database.transaction() as transaction:
            transaction.edit(lambda program: edit_program(program, [definition]))
        return function

    return decorate


def record(function: ViewFunction, database: Database) -> RecordedQuery:
    """Return the query of a function that takes a session, or finds the active one.

    What it asks of the columns of a DataFrame is answered by those of the database.

    Raises:
        InputError: it fails, returns no DataFrame, or asks for rows.
    """
    path = Path(inspect.getsourcefile(function) or "")
    places = Places()
    file = read_source(path) if path.is_file() else SourceFile(function.__name__, "")
    places.enter(function.__code__.co_filename, file)
    client = OfflineClient({}, places)
    session = RecordingSession(client)
    span = places.line_span(function.__code__.co_firstlineno)

    def describe(relation: Any) -> StructType:
        query = RecordedQuery(span, file, relation.SerializeToString(), places=places.relations)
        columns = lower_recorded(query, database).columns
        fields = [StructField(each.name, ddl_type(each.type.spark_name)) for each in columns]
        return StructType(fields)

    client.describe = describe
    with recording(session, Path.cwd()), telling(places):
        given = [session] if inspect.signature(function).parameters else []
        frame = function(*given)
        plan = getattr(frame, "_plan", None)
        if plan is None:
            text = f"The function `{function.__name__}` returns no DataFrame."
            raise InputError.of("C1701", text, span, "return one that the session has made")
        relation = plan.plan(client)
    return RecordedQuery(span, file, relation.SerializeToString(), places=places.relations)


def lower_recorded(query: RecordedQuery, database: Database) -> BinderQuery:
    """Return the query of a function over the relations of a database.

    Raises:
        InputError: it has a mistake, or something that only Spark computes.
    """
    around = Surroundings(visible_catalog(state_of(database).program), ".".join, _missing)
    try:
        return lower_query(RelationLowering(query, around))
    except LeftToSparkError as refused:
        raise InputError([refused.reason]) from None


def _missing(source: ExternalSource) -> None:
    shown = source.table or ", ".join(source.paths)
    text = f"There is no relation `{shown}` in the database."
    raise InputError.of("C1302", text, source.span, "declare it, or correct the name")


def view_statement(
    name: str, lowered: BinderQuery, query: RecordedQuery, *, is_stored: bool
) -> CreateView:
    """Return the statement that defines a view by a lowered query."""
    kind = "MATERIALIZED VIEW" if is_stored else "VIEW"
    called = exp.to_identifier(name, quoted=True).sql(SparkWithPlaces)
    sql = lowered.tree.sql(SparkWithPlaces, normalize_functions=False)
    text = f"CREATE {kind} {called} AS {sql}"
    place = SqlName(name, query.span)
    return CreateView(place, (), lowered.tree, is_stored, False, False, text, query.span)
