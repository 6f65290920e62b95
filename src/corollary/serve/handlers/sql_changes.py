"""Changes in SQL: INSERT, DELETE and UPDATE, as one transaction."""

from corollary.database.access.principals import Principal
from corollary.database.database import state_of
from corollary.database.sql.session import SqlSession
from corollary.serve.answers import Answer
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.writes import finish_commit
from corollary.serve.requests import SqlChangesRequest


def answer_sql_changes(
    context: HandlerContext, who: Principal, request: SqlChangesRequest
) -> Answer:
    """Make a transaction of statements; the answer has how many rows each of them has written."""
    del who  # the transaction has it
    database = context.database
    session = SqlSession(
        state_of(database),
        database.transaction,
        lambda tree, place, _: database.ask_tree(tree, place),
    )
    transaction, rows = session.write_all(request.statements, request.parameters)
    commit = transaction.commit_number or database.commits
    finish_commit(context, transaction)
    return Answer.of(commit, {"commit": commit, "rows": rows})
