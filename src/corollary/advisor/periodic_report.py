"""Advice as a report that a timer writes again and again, with what is new since the last one.

The report ends with a comment that has what the next one is compared with: the commit, the time,
and the rules of the advised views without their names.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from corollary.advisor.advice import Advice
from corollary.advisor.cost.view_accounts import ViewAccount
from corollary.advisor.report import format_amount, format_bytes
from corollary.core.printer import print_body, print_clause
from corollary.data_class import dataclass

MARK = "corollary advice"
_COMMENT = re.compile(rf"<!-- {MARK} (.*?) -->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ReportState:
    """What a report is compared with: when it was written, and the views that it advises.

    Attributes:
        views: the bodies of each view's rules.
    """

    commit: int
    seconds: float
    views: tuple[str, ...]

    def as_comment(self) -> str:
        """Return the state as a comment of the report."""
        text = json.dumps(asdict(self)).replace("--", "\\u002d\\u002d")
        return f"<!-- {MARK} {text} -->"


def read_state(report: str) -> ReportState | None:
    """Return the state that an earlier report ends with; None if it is not such a report."""
    found = _COMMENT.search(report)
    if found is None:
        return None
    try:
        document = json.loads(found[1])
        return ReportState(
            int(document["commit"]), float(document["seconds"]), tuple(document["views"])
        )
    except (ValueError, KeyError, TypeError):
        return None


def state_of_advice(advice: Advice, commit: int, seconds: float) -> ReportState:
    """Return what the next report is compared with."""
    views = sorted(
        "; ".join(sorted(print_body(clause.body) for clause in view.clauses))
        for view in advice.views.values()
    )
    return ReportState(commit, seconds, tuple(views))


def periodic_report(
    title: str,
    advice: Advice,
    accounts: Sequence[ViewAccount],
    lines: Iterable[str],
    *,
    state: ReportState,
    before: ReportState | None,
) -> str:
    """Return the report.

    Args:
        title: what the advice is for.
        advice: the advice.
        accounts: those of views that are stored already.
        lines: the advice in full.
        state: of this report.
        before: the state of the last report, if there is one.
    """
    parts = [f"# Advice for {title}", "", f"At {_when(state)}.", ""]
    parts += [*_since(state, before), ""]
    parts += [*_views(advice), "", *_accounts(accounts), ""]
    parts += ["## In full", "", "```text", *lines, "```", "", state.as_comment(), ""]
    return "\n".join(parts)


def _when(state: ReportState) -> str:
    time = datetime.fromtimestamp(state.seconds, UTC).isoformat(" ", "seconds")
    return f"{time}, commit {state.commit}" if state.commit else time


def _since(state: ReportState, before: ReportState | None) -> Iterator[str]:
    if before is None:
        yield "This is the first report."
        return
    new = [each for each in state.views if each not in before.views]
    gone = [each for each in before.views if each not in state.views]
    yield f"Since {_when(before)}:"
    yield ""
    yield from (f"* new: `{each}`" for each in new)
    yield from (f"* not advised any more, or stored: `{each}`" for each in gone)
    if not new and not gone:
        yield "* nothing is new"


def _views(advice: Advice) -> Iterator[str]:
    yield "## Views worth having"
    yield ""
    if not advice.views:
        yield "None."
        return
    yield "| view | rules | rows | space | queries an hour |"
    yield "|---|---|---|---|---|"
    for view in advice.views.values():
        rules = "<br>".join(f"`{print_clause(each)}`".replace("|", "\\|") for each in view.clauses)
        asked = sum(q.query.frequency for q in advice.queries.values() if view.name in q.views)
        rows = size = ""
        if view.estimate is not None:
            rows, size = format_amount(view.estimate.rows), format_bytes(view.estimate.bytes)
        name = f"{view.name} ({view.recommendation})"
        yield f"| {name} | {rules} | {rows} | {size} | {format_amount(asked)} |"


def _accounts(accounts: Sequence[ViewAccount]) -> Iterator[str]:
    yield "## Views that are stored"
    yield ""
    if not accounts:
        yield "None for the sake of queries alone."
        return
    yield "| view | saves an hour | upkeep an hour | space | |"
    yield "|---|---|---|---|---|"
    for each in accounts:
        saved, upkeep = format_amount(each.saved), format_amount(each.upkeep)
        verdict = "keep" if each.is_paying else "drop"
        yield f"| {each.view} | {saved} | {upkeep} | {format_bytes(each.bytes)} | {verdict} |"
