"""Strata whose subsumption says no order: evaluation in the rounds of Soufflé.

Reference: Soufflé's translation of subsumptive clauses (`p(A) <= p(B) :- body.`).

R is what a relation has so far, N what a round derives, Δ what is new in it; D(X, Y) are the tuples
A of X for which a different tuple B of Y is there, and the body holds.

    R ← rules without a literal of the stratum;  R ← R − D(R, R);  Δ ← R                      (1)
    N ← rules with a literal in Δ, the others in R, less R                                    (2)
    Δ ← N − (D(N, N) ∪ D(N, R))                                                    reject     (3)
    R ← R − D(R, Δ);  if the body reads the stratum, R ← R − D(R, R)               delete     (4)
    R ← R ∪ Δ, and (2) again, until Δ is empty                                                (5)

| symbol | name here |
|---|---|
| R, N, Δ | `p•so_far`, `p•next`, `p•delta` |
| D(…) of (3), of (1) and (4) | `p•reject`, `p•delete` |
| all that was rejected or deleted | `p.dominated` |
| all that ever was in R, with the round in which it came first | `p•rank` |

Relations of the stratum without subsumption reject and delete nothing. What has been derived from a
tuple stays when the tuple goes, so the result depends on the rounds; it is the same in each
evaluation, but nothing is promised about two versions of the data.

Example: `p(1). p(x + 1) :- p(x), x < 4. p(x) <= p(y) :- y = x + 1.`

| round | N | Δ | R after it |
|---|---|---|---|
| first | | 1 | 1 |
| 1 | 2 | 2 | 2 |
| 2 | 3 | 3 | 3 |
| 3 | 4 | 4 | 4 |
"""

from collections.abc import Iterator

from corollary.analysis.strata import Stratum
from corollary.core import plans
from corollary.core.logic import Literal
from corollary.core.pipeline import Reference
from corollary.core.plans import Step
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.maintain.delta import LiteralReader, make_body, read_in_state, recursive_positions
from corollary.maintain.draft import Body, Draft
from corollary.maintain.payload import rank_relation
from corollary.maintain.sip import Goal


def evaluate(
    stratum: Stratum, draft: Draft, state: State, *, with_ranks: bool
) -> tuple[list[Step], dict[str, str]]:
    """Return the steps that evaluate a stratum in a state, and the relations with the results."""
    return _Rounds(stratum, draft, state, with_ranks).steps()


