"""Why a tuple holds: the canonical proof, as far as the limits allow it."""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from corollary.core import logic
from corollary.data_class import dataclass
from corollary.database.program.goals import read_goal
from corollary.database.state import DatabaseState
from corollary.engines.budget import WorkLimitError, WorkUsed
from corollary.errors import InputError
from corollary.provenance.covered import name_covering
from corollary.provenance.groups import COPIES_SHOWN_ROWS, SHOWN_ROWS, GroupRows, find_groups
from corollary.provenance.instances import Fact, InstanceFinder
from corollary.provenance.limits import DEFAULT_LIMITS, Allowance, ProofLimits
from corollary.provenance.nodes import CutReason, ProofCut, Row
from corollary.provenance.proof import Proof
from corollary.provenance.proof_builder import FoundProof, ProofBuilder
from corollary.provenance.proof_graph import KnownInstance
from corollary.provenance.proof_nodes import NodeKey, ProofDrawing
from corollary.provenance.query_state import QueryState, matching_rows, query_state
from corollary.provenance.steps import ProofSteps
from corollary.provenance.wording import Wording

MAX_ANSWERS = 10
"""The maximum number of answers that are proved if a goal has variables."""


def why(state: DatabaseState, goal: str, limits: ProofLimits = DEFAULT_LIMITS) -> Proof:
    """Return why a goal holds; of a goal with variables, why its first answers do.

    Args:
        state: of the database that is asked.
        goal: one atom, such as `link("a", "d")` or `link("a", x)`.
        limits: of the work.

    Raises:
        InputError: the goal does not fit the program, or is more than one atom.
    """
    read = read_goal(state.loaded, goal)
    if not read.is_atom:
        raise InputError.of(
            "C1400",
            "A proof is of one tuple, and this goal is more than one atom.",
            None,
            'ask for one relation, as in `link("a", "d")`; or write the goal as a rule',
        )
    asked = query_state(state)
    with state.lock:
        rows = matching_rows(asked, read.literal)
        relation = read.literal.relation
        if not rows:
            return Proof(goal, asked.commit, holds=False, work=WorkUsed(0, limits.work))
        if not any(
            isinstance(each, logic.Variable | logic.Wildcard) for each in read.literal.slots
        ):
            return prove(asked, relation, rows[0], limits, goal)
        text = Wording(asked.written, asked.program).tuple_text
        first, *others = (
            prove(asked, relation, row, limits, text(relation, row)) for row in rows[:MAX_ANSWERS]
        )
    return replace(first, others=tuple(others), answers=len(rows))


def prove(
    asked: QueryState,
    relation: str,
    row: Row,
    limits: ProofLimits = DEFAULT_LIMITS,
    goal: str = "",
    *,
    allowance: Allowance | None = None,
) -> Proof:
    """Return the proof of a tuple; one that does not hold if it is not there.

    Args:
        asked: the state in which it is asked.
        relation: a relation in normal form.
        row: the tuple.
        limits: of the work.
        goal: how the tuple reads in the answer; as it is written if nothing is given.
        allowance: what is left of the limits of a question that this is a part of.
    """
    question = _Question(asked, allowance or Allowance(limits))
    text = goal or question.wording.tuple_text(relation, row)
    try:
        proof = question.prove((relation, row), text)
    finally:
        question.finder.close()
    nodes = name_covering(asked, proof.nodes)
    return replace(proof, nodes=nodes, work=question.allowance.used)


