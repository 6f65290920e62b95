"""What `corollary advise` prints: advice on a program, and whether stored views pay."""

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from corollary.advisor import inputs
from corollary.advisor.advice import Advice
from corollary.advisor.advise import advise
from corollary.advisor.apply import reformulate, revert
from corollary.advisor.check.measurement import calibrate_from_commits
from corollary.advisor.cost.view_accounts import ViewAccount, account_views
from corollary.advisor.inputs import read_sql_log
from corollary.advisor.measured_sizes import measure_sizes
from corollary.advisor.model.scheme import (
    ArityScope,
    ComparisonMode,
    Options,
    SelectionMode,
    SelfMaterialisation,
    ViewNaming,
    WorkloadQuery,
)
from corollary.advisor.model.scheme_reader import read_scheme
from corollary.advisor.render.json import advice_as_json, advised_sql, trace_as_json
from corollary.advisor.render.text import (
    format_amount,
    format_bytes,
    periodic_report,
    read_state,
    report,
    state_of_advice,
)
from corollary.advisor.render.trace import trace_as_svg, trace_as_text
from corollary.analysis.check import check
from corollary.cli.commands.advise.actions import AdviceActions, AdviceSource
from corollary.cli.commands.advise.options import AdviseOptions
from corollary.cli.databases import is_warehouse, load_in_memory, open_warehouse
from corollary.cli.options import OutputOptions, PropagationOptions
from corollary.cli.output import print_json
from corollary.cli.report.sql_script import sql_script
from corollary.console import TerminalConsole
from corollary.core.engine import within_seconds
from corollary.core.printer import print_program
from corollary.database.database import Database, state_of
from corollary.database.options import DatabaseOptions
from corollary.database.program.loaded_program import load_program, read_programs
from corollary.database.writing.quarantine import with_same_quarantine
from corollary.errors import InputError
from corollary.source import SourceFile


def read_accounts(
    database: Database,
    queries: Iterable[str],
    frequencies: dict[str, float],
    updates: dict[str, float],
) -> list[ViewAccount]:
    """Return what each stored view saves and costs, at the rates of the query log and history."""
    loaded = state_of(database).loaded
    asked = inputs.default_queries(loaded.normal, inputs.read_logged_queries(database), frequencies)
    named = list(queries)
    if named:
        asked = inputs.parse_queries(named, loaded.normal, frequencies)
    rates = {**inputs.measure_update_rates(database), **updates}
    scheme = read_scheme(loaded.program, loaded.checked, asked)
    sizes = measure_sizes(database)
    return list(account_views(scheme, loaded.program, sizes, Options(updates=rates)))


def write_report(
    path: Path, title: str, advice: Advice, database: Database | None, lines: Iterable[str]
) -> None:
    """Write the report, compared with the one that is there."""
    before = None
    with suppress(OSError, UnicodeDecodeError):
        before = read_state(path.read_text(encoding="utf-8"))
    commit = 0 if database is None else database.commits
    accounts = [] if database is None else read_accounts(database, (), {}, {})
    state = state_of_advice(advice, commit, time.time())
    text = periodic_report(title, advice, accounts, lines, state=state, before=before)
    path.write_text(text, encoding="utf-8")


def advise_on(
    programs: tuple[str, ...],
    options: AdviseOptions,
    output: OutputOptions,
    console: TerminalConsole,
) -> None:
    """Print advice on a program or on the program of a warehouse, and do what is asked with it."""
    with within_seconds(options.limits), _open_source(programs, options, console) as source:
        checked = check(source.program)
        advice = _advice(options, source, console)
        after = reformulate(checked, source.program, advice)
        console.done()
        calibration = None if source.data is None else calibrate_from_commits(source.data)
        actions = AdviceActions(advice, source, after, options, output, console)
        if not output.is_json:
            nothing = ["the program has no rules to advise on"]
            for line in report(advice, calibration) if advice.queries else nothing:
                click.echo(line)
        _show_trace(advice, options, output, actions.document)
        _show_log(source, output, actions.document)
        actions.run()
        _show_sql(actions, options, output)
        if options.report is not None:
            lines = list(report(actions.advice, actions.calibration or calibration))
            write_report(options.report, programs[0], actions.advice, source.data, lines)
        if options.to is not None:
            is_sql = options.to.suffix.lower() == ".sql"
            after = actions.after
            text = sql_script(load_program(after), "spark") if is_sql else print_program(after)
            options.to.write_text(text, encoding="utf-8")
        if output.is_json:
            calibration = actions.calibration or calibration
            sql = advised_sql(actions.advice, actions.after)
            print_json({**advice_as_json(actions.advice, calibration, sql), **actions.document})


def _show_log(source: AdviceSource, output: OutputOptions, document: dict[str, Any]) -> None:
    """Print which relation stands for which query of a log."""
    if source.log is None:
        return
    document["log"] = [asdict(each) for each in source.log.queries]
    document["log_skipped"] = source.log.skipped
    if not output.is_json:
        for each in source.log.queries:
            times = "once" if each.count == 1 else f"{each.count} times"
            click.echo(f"asked   {each.relation}, {times}: {' '.join(each.text.split())}")
        if source.log.skipped:
            click.echo(f"{source.log.skipped} statements of the log are not queries")


def _show_sql(actions: AdviceActions, options: AdviseOptions, output: OutputOptions) -> None:
    """Print the new views and rewritten queries as SQL."""
    if options.sql is None or output.is_json:
        return
    for statements in advised_sql(actions.advice, actions.after).values():
        click.echo(statements[options.sql])


