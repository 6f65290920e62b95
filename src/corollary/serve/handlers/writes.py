"""Changes: transactions of lines or of SQL, and those that are only tried out."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from corollary.database.access.principals import Principal
from corollary.database.database import state_of
from corollary.database.intake.change_files import ChangeFile, digest_change, parse_changes
from corollary.database.sql.session import SqlSession
from corollary.database.sql.writes import PreparedWrites
from corollary.database.transaction import Transaction
from corollary.errors import InputError
from corollary.serve import requests
from corollary.serve.answers import Answer
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.programs import answer_explain
from corollary.serve.handlers.questions import (
    answer_sql,
    answer_sql_given,
    answer_sql_shape,
    read_arrow_file,
)
from corollary.serve.handlers.relations import answer_relations

if TYPE_CHECKING:
    import pyarrow as pa

CHANGES_NAME = "<changes>"
"""What messages call the lines of a request."""


def answer_apply(context: HandlerContext, who: Principal, request: requests.ApplyRequest) -> Answer:
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


def answer_push_events(
    context: HandlerContext, who: Principal, request: requests.PushEventsRequest
) -> Answer:
    """Make a transaction of what events say."""
    from corollary.database.intake.pipeline import push_events

    del who  # the transaction has it
    database = context.database
    database.refresh()
    outcome = push_events(
        database, request.relation, request.events.encode(), idempotency=request.idempotency_key
    )
    assert outcome.transaction is not None
    context.note_commit(outcome.transaction)
    found = outcome.as_json(request.max_rows)
    found["quarantined"] = sum(each.malformed for each in outcome.sources)
    return Answer.of(database.commits, found)


def read_lines(context: HandlerContext, request: requests.ApplyRequest) -> ChangeFile:
    """Return the changes of a request.

    Raises:
        InputError: a line does not fit the program.
    """
    content = request.changes.encode("utf-8", "surrogatepass")
    return parse_changes(content, CHANGES_NAME, state_of(context.database).loaded.normal)


# --- SQL -----------------------------------------------------------------------------------------


def answer_sql_changes(
    context: HandlerContext, who: Principal, request: requests.SqlChangesRequest
) -> Answer:
    """Make a transaction of statements; the answer has how many rows each of them has written."""
    del who  # the transaction has it
    writes = read_sql_changes(context, request)
    with context.database.transaction() as transaction:
        writes.apply_to(transaction)
    commit = transaction.commit_number or context.commit
    context.note_commit(transaction)
    return sql_changes_answer(commit, writes)


def answer_sql_transaction(
    context: HandlerContext, who: Principal, request: requests.SqlTransactionRequest
) -> Answer:
    """Make a transaction of statements, or answer a request in the state that it would leave."""
    database = context.owned(who, "change data")
    session = SqlSession(
        state_of(database),
        database.transaction,
        lambda tree, place, _: database.ask_tree(tree, place),
        explain=database.explain,
    )
    is_one = len(request.statements) == 1 and not (request.then or request.returned)
    copied = request.copied
    transaction = None if is_one else database.transaction()
    session.transaction = transaction
    rows = []
    for at, text in enumerate(request.statements):
        made = (
            session.copy(copied[str(at)][0], read_arrow_file(copied[str(at)][1]))
            if str(at) in copied
            else session.run(text, request.parameters, None)
        )
        transaction = made if isinstance(made, Transaction) else transaction
        rows.append(session.last_write)
        if session.last_write is not None:
            session.last_write.expected = request.returned.get(str(at))
    if request.then is not None:
        assert transaction is not None
        then = _request_inside(request.then)
        return transaction.look(lambda: INSIDE[type(then)](context, who, then))
    if transaction is not None:
        if not is_one:
            transaction.commit()
        context.note_commit(transaction)
    counts = [0 if each is None else each.rows for each in rows]
    returned = rows[0].returned if len(rows) == 1 and rows[0] is not None else None
    dropped = {} if transaction is None else transaction.dropped
    return _answer_written(context.commit, counts, returned, dropped)


def answer_written_rows(
    context: HandlerContext, who: Principal, request: requests.SqlChangesRequest
) -> Answer:
    """Return what statements would write; it is not written."""
    del who  # the transaction has it
    writes = read_sql_changes(context, request)
    for each in writes.writes:
        each.deferred()
    return sql_changes_answer(context.commit, writes)


INSIDE: Mapping[type[requests.Request], Callable[[HandlerContext, Principal, Any], Answer]] = {
    requests.ExplainRequest: answer_explain,
    requests.RelationsRequest: answer_relations,
    requests.SqlChangesRequest: answer_written_rows,
    requests.SqlRequest: answer_sql,
    requests.SqlGivenRequest: answer_sql_given,
    requests.SqlShapeRequest: answer_sql_shape,
}
"""What can be asked inside of a transaction."""


def _request_inside(fields: Mapping[str, Any]) -> requests.Request:
    """Return the request that `kind` names, of the other fields.

    Raises:
        InputError: `C1600`, it cannot be asked there, or a field does not fit.
    """
    kinds = {requests.request_kind(each): each for each in INSIDE}
    kind = fields.get("kind")
    if kind not in kinds:
        text = f"The request `{kind}` cannot be asked inside of a transaction."
        raise InputError.of("C1600", text, None, f"there are {', '.join(kinds)}")
    return requests.parse_request(
        kinds[kind], {name: fields[name] for name in fields if name != "kind"}
    )


def read_sql_changes(
    context: HandlerContext, request: requests.SqlChangesRequest
) -> PreparedWrites:
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
    return _answer_written(commit, writes.row_counts(), writes.returned)


def _answer_written(
    commit: int,
    counts: list[int],
    returned: "pa.Table | None",
    dropped: Mapping[str, int] | None = None,
) -> Answer:
    """Return the numbers of rows that were written, or the rows that a single write returns."""
    if returned is not None:
        return Answer(commit, table=returned)
    return Answer.of(commit, {"commit": commit, "rows": counts, "dropped": dict(dropped or {})})
