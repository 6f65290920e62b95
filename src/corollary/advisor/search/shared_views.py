"""Views shared between queries: the common sub-joins of different clauses, and where they are used.

This merges materialisation trees, which the paper leaves to future work. A *pattern* is a set of
literals and the variables that are needed outside of it; a clause is one, with `sig`. Two patterns
are merged by *anti-unification*: literals of one relation are matched, connected ones first, and a
pair of terms (t1, t2) becomes one variable, or stays a constant if both are that constant.

    q1(C) :- sales(P, D), product(P, C), date(D, 1997).          needed: C
    q2(C, Y) :- sales(A, B), product(A, C), date(B, Y).          needed: C, Y
    merged   v(C, Y) :- sales(P, D), product(P, C), date(D, Y).
    used     q1(C) :- v(C, 1997).      q2(C, Y) :- v(C, Y).

A variable of the merged pattern is a column if one of its terms is needed outside, or a constant,
or is part of another pair as well. A view is *used* in a clause if a substitution θ makes the
literals B of its body literals of the clause, one to one. This is sound if every variable that is
not a column stands for a variable of its own that occurs nowhere else in the clause:
v(columns θ) is then equivalent to Bθ.

Bodies of aggregates are merged in the same way; the view is a *summary*, with a measure for each
aggregate that uses it. One row stands for the assignments of a group, so that aggregates of groups
are those of all of them, whatever is joined to the columns outside of the view:

    q1(C, T) :- …, T = sum A : { sales(P, D, A), product(P, C) }.
    q2(Y, N) :- …, N = count : { sales(P, D, A), day(D, Y) }.
    merged   v(P, D, S, N): S = sum A, N = count of sales(P, D, A)
    used     T = sum S : { v(P, _, S, _), product(P, C) }
             N = sum M : { v(_, D, _, M), day(D, Y) }

The groups of a summary are a set like any other view, and used as one outside of aggregates. More
patterns come from merging merged ones again.

Literature: S. Agrawal, S. Chaudhuri, V. Narasayya, "Automated selection of materialized views and
indexes for SQL databases", VLDB 2000; A. Gupta, V. Harinarayan, D. Quass, "Aggregate-query
processing in data warehousing environments", VLDB 1995.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from itertools import combinations, product

from corollary.advisor.model import candidates
from corollary.advisor.model.canonical import CanonicalForms
from corollary.advisor.search_limit import is_search_over
from corollary.core.logic import Constant, Literal, Slot, Term, Variable
from corollary.data_class import dataclass

POOL_MAX_VIEWS = 80
"""The maximum number of shared views that are weighed."""
MERGE_ROUNDS = 3
"""The maximum number of times that merged patterns are merged again."""
USES_MAX_IN_CLAUSE = 4
"""The maximum number of ways in which one view is used in one clause."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Literals, and the variables among theirs that are needed elsewhere.

    Attributes:
        is_summary: whether an aggregate ranges over the literals.
    """

    literals: tuple[Literal, ...]
    needed: frozenset[str]
    is_summary: bool = False

    def as_view(self) -> candidates.Candidate:
        """Return the view of the pattern: its columns are what is needed, its measures none yet."""
        columns = candidates.in_order(self.literals, self.needed)
        measures = () if self.is_summary else None
        return candidates.Candidate(columns, (self.literals,), measures=measures)


def pattern_of(clause: candidates.SchemeClause) -> Pattern:
    """Return the pattern of the literals of a clause that may be folded."""
    inside = candidates.output_variables(clause.literals)
    moved = frozenset().union(*(each.variables for each in clause.comparisons))
    is_summary = clause.measure is not None
    return Pattern(clause.literals, inside & (clause.significant | moved), is_summary)


def shared_views(
    clauses: Sequence[candidates.SchemeClause],
    forms: CanonicalForms,
    is_legal: Callable[[candidates.Candidate], bool],
) -> dict[str, candidates.Candidate]:
    """Return views that more than one clause can use, by form."""
    blocks = [each for each in clauses if each.measure is not None]
    own = list(dict.fromkeys(each for each in map(pattern_of, clauses) if each.literals))
    found: dict[str, candidates.Candidate] = {}
    for each in own:
        if each.is_summary and (whole := _with_measures(each.as_view(), blocks)) is not None:
            found.setdefault(forms.key(whole), whole)
    found = {key: view for key, view in found.items() if is_legal(view)}
    most = len(found) + POOL_MAX_VIEWS
    frontier, others = own, own
    for _ in range(MERGE_ROUNDS):
        merged: list[Pattern] = []
        pairs = combinations(own, 2) if frontier is own else product(frontier, others)
        for one, other in pairs:
            if is_search_over() or len(found) >= most:
                return found
            pattern = merge(one, other)
            if pattern is None or not _is_view(pattern):
                continue
            view: candidates.Candidate | None = pattern.as_view()
            assert view is not None
            key = forms.key(view)
            if key in found:
                continue
            if pattern.is_summary:
                view = _with_measures(view, blocks)
            if view is not None and is_legal(view):
                found[key] = view
                merged.append(pattern)
        frontier = merged
    return found


def _with_measures(
    view: candidates.Candidate, blocks: Sequence[candidates.SchemeClause]
) -> candidates.Candidate | None:
    """Return a summary with the measures of all aggregates that can use it; None if none can."""
    found: dict[candidates.Measure, None] = {}
    for block in blocks:
        for use in uses_of(view, block):
            if use.general is not None and use.general.measure is not None:
                found[use.general.measure] = None
    return replace(view, measures=tuple(found)) if found else None


def _is_view(pattern: Pattern) -> bool:
    """Whether a pattern is more than a copy of a relation."""
    return len(pattern.literals) > 1 or pattern.needed < candidates.output_variables(
        pattern.literals
    )


# --- merging -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Merge:
    """A merge of two patterns on the way: matched literals, and the variable of each pair."""

    one: Pattern
    other: Pattern
    matched: list[tuple[int, int]] = field(default_factory=list)
    pairs: dict[tuple[Slot, Slot], Slot] = field(default_factory=dict)

    def rank(self, at: int, to: int) -> tuple[int, int] | None:
        """Return how many pairs of terms a match would add, and minus those it would share.

        None if it does not fit, or has nothing to do with what is matched.
        """
        left, right = self.one.literals[at], self.other.literals[to]
        if left.relation != right.relation or len(left.slots) != len(right.slots):
            return None
        if any(at == known or to == seen for known, seen in self.matched):
            return None
        pairs = set(zip(left.slots, right.slots, strict=True))
        variables = {each for each in pairs if not _is_same_constant(*each)}
        shared = sum(each in self.pairs for each in variables)
        if self.matched and not shared:
            return None
        return len(variables) - shared, -shared

    def add(self, at: int, to: int) -> None:
        self.matched.append((at, to))
        for one, other in zip(
            self.one.literals[at].slots, self.other.literals[to].slots, strict=True
        ):
            if (one, other) not in self.pairs:
                same = _is_same_constant(one, other)
                self.pairs[one, other] = one if same else self._variable(one, other)

    def _variable(self, one: Slot, other: Slot) -> Variable:
        """Return the variable of a pair, with a name of its own: that of one of them, if it can."""
        taken = {each.name for each in self.pairs.values() if isinstance(each, Variable)}
        names = [each.name for each in (one, other) if isinstance(each, Variable)]
        if len(names) == 2 and all(each.startswith(candidates.ANONYMOUS) for each in names):
            return Variable(f"{candidates.ANONYMOUS}{len(self.pairs)}")
        names = [each for each in names if not each.startswith(candidates.ANONYMOUS)]
        free = [each for each in names if each not in taken]
        number = len(self.pairs)
        while not free:
            free = [each for each in (f"v{number}",) if each not in taken]
            number += 1
        type_ = one.type if isinstance(one, Variable) else None
        return Variable(free[0], type_)

    def result(self) -> Pattern:
        literals = tuple(
            Literal(
                self.one.literals[at].relation,
                tuple(
                    self.pairs[pair]
                    for pair in zip(
                        self.one.literals[at].slots, self.other.literals[to].slots, strict=True
                    )
                ),
            )
            for at, to in self.matched
        )
        is_summary = self.one.is_summary or self.other.is_summary
        return Pattern(tuple(dict.fromkeys(literals)), frozenset(self._needed_names()), is_summary)

    def _needed_names(self) -> Iterator[str]:
        sides: list[frozenset[str]] = []
        for number, pattern in enumerate((self.one, self.other)):
            inside = {each[number] for each in self.matched}
            rest = (each for at, each in enumerate(pattern.literals) if at not in inside)
            sides.append(pattern.needed | candidates.output_variables(rest))
        for pair, variable in self.pairs.items():
            if not isinstance(variable, Variable):
                continue
            is_needed = any(
                not isinstance(term, Variable) or term.name in needed
                for term, needed in zip(pair, sides, strict=True)
            )
            is_split = any(
                pair != seen and (pair[0] == seen[0] or pair[1] == seen[1]) for seen in self.pairs
            )
            if is_needed or is_split:
                yield variable.name


def merge(one: Pattern, other: Pattern) -> Pattern | None:
    """Return the largest common part of two patterns that is found, generalised for both."""
    best: _Merge | None = None
    for at in range(len(one.literals)):
        for to in range(len(other.literals)):
            found = _Merge(one, other)
            if found.rank(at, to) is None:
                continue
            found.add(at, to)
            while (step := _next_match(found)) is not None:
                found.add(*step)
            if best is None or _size(found) > _size(best):
                best = found
    return None if best is None else best.result()


def _next_match(merge_: _Merge) -> tuple[int, int] | None:
    ranked = [
        (rank, at, to)
        for at in range(len(merge_.one.literals))
        for to in range(len(merge_.other.literals))
        if (rank := merge_.rank(at, to)) is not None
    ]
    return min(ranked)[1:] if ranked else None


def _size(merge_: _Merge) -> tuple[int, int]:
    return len(merge_.matched), -len(merge_.pairs)


def _is_same_constant(one: Slot, other: Slot) -> bool:
    return isinstance(one, Constant) and one == other


# --- uses ----------------------------------------------------------------------------------------


def uses_of(
    view: candidates.Candidate, clause: candidates.SchemeClause
) -> list[candidates.Candidate]:
    """Return the ways to use a view in a clause, each as a candidate over some of its literals."""
    bodies = candidates.expand(view)
    body = [each for each in bodies[0] if isinstance(each, Literal)]
    if len(bodies) > 1 or len(body) < len(bodies[0]) or not clause.literals:
        return []
    if clause.measure is not None and view.measures is None:
        return []  # a plain view has each tuple once, however many assignments gave it
    found: list[candidates.Candidate] = []
    seen: set[tuple[frozenset[Literal], tuple[Slot, ...]]] = set()
    for used, substitution in _embeddings(body, clause.literals, {}, ()):
        if not _is_sound(view, clause, used, substitution):
            continue
        arguments = tuple(substitution[name] for name in view.variables)
        key = frozenset(used), arguments
        if key in seen:
            continue
        seen.add(key)
        names = dict.fromkeys(each.name for each in arguments if isinstance(each, Variable))
        measure = None
        if clause.measure is not None:
            measure = _measure_of(clause.measure, substitution)
            if measure is None:
                continue
        general = candidates.ViewUse(view, arguments, measure)
        found.append(candidates.Candidate(tuple(names), (used,), general=general))
        if len(found) == USES_MAX_IN_CLAUSE:
            break
    return found


def _measure_of(
    measure: candidates.Measure, substitution: dict[str, Slot]
) -> candidates.Measure | None:
    """Return a measure of a clause in the variables of a view; None if it is not over its body."""
    if measure.target is None:
        return measure
    names = {each.name for each in candidates.term_variables(measure.target)}
    by: dict[str, Term] = {}
    for mine, theirs in substitution.items():
        if isinstance(theirs, Variable) and theirs.name in names:
            by.setdefault(theirs.name, Variable(mine))
    if names - by.keys():
        return None
    return replace(measure, target=candidates.substitute(measure.target, by))


def _embeddings(
    body: Sequence[Literal],
    literals: Sequence[Literal],
    substitution: dict[str, Slot],
    used: tuple[Literal, ...],
) -> Iterator[tuple[tuple[Literal, ...], dict[str, Slot]]]:
    """Yield the substitutions that make the literals of a body literals of a clause."""
    if not body:
        yield used, substitution
        return
    for literal in literals:
        if literal not in used and literal.relation == body[0].relation:
            extended = _extend(substitution, body[0], literal)
            if extended is not None:
                yield from _embeddings(body[1:], literals, extended, (*used, literal))


def _extend(
    substitution: dict[str, Slot], pattern: Literal, literal: Literal
) -> dict[str, Slot] | None:
    found = dict(substitution)
    for mine, theirs in zip(pattern.slots, literal.slots, strict=True):
        if isinstance(mine, Variable):
            if found.setdefault(mine.name, theirs) != theirs:
                return None
        elif mine != theirs:
            return None
    return found


def _is_sound(
    view: candidates.Candidate,
    clause: candidates.SchemeClause,
    used: tuple[Literal, ...],
    substitution: dict[str, Slot],
) -> bool:
    """Whether what is not a column stands for variables of their own that occur nowhere else."""
    rest = (each for each in clause.literals if each not in used)
    outside = clause.significant | candidates.output_variables(rest)
    outside = outside.union(*(each.variables for each in clause.comparisons))
    terms = list(substitution.values())
    for name, term in substitution.items():
        if name in view.variables:
            continue
        if not isinstance(term, Variable) or term.name in outside or terms.count(term) > 1:
            return False
    return True