@dataclass(slots=True)
class _Question:
    """One question: what was found, and what is left of the limits."""

    asked: QueryState
    allowance: Allowance
    steps: ProofSteps = field(init=False)
    wording: Wording = field(init=False)
    finder: InstanceFinder = field(init=False)
    builder: ProofBuilder = field(init=False)
    chosen: dict[int, KnownInstance | None] = field(default_factory=dict)
    groups: dict[Fact, GroupRows] = field(default_factory=dict)
    unproved: dict[NodeKey, CutReason] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.steps = ProofSteps(self.asked.program)
        self.wording = Wording(self.asked.written, self.asked.program)
        self.finder = InstanceFinder(self.asked, self.steps)
        self.builder = ProofBuilder(self.finder, self.allowance)

    def prove(self, fact: Fact, goal: str) -> Proof:
        """Return the proof of a tuple."""
        asked, limits = self.asked, self.allowance.limits
        is_there, rank = self.finder.rank(fact)
        if not is_there:
            return Proof(goal, asked.commit, holds=False)
        if fact[0] in self.steps.aggregates:
            return self._prove_aggregate(fact, goal)
        found = self.builder.prove(fact, rank)
        self.chosen |= found.choice or {}
        self._unfold(self._groups_in(self.chosen))
        drawing = self._drawing()
        root = drawing.tuple_key(found.root)
        nodes, rules, cuts, ids = drawing.draw(root, limits.nodes)
        proof = Proof(
            goal,
            asked.commit,
            holds=True,
            height=found.height,
            height_at_least=found.height_at_least,
            minimal=found.height == found.height_at_least,
            canonical=found.is_complete,
            nodes=nodes,
            rules=rules,
            cuts=(*self._search_cuts(found, ids), *self._cuts(ids), *cuts),
        )
        return replace(proof, left_out=drawing.count_tuples(root) - proof.size)

    def _drawing(self) -> ProofDrawing:
        return ProofDrawing(self.wording, self.builder.graph, self.finder, self.chosen, self.groups)

    def _prove_aggregate(self, fact: Fact, goal: str) -> Proof:
        """Return the value of a group, with some of its rows."""
        self._unfold({fact: False})
        drawing = self._drawing()
        root = drawing.aggregate_key(*fact)
        nodes, rules, cuts, ids = drawing.draw(root, self.allowance.limits.nodes)
        return Proof(
            goal,
            self.asked.commit,
            holds=True,
            height=0,
            minimal=True,
            canonical=True,
            nodes=nodes,
            rules=rules,
            cuts=(*self._cuts(ids), *cuts),
        )

    def _search_cuts(self, found: FoundProof, ids: Mapping[NodeKey, int]) -> Iterator[ProofCut]:
        """Yield what the search left out."""
        if found.cut is not None:
            yield ProofCut(found.cut, None, self.allowance.expanded)
        graph = self.builder.graph
        places = {number: ids.get(("tuple", number)) for number in found.truncated}
        hidden = [number for number, place in places.items() if place is None]
        if hidden:
            shown = sum(len(graph.instances[number]) for number in hidden)
            total = sum(found.truncated[number] for number in hidden)
            yield ProofCut(CutReason.INSTANCES, None, shown, total)
        for number, place in sorted(places.items(), key=lambda each: each[1] or 0):
            if place is not None:
                shown, total = len(graph.instances[number]), found.truncated[number]
                yield ProofCut(CutReason.INSTANCES, place, shown, total)

    def _cuts(self, ids: Mapping[NodeKey, int]) -> Iterator[ProofCut]:
        """Yield what was left out of the rows of aggregates, and of their proofs."""
        for (relation, row), group in self.groups.items():
            place, total = ids.get(("aggregate", relation, row)), group.attained or group.total
            if place is not None and len(group.rows) < total:
                yield ProofCut(CutReason.ROWS, place, len(group.rows), total)
        for key, reason in self.unproved.items():
            if key in ids:
                yield ProofCut(reason, ids[key], 0)

    # --- rows of aggregates --------------------------------------------------------------------

    def _unfold(self, groups: Mapping[Fact, bool]) -> None:
        """Find the rows of aggregates, and prove them; then those that their proofs need."""
        left = self.allowance.limits.nodes
        while groups and left > 0:
            rows, proved = self._rows_of(groups), dict[int, KnownInstance | None]()
            for fact in rows:
                self._prove_row(fact, proved)
            self.chosen |= proved
            groups, left = self._groups_in(proved), left - len(rows)
        self.unproved |= {("aggregate", *fact): CutReason.NODES for fact in groups}

    def _groups_in(self, chosen: Mapping[int, KnownInstance | None]) -> dict[Fact, bool]:
        """Return the tuples of aggregates in a proof, and whether they count copies of a row."""
        drawing = self._drawing()
        return {
            group: known.step.rule.head.relation in self.wording.counts
            for known in chosen.values()
            if known is not None
            for group in drawing.groups_of(known)
            if group not in self.groups
        }

    def _rows_of(self, groups: Mapping[Fact, bool]) -> dict[Fact, None]:
        """Return some rows of groups."""
        found: dict[Fact, None] = {}
        for aggregation in self.asked.program.aggregations:
            rows = {
                row: each for (name, row), each in groups.items() if name == aggregation.relation
            }
            if not rows:
                continue
            most = COPIES_SHOWN_ROWS if any(rows.values()) else SHOWN_ROWS
            try:
                made = find_groups(self.asked, aggregation, list(rows), self.allowance, most)
            except WorkLimitError:
                keys = ((("aggregate", aggregation.relation, row)) for row in rows)
                self.unproved |= dict.fromkeys(keys, self.allowance.reason)
                continue
            for row, group in made.items():
                self.groups[aggregation.relation, row] = group
                found |= dict.fromkeys(group.rows)
        return found

    def _prove_row(self, fact: Fact, proved: dict[int, KnownInstance | None]) -> None:
        graph = self.builder.graph
        if not self.steps.is_derived(fact[0]):
            graph.number(fact, None)
        elif self.allowance.is_over:
            self.unproved["tuple", graph.number(fact, None)] = self.allowance.reason
        else:
            found = self.builder.prove(fact, self.finder.rank(fact)[1])
            proved |= found.choice or {}
            if found.choice is None:
                self.unproved["tuple", found.root] = found.cut or CutReason.INSTANCES
