"""Which base tuples would have to be inserted, or deleted, for a tuple to hold.

`S(t)` are the smallest sets of base tuples that would make t true, of at most K tuples:

    S(b) = {{b}}                                            for a base tuple b that is not there
    S(t) = the least of ∪ { S(m1) ⊔ … ⊔ S(mj) }             for a derived tuple t

over all instances of rules for t whose missing premises are m1, …, mj (`missing_premises`), where
A ⊔ B has the unions of a set of A and one of B. The tuples that the goal may need are found level
by level, nearest first, and each S to a fixpoint. Rules are monotone there, but for negations: so
each set is verified by a dry run, with keys and constraints, and its proper subsets are refuted.

Deletions: where only a negated literal fails, one base tuple of each proof of the blocking tuple
has to go. Proofs are found one after another: in the state without the tuples chosen so far.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import combinations, islice, product
from math import prod

from corollary.core.logic import Literal
from corollary.core.program import NormalProgram
from corollary.data_class import dataclass
from corollary.database.commit import OpenTransaction
from corollary.engines.budget import WorkLimitError
from corollary.errors import InputError, LimitError
from corollary.provenance.absences.known_values import known_values
from corollary.provenance.absences.missing_premises import (
    NeededPremises,
    Tuple,
    has_more_literals,
    missing_premises,
)
from corollary.provenance.asked_state import AskedState
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import BaseChange, CutReason, InsertionSets, ProofCut, Row
from corollary.provenance.trials.base_relations import insertable_relations
from corollary.provenance.trials.trials import Trials
from corollary.provenance.trials.wanted import tuples_there

BaseSet = frozenset[BaseChange]

SETS_MAX = 2_000
"""The maximum number of sets that are kept for one tuple."""

COMBINED_MAX = 100_000
"""The maximum number of combinations of sets that are made for one instance."""

SEARCH_SHARE = 0.5
"""The share of the work by which sets are looked for; they are verified in the rest."""

COMBINED_ROWS = 10
"""A combination of sets counts as this many rows."""


@dataclass(slots=True)
class InsertionSearch:
    """What was found, and what was left out."""

    sets: InsertionSets
    cuts: list[ProofCut] = field(default_factory=list)


def find_insertions(
    asked: AskedState,
    goal: Tuple,
    trials: Trials,
    allowance: Allowance,
    max_size: int,
) -> InsertionSearch:
    """Return the smallest sets of base tuples whose insertion makes a tuple true.

    Args:
        asked: the state in which the tuple is not there.
        goal: the tuple.
        trials: tries out changes of that state.
        allowance: what is left of the limits.
        max_size: the maximum size of a set.
    """
    search = _InsertionSearch(asked, goal, trials, allowance, max_size)
    search.expand_levels()
    return search.verified()


class _InsertionSearch:
    def __init__(
        self,
        asked: AskedState,
        goal: Tuple,
        trials: Trials,
        allowance: Allowance,
        max_size: int,
    ) -> None:
        self._asked = asked
        self._goal = goal
        self._trials = trials
        self._allowance = allowance
        self._max_size = max_size
        self._insertable = insertable_relations(asked.program)
        self._needed: dict[Tuple, Sequence[frozenset[Tuple]]] = {}
        self._sets: dict[Tuple, set[BaseSet]] = {}
        self._cuts: dict[CutReason, ProofCut] = {}
        self._is_complete = not _has_nonmonotone_rules(asked.program, goal[0])

    # --- which tuples may be needed, level by level ---------------------------------------------

    def expand_levels(self) -> None:
        """Find what the goal needs, what that needs, and so on."""
        asked = self._asked
        types = {type_ for each in asked.program.relations.values() for type_ in each.types}
        given = zip(self._goal[1], asked.program.relations[self._goal[0]].types, strict=True)
        with self._allowance.part(SEARCH_SHARE) as allowance:
            try:
                with known_values(asked, types, given, allowance):
                    level = self._open({self._goal})
                    while level and not self._is_over(allowance):
                        self._expand(level, allowance)
                        self._solve(allowance)
                        every = (m for sets in self._needed.values() for one in sets for m in one)
                        level = self._open(set(every) - self._needed.keys())
            except WorkLimitError:
                self._cut(allowance.reason)

    def _is_over(self, allowance: Allowance) -> bool:
        """Return whether no more sets are looked for: there are enough, or the work is over."""
        most = allowance.limits.dry_runs
        if sum(len(each) == 1 for each in self._sets.get(self._goal, ())) > most:
            self._cut(CutReason.DRY_RUNS, most)
            return True
        if allowance.is_over:
            self._cut(allowance.reason)
            return True
        return False

    def _open(self, tuples: Iterable[Tuple]) -> dict[str, list[Row]]:
        """Return the derived ones of some tuples, by relation and in order."""
        found: dict[str, list[Row]] = {}
        for relation, row in sorted(tuples, key=_sort_key):
            if self._asked.program.relations[relation].is_derived:
                found.setdefault(relation, []).append(row)
        return found

    def _expand(self, level: Mapping[str, Sequence[Row]], allowance: Allowance) -> None:
        for relation, rows in level.items():
            fits = rows[: max(0, allowance.tuples)]
            if len(fits) < len(rows):
                self._cut(CutReason.INSTANCES, len(fits), len(rows))
            allowance.expanded += len(fits)
            found = missing_premises(self._asked, relation, fits, allowance)
            if not found.is_complete:
                self._cut(CutReason.INSTANCES)
            for row in fits:
                self._needed[relation, row] = self._possible(found, (relation, row))

    def _possible(self, found: NeededPremises, head: Tuple) -> list[frozenset[Tuple]]:
        """Return the sets of premises of a tuple with which it could become true."""
        relations = self._asked.program.relations
        possible = []
        for premises in found.by_tuple.get(head, ()):
            base = [each for each in premises if not relations[each[0]].is_derived]
            is_writable = all(name in self._insertable for name, _ in base)
            if head not in premises and is_writable and len(base) <= self._max_size:
                possible.append(premises)
        return possible

    # --- the sets of each tuple ----------------------------------------------------------------

    def _solve(self, allowance: Allowance) -> None:
        """Compute the sets of all tuples from what they need, to a fixpoint.

        Those of the levels before stay: what more tuples need only adds to them.
        """
        users: dict[Tuple, set[Tuple]] = {}
        for head, sets in self._needed.items():
            for premise in {each for one in sets for each in one}:
                users.setdefault(premise, set()).add(head)
        for premise in users:
            if not self._asked.program.relations[premise[0]].is_derived:
                self._sets[premise] = {frozenset((self._insertion(premise),))}
        work = dict.fromkeys(self._needed)  # a queue, in which each tuple is once
        while work and not self._is_over(allowance):
            head = next(iter(work))
            del work[head]
            found = self._combine(head, allowance)
            if found != self._sets.get(head, set()):
                self._sets[head] = found
                work |= dict.fromkeys(users.get(head, ()))

    def _combine(self, head: Tuple, allowance: Allowance) -> set[BaseSet]:
        """Return the least sets that make a tuple true, by those of its premises so far."""
        found: set[BaseSet] = set()
        for premises in self._needed[head]:
            options = [self._sets.get(each, set()) for each in premises]
            if not all(options):
                continue
            count = prod(map(len, options))
            allowance.budget.spent += COMBINED_ROWS * min(count, COMBINED_MAX)
            for chosen in islice(product(*options), COMBINED_MAX):
                union = frozenset().union(*chosen)
                if len(union) <= self._max_size:
                    found.add(union)
            if count > COMBINED_MAX or len(found) > SETS_MAX:
                self._cut(CutReason.INSTANCES, SETS_MAX)
                break
        return _least(found)

    def _insertion(self, premise: Tuple) -> BaseChange:
        relation, row = premise
        types = self._asked.program.relations[relation].types
        return BaseChange("+", self._insertable[relation], row, types)

    # --- verification --------------------------------------------------------------------------

    def verified(self) -> InsertionSearch:
        """Return the smallest sets that a dry run confirms."""
        if self._goal[0] in self._insertable:
            self._sets[self._goal] = {frozenset((self._insertion(self._goal),))}
        candidates = self._sets.get(self._goal, set())
        works = WorkingSets(self._goal, self._trials)
        for size in range(1, self._max_size + 1):
            sets: list[tuple[BaseChange, ...]] = []
            for each in sorted((s for s in candidates if len(s) == size), key=_set_key):
                smaller = (set(less) for n in range(1, size) for less in combinations(each, n))
                try:
                    # A smaller set that is enough was found before, unless something was cut.
                    if works(each) and not any(works(frozenset(less)) for less in smaller):
                        sets.append(tuple(sorted(each, key=_change_key)))
                    else:
                        self._is_complete = False
                except TrialLimitError:
                    self._cut(self._trials.reason, self._trials.runs)
                    break
            if sets:
                found = InsertionSets(tuple(sets), size, self._is_complete)
                return InsertionSearch(found, list(self._cuts.values()))
        found = InsertionSets((), None, self._is_complete)
        return InsertionSearch(found, list(self._cuts.values()))

    def _cut(self, reason: CutReason, shown: int | None = None, total: int | None = None) -> None:
        self._is_complete = False
        self._cuts[reason] = ProofCut(reason, None, shown, total)


class TrialLimitError(Exception):
    """No more changes may be tried out."""


class WorkingSets:
    """Knows which sets of changes make a tuple true, and violate nothing; each is tried once."""

    def __init__(self, goal: Tuple, trials: Trials) -> None:
        self._goal = goal
        self._trials = trials
        self._known: dict[BaseSet, bool] = {}

    def __call__(self, changes: BaseSet) -> bool:
        """Return whether a set of changes is enough.

        Raises:
            TrialLimitError: it was not tried, and no more may be.
        """
        if changes not in self._known:
            if self._trials.is_exhausted:
                raise TrialLimitError
            relation, row = self._goal

            def look(asked: AskedState, transaction: OpenTransaction) -> bool:
                (is_there,) = tuples_there(asked, relation, [row])
                return is_there and not transaction.outcome.failures

            try:
                self._known[changes] = self._trials.run(sorted(changes, key=_change_key), look)
            except (InputError, LimitError):  # a value that overflows, triggers without an end
                self._known[changes] = False
        return self._known[changes]


def _has_nonmonotone_rules(program: NormalProgram, goal: str) -> bool:
    """Whether a negation or an aggregate is below a relation, or too long a rule."""
    below: set[str] = set()
    work = [goal]
    literals: list[Literal] = []
    rules: dict[str, list[Literal]] = {}
    for rule in program.rules:
        rules.setdefault(rule.head.relation, []).extend(rule.literals)
    while work:
        name = work.pop()
        if name not in below:
            below.add(name)
            literals += rules.get(name, ())
            work += [each.relation for each in rules.get(name, ())]
    has_negation = any(each.negated for each in literals)
    has_aggregate = any(each.relation in below for each in program.aggregations)
    has_copies = not below.isdisjoint((*program.bags, *program.bags.values()))
    return has_negation or has_aggregate or has_copies or has_more_literals(program, below)


def _least(sets: set[BaseSet]) -> set[BaseSet]:
    """Return those sets that contain no other one."""
    return {
        each
        for each in sets
        if not any(
            frozenset(less) in sets
            for size in range(1, len(each))
            for less in combinations(each, size)
        )
    }


def _sort_key(each: Tuple) -> tuple[str, list[tuple[bool, str, str]]]:
    return each[0], [(value is not None, type(value).__name__, repr(value)) for value in each[1]]


def _change_key(each: BaseChange) -> tuple[str, object]:
    return each.op, _sort_key((each.relation, each.row))


def _set_key(each: BaseSet) -> list[tuple[str, object]]:
    return sorted(map(_change_key, each))