def _show_trace(
    advice: Advice, options: AdviseOptions, output: OutputOptions, document: dict[str, Any]
) -> None:
    """Print the phases of the algorithm, and write them to a file."""
    if options.trace:
        document["trace"] = trace_as_json(advice)
        for line in () if output.is_json else trace_as_text(advice):
            click.echo(line)
    if options.trace_to is not None:
        is_drawing = options.trace_to.suffix.lower() == ".svg"
        text = trace_as_svg(advice) if is_drawing else "\n".join(trace_as_text(advice)) + "\n"
        options.trace_to.write_text(text, encoding="utf-8")


@contextmanager
def _open_source(
    programs: tuple[str, ...], options: AdviseOptions, console: TerminalConsole
) -> Iterator[AdviceSource]:
    """Open the warehouses that are named, each once; or load the facts into memory."""
    place = programs[0] if is_warehouse(programs[0]) else None
    if options.queries_from is not None and (options.apply or options.queries):
        raise click.UsageError(
            "--queries-from is for queries that are not rules: leave out --query and --apply, and "
            "create what --sql prints"
        )
    if place is not None and len(programs) > 1:
        raise click.UsageError(f"'{place}' is a warehouse: it has its program")
    settings = DatabaseOptions(options.engine, limits=options.limits, log_queries=False)
    places = dict.fromkeys(each for each in (place, options.stats, options.apply) if each)
    with ExitStack() as stack:
        databases = {
            each: stack.enter_context(open_warehouse(each, console, settings)) for each in places
        }
        target = databases.get(options.apply or "")
        data = databases.get(options.stats or place or options.apply or "")
        if place is not None:
            program = databases[place].program
        else:
            program = read_programs([Path(each) for each in programs])
            if target is not None:
                program = with_same_quarantine(program, target.program)
        if data is None and options.facts is not None:
            paths = tuple(map(Path, programs))
            defaults = PropagationOptions("auto", (), ())
            loaded = load_in_memory(paths, options.facts, None, defaults, options.limits, console)
            data = stack.enter_context(loaded)
        log = None
        if options.queries_from is not None:
            text = options.queries_from.read_text(encoding="utf-8")
            log = read_sql_log(SourceFile(options.queries_from.name, text), program)
            program = log.program
        yield AdviceSource(program, data, target, log)


def _advice(options: AdviseOptions, source: AdviceSource, console: TerminalConsole) -> Advice:
    data = source.data
    selection = options.selection or ("minimal" if options.budget is None else "budget")
    if (selection == "budget" or options.budget is not None) and data is None:
        raise InputError.of(
            "C1102",
            "Whether views are worth a budget cannot be told without sizes.",
            None,
            "give a warehouse with --stats or facts with -F, or choose another --selection",
        )
    loaded = load_program(source.program)
    frequencies = dict(options.frequency)
    logged = [] if data is None else inputs.read_logged_queries(data)
    known = {
        each.relation: each.frequency for each in inputs.merge_logged_queries(logged, {})
    } | frequencies
    if source.log is not None:
        queries = [
            WorkloadQuery(each.relation, frequency=float(each.count)) for each in source.log.queries
        ]
    elif options.queries:
        queries = inputs.parse_queries(options.queries, loaded.normal, known)
    else:
        queries = inputs.default_queries(loaded.normal, logged, frequencies)
    settings = Options(
        selection=SelectionMode(selection),
        scope=ArityScope(options.scope),
        opaque=ComparisonMode(options.opaque),
        partial_clusters=(
            selection != "paper" if options.partial_clusters is None else options.partial_clusters
        ),
        naming=ViewNaming(options.names, uses_initials=selection == "paper"),
        self_materialisation=SelfMaterialisation(options.self_materialisation),
        budget_bytes=options.budget,
        updates={
            **({} if data is None else inputs.measure_update_rates(data)),
            **dict(options.updates),
        },
        commits_per_hour=0.0 if data is None else inputs.measure_commit_rate(data),
        max_steps=options.limit_steps,
    )
    console.progress("measuring sizes")
    sizes = None if data is None else measure_sizes(data)
    return advise(
        read_scheme(loaded.program, loaded.checked, queries, settings.opaque), settings, sizes
    )


def revert_advice(database: Database, output: OutputOptions) -> None:
    """Revert the advice that was applied last, and print what was dropped."""
    applied, transaction = revert(database)
    database.publish(transaction)
    commit = transaction.commit_number
    rules = [f"  {text}" for texts in applied.originals.values() for text in texts]
    output.show(
        lambda: {"commit": commit, "reverted": applied.as_note()},
        [f"commit {commit}: dropped {', '.join(applied.views)}", *rules],
    )


def weigh_views(database: Database, options: AdviseOptions, output: OutputOptions) -> None:
    """Print for each stored view what it saves and costs, and whether to keep it."""
    views = read_accounts(database, options.queries, dict(options.frequency), dict(options.updates))
    documents = [
        {
            "view": each.view,
            "saved_per_hour": round(each.saved),
            "upkeep_per_hour": round(each.upkeep),
            "bytes": round(each.bytes),
            "drop": not each.is_paying,
        }
        for each in views
    ]
    lines = [
        f"{'keep' if each.is_paying else 'drop'}  {each.view}: saves {format_amount(each.saved)} "
        f"row-ops an hour, upkeep {format_amount(each.upkeep)}, {format_bytes(each.bytes)}"
        for each in views
    ]
    nothing = ["no view is stored for the sake of queries alone"]
    output.show(lambda: {"views": documents}, lines or nothing)
