"""What `corollary trace` prints: the papers' table, the changes, the counters."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from corollary.cli.report.tables import comma_separated, table, terminal_width, truncate, wrap
from corollary.core.states import State
from corollary.database.counters import COUNTER_NAMES, Stats, TraceRow

if TYPE_CHECKING:
    from corollary.core.recorder import JobRecord
    from corollary.database.transaction import Transaction
    from corollary.provenance.changes.transaction_proofs import DisqualifiedProofs

INDENT = "    "
STAGE_HEADER = ("stage", "round")
HEADER = ("rule", "updates", "approximation", "disqualified", "actual")
KINDS = {State.ADDED: "additions", State.REMOVED: "removals", None: "changes"}
PROVABLE = {State.ADDED: "provable before the change", State.REMOVED: "provable after the change"}
EMPTY_CELL = "–"
UNQUOTED_SYMBOL = re.compile(r"[\w.-]+")


def trace_lines(
    transaction: "Transaction",
    limit: int,
    proofs: "DisqualifiedProofs | None" = None,
    *,
    is_full: bool,
) -> Iterator[str]:
    """Yield the lines of the report.

    Args:
        transaction: what happened.
        limit: the maximum number of tuples of a list.
        proofs: of disqualified tuples, if they are shown.
        is_full: whether invocations with an empty approximation are shown too.
    """
    if transaction.commit_number is None:
        yield "nothing has changed"
        return
    rows = [row for row in transaction.trace if is_full or not row.is_empty]
    rules = _numbers(rows)
    yield from _rules(rules)
    yield from _groups(rows, rules, limit, proofs)
    left = len(transaction.trace) - len(rows)
    if left:
        invocations = "1 invocation" if left == 1 else f"{left} invocations"
        yield f"{invocations} with an empty approximation left out; -v shows all"
        yield ""
    elif not rows:
        yield "no table: nothing was propagated rule by rule"
        yield ""
    yield from _changes(transaction, limit)
    yield ""
    yield from _jobs(transaction.jobs)
    yield "counters"
    for name, stats in transaction.stats.items():
        yield from _counters(name, stats)
    if any(len(part) > limit for row in rows for part in _parts(row)) or any(
        max(change.counts) > limit for change in transaction.changes.values()
    ):
        yield ""
        yield f"lists are cut at {limit} tuples; --max-rows shows more"


def _jobs(jobs: "Sequence[JobRecord]") -> Iterator[str]:
    """Yield which partitions were asked, job by job."""
    if not jobs:
        return
    yield "jobs"
    for number, job in enumerate(jobs, 1):
        asked = "; ".join(
            f"{name} {' '.join(map(str, each))}" for name, each in job.partitions.items()
        )
        cost = f"{job.sent:,} B to tasks, {job.returned:,} B back"
        yield f"{INDENT}{number}  {job.title}: partitions {asked} ({cost})"
    yield ""


def comparison_lines(
    traced: "Mapping[str, Transaction]",
    limit: int,
    proofs: "Mapping[str, DisqualifiedProofs]",
    *,
    is_full: bool,
) -> Iterator[str]:
    """Yield the tables of several algorithms, then the changes, then the counters side by side.

    Args:
        traced: what happened, by the algorithm that was asked for.
        limit: the maximum number of tuples of a list.
        proofs: of disqualified tuples, by algorithm, if they are shown.
        is_full: whether invocations with an empty approximation are shown too.
    """
    first = next(iter(traced.values()))
    if all(each.commit_number is None for each in traced.values()):
        yield "nothing has changed"
        return
    rows = {
        algorithm: [row for row in each.trace if is_full or not row.is_empty]
        for algorithm, each in traced.items()
    }
    rules = _numbers([row for each in rows.values() for row in each])
    yield from _rules(rules)
    for algorithm, each in rows.items():
        if not each:
            yield f"{algorithm}: nothing was propagated rule by rule"
            yield ""
        yield from _groups(each, rules, limit, proofs.get(algorithm), f"{algorithm}, ")
    yield from _changes(first, limit)
    told = {name: _outcome(each) for name, each in traced.items()}
    others = [name for name, each in told.items() if each != _outcome(first)]
    yield f"{INDENT}not the same for {', '.join(others)}" if others else f"{INDENT}the same for all"
    yield ""
    yield "counters"
    names = dict.fromkeys(name for each in traced.values() for name in each.stats)
    for name in names:
        stats = [each.stats.get(name) for each in traced.values()]
        cells = [["algorithm", *(each.algorithm if each else EMPTY_CELL for each in stats)]]
        for counter in COUNTER_NAMES:
            counts = [each.counts.get(counter, 0) if each else 0 for each in stats]
            if any(counts):
                cells.append([counter, *(f"{count:,}" for count in counts)])
        for line in table((name, *traced), cells, terminal_width() - len(INDENT)):
            yield INDENT + line
        for algorithm, transaction in traced.items():
            found = transaction.stats.get(name)
            if found is not None and found.refused:
                yield f"{INDENT}{algorithm}: {found.algorithm}, {found.reason}"
        yield ""


def _outcome(transaction: "Transaction") -> dict[str, Any]:
    """Return all changes of a transaction, to be compared."""
    return {
        name: each.as_json(max(each.counts)) for name, each in sorted(transaction.changes.items())
    }


def comparison_as_json(
    traced: "Mapping[str, Transaction]", limit: int, proofs: "Mapping[str, DisqualifiedProofs]"
) -> dict[str, Any]:
    """Return the reports of several algorithms as JSON, each under its name."""
    return {name: trace_as_json(each, limit, proofs.get(name)) for name, each in traced.items()}


def _numbers(rows: Sequence[TraceRow]) -> dict[str, int]:
    """Return the rules of rows with the numbers that they have in tables."""
    rules = dict.fromkeys(row.rule for row in rows if not _is_summary(row))
    return {rule: number for number, rule in enumerate(rules, 1)}


def _rules(rules: dict[str, int]) -> Iterator[str]:
    if rules:
        yield "rules"
        for rule, number in rules.items():
            yield f"{INDENT}{number}  {rule}"
        yield ""


def _is_summary(row: TraceRow) -> bool:
    """Whether a row is about all rules of a relation together."""
    return row.rule.startswith(f"{row.relation}: ")


def _groups(
    rows: Sequence[TraceRow],
    rules: dict[str, int],
    limit: int,
    proofs: "DisqualifiedProofs | None",
    title: str = "",
) -> Iterator[str]:
    """Yield a table for each run of rows about one relation and sign, and the proofs in it."""
    for (relation, sign), group in _runs(rows):
        yield f"{title}{relation}: {KINDS[sign]}"
        has_stages = any(row.stage not in ("", "result") for row in group)
        header = (*STAGE_HEADER, *HEADER) if has_stages else HEADER
        cells = [
            [*(_stage_cells(row) if has_stages else ()), *_cells(row, rules, limit)]
            for row in group
        ]
        for line in table(header, cells, terminal_width() - len(INDENT)):
            yield INDENT + line
        yield ""
        if proofs is not None and sign is not None:
            yield from _proofs(group, proofs, PROVABLE[sign])


def _proofs(group: Sequence[TraceRow], proofs: "DisqualifiedProofs", title: str) -> Iterator[str]:
    """Yield why tuples of a table were disqualified, each once, and how many are left out."""
    found = {proof.goal: proof for row in group for proof in proofs.of_row(row)}
    for at, proof in enumerate(found.values()):
        if at == 0:
            yield f"{INDENT}disqualified: {title}"
        for line in proof.to_text().splitlines():
            yield f"{2 * INDENT}{line}"
    more = len({json.dumps(each) for row in group for each in row.disqualified}) - len(found)
    if more:
        yield f"{INDENT}{more:,} more disqualified without a proof here"
    if found or more:
        yield ""


def _runs(rows: Sequence[TraceRow]) -> Iterator[tuple[tuple[str, State | None], list[TraceRow]]]:
    """Yield runs of rows about one relation and sign; those of one algorithm with stages at once.

    Such an algorithm derives removals and additions in the same rounds.
    """
    for has_stages, some in groupby(rows, lambda row: bool(row.stage)):
        if has_stages:
            every = list(some)
            keys = dict.fromkeys((row.relation, row.sign) for row in every)
            for key in keys:
                yield key, [row for row in every if (row.relation, row.sign) == key]
        else:
            for key, group in groupby(some, lambda row: (row.relation, row.sign)):
                yield key, list(group)


def _stage_cells(row: TraceRow) -> list[list[str]]:
    is_result = row.stage == "result"
    return [[row.stage or EMPTY_CELL], [EMPTY_CELL if is_result else str(row.round)]]


def _cells(row: TraceRow, rules: dict[str, int], limit: int) -> list[list[str]]:
    rule = "all" if _is_summary(row) else str(rules[row.rule])
    lists = [
        [f"{name}{_tuple(each)}" for name, each in row.updates],
        *([_tuple(each) for each in part] for part in _parts(row)[1:]),
    ]
    return [[rule], *(truncate(each, limit) or [EMPTY_CELL] for each in lists)]


def _parts(row: TraceRow) -> tuple[Sequence[Any], ...]:
    return row.updates, row.approximation, row.disqualified, row.actual


def _tuple(row: list[Any]) -> str:
    return f"({', '.join(map(_value, row))})"


def _value(value: Any) -> str:
    """Return a value as text; a symbol is quoted where it would be misread."""
    if isinstance(value, str) and UNQUOTED_SYMBOL.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _changes(transaction: "Transaction", limit: int) -> Iterator[str]:
    yield "changes"
    longest = max(map(len, transaction.changes), default=0)
    for name, change in transaction.changes.items():
        document = change.as_json(max_rows=max(change.counts))
        margin = f"{INDENT}{name.ljust(longest)}  "
        for rows, sign in ((document["added"], "+"), (document["removed"], "−")):
            texts = truncate([f"{sign}{_tuple(row)}" for row in rows], limit)
            for line in wrap(texts, max(20, terminal_width() - len(margin))) if texts else ():
                yield margin + line
                margin = " " * len(margin)
    if not transaction.changes:
        yield f"{INDENT}none"


def _counters(name: str, stats: Stats) -> Iterator[str]:
    yield f"{INDENT}{name}: {stats.algorithm}, {stats.reason}"
    counts = [f"{each} {stats.counts[each]:,}" for each in COUNTER_NAMES if stats.counts.get(each)]
    margin = 2 * INDENT
    for line in wrap(comma_separated(counts), terminal_width() - len(margin)):
        yield margin + line


def trace_as_json(
    transaction: "Transaction", limit: int, proofs: "DisqualifiedProofs | None" = None
) -> dict[str, Any]:
    """Return the report as JSON: all rows of the table, the counters, the changes."""
    document: dict[str, Any] = {
        "rows": [_row_as_json(row, limit, proofs) for row in transaction.trace],
        "counters": {
            name: {**stats.as_json(), "reason": stats.reason}
            for name, stats in transaction.stats.items()
        },
        "changes": {name: each.as_json(limit) for name, each in transaction.changes.items()},
    }
    if transaction.jobs:
        document["jobs"] = [each.as_json() for each in transaction.jobs]
    return document


def _row_as_json(row: TraceRow, limit: int, proofs: "DisqualifiedProofs | None") -> dict[str, Any]:
    parts: dict[str, Sequence[Any]] = {
        "updates": [{"relation": name, "row": each} for name, each in row.updates],
        "approximation": row.approximation,
        "disqualified": row.disqualified,
        "actual": row.actual,
    }
    document: dict[str, Any] = {"rule": row.rule}
    if row.stage:
        document |= {"stage": row.stage, "round": row.round}
    document |= {name: list(each[:limit]) for name, each in parts.items()}
    if any(len(each) > limit for each in parts.values()):
        counts = {name: len(each) for name, each in parts.items()}
        document |= {"truncated": True, "counts": counts}
    if proofs is not None:
        found = proofs.of_row(row)
        document["proofs"] = [each.to_json() for each in found]
        document["disqualified_without_proof"] = len(row.disqualified) - len(found)
    return document
