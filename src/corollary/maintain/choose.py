"""Choose which algorithm maintains a stratum in a transaction, and say why.

| the stratum is | chosen |
|---|---|
| a stored aggregate | totals: the change is added to running totals |
| any other aggregate | aggregates: only the touched groups |
| with one choice domain, not recursive | choices: the keys whose candidates change |
| with other choice domains, or subsumption in rounds | recompute |
| counts or sums over their own stratum | groups: the touched groups, by ascending level |
| virtual | epf |
| stored, its updates self-maintainable, or where the view has rows like them | autonomous |
| stored, not recursive | counting |
| the same, no tuple with two derivations | dred, which then rederives nothing |
| stored, recursive | ranked |
| cheaper to evaluate from scratch | recompute |
| with bodies so long that a plan for each literal would be too large | recompute |
| reads a changed window without partitions, of many rows outside of the process | recompute |

The estimate: a fresh evaluation handles `work` rows (as many as the last one did, otherwise a guess
from the sizes). A change of a fraction f of the relations below is assumed to handle
f · spread · work: in recursion a removal also visits tuples that turn out to stay. What runs have
handled corrects the estimates that follow.

Estimates err, so a run has a budget (`Within`). A removal through recursion tells early: all rounds
together handle about six times what the first one has, over closures of trees, DAGs and random
graphs, and same generation. So what has handled a fifth of `work` before its first round is over is
given up for a recomputation, which then costs a fifth more; what has passed is given up only if it
handles twice as many rows as a fresh evaluation.
"""

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from enum import StrEnum

from corollary.analysis.strata import Stratum
from corollary.core.engine import BULK_MIN_FRAME_ROWS
from corollary.core.logic import Windowing
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.maintain.algorithms.autonomous import gains_tuples, is_autonomous, needs_witness
from corollary.maintain.algorithms.choices import is_chosen_by_key
from corollary.maintain.payload import has_counts, has_ranks, has_single_derivations, payload_kind
from corollary.maintain.update import Update


class Algorithm(StrEnum):
    """The algorithms; the last five cannot be requested, only chosen."""

    AUTO = "auto"
    RECOMPUTE = "recompute"
    DRED = "dred"
    PF = "pf"
    EPF = "epf"
    COUNTING = "counting"
    RANKED = "ranked"
    AUTONOMOUS = "autonomous"
    AGGREGATES = "aggregates"
    TOTALS = "totals"
    GROUPS = "groups"
    CHOICES = "choices"


SELECTABLE_ALGORITHMS = tuple(Algorithm)[:7]

GROUPED_ALGORITHMS = (Algorithm.AUTO, Algorithm.RANKED, Algorithm.RECOMPUTE)
"""What can be asked for where counts, sums or subsumption are recursive."""

RECURSIVE_SPREAD = {State.ADDED: 10.0, State.REMOVED: 40.0}
"""A change of a fraction f of the relations below handles f · spread of a fresh evaluation's rows
in a recursive stratum; measured as above, between 2 and 20, and between 20 and 70.
"""

PLAIN_SPREAD = 1.5
"""The same without recursion, where every visited tuple changes."""

ADDED_ROWS_PER_ROW = 2
"""The rows of a run that only adds that take as long as one of a fresh evaluation."""

OUTSET_SHARE = 5
"""What has to be given up has cost at most this part of a recomputation."""

CORRECTION_LIMIT = 16.0
"""Runs correct estimates by at most this factor."""

FORGETTING = 0.9
"""The power of a correction that is left when a recomputation was chosen, which tells nothing."""

LONG_BODY_LITERALS = 32
"""The number of literals above which a body is long."""

PLAN_MAX_LITERALS = 20_000
"""The literals of long bodies above which the plan costs more than the evaluation."""

BUDGET_MIN_ROWS = 20_000
"""The smallest budget: below it, a recomputation saves nothing worth the estimate."""


