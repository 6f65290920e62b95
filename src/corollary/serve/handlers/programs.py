"""The program in force: its text, what is wrong with another one, plans, and the graph."""

from dataclasses import replace

from corollary.core.printer import print_program
from corollary.database.access.principals import Principal
from corollary.database.database import state_of
from corollary.database.intake.pipeline import PipelineRun
from corollary.database.program.loaded_program import diagnose_loading
from corollary.database.reading.reader import Reader
from corollary.database.writing.quarantine import with_same_quarantine
from corollary.errors import InputError
from corollary.explain.dependency_graph import graph_as_json, graph_as_svg
from corollary.frontends.datalog.parser import parse
from corollary.serve import requests
from corollary.serve.answers import Answer
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.proofs import SVG_TYPE, unknown_form
from corollary.serve.handlers.relations import relation_as_json, visible_relations
from corollary.source import SourceFile

PROGRAM_NAME = "program"
"""What messages call the text of a program."""


def answer_program(
    context: HandlerContext, who: Principal, request: requests.ProgramRequest
) -> Answer:
    """Return the program in force, as written."""
    database, commit = context.view(who, request.at)
    text = print_program(state_of(database).program)
    return Answer.of(commit, {"program": text, "commit": commit})


def answer_put_program(
    context: HandlerContext, who: Principal, request: requests.PutProgramRequest
) -> Answer:
    """Put another program into force."""
    from corollary.database.intake.dry_run import try_out

    database = context.owned(who, "change the program")
    program = parse(SourceFile(PROGRAM_NAME, request.program))
    transaction = database.transaction(is_dry=request.dry_run)
    outcome = PipelineRun(transaction)
    transaction.set_program(with_same_quarantine(program, database.program))
    if request.dry_run:
        outcome.plan = try_out(database, transaction)
    else:
        transaction.commit()
        outcome.commit = transaction.commit_number or database.commits
        context.note_commit(transaction)
    return Answer.of(database.commits, outcome.as_json(request.max_rows))


def answer_check(context: HandlerContext, who: Principal, request: requests.CheckRequest) -> Answer:
    """Report everything that is wrong or doubtful about a program."""
    database = context.owned(who, "check programs")
    try:
        found = diagnose_loading(parse(SourceFile(PROGRAM_NAME, request.program)))
    except InputError as error:
        found = error.diagnostics
    return Answer.of(database.commits, {"diagnostics": [each.as_json() for each in found]})


def answer_explain(
    context: HandlerContext, who: Principal, request: requests.ExplainRequest
) -> Answer:
    """Explain how a question is answered, or the program evaluated."""
    from corollary.core.statistics import Statistics
    from corollary.explain.plan import plan_as_json, print_plan
    from corollary.maintain.algorithms.seminaive import plan_program

    database = context.owned(who, "see how something is computed")
    if request.question is not None:
        text = database.explain(request.question)
        return Answer.of(database.commits, {"question": request.question, "text": text})
    loaded = state_of(database).loaded
    plan = plan_program(loaded.normal, Statistics(), asked=loaded.written_relations or None)
    document = plan_as_json(plan, loaded.normal)
    return Answer.of(database.commits, {**document, "text": print_plan(plan, loaded.normal)})


def answer_graph(context: HandlerContext, who: Principal, request: requests.GraphRequest) -> Answer:
    """Return which relation is computed from which, as far as somebody may see them."""
    database, commit = context.view(who, request.at)
    normal = state_of(database).loaded.normal
    shown = visible_relations(database)
    if isinstance(database, Reader):  # what a view is computed from is not for readers
        normal = replace(normal, relations=shown, rules=(), aggregations=())
    if request.form == "svg":
        return Answer(commit, graph_as_svg(normal).encode(), media_type=SVG_TYPE)
    if request.form != "json":
        raise unknown_form(request.form, "json, svg")
    graph = graph_as_json(normal, shown)
    nodes = [
        each | relation_as_json(database, each["name"], shown[each["name"]])
        for each in graph["nodes"]
    ]
    return Answer.of(commit, {**graph, "nodes": nodes, "commit": commit})
