"""Which function answers which request."""

from collections.abc import Callable
from typing import Any

from corollary.core.engine import within_seconds
from corollary.database.access.principals import Principal
from corollary.database.database import state_of
from corollary.serve import commands, requests
from corollary.serve.answers import Answer
from corollary.serve.handlers import (
    history,
    programs,
    proofs,
    questions,
    relations,
    reports,
    writes,
)
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.failures import service_error

HANDLERS: dict[type[requests.Request], Callable[[HandlerContext, Principal, Any], Answer]] = {
    commands.CommandRequest: commands.answer_command,
    commands.WritingCommandRequest: commands.answer_command,
    commands.DeclarationsRequest: commands.answer_declarations,
    requests.QueryRequest: questions.answer_query,
    requests.SqlRequest: questions.answer_sql,
    requests.SqlGivenRequest: questions.answer_sql_given,
    requests.SqlShapeRequest: questions.answer_sql_shape,
    requests.RelationsRequest: relations.answer_relations,
    requests.DescribeRequest: relations.answer_describe,
    requests.RelationRowsRequest: questions.answer_relation_rows,
    requests.ApplyRequest: writes.answer_apply,
    requests.PushEventsRequest: writes.answer_push_events,
    requests.SqlChangesRequest: writes.answer_sql_changes,
    requests.SqlTransactionRequest: writes.answer_sql_transaction,
    requests.CommitsRequest: history.answer_commits,
    requests.CommitRequest: history.answer_commit,
    requests.ChangesRequest: history.answer_changes,
    requests.DifferenceRequest: history.answer_difference,
    requests.WhatIfRequest: proofs.answer_what_if,
    requests.WhyRequest: proofs.answer_why,
    requests.WhyNotRequest: proofs.answer_why_not,
    requests.WhyAddedRequest: proofs.answer_why_added,
    requests.WhyRemovedRequest: proofs.answer_why_removed,
    requests.ExplainRequest: programs.answer_explain,
    requests.CheckRequest: programs.answer_check,
    requests.ProgramRequest: programs.answer_program,
    requests.PutProgramRequest: programs.answer_put_program,
    requests.GraphRequest: programs.answer_graph,
    requests.StatusRequest: reports.answer_status,
    requests.AlertsRequest: reports.answer_alerts,
    requests.QuarantineRequest: reports.answer_quarantine,
    requests.AdviceRequest: reports.answer_advice,
    requests.DocumentsRequest: reports.answer_documents,
}


def handle(context: HandlerContext, who: Principal, request: requests.Request) -> Answer:
    """Answer a request.

    Raises:
        ServiceError: it has no answer.
    """
    try:
        who.require(request.role, f"ask for `{requests.request_kind(type(request))}`")
        context.require_commit(request.min_commit)
        # What follows a commit is not stopped: a write has the seconds of its transaction.
        bounds = None if request.is_write else state_of(context.database).limits
        with context.acting_as(who), within_seconds(bounds):
            return HANDLERS[type(request)](context, who, request)
    except Exception as error:  # noqa: BLE001 - whatever it is, the server goes on
        raise service_error(error) from None
