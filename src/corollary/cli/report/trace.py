"""What `corollary trace` prints: the papers' table, the changes, the counters."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from corollary.cli.report.tables import comma_separated, table, terminal_width, truncate, wrap
from corollary.core.states import State
from corollary.database.counters import COUNTER_NAMES, Stats, TraceRow

if TYPE_CHECKING:
    from corollary.database.transaction import Transaction

INDENT = "    "
HEADER = ("rule", "updates", "approximation", "disqualified", "actual")
KINDS = {State.ADDED: "additions", State.REMOVED: "removals", None: "changes"}
EMPTY_CELL = "–"
UNQUOTED_SYMBOL = re.compile(r"[\w.-]+")


def trace_lines(transaction: "Transaction", limit: int, *, is_full: bool) -> Iterator[str]:
    """Yield the lines of the report.

    Args:
        transaction: what happened.
        limit: the maximum number of tuples of a list.
        is_full: whether invocations with an empty approximation are shown too.
    """
    if transaction.commit_number is None:
        yield "nothing has changed"
        return
    rows = [row for row in transaction.trace if is_full or not row.is_empty]
    rules = {row.rule: 0 for row in rows if not _is_summary(row)}
    rules = {rule: number for number, rule in enumerate(rules, 1)}
    if rules:
        yield "rules"
        for rule, number in rules.items():
            yield f"{INDENT}{number}  {rule}"
        yield ""
    yield from _groups(rows, rules, limit)
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
    yield "counters"
    for name, stats in transaction.stats.items():
        yield from _counters(name, stats)
    if any(len(part) > limit for row in rows for part in _parts(row)) or any(
        max(change.counts) > limit for change in transaction.changes.values()
    ):
        yield ""
        yield f"lists are cut at {limit} tuples; --max-rows shows more"


def _is_summary(row: TraceRow) -> bool:
    """Whether a row is about all rules of a relation together."""
    return row.rule.startswith(f"{row.relation}: ")


def _groups(rows: Sequence[TraceRow], rules: dict[str, int], limit: int) -> Iterator[str]:
    """Yield a table for each run of rows about one relation and sign."""
    for (relation, sign), group in groupby(rows, lambda row: (row.relation, row.sign)):
        yield f"{relation}: {KINDS[sign]}"
        cells = [_cells(row, rules, limit) for row in group]
        for line in table(HEADER, cells, terminal_width() - len(INDENT)):
            yield INDENT + line
        yield ""


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


def trace_as_json(transaction: "Transaction", limit: int) -> dict[str, Any]:
    """Return the report as JSON: all rows of the table, the counters, the changes."""
    return {
        "rows": [_row_as_json(row, limit) for row in transaction.trace],
        "counters": {
            name: {**stats.as_json(), "reason": stats.reason}
            for name, stats in transaction.stats.items()
        },
        "changes": {name: each.as_json(limit) for name, each in transaction.changes.items()},
    }


def _row_as_json(row: TraceRow, limit: int) -> dict[str, Any]:
    parts: dict[str, Sequence[Any]] = {
        "updates": [{"relation": name, "row": each} for name, each in row.updates],
        "approximation": row.approximation,
        "disqualified": row.disqualified,
        "actual": row.actual,
    }
    document: dict[str, Any] = {"rule": row.rule}
    document |= {name: list(each[:limit]) for name, each in parts.items()}
    if any(len(each) > limit for each in parts.values()):
        counts = {name: len(each) for name, each in parts.items()}
        document |= {"truncated": True, "counts": counts}
    return document