@dataclass(frozen=True, slots=True)
class AlgorithmChoice:
    """The algorithm that maintains a stratum, and why.

    Attributes:
        cost: the estimated number of rows that it handles; None if there is no estimate.
        budget: the number of rows after which the stratum is recomputed instead; None for never.
        outset: the same until a loop has gone round once; None if that makes no difference.
        signs: how the relations below change.
        refused: the algorithm that was asked for and cannot maintain the stratum, if it is so.
    """

    relations: tuple[str, ...]
    algorithm: Algorithm
    reason: str
    cost: int | None = None
    budget: int | None = None
    outset: int | None = None
    signs: frozenset[State] = frozenset()
    refused: Algorithm | None = None

    @property
    def explanation(self) -> str:
        """Why it was chosen; and if another one was asked for, that this is not possible."""
        if self.refused is None:
            return self.reason
        return f"not {self.refused}, which was asked for; {self.reason}"


@dataclass(frozen=True, slots=True)
class ChangeSizes:
    """The sizes that are known when a transaction begins.

    Attributes:
        changes: how many tuples each base relation gains and loses.
        evaluation_rows: how many rows the last full evaluation of a relation's stratum handled.
        is_first: whether all derived relations are still empty.
        corrections: factors of estimates, by the first relation of a stratum and the signs below.
        remote: the bodies of aggregates and windows that are outside of this process.
        may_recompute: whether what is cheaper to evaluate from scratch is.
    """

    changes: Mapping[str, Mapping[State, int]]
    evaluation_rows: Mapping[str, int]
    is_first: bool = False
    corrections: Mapping[tuple[str, frozenset[State]], float] = field(default_factory=dict)
    remote: Collection[str] = ()
    may_recompute: bool = True


def choose(
    stratum: Stratum, update: Update, requested: Algorithm, sizes: ChangeSizes
) -> AlgorithmChoice:
    """Return the algorithm for a stratum.

    Raises:
        InputError: counting was requested for a recursive relation, or an algorithm that cannot
            maintain counts, sums or subsumption over their own stratum.
    """
    members = stratum.relations
    is_virtual = any(update.is_virtual(name) for name in members)
    if stratum.is_grouped and requested not in GROUPED_ALGORITHMS:
        raise _grouped_error(stratum, requested)
    if stratum.subsumption and requested not in GROUPED_ALGORITHMS:
        raise _stairs_error(members, requested)
    if requested is Algorithm.COUNTING and stratum.is_recursive:
        raise _counting_error(members)
    if requested is Algorithm.RECOMPUTE:
        return AlgorithmChoice(members, requested, "asked for")
    if stratum.has_choice:
        choice = _for_choices(stratum, update, sizes)
        return choice if requested is Algorithm.AUTO else replace(choice, refused=requested)
    if stratum.dominated:
        reason = "subsumption is evaluated in rounds"
        choice = _recompute(stratum, reason)
        return choice if requested is Algorithm.AUTO else replace(choice, refused=requested)
    if stratum.is_grouped:
        return _for_groups(stratum, update, requested, sizes)
    choice = _choose_possible(stratum, update, requested, sizes, is_virtual=is_virtual)
    if requested in (Algorithm.AUTO, choice.algorithm):
        return choice
    return replace(choice, refused=requested)


def _choose_possible(
    stratum: Stratum, update: Update, requested: Algorithm, sizes: ChangeSizes, *, is_virtual: bool
) -> AlgorithmChoice:
    """Return the requested algorithm, or another one where that is not possible."""
    members = stratum.relations
    if stratum.aggregations:
        return _for_aggregate(stratum, update, sizes, requested)
    if not (update.reordered | update.changed_aggregates).isdisjoint(members):
        return _recompute(stratum, "its tuples are ordered, chosen or computed in another way")
    known = update.old.relations.keys() - update.refilled
    if known.isdisjoint(members) and not is_virtual:
        return _recompute(stratum, "the relation is new")
    if requested in (Algorithm.PF, Algorithm.EPF):
        return AlgorithmChoice(members, requested, "asked for")
    if is_virtual:
        reason = "virtual: nothing is stored to start from"
        return AlgorithmChoice(members, Algorithm.EPF, reason)
    if requested is Algorithm.AUTO:
        return _automatic(stratum, update, sizes)
    if requested is Algorithm.RANKED and not stratum.is_recursive:
        return _incremental(stratum, update)
    if requested is Algorithm.COUNTING and not has_counts(stratum):
        return _incremental(stratum, update)
    if requested is Algorithm.COUNTING and update.recursive_before & set(members):
        return _incremental(stratum, update)
    return AlgorithmChoice(members, requested, "asked for")


