"""Changes in SQL: INSERT, DELETE and UPDATE."""

from corollary.database.access.principals import Principal
from corollary.database.database import state_of
from corollary.database.sql.session import SqlSession
from corollary.database.sql.writes import PreparedWrites
from corollary.serve.answers import Answer
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.requests import SqlChangesRequest


def answer_sql_changes(
    context: HandlerContext, who: Principal, request: SqlChangesRequest
) -> Answer:
    """Make a transaction of statements; the answer has how many rows each of them has written."""
    del who  # the transaction has it
    writes = read_sql_changes(context, request)
    with context.database.transaction() as transaction:
        writes.apply_to(transaction)
    commit = transaction.commit_number or context.commit
    context.note_commit(transaction)
    return sql_changes_answer(commit, writes)


def read_sql_changes(context: HandlerContext, request: SqlChangesRequest) -> PreparedWrites:
    """Return the writes of a request.

    Raises:
        InputError: one does not fit the program.
    """
    database = context.database
    session = SqlSession(
        state_of(database),
        database.transaction,
        lambda tree, place, _: database.ask_tree(tree, place),
        is_prepared=True,
    )
    return session.prepare_writes(request.statements, request.parameters)


def sql_changes_answer(commit: int, writes: PreparedWrites) -> Answer:
    """Return the answer to writes that were done."""
    return Answer.of(commit, {"commit": commit, "rows": writes.row_counts()})
