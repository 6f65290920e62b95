"""Advice as text: for each query its exponents, its rules before and after, and what to store.

A report that a timer writes again and again says what is new since the last one. It ends with a
comment that has what the next one is compared with: the commit, the time, and the rules of the
advised views without their names.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from corollary.advisor.advice import Advice, NewView, PredicateAdvice, global_exponents
from corollary.advisor.check.measurement import Calibration
from corollary.advisor.cost.view_accounts import ViewAccount
from corollary.advisor.model.candidates import ANONYMOUS, term_variables
from corollary.core.logic import Clause
from corollary.core.printer import print_atom, print_body, print_clause
from corollary.data_class import dataclass

BYTE_UNITS = ("B", "KB", "MB", "GB", "TB")


def report(advice: Advice, calibration: Calibration | None = None) -> Iterator[str]:
    """Yield the lines of the report; with a calibration, it has seconds beside row-operations."""
    reported: set[str] = set()
    for name, each in advice.predicates.items():
        if not each.is_query and not each.is_applicable:
            continue
        yield _heading(name, each, advice, calibration)
        yield from _clauses("before", each.originals)
        if each.is_query:
            yield from _global_line(name, each, advice)
        if not each.is_applicable:
            yield f"  not applicable: {each.reason}"
        else:
            yield from _clauses("after", each.rewritten)
            for view in (advice.views[view] for view in each.views if view in advice.views):
                if view.name in reported:
                    yield f"  shared  {view.name}, as above"
                else:
                    yield from _view(view, advice, calibration)
                reported.add(view.name)
            yield from _remarks(each, advice)
        yield from _rejected_lines(each)
    if not advice.is_complete:
        yield "the search ended at its limit: this is the best that was found until then"
    for name, share in advice.sampled.items():
        yield f"the sizes of {name} are estimated from {100 * share:.2g} % of its rows"
    if advice.arity.set_by:
        yield f"a view may have degree {advice.arity.value} at most, set by {advice.arity.set_by}"
    if calibration is not None:
        row_time = format_duration(calibration.seconds_per_row)
        yield f"a row-op is thought to take {row_time}, going by {calibration.source}"
        if calibration.floor_seconds:
            floor = format_duration(calibration.floor_seconds)
            yield f"every call takes {floor}, which is part of expected times"


def _global_line(name: str, each: PredicateAdvice, advice: Advice) -> Iterator[str]:
    """Yield a line about all rules that a query runs, where its own are not the slowest."""
    before, after = global_exponents(advice, name)
    if (before, after) != (each.before.left_deep, each.after.left_deep):
        yield f"  in all  N^{before} -> N^{after} with the rules of relations that it reads"


def _heading(
    name: str, each: PredicateAdvice, advice: Advice, calibration: Calibration | None
) -> str:
    arity = advice.scheme.relations[name].arity
    bound = "".join("b" if at in each.query.bound else "f" for at in range(arity))
    shown = f"{name}/{arity}" if not each.query.bound else f"{name}^{bound}"
    gain = f"N^{each.before.left_deep}"
    if each.is_applicable:
        gain += f" -> N^{each.after.left_deep}"
    parts = [
        shown,
        gain,
        f"(bushy without storage N^{each.before.bushy}, Spark pipeline N^{each.before.pipelined})",
    ]
    if each.work is not None:
        before, after = each.work
        change = f" -> {format_amount(after)}" if each.is_applicable else ""
        parts.append(f"est. {format_amount(before)}{change} row-ops")
        if calibration is not None:
            change = (
                f" -> {format_duration(calibration.query_seconds(after))}"
                if each.is_applicable
                else ""
            )
            parts.append(f"est. {format_duration(calibration.query_seconds(before))}{change}")
    if each.is_query and each.query.frequency != 1.0:
        parts.append(f"f={each.query.frequency:.3g}/h")
    if not each.before.is_exact:
        parts.append("(exponents are upper bounds)")
    return "   ".join(parts)


def _clauses(word: str, clauses: Iterable[Clause]) -> Iterator[str]:
    for clause in clauses:
        yield f"  {word:7} {print_clause(clause)}"
        word = ""


def _view(view: NewView, advice: Advice, calibration: Calibration | None) -> Iterator[str]:
    yield from _clauses("virtual" if view.is_virtual else "store", view.clauses)
    arity = advice.arity
    facts = [f"degree {view.degree} <= {arity.value} (set by {arity.set_by})"]
    if view.estimate is not None:
        figures = view.estimate
        facts.append(f"est. {format_amount(figures.rows)} rows, {format_bytes(figures.bytes)}")
    facts.append(f"build N^{view.build}")
    if view.estimate is not None and calibration is not None:
        facts[-1] += f", est. {format_duration(calibration.seconds_for(view.estimate.build))}"
    facts.append(f"upkeep N^{view.upkeep} per changed row")
    if view.estimate is not None and view.estimate.upkeep:
        facts.append(f"{format_amount(view.estimate.upkeep)} row-ops an hour")
        if calibration is not None:
            facts[-1] += f", est. {format_duration(calibration.seconds_for(view.estimate.upkeep))}"
    yield f"          {'  '.join(facts)}"
    if view.estimate is not None:
        yield _checks(view, advice)
    if view.is_self_materialisation:
        yield "          this is the query itself: to store it is to store the answers"
    inside = _hidden_variables(view)
    if inside:
        columns = ", ".join(view.variables)
        leave = "leaves" if len(view.variables) == 1 else "leave"
        what = f"only {columns} {leave} it" if columns else "nothing leaves it but yes or no"
        verb = "occurs" if len(inside) == 1 else "occur"
        yield f"  why     {', '.join(inside)} {verb} only inside this group; {what}."


def _checks(view: NewView, advice: Advice) -> str:
    """Return the line on what makes a view useful: small, rarely changed, often queried."""
    assert view.estimate is not None
    users = [each for each in advice.predicates.values() if view.name in each.views]
    asked = sum(each.query.frequency for each in users)
    share, changes = 100 * view.estimate.share, format_amount(view.estimate.changes)
    return (
        f"  checks  {share:.2g} % of what is stored; in an hour {changes} tuples under it change, "
        f"{format_amount(asked)} queries use it"
    )


def _remarks(each: PredicateAdvice, advice: Advice) -> Iterator[str]:
    views = [advice.views[name] for name in each.views if name in advice.views]
    if views and all(view.is_virtual for view in views):
        yield (
            f"  note    computing the views along the way is N^{each.virtual_after}, too: rewrite "
            "the rules, store nothing"
        )
    relation = advice.scheme.relations[each.query.relation]
    if relation.is_materialised and not relation.is_stored:
        yield "  note    it is stored: these are the costs of recomputing it, not of querying it"
    if each.work is not None:
        gain = each.work[0] / max(each.work[1], 1.0)
        is_less = each.after.left_deep < each.before.left_deep
        if is_less and gain < advice.options.min_gain_factor:
            yield f"  note    the exponent falls, but on this data the gain is {gain:.1f} x only"
        elif not is_less:
            yield f"  note    the exponent stays, but on this data the gain is {gain:.1f} x"


def _rejected_lines(each: PredicateAdvice) -> Iterator[str]:
    for rejected in each.rejected:
        yield f"  rejected {print_atom(rejected.clause.heads[0])}: {rejected.reason}"


def _hidden_variables(view: NewView) -> list[str]:
    names = dict.fromkeys(
        each.name for clause in view.clauses for each in term_variables(clause.body)
    )
    return [name for name in names if name not in view.variables and not name.startswith(ANONYMOUS)]


def format_amount(number: float) -> str:
    """Return a number of rows in a few characters.

    >>> format_amount(812), format_amount(41_000_000), format_amount(0.3e6)
    ('812', '41 M', '300 K')
    """
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e4, " K")):
        if number >= limit:
            factor = 1e3 if unit == " K" else limit
            return f"{number / factor:.3g}{unit}"
    return f"{number:.0f}"


def format_bytes(number: float) -> str:
    """Return a number of bytes as text.

    >>> format_bytes(6_100), format_bytes(12)
    ('6.1 KB', '12 B')
    """
    unit = 0
    while number >= 999.5 and unit < len(BYTE_UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.3g} {BYTE_UNITS[unit]}" if unit else f"{number:.0f} B"


def format_duration(seconds: float) -> str:
    """Return a time in a few characters.

    >>> (
    ...     format_duration(41.2),
    ...     format_duration(0.0831),
    ...     format_duration(1.1e-7),
    ...     format_duration(0.0),
    ... )
    ('41.2 s', '83.1 ms', '0.11 us', '0 us')
    """
    for limit, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= limit:
            return f"{seconds / limit:.3g} {unit}"
    return f"{seconds * 1e6:.2g} us"


# --- the report of a timer -----------------------------------------------------------------------


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
    """Return the report."""
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
