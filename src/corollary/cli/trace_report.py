"""What `corollary trace` prints: the papers' table, the changes, the counters."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from corollary.cli.tables import cut, table, width, wrap
from corollary.core.states import State
from corollary.database.counters import COUNTED, Stats, TraceRow

if TYPE_CHECKING:
    from corollary.database.transaction import Transaction

INDENT = "    "
HEADER = ("rule", "updates", "approximation", "disqualified", "actual")
KINDS = {State.ADDED: "additions", State.REMOVED: "removals", None: "changes"}
NOTHING = "–"
WORD = re.compile(r"[\w.-]+")
"""A symbol that reads well without quotes."""


def report(transaction: "Transaction", most: int, *, is_full: bool) -> Iterator[str]:
    """Yield the lines of the report.

    Args:
        transaction: what happened.
        most: so many tuples of a list are shown.
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
    yield from _groups(rows, rules, most)
    left = len(transaction.trace) - len(rows)
    if left:
        invocations = "1 invocation" if left == 1 else f"{left} invocations"
        yield f"{invocations} with an empty approximation left out; -v shows all"
        yield ""
    elif not rows:
        yield "no table: nothing was propagated rule by rule"
        yield ""
    yield from _changes(transaction, most)
    yield ""
    yield "counters"
    for name, stats in transaction.stats.items():
        yield from _counters(name, stats)
    if any(len(part) > most for row in rows for part in _parts(row)) or any(
        max(change.counts) > most for change in transaction.changes.values()
    ):
        yield ""
        yield f"lists are cut at {most} tuples; --max-rows shows more"


def _is_summary(row: TraceRow) -> bool:
    """Whether a row tells of all rules of a relation together."""
    return row.rule.startswith(f"{row.relation}: ")


def _groups(rows: Sequence[TraceRow], rules: dict[str, int], most: int) -> Iterator[str]:
    """Yield a table for each run of rows about one relation and sign."""
    start = 0
    while start < len(rows):
        first = rows[start]
        end = start
        while end < len(rows) and (rows[end].relation, rows[end].sign) == (
            first.relation,
            first.sign,
        ):
            end += 1
        yield f"{first.relation}: {KINDS[first.sign]}"
        cells = [_cells(row, rules, most) for row in rows[start:end]]
        for line in table(HEADER, cells, width() - len(INDENT)):
            yield INDENT + line
        yield ""
        start = end


def _cells(row: TraceRow, rules: dict[str, int], most: int) -> list[list[str]]:
    rule = "all" if _is_summary(row) else str(rules[row.rule])
    lists = [
        [f"{name}{_tuple(each)}" for name, each in row.updates],
        *([_tuple(each) for each in part] for part in _parts(row)[1:]),
    ]
    return [[rule], *(cut(each, most) or [NOTHING] for each in lists)]


def _parts(row: TraceRow) -> tuple[Sequence[Any], ...]:
    return row.updates, row.approximation, row.disqualified, row.actual


def _tuple(row: list[Any]) -> str:
    return f"({', '.join(map(_value, row))})"


def _value(value: Any) -> str:
    """Return a value as text; a symbol is quoted where it would be misread."""
    if isinstance(value, str) and WORD.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _changes(transaction: "Transaction", most: int) -> Iterator[str]:
    yield "changes"
    longest = max(map(len, transaction.changes), default=0)
    for name, change in transaction.changes.items():
        found = change.as_json(max_rows=max(change.counts))
        margin = f"{INDENT}{name.ljust(longest)}  "
        for rows, sign in ((found["added"], "+"), (found["removed"], "−")):
            texts = cut([f"{sign}{_tuple(row)}" for row in rows], most)
            for line in wrap(texts, max(20, width() - len(margin))) if texts else ():
                yield margin + line
                margin = " " * len(margin)
    if not transaction.changes:
        yield f"{INDENT}none"


def _counters(name: str, stats: Stats) -> Iterator[str]:
    yield f"{INDENT}{name}: {stats.algorithm}, {stats.reason}"
    counts = [f"{each} {stats.counts[each]:,}" for each in COUNTED if stats.counts.get(each)]
    margin = 2 * INDENT
    for line in wrap([f"{each}," for each in counts[:-1]] + counts[-1:], width() - len(margin)):
        yield margin + line


def as_json(transaction: "Transaction", most: int) -> dict[str, Any]:
    """Return the report as JSON: all rows of the table, the counters, the changes."""
    return {
        "rows": [_row_as_json(row, most) for row in transaction.trace],
        "counters": {
            name: {**stats.as_json(), "reason": stats.reason}
            for name, stats in transaction.stats.items()
        },
        "changes": {name: each.as_json(most) for name, each in transaction.changes.items()},
    }


def _row_as_json(row: TraceRow, most: int) -> dict[str, Any]:
    parts: dict[str, Sequence[Any]] = {
        "updates": [{"relation": name, "row": each} for name, each in row.updates],
        "approximation": row.approximation,
        "disqualified": row.disqualified,
        "actual": row.actual,
    }
    found: dict[str, Any] = {"rule": row.rule}
    found |= {name: list(each[:most]) for name, each in parts.items()}
    if any(len(each) > most for each in parts.values()):
        counts = {name: len(each) for name, each in parts.items()}
        found |= {"truncated": True, "counts": counts}
    return found
