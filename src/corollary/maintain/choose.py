"""Choosing: which algorithm maintains a stratum in a transaction, and why.

| the stratum is | chosen |
|---|---|
| an aggregate | its touched groups, aggregated again |
| virtual | epf |
| stored, its updates self-maintainable | autonomous |
| stored, not recursive | counting |
| the same, no tuple with two derivations | dred, with nothing to rederive |
| stored, recursive | ranked |
| cheaper to evaluate anew | recompute |

The estimate: a fresh evaluation handles `work` rows (as many as the last one did, or as the sizes
say). A change of a share s of the relations below is taken to cost s · SPREAD · work, since in
recursion a removal also visits what turns out to stay. Estimates err, so the run watches itself: an
incremental run that has handled as many rows as a fresh evaluation would is abandoned for one
(`Within`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from corollary.analysis.strata import Stratum
from corollary.core.states import State
from corollary.errors import InputError
from corollary.maintain.autonomous import is_autonomous
from corollary.maintain.payload import derives_once, has_counts, has_ranks
from corollary.maintain.update import Update


class Algorithm(StrEnum):
    """The algorithms; the last two are chosen only."""

    AUTO = "auto"
    RECOMPUTE = "recompute"
    DRED = "dred"
    PF = "pf"
    EPF = "epf"
    COUNTING = "counting"
    RANKED = "ranked"
    AUTONOMOUS = "autonomous"
    AGGREGATES = "aggregates"


SELECTABLE = tuple(Algorithm)[:7]

SPREAD = {State.ADDED: 4.0, State.REMOVED: 16.0}
"""How much more of a recursive stratum a change visits than its share of the relations below."""

PLAIN_SPREAD = 3.0
"""The same without recursion, where nothing is visited in vain."""

ADDING = 2
"""A run that only adds visits few tuples in vain, so it may go on for longer."""

SMALLEST = 20_000
"""An evaluation of fewer rows is not worth a watch."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What maintains a stratum.

    Attributes:
        cost: the rows it is estimated to handle; None if nothing is known.
        budget: the rows after which it is abandoned for a recomputation; None for never.
    """

    relations: tuple[str, ...]
    algorithm: Algorithm
    reason: str
    cost: int | None = None
    budget: int | None = None


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is known about sizes when a transaction begins.

    Attributes:
        changes: the tuples that base relations gain or lose.
        work: the rows that the last full evaluation of a relation's stratum handled.
        is_first: whether no derived relation holds anything yet.
    """

    changes: Mapping[str, Mapping[State, int]]
    work: Mapping[str, int]
    is_first: bool = False


def choose(stratum: Stratum, update: Update, wanted: Algorithm, sizes: Sizes) -> Choice:
    """Return what maintains a stratum.

    Raises:
        InputError: counting is wanted for a recursive relation.
    """
    members = stratum.relations
    is_virtual = any(update.is_virtual(name) for name in members)
    if wanted is Algorithm.COUNTING and stratum.is_recursive:
        raise refuse_counting(members)
    if wanted is Algorithm.RECOMPUTE:
        return Choice(members, wanted, "asked for")
    if stratum.aggregations:
        if any(each in update.added_aggregations for each in stratum.aggregations):
            return Choice(members, Algorithm.RECOMPUTE, "the aggregate is new")
        return Choice(members, Algorithm.AGGREGATES, "an aggregate: its touched groups only")
    if not any(name in update.old.relations for name in members) and not is_virtual:
        return Choice(members, Algorithm.RECOMPUTE, "the relation is new")
    if wanted in (Algorithm.PF, Algorithm.EPF):
        return Choice(members, wanted, "asked for")
    if is_virtual:
        reason = "virtual: nothing is stored to start from"
        return Choice(members, Algorithm.EPF, reason)
    if wanted is Algorithm.AUTO:
        return _automatic(stratum, update, sizes)
    if not stratum.is_recursive and wanted in (Algorithm.COUNTING, Algorithm.RANKED):
        choice = _incremental(stratum, update)
        if choice.algorithm is Algorithm.AUTONOMOUS and wanted is Algorithm.COUNTING:
            return Choice(members, wanted, "asked for") if has_counts(stratum) else choice
        return choice
    return Choice(members, wanted, "asked for")