def _recompute(
    stratum: Stratum, reason: str, cost: int | None = None, signs: frozenset[State] = frozenset()
) -> AlgorithmChoice:
    return AlgorithmChoice(stratum.relations, Algorithm.RECOMPUTE, reason, cost, signs=signs)


def _for_aggregate(
    stratum: Stratum, update: Update, sizes: ChangeSizes, requested: Algorithm
) -> AlgorithmChoice:
    members = stratum.relations
    if any(each in update.added_aggregations for each in stratum.aggregations):
        return _recompute(stratum, "the aggregate is new")
    if isinstance(stratum.aggregations[0], Windowing):
        reason = "window functions: the partitions that the change touches"
        return AlgorithmChoice(members, Algorithm.AGGREGATES, reason)
    if any(map(update.is_virtual, members)):
        reason = "an aggregate: its touched groups only"
        return AlgorithmChoice(members, Algorithm.AGGREGATES, reason)
    needs_payload = payload_kind(stratum, update.new) is not None
    if needs_payload and not update.valid_payload >= set(members):
        return _recompute(stratum, "its totals are out of date")
    reason = "an aggregate: the change is added to running totals"
    choice = AlgorithmChoice(members, Algorithm.TOTALS, reason)
    return (
        _unless_cheaper(stratum, update, sizes, choice) if requested is Algorithm.AUTO else choice
    )


def _for_groups(
    stratum: Stratum, update: Update, requested: Algorithm, sizes: ChangeSizes
) -> AlgorithmChoice:
    """Return the algorithm for a stratum whose counts or sums are recursive."""
    members = stratum.relations
    if not update.redefined.isdisjoint(members) or not update.old.relations.keys() >= set(members):
        return _recompute(stratum, "a recursive aggregate is new")
    if not update.refilled.isdisjoint(members):
        return _recompute(stratum, "the relation is new")
    if not update.valid_payload >= set(members):
        return _recompute(stratum, "its levels are out of date")
    reason = "recursive aggregates: touched groups by ascending level"
    choice = AlgorithmChoice(members, Algorithm.GROUPS, reason)
    return (
        _unless_cheaper(stratum, update, sizes, choice) if requested is Algorithm.AUTO else choice
    )


def _for_choices(stratum: Stratum, update: Update, sizes: ChangeSizes) -> AlgorithmChoice:
    """Return the algorithm for a stratum with choice domains."""
    members = stratum.relations
    if not is_chosen_by_key(stratum, update.new):
        where = "in recursion" if stratum.is_recursive else "with several domains"
        return _recompute(stratum, f"choices {where} are made anew")
    (name,) = members
    if name not in update.old.relations or name in update.refilled:
        return _recompute(stratum, "the relation is new")
    if name in update.reordered or name in update.recursive_before:
        return _recompute(stratum, "its tuples are chosen in another way")
    reason = "a choice for each key: only keys whose candidates change"
    choice = AlgorithmChoice(members, Algorithm.CHOICES, reason)
    return _unless_cheaper(stratum, update, sizes, choice)


def _grouped_error(stratum: Stratum, requested: Algorithm) -> InputError:
    names = ", ".join(
        f"`{name}`" for name in dict.fromkeys(name.split(".")[0] for name in stratum.relations)
    )
    return InputError.of(
        "C0820",
        f"{names}: counts and sums through recursion cannot be maintained by `{requested}`.",
        None,
        "use `ranked`, `recompute` or `auto` for it",
    )


