"""Which base tuples would have to be inserted, or deleted, for a tuple to hold.

`S(t)` are the smallest sets of base tuples that would make t true, of at most K tuples:

    S(b) = {{b}}                                            for a base tuple b that is not there
    S(t) = the least of ∪ { S(m1) ⊔ … ⊔ S(mj) }             for a derived tuple t

over all instances of rules for t whose missing premises are m1, …, mj (`missing_premises`), where
A ⊔ B has the unions of a set of A and one of B. The tuples that the goal may need are found level
by level, nearest first, and each S to a fixpoint. Rules are monotone there, but for negations: so
each set is verified by a dry run, with keys and constraints, and its proper subsets are refuted.

Deletions: where only a negated literal fails, one base tuple of each proof of the blocking tuple
has to go. Sets of deletions are extended by the base tuples of a proof that still holds without
them, the smaller sets first; so every set that is enough is met, unless a smaller one is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations, islice, product
from math import prod

import pyarrow as pa

from corollary.core.arrow import sort_rows, to_python
from corollary.core.graph import reachable
from corollary.core.logic import Literal, type_of
from corollary.core.program import NormalProgram
from corollary.data_class import dataclass
from corollary.database.commit import OpenTransaction
from corollary.engines.budget import WorkLimitError
from corollary.errors import InputError, LimitError
from corollary.provenance import rule_query
from corollary.provenance.absences.nearest import NearInstance, nearest_instances
from corollary.provenance.absences.rule_parts import (
    Component,
    RuleParts,
    known_draft,
    known_relation,
    known_values,
)
from corollary.provenance.instances import Fact
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import (
    BaseChange,
    CutReason,
    InsertionSets,
    ProofCut,
    ProofKind,
    Row,
)
from corollary.provenance.query_state import QueryState
from corollary.provenance.trials import Trials, insertable_relations
from corollary.provenance.why import prove

MISSING_MAX = 4
"""The maximum number of literals of one rule that may be missing."""


@dataclass(frozen=True, slots=True)
class NeededPremises:
    """What tuples need.

    Attributes:
        by_tuple: for each tuple the sets of missing premises, one for each instance.
        is_complete: whether no instance was left out.
    """

    by_tuple: Mapping[Fact, Sequence[frozenset[Fact]]]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class _Variant:
    """A rule without some of its literals."""

    parts: RuleParts
    component: Component
    missing: tuple[Literal, ...]


def missing_premises(
    asked: QueryState, relation: str, rows: Sequence[Row], allowance: Allowance
) -> NeededPremises:
    """Return what tuples of a derived relation need; the known values are in the engine.

    For a rule `h :- P1, …, Pn` and a set M of its positive literals: the instances in which all of
    M are missing, and every other part holds. Variables that only M has, and `_` in it, range over
    the known values.
    """
    every = list(_variants(asked, relation))
    variants = [each for each, size in every if size * len(rows) <= allowance.tuples]
    queries = [each.parts.query(asked, each.component, each.missing) for each in variants]
    draft = known_draft(asked, (name for each in variants for name in each.component.ranging))
    tables = rule_query.run_queries(asked, relation, rows, queries, allowance, draft=draft)
    found: dict[Fact, dict[frozenset[Fact], None]] = {}
    for at, table in tables.items():
        for number, premises in _premises(variants[at], rows, table):
            found.setdefault((relation, rows[number]), {})[premises] = None
    needed = {key: list(sets) for key, sets in found.items()}
    return NeededPremises(needed, len(variants) == len(every))


def _variants(asked: QueryState, relation: str) -> Iterator[tuple[_Variant, int]]:
    """Yield the rules of a relation without some literals, and how many values they range over."""
    relations = asked.program.relations
    for rule in asked.program.rules:
        if rule.head.relation != relation:
            continue
        named = rule_query.with_named_wildcards(rule, lambda name: relations[name].types).literals
        positions = [at for at, each in enumerate(rule.literals) if not each.negated]
        for count in range(1, min(len(positions), MISSING_MAX) + 1):
            for chosen in combinations(positions, count):
                # `_` in a missing literal is a value that has to be chosen.
                literals = tuple(
                    named[at] if at in chosen else each for at, each in enumerate(rule.literals)
                )
                parts = RuleParts(replace(rule, literals=literals))
                component = parts.whole(set(range(len(parts.parts))) - set(chosen))
                size = prod(
                    asked.engine.size(known_relation(type_of(each))) for each in component.ranging
                )
                missing = tuple(literals[at] for at in chosen)
                yield _Variant(parts, component, missing), size


def has_more_literals(program: NormalProgram, relations: Iterable[str]) -> bool:
    """Whether a rule of some relations has more literals than may be missing together."""
    wanted = set(relations)
    return any(
        sum(not each.negated for each in rule.literals) > MISSING_MAX
        for rule in program.rules
        if rule.head.relation in wanted
    )


def _premises(
    variant: _Variant, rows: Sequence[Row], table: pa.Table
) -> Iterator[tuple[int, frozenset[Fact]]]:
    """Yield the missing premises of each instance, with the number of the wanted tuple."""
    names = [each.name for each in variant.component.variables]
    for number, *values in to_python(sort_rows(table)):
        assert isinstance(number, int)
        bindings = rule_query.match_head(variant.parts.rule.head, rows[number])
        bindings |= dict(zip(names, values, strict=True))
        rows_of = ((each.relation, rule_query.row_of(each, bindings)) for each in variant.missing)
        yield number, frozenset((name, row) for name, row in rows_of if row is not None)


# --- sets of insertions --------------------------------------------------------------------------


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
    asked: QueryState, goal: Fact, trials: Trials, allowance: Allowance, max_size: int
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
    return search.verify()


class _InsertionSearch:
    def __init__(
        self, asked: QueryState, goal: Fact, trials: Trials, allowance: Allowance, max_size: int
    ) -> None:
        self._asked = asked
        self._goal = goal
        self._trials = trials
        self._allowance = allowance
        self._max_size = max_size
        self._insertable = insertable_relations(asked.program)
        self._needed: dict[Fact, Sequence[frozenset[Fact]]] = {}
        self._sets: dict[Fact, set[BaseSet]] = {}
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

    def _open(self, tuples: Iterable[Fact]) -> dict[str, list[Row]]:
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

    def _possible(self, found: NeededPremises, head: Fact) -> list[frozenset[Fact]]:
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
        users: dict[Fact, set[Fact]] = {}
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

    def _combine(self, head: Fact, allowance: Allowance) -> set[BaseSet]:
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

    def _insertion(self, premise: Fact) -> BaseChange:
        relation, row = premise
        types = self._asked.program.relations[relation].types
        return BaseChange("+", self._insertable[relation], row, types)

    # --- verification --------------------------------------------------------------------------

    def verify(self) -> InsertionSearch:
        """Return the smallest sets that a dry run confirms."""
        if self._goal[0] in self._insertable:
            self._sets[self._goal] = {frozenset((self._insertion(self._goal),))}
        candidates = self._sets.get(self._goal, set())
        works = WorkingSets(self._goal, self._trials)
        found = InsertionSets((), None, self._is_complete)
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
                break
            found = replace(found, complete=self._is_complete)
        return InsertionSearch(found, list(self._cuts.values()))

    def _cut(self, reason: CutReason, shown: int | None = None, total: int | None = None) -> None:
        self._is_complete = False
        self._cuts[reason] = ProofCut(reason, None, shown, total)


class TrialLimitError(Exception):
    """No more changes may be tried out."""


class WorkingSets:
    """Knows which sets of changes make a tuple true, and violate nothing; each is tried once."""

    def __init__(self, goal: Fact, trials: Trials) -> None:
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

            def look(asked: QueryState, transaction: OpenTransaction) -> bool:
                (is_there,) = rule_query.tuples_there(asked, relation, [row])
                return is_there and not transaction.outcome.failures

            try:
                self._known[changes] = self._trials.run(sorted(changes, key=_change_key), look)
            except (InputError, LimitError):  # a value that overflows, triggers without an end
                self._known[changes] = False
        return self._known[changes]


def _has_nonmonotone_rules(program: NormalProgram, goal: str) -> bool:
    """Whether a negation or an aggregate is below a relation, or too long a rule."""
    literals: dict[str, list[Literal]] = {}
    for rule in program.rules:
        literals.setdefault(rule.head.relation, []).extend(rule.literals)
    below = reachable([goal], lambda name: [each.relation for each in literals.get(name, ())])
    has_negation = any(each.negated for name in below for each in literals.get(name, ()))
    has_aggregate = any(each.relation in below for each in program.aggregations)
    has_copies = not below.keys().isdisjoint((*program.bags, *program.bags.values()))
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


def _sort_key(each: Fact) -> tuple[str, list[tuple[bool, str, str]]]:
    return each[0], [(value is not None, type(value).__name__, repr(value)) for value in each[1]]


def _change_key(each: BaseChange) -> tuple[str, object]:
    return each.op, _sort_key((each.relation, each.row))


def _set_key(each: BaseSet) -> list[tuple[str, object]]:
    return sorted(map(_change_key, each))


# --- deletions -----------------------------------------------------------------------------------


def find_changes(
    asked: QueryState, goal: Fact, trials: Trials, allowance: Allowance, max_size: int
) -> InsertionSearch:
    """Return the smallest sets of insertions, and of deletions, that make a tuple true."""
    found = find_insertions(asked, goal, trials, allowance, max_size)
    sets = list(found.sets.sets)
    works = WorkingSets(goal, trials)
    for blocker in blocking_tuples(asked, goal, allowance):
        try:
            for each in _deletions(asked, blocker, works, trials, max_size):
                ordered = tuple(sorted(each, key=lambda change: (change.relation, repr(change))))
                if ordered not in sets:
                    sets.append(ordered)
        except TrialLimitError:
            found.cuts.append(ProofCut(trials.reason, None, trials.runs))
            break
    size = min(map(len, sets), default=None)
    return InsertionSearch(InsertionSets(tuple(sets), size, found.sets.complete), found.cuts)


def blocking_tuples(asked: QueryState, goal: Fact, allowance: Allowance) -> list[Fact]:
    """Return the tuples that alone keep a rule from deriving a tuple."""
    relation, row = goal
    (found,), _ = nearest_instances(asked, relation, [row], allowance)
    blockers: dict[Fact, None] = {}
    for nearest in found:
        for instance in nearest.shown:
            if nearest.distance == 1:
                for blocker in _blocker(nearest.rule.literals, instance):
                    blockers[blocker] = None
    return list(blockers)


def _blocker(literals: tuple[Literal, ...], instance: NearInstance) -> Iterator[Fact]:
    """Yield the tuple that blocks an instance in which one part fails, if a tuple does."""
    (at,) = instance.failing
    if at < len(literals) and literals[at].negated:
        values = {name: value for name, (value, _) in instance.bindings.items()}
        row = rule_query.row_of(literals[at], values)
        if row is not None:
            yield literals[at].relation, row


def _deletions(
    asked: QueryState, blocker: Fact, works: WorkingSets, trials: Trials, max_size: int
) -> list[BaseSet]:
    """Return the smallest sets of deletions that are enough, against one blocking tuple."""
    level: dict[BaseSet, None] = {
        frozenset((each,)): None for each in _leaves(asked, blocker, trials.allowance)
    }
    for size in range(1, max_size + 1):
        found = [each for each in level if works(each)]
        if found or size == max_size:
            return found
        larger: dict[BaseSet, None] = {}
        for each in level:
            if trials.is_exhausted:
                raise TrialLimitError

            def leaves(state: QueryState, _: OpenTransaction) -> list[BaseChange]:
                return list(_leaves(state, blocker, trials.allowance))

            try:
                for leaf in trials.run(sorted(each, key=repr), leaves):
                    larger[each | {leaf}] = None
            except (InputError, LimitError):  # such as a value that overflows
                continue
        level = larger
    return []


def _leaves(asked: QueryState, fact: Fact, allowance: Allowance) -> Iterator[BaseChange]:
    """Yield the base tuples of the proof of a tuple, as deletions."""
    with allowance.part(1.0) as part:
        proof = prove(asked, *fact, allowance=part)
    names = set(insertable_relations(asked.program).values())
    for node in proof.nodes:
        if node.id in proof.tuples and node.kind is ProofKind.BASE and node.relation in names:
            yield BaseChange("-", node.relation, node.row, node.types)