def refuse_counting(members: tuple[str, ...]) -> InputError:
    """Return the error of counting a recursive relation."""
    names = ", ".join(f"`{name}`" for name in members)
    is_are = "is" if len(members) == 1 else "are"
    error = InputError.of(
        "C0820",
        f"{names} {is_are} recursive, so derivations cannot be counted: a tuple on a cycle would "
        "support itself for ever.",
        None,
        "use `ranked`, `dred`, `epf` or `auto` for it",
    )
    assert isinstance(error, InputError)
    return error


def _incremental(stratum: Stratum, update: Update) -> Choice:
    """Return the incremental algorithm for a stored stratum."""
    members = stratum.relations
    if is_autonomous(stratum, update):
        reason = "self-maintainable: the change and the view say it all"
        return Choice(members, Algorithm.AUTONOMOUS, reason)
    if has_ranks(stratum, update.new):
        return Choice(members, Algorithm.RANKED, "stored and recursive")
    if has_counts(stratum):
        if update.recursive_before & set(members):
            reason = "no longer recursive: its derivations are counted from now on"
            return Choice(members, Algorithm.RECOMPUTE, reason)
        return Choice(members, Algorithm.COUNTING, "stored, not recursive")
    if derives_once(stratum):
        return Choice(members, Algorithm.DRED, "no tuple has two derivations: none to count")
    return Choice(members, Algorithm.DRED, "derivations of this rule cannot be counted")


def _automatic(stratum: Stratum, update: Update, sizes: Sizes) -> Choice:
    choice = _incremental(stratum, update)
    if choice.algorithm in (Algorithm.AUTONOMOUS, Algorithm.RECOMPUTE):
        return choice
    members = stratum.relations
    if choice.algorithm in (Algorithm.RANKED, Algorithm.COUNTING) and not (
        update.payload >= set(members)
    ):
        return Choice(members, Algorithm.RECOMPUTE, "its ranks or counts are out of date")
    share = _share(stratum, update, sizes)
    work = work_of(stratum, update, sizes)
    spread = SPREAD if stratum.is_recursive else dict.fromkeys(SPREAD, PLAIN_SPREAD)
    cost = int(work * min(1e6, sum(spread[sign] * part for sign, part in share.items())))
    if cost >= work and sizes.is_first:
        return Choice(members, Algorithm.RECOMPUTE, "nothing is derived yet", work)
    if cost >= work > SMALLEST:
        reason = f"the change would handle about {cost:,} rows, a fresh evaluation {work:,}"
        return Choice(members, Algorithm.RECOMPUTE, reason, work)
    if work <= SMALLEST:
        return Choice(members, choice.algorithm, choice.reason, cost, SMALLEST)
    reason = f"{choice.reason}; about {cost:,} rows against {work:,} for a fresh evaluation"
    patience = ADDING if not share.get(State.REMOVED) else 1
    return Choice(members, choice.algorithm, reason, cost, patience * work)


def work_of(stratum: Stratum, update: Update, sizes: Sizes) -> int:
    """Return how many rows a fresh evaluation of a stratum is expected to handle.

    What the last one handled is scaled with the relations below; it reads those at least.
    """
    rows = update.statistics.rows
    below = _base_below(stratum, update)
    before = sum(rows.get(name, 0) for name in below)
    added = sum(sizes.changes.get(name, {}).get(State.ADDED, 0) for name in below)
    known = sum(sizes.work.get(name, 0) for name in stratum.relations)
    if not known:
        known = before + 3 * sum(rows.get(name, 0) for name in stratum.relations)
    return int(max(known * (1 + added / max(1, before)), before + added))


def _share(stratum: Stratum, update: Update, sizes: Sizes) -> dict[State, float]:
    """Return which share of a relation below comes and goes, at most."""
    rows = update.statistics.rows
    share: dict[State, float] = {}
    for name in _base_below(stratum, update):
        for sign, count in sizes.changes.get(name, {}).items():
            part = count / max(1, rows.get(name, 1))
            share[sign] = max(share.get(sign, 0.0), part)
    return share


def _base_below(stratum: Stratum, update: Update) -> set[str]:
    """Return the base relations that a stratum depends on."""
    reads = update.reads
    seen: set[str] = set()
    work = list(stratum.relations)
    while work:
        name = work.pop()
        if name not in seen:
            seen.add(name)
            work.extend(reads.get(name, ()))
    return {name for name in seen if name not in reads}
