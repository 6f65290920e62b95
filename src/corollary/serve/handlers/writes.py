"""Changes: transactions of lines or of SQL, and those that are only tried out."""

from corollary.database.access.principals import Principal
from corollary.database.database import state_of
from corollary.database.intake.change_files import ChangeFile, digest_change, parse_changes
from corollary.database.sql.session import SqlSession
from corollary.database.sql.writes import PreparedWrites
from corollary.database.transaction import Transaction
from corollary.serve.answers import Answer
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.requests import ApplyRequest, SqlChangesRequest, SqlDefinitionsRequest

CHANGES_NAME = "<changes>"
"""What messages call the lines of a request."""


def answer_apply(context: HandlerContext, who: Principal, request: ApplyRequest) -> Answer:
    """Make a transaction of one request, or try it out."""
    from corollary.database.intake.dry_run import try_out
    from corollary.database.intake.pipeline import PipelineRun

    del who  # the transaction has it
    database = context.database
    database.refresh()
    state = state_of(database)
    outcome = PipelineRun()
    state.day = day = request.day
    try:
        lines = read_lines(context, request)
        transaction = database.transaction(
            idempotency=request.idempotency_key,
            digest=digest_change(lines, day),
            is_dry=request.dry_run,
        )
        outcome.transaction = transaction
        lines.apply_to(transaction)
        if request.dry_run:
            outcome.plan = try_out(database, transaction)
        else:
            transaction.commit()
            outcome.commit = transaction.commit_number or database.commits
            context.note_commit(transaction)
    finally:
        state.day = None
    return Answer.of(database.commits, outcome.as_json(request.max_rows))


def read_lines(context: HandlerContext, request: ApplyRequest) -> ChangeFile:
    """Return the changes of a request.

    Raises:
        InputError: a line does not fit the program.
    """
    content = request.changes.encode("utf-8", "surrogatepass")
    return parse_changes(content, CHANGES_NAME, state_of(context.database).loaded.normal)


# --- SQL -----------------------------------------------------------------------------------------


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


def answer_sql_definitions(
    context: HandlerContext, who: Principal, request: SqlDefinitionsRequest
) -> Answer:
    """Edit the program; CREATE and DROP that follow one another are one transaction."""
    database = context.owned(who, "change definitions")
    session = SqlSession(
        state_of(database),
        database.transaction,
        lambda tree, place, _: database.ask_tree(tree, place),
    )
    transaction = session.run(";\n".join(request.statements), {}, None)
    if isinstance(transaction, Transaction):
        context.note_commit(transaction)
    return Answer.of(context.commit, {"commit": context.commit})


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