class _Rounds:
    """The steps of a stratum."""

    def __init__(self, stratum: Stratum, draft: Draft, state: State, with_ranks: bool) -> None:
        self.stratum, self.draft, self.state, self.with_ranks = stratum, draft, state, with_ranks
        hidden = set(stratum.dominated.values())
        self.members = [name for name in stratum.relations if name not in hidden]
        for name in self.members:
            for role in ("so_far", "next", "delta"):
                draft.working_relation(name, role)

    def steps(self) -> tuple[list[Step], dict[str, str]]:
        """Return the steps, and the relations that hold the results."""
        draft = self.draft
        first: list[Step] = []
        again: list[Step] = []
        for name in self.members:
            first += draft.derive(_role(name, "next"), self._first(name))
            first.append(plans.Extend(_role(name, "so_far"), _role(name, "next")))
            known = (Reference(_role(name, "so_far")),)
            again += draft.derive(_role(name, "next"), self._following(name), without=known)
        for name in self.stratum.dominated:
            first += self._delete(name, self._pairs(name, "so_far", "so_far"))
        for name in self.members:
            delta = _role(name, "delta")
            first.append(draft.copy(delta, Reference(_role(name, "so_far"))))
            again += self._reject(name)
        grow = [step for name in self.members for step in self._rank(name)]
        first += grow
        again += [
            plans.Extend(_role(name, "so_far"), _role(name, "delta")) for name in self.members
        ]
        again += grow
        fresh = tuple(Reference(_role(name, "delta")) for name in self.members)
        limits = tuple(
            (_role(name, "so_far"), limit)
            for name in self.members
            if (limit := draft.relation(name).limit) is not None
        )
        results = {name: _role(name, "so_far") for name in self.members}
        results |= {each: _role(name, "gone") for name, each in self.stratum.dominated.items()}
        if self.with_ranks:
            results |= {rank_relation(draft, name): _role(name, "ranked") for name in self.members}
            results |= {
                rank_relation(draft, each): _role(name, "gone_ranked")
                for name, each in self.stratum.dominated.items()
            }
        return [*first, plans.Loop(tuple(again), fresh, limits)], results

    def _first(self, name: str) -> Iterator[Body]:
        """Yield the bodies of (1)."""
        for rule in self.stratum.rules_by_head.get(name, ()):
            if not recursive_positions(rule, self.stratum.members):
                read = read_in_state(self.state)
                yield make_body(rule, read, is_judged=self.state is State.NEW)

    def _following(self, name: str) -> Iterator[Body]:
        """Yield the bodies of (2)."""
        for rule in self.stratum.rules_by_head.get(name, ()):
            for position in recursive_positions(rule, self.stratum.members):
                literal = rule.literals[position]
                lead = Goal(literal, Reference(_role(literal.relation, "delta")))
                yield make_body(
                    rule,
                    self._reader({}),
                    lead=lead,
                    position=position,
                    is_judged=self.state is State.NEW,
                )

    def _reject(self, name: str) -> list[Step]:
        """Return the steps of (3) and (4)."""
        draft = self.draft
        new, delta = _role(name, "next"), _role(name, "delta")
        if name not in self.stratum.dominated:
            return [draft.copy(delta, Reference(new))]
        reject = draft.working_relation(name, "reject")
        pairs = [*self._pairs(name, "next", "next"), *self._pairs(name, "next", "so_far")]
        steps = draft.derive(reject, pairs)
        steps += self._record(name, reject)
        steps.append(draft.copy(delta, Reference(new), without=(Reference(reject),)))
        beaten = [*self._pairs(name, "so_far", "delta")]
        beaten += self._pairs(name, "so_far", "so_far", has_own_reads=True)
        return [*steps, *self._delete(name, beaten)]

    def _delete(self, name: str, pairs: Iterator[Body] | list[Body]) -> list[Step]:
        delete = self.draft.working_relation(name, "delete")
        steps = [*self.draft.derive(delete, pairs), *self._record(name, delete)]
        return [*steps, plans.Remove(_role(name, "so_far"), delete)]

    def _record(self, name: str, source: str) -> list[Step]:
        """Return the steps that remember what was rejected or deleted."""
        gone = self.draft.working_relation(name, "gone")
        latest = self.draft.working_relation(name, "latest")
        return self._first_time(name, source, gone, latest, "gone_ranked")

    def _rank(self, name: str) -> list[Step]:
        """Return the steps that remember in which round a tuple came first."""
        if not self.with_ranks:
            return []
        seen = self.draft.working_relation(name, "seen")
        latest = self.draft.working_relation(name, "came")
        return self._first_time(name, _role(name, "delta"), seen, latest, "ranked")

    def _first_time(
        self, name: str, source: str, known: str, latest: str, ranked: str
    ) -> list[Step]:
        """Return the steps that add tuples to those that are known, with the round as a rank."""
        steps: list[Step] = [
            self.draft.copy(latest, Reference(source), without=(Reference(known),)),
            plans.Extend(known, latest),
        ]
        if self.with_ranks:
            target = self.draft.working_relation(name, ranked, NUMBER)
            steps.append(plans.ExtendWithRound(target, latest))
        return steps

    def _pairs(
        self, name: str, one: str, other: str, *, has_own_reads: bool = False
    ) -> Iterator[Body]:
        """Yield the bodies of D(X, Y); only those that read the stratum, if it is said so."""
        for rule in self.stratum.rules_by_head.get(self.stratum.dominated[name], ()):
            reads = recursive_positions(rule, self.stratum.members)
            if len(reads) <= 2 and has_own_reads:
                continue
            read = self._reader({0: one, 1: other})
            lead = read(0, rule.literals[0])
            if other == "delta":
                lead = read(1, rule.literals[1])
            position = 1 if other == "delta" else 0
            yield make_body(
                rule, read, lead=lead, position=position, is_judged=self.state is State.NEW
            )

    def _reader(self, roles: dict[int, str]) -> LiteralReader:
        """Return what reads the stratum as it is so far, but some literals in another role."""

        def read(at: int, literal: Literal) -> Goal:
            if literal.relation not in self.stratum.members:
                return Goal(literal, Reference(literal.relation, self.state))
            return Goal(literal, Reference(_role(literal.relation, roles.get(at, "so_far"))))

        return read


def _role(name: str, role: str) -> str:
    return plans.working_relation(name, role)
