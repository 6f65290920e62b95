"""What `run --warehouse`, `apply` and `watch` print: changes, the commit, alerts, notes."""

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from corollary.cli.options import ChangeOutputOptions
from corollary.cli.output import print_warnings
from corollary.cli.recording import echo
from corollary.cli.report.tables import align, signed, table
from corollary.cli.report.violations import proof_texts, proofs_as_json
from corollary.console import Phase, TerminalConsole, counted
from corollary.errors import ConstraintError, redact_password

if TYPE_CHECKING:
    from corollary.database.alerts.delivery import Delivered
    from corollary.database.intake.dry_run import RunPlan, SourcePlan, TablePlan
    from corollary.database.intake.pipeline import PipelineRun
    from corollary.database.relation_plans import RelationPlan
    from corollary.database.transaction import Transaction
    from corollary.warehouse.publishing.table_schemas import TableSchema

OTHER_MIN_SECONDS = 0.5
"""Less than this for other things than relations is not worth a line."""
MAX_VIOLATIONS = 20
"""The maximum number of tuples that are listed for a new constraint."""


def report_run(
    outcome: "PipelineRun",
    warehouse: str,
    output: ChangeOutputOptions,
    console: TerminalConsole,
    planned: Iterable[str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Print an outcome: results to standard output, everything else as notes.

    Args:
        outcome: what was done.
        warehouse: what the user calls the warehouse.
        output: the format, and the maximum number of tuples of a relation and of alerts.
        console: where notes go.
        planned: the lines of the plan of a dry run, if there are others than usual.
        more: keys of the JSON document that are added.
    """
    console.done()
    lines = _result(outcome, output.max_rows)
    if outcome.plan is not None:
        planned = planned or plan_lines(outcome.plan, is_verbose=output.verbose)
        lines = chain(planned, lines)
    output.show(lambda: {**_as_json(outcome, output.max_rows), **(more or {})}, lines)
    print_warnings(dict.fromkeys(outcome.warnings), console)
    if outcome.transaction is not None:
        question = way_to_ask(outcome.transaction, warehouse)
        if question is not None and not output.is_json:
            console.note(f"why: {question}")
        note_other_seconds(outcome.transaction, console)
        for line in retained_lines(outcome.transaction):
            console.note(line)
        for line in _refused(outcome.transaction):
            console.note(line)
        for line in _existing(outcome.transaction):
            console.note(line)
        for line in _dropped(outcome):
            console.note(line)
    if outcome.published is not None:
        print_warnings(outcome.published.problems, console)
        names = [each.relation for each in outcome.published.published]
        if names and not output.is_json:
            console.note(f"published: {', '.join(names)}")
            for each in outcome.published.published:
                if each.new_columns:
                    columns = ", ".join(each.new_columns)
                    console.note(f"new columns: the table of {each.relation} has {columns} now")
    note_delivery(outcome.delivered, console)
    if outcome.quarantined:
        goal = "quarantine(relation, source, file, line, code, reason, raw)"
        console.note(
            f"{counted(outcome.quarantined, 'malformed record')} set aside, to be seen with "
            f"corollary query {shlex.quote(redact_password(warehouse))} '{goal}'"
        )
    if outcome.plan is not None and outcome.plan.constraints:
        if not output.is_json:
            echo(str(ConstraintError(list(outcome.plan.constraints))), err=True)
            for line in proof_texts(outcome.why):
                echo(line, err=True)
        sys.exit(ConstraintError.exit_code)


def _as_json(outcome: "PipelineRun", max_rows: int) -> dict[str, Any]:
    found = outcome.as_json(max_rows)
    return {**found, "why": proofs_as_json(outcome.why)} if outcome.why else found


def note_other_seconds(transaction: "Transaction", console: TerminalConsole) -> None:
    """Note the seconds of the evaluation that are not those of relations that have changed."""
    shown = sum(
        transaction.stats[name].seconds
        for name, change in transaction.changes.items()
        if name in transaction.stats and change.relation.is_derived
    )
    rest = console.seconds_of(Phase.EVALUATE) - shown
    if rest >= OTHER_MIN_SECONDS:
        console.note(
            f"evaluate: {shown:.2f} s for the relations that have changed, {rest:.2f} s for "
            "others, base relations, keys and events"
        )


def note_delivery(delivered: "Delivered | None", console: TerminalConsole) -> None:
    """Note how many alerts were delivered, and what failed."""
    if delivered is not None:
        if delivered.alerts:
            console.note(f"delivered: {counted(delivered.alerts, 'alert')}")
        print_warnings(delivered.problems, console)


def alert_lines(transaction: "Transaction", max_rows: int) -> Iterator[str]:
    """Yield the alerts of a transaction that go to the console."""
    from corollary.core.alerts import SinkKind, distinct_alerts

    every = [each for each in transaction.alerts if each.sink.kind is SinkKind.CONSOLE]
    alerts = distinct_alerts(every)
    for each in alerts[:max_rows]:
        yield f"alert: {each.message}"
    if len(alerts) > max_rows:
        yield f"alert: and {len(alerts) - max_rows:,} more"


def way_to_ask(transaction: "Transaction", warehouse: str) -> str | None:
    """Return the command that says why the first alert of a commit came; None without alerts."""
    from corollary.core.alerts import SinkKind, distinct_alerts
    from corollary.core.printer import print_value

    alerts = distinct_alerts(
        each for each in transaction.alerts if each.sink.kind is SinkKind.CONSOLE
    )
    if not alerts or transaction.commit_number is None or transaction.is_repeated:
        return None
    first = alerts[0]
    row = ", ".join(map(print_value, first.row, first.types))
    is_event = first.event in transaction.next_program.normal.active.relations
    question, option = ("why", "--at") if is_event else ("why-added", "--commit")
    place, goal = shlex.quote(redact_password(warehouse)), shlex.quote(f"{first.event}({row})")
    return f"corollary {question} {place} {goal} {option} {transaction.commit_number}"


def _result(outcome: "PipelineRun", max_rows: int) -> Iterator[str]:
    """Yield a line for each relation that changed, one for the commit, then the alerts."""
    transaction = outcome.transaction
    if transaction is not None and outcome.plan is None:
        yield from change_lines(transaction)
    if transaction is not None and transaction.is_repeated:
        yield f"nothing was done: commit {transaction.commit_number} was made under this key before"
    elif outcome.commit is None:
        plan = outcome.plan
        is_idle = plan is None or not (plan.relations or plan.tables or plan.has_new_program)
        yield f"dry run: {'nothing would change' if is_idle else 'nothing was changed'}"
    elif transaction is None or transaction.commit_number is None:
        since = f" since commit {outcome.commit}" if outcome.commit else ""
        yield f"nothing has changed{since}"
    else:
        is_idle = not transaction.changes
        yield f"commit {outcome.commit}{': no tuple has changed' if is_idle else ''}"
    if transaction is not None and not transaction.is_repeated:
        yield from alert_lines(transaction, max_rows)


def _dropped(outcome: "PipelineRun") -> Iterator[str]:
    """Yield the relations that a commit has dropped."""
    from corollary.database.relation_plans import RelationEdit

    plan = outcome.transaction.plan if outcome.transaction and outcome.plan is None else ()
    names = [each.relation for each in plan if each.edit is RelationEdit.DROPPED]
    if names:
        yield f"dropped: {', '.join(names)}"


def _existing(transaction: "Transaction") -> Iterator[str]:
    """Yield the tuples that violate new constraints and were there before them."""
    for each in transaction.existing[:MAX_VIOLATIONS]:
        yield f"there before the constraint `{each.constraint}`: {each.message}"
    if len(transaction.existing) > MAX_VIOLATIONS:
        yield f"and {len(transaction.existing) - MAX_VIOLATIONS:,} more tuples that violate it"


def change_lines(transaction: "Transaction") -> list[str]:
    """Return a line for each relation that changed: counts, algorithm, placement, seconds."""
    return align(_cells(transaction))


def change_summary(transaction: "Transaction") -> str:
    """Return the counts of all relations that changed, separated by commas."""
    return ", ".join(f"{name} {signed(each.counts)}" for name, each in transaction.changes.items())


def _cells(transaction: "Transaction") -> Iterator[list[str]]:
    for name, change in transaction.changes.items():
        stats = transaction.stats.get(name)
        cells = [name, signed(change.counts)]
        if stats is not None and change.relation.is_derived:
            cells += [stats.algorithm, stats.placement, f"{stats.seconds:.2f} s"]
        yield cells


def _refused(transaction: "Transaction") -> Iterator[str]:
    """Yield which relations are not maintained by the algorithm that was asked for, and why."""
    for name, stats in transaction.stats.items():
        if stats.refused:
            yield f"`{name}` is maintained by {stats.algorithm}, {stats.reason}"


def retained_lines(transaction: "Transaction") -> Iterator[str]:
    """Yield which deleted tuples stay because another part asserts them."""
    for name, kept in transaction.kept.items():
        stays, them = ("stays", "it") if len(kept) == 1 else ("stay", "them")
        yield (
            f"{counted(len(kept), 'tuple')} of `{name}` {stays}: "
            f"{kept.asserted_by} asserts {them} too"
        )


# --- the plan of a dry run -----------------------------------------------------------------------


def plan_lines(plan: "RunPlan", *, is_verbose: bool) -> Iterator[str]:
    """Yield the lines of a plan: sources, relations, tables, grants, cost.

    Args:
        plan: what a dry run has found.
        is_verbose: whether to say why an algorithm was chosen.
    """
    if plan.sources:
        rows = [_source(each) for each in plan.sources]
        yield from table(["source", "relation", "reads", "rows"], rows)
        yield ""
    if plan.relations:
        titles = ["relation", "change", "tuples", "by", "why"]
        rows = [_relation(each, is_verbose=is_verbose) for each in plan.relations]
        yield from table(titles, rows)
        yield ""
    if plan.tables:
        yield from table(["table", "change", "columns"], [_published(each) for each in plan.tables])
        yield ""
    for reader, names in plan.lost_grants.items():
        listed = ", ".join(names)
        yield f"`{reader}` may not see {listed} any more: what is dropped loses its grants"
    if plan.relations or plan.tables:
        stored = counted(plan.stored_tuples, "tuple")
        published = counted(plan.published_rows, "row")
        yield (
            f"cost: {plan.seconds:.2f} s to read and derive, measured; {stored} to store and "
            f"{published} to publish come on top"
        )


def _source(each: "SourcePlan") -> list[str]:
    added_removed = signed(each.counts) or "–"
    bad = f", {counted(each.malformed, 'malformed record')}" if each.malformed else ""
    name = each.name.partition(" < ")[2] or each.name
    return [name, each.relation, str(each.state), f"{added_removed}{bad}"]


def _relation(each: "RelationPlan", *, is_verbose: bool) -> list[str]:
    stats = each.stats
    by = "" if stats is None or each.after is None or not each.after.is_derived else stats.algorithm
    why = each.reason
    if by and is_verbose and stats is not None:
        why = f"{why}; {by}: {stats.reason}"
    return [each.relation, str(each.edit), _tuples(each), by, why]


def _tuples(each: "RelationPlan") -> str:
    """Return how many tuples there are before and after, and the change."""
    before, after = ("–" if n is None else f"{n:,}" for n in (each.rows_before, each.rows_after))
    changed = signed(each.counts)
    return f"{before} → {after}" + (f" ({changed})" if changed else "")


def _published(each: "TablePlan") -> list[str]:
    return [each.relation, str(each.edit), _columns(each.before, each.after)]


def _columns(before: "TableSchema | None", after: "TableSchema | None") -> str:
    texts = [
        ", ".join(f"{name}: {type_}" for name, type_ in each)
        for each in (before, after)
        if each is not None
    ]
    return texts[0] if len(texts) == 1 or texts[0] == texts[1] else " → ".join(texts)