def _counting_error(members: tuple[str, ...]) -> InputError:
    names = ", ".join(f"`{name}`" for name in members)
    is_are = "is" if len(members) == 1 else "are"
    return InputError.of(
        "C0820",
        f"{names} {is_are} recursive, so derivations cannot be counted: a tuple on a cycle would "
        "support itself for ever.",
        None,
        "use `ranked`, `dred`, `epf` or `auto` for it",
    )


def _stairs_error(members: tuple[str, ...], requested: Algorithm) -> InputError:
    names = ", ".join(f"`{name}`" for name in members)
    keeps = "keeps" if len(members) == 1 else "keep"
    return InputError.of(
        "C0820",
        f"{names} {keeps} the best tuples of a recursion, which `{requested}` cannot maintain.",
        None,
        "use `ranked`, `recompute` or `auto` for it",
    )


def _incremental(stratum: Stratum, update: Update) -> AlgorithmChoice:
    """Return the incremental algorithm that suits a stored stratum."""
    members = stratum.relations
    if is_autonomous(stratum, update):
        reason = "self-maintainable: the change and the view say it all"
        if needs_witness(stratum, update):
            reason = "self-maintainable where the view has rows like the new ones"
        return AlgorithmChoice(members, Algorithm.AUTONOMOUS, reason)
    if has_ranks(stratum, update.new):
        return AlgorithmChoice(members, Algorithm.RANKED, "stored and recursive")
    if has_counts(stratum):
        if update.recursive_before & set(members):
            reason = "no longer recursive: its derivations are counted from now on"
            return _recompute(stratum, reason)
        return AlgorithmChoice(members, Algorithm.COUNTING, "stored, not recursive")
    if has_single_derivations(stratum):
        return AlgorithmChoice(
            members, Algorithm.DRED, "no tuple has two derivations: none to count"
        )
    return AlgorithmChoice(members, Algorithm.DRED, "derivations of this rule cannot be counted")


def _automatic(stratum: Stratum, update: Update, sizes: ChangeSizes) -> AlgorithmChoice:
    choice = _incremental(stratum, update)
    is_removal = choice.algorithm is Algorithm.AUTONOMOUS and not gains_tuples(stratum, update)
    if is_removal or choice.algorithm is Algorithm.RECOMPUTE:
        return choice
    members = stratum.relations
    size = _plan_literals(stratum, update)
    if size > PLAN_MAX_LITERALS:
        reason = f"long rules: a plan for the change would read {size:,} literals"
        return _recompute(stratum, reason)
    body = _remote_window_body(stratum, update, sizes)
    if body is not None:
        reason = f"a window without `partition by` sees all of `{body}`, which is in partitions"
        return _recompute(stratum, reason)
    if choice.algorithm in (Algorithm.RANKED, Algorithm.COUNTING) and not (
        update.valid_payload >= set(members)
    ):
        return _recompute(stratum, "its ranks or counts are out of date")
    return _unless_cheaper(stratum, update, sizes, choice)


def _remote_window_body(stratum: Stratum, update: Update, sizes: ChangeSizes) -> str | None:
    """Return the large body, outside of this process, of a changed window without partitions.

    To compare it before and after the change would compute the window twice.
    """
    bodies = {
        each.relation: each.body
        for each in update.new.aggregations
        if isinstance(each, Windowing)
        and not each.partition
        and each.body in sizes.remote
        and update.statistics.rows.get(each.body, 0) >= BULK_MIN_FRAME_ROWS
    }
    read = list(update.read_below(stratum)) if bodies else []
    for name in read:
        if name in bodies and update.signs_of(name):
            return bodies[name]
        if update.is_virtual(name):
            rules = update.rules_of(name, State.NEW)
            below = (literal.relation for rule in rules for literal in rule.literals)
            read += [each for each in below if each not in read]
    return None


def _plan_literals(stratum: Stratum, update: Update) -> int:
    """Return how many literals a plan for the change reads: a body for each that changes."""
    return sum(
        len(rule.literals)
        * sum(
            literal.relation in stratum.members or bool(update.signs_of(literal.relation))
            for literal in rule.literals
        )
        for rule in stratum.rules
        if len(rule.literals) > LONG_BODY_LITERALS
    )


def _unless_cheaper(
    stratum: Stratum, update: Update, sizes: ChangeSizes, choice: AlgorithmChoice
) -> AlgorithmChoice:
    """Return a choice with its budget, or a recomputation if that is likely to be cheaper."""
    members = stratum.relations
    changed = _changed_fractions(stratum, update, sizes)
    signs = frozenset(changed)
    work = _evaluation_rows(stratum, update, sizes)
    plain = dict.fromkeys(RECURSIVE_SPREAD, PLAIN_SPREAD)
    spread = RECURSIVE_SPREAD if stratum.is_recursive else plain
    share = sum(spread[sign] * part for sign, part in changed.items())
    cost = int(work * min(1e6, share * sizes.corrections.get((members[0], signs), 1.0)))
    limit = work if State.REMOVED in signs else ADDED_ROWS_PER_ROW * work
    if not sizes.may_recompute:
        return replace(choice, cost=cost, signs=signs)
    if cost >= limit and sizes.is_first:
        return _recompute(stratum, "nothing is derived yet", work)
    if cost >= limit and work > BUDGET_MIN_ROWS:
        reason = f"the change would handle about {cost:,} rows, a fresh evaluation {work:,}"
        return _recompute(stratum, reason, work, signs=signs)
    if work <= BUDGET_MIN_ROWS:
        return replace(choice, cost=cost, budget=BUDGET_MIN_ROWS, signs=signs)
    reason = f"{choice.reason}; about {cost:,} rows against {work:,} for a fresh evaluation"
    outset = None
    if stratum.is_recursive and State.REMOVED in signs:
        outset, limit = max(BUDGET_MIN_ROWS, work // OUTSET_SHARE), 2 * work
    return replace(choice, reason=reason, cost=cost, budget=limit, outset=outset, signs=signs)


def corrected(choice: AlgorithmChoice, correction: float, handled: int, work: int | None) -> float:
    """Return the factor of a stratum's estimates after a run.

    Args:
        choice: what was run.
        correction: the factor so far.
        handled: the rows of the run.
        work: the rows of the recomputation that it was given up for; None if it was not.
    """
    actual = handled if work is None else max(handled, work + work // OUTSET_SHARE)
    if choice.algorithm is Algorithm.RECOMPUTE:
        return float(correction**FORGETTING)
    if not choice.cost or max(actual, choice.cost) <= BUDGET_MIN_ROWS:
        return correction
    ratio = actual / choice.cost
    if work is None and 0.5 <= ratio <= 2:
        return correction
    return float(min(CORRECTION_LIMIT, max(1 / CORRECTION_LIMIT, correction * ratio**0.5)))


def _evaluation_rows(stratum: Stratum, update: Update, sizes: ChangeSizes) -> int:
    """Estimate how many rows a fresh evaluation of a stratum handles.

    The number of the last one is scaled with the growth of the base relations, all of which are
    read at least once.
    """
    rows = update.statistics.rows
    below = _base_below(stratum, update)
    before = sum(rows.get(name, 0) for name in below)
    added = sum(sizes.changes.get(name, {}).get(State.ADDED, 0) for name in below)
    known = sum(sizes.evaluation_rows.get(name, 0) for name in stratum.relations)
    if not known:
        known = before + 3 * sum(rows.get(name, 0) for name in stratum.relations)
    return int(max(known * (1 + added / max(1, before)), before + added))


def _changed_fractions(stratum: Stratum, update: Update, sizes: ChangeSizes) -> dict[State, float]:
    """Return the largest fraction of a base relation below that is added, and removed."""
    rows = update.statistics.rows
    largest: dict[State, float] = {}
    for name in _base_below(stratum, update):
        for sign, count in sizes.changes.get(name, {}).items():
            fraction = count / max(1, rows.get(name, 1))
            largest[sign] = max(largest.get(sign, 0.0), fraction)
    return largest


def _base_below(stratum: Stratum, update: Update) -> set[str]:
    """Return the base relations that a stratum depends on, directly or not."""
    below = update.base_relations_below
    return set().union(*(below.get(name, {name}) for name in stratum.relations))
