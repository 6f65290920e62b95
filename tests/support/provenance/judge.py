"""Holds proofs against the oracle: each is valid, and as low and small as it claims to be."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from corollary.provenance.nodes import CutReason, ProofKind, ProofNode
from corollary.provenance.proof import Proof
from oracles.evaluation import order
from oracles.provenance import ANYTHING, Derivations, Fact, Instance, fits, is_fact


def same_row(row: Iterable[Any], other: Iterable[Any]) -> bool:
    """Return whether two tuples have the same values, of the same types."""
    pairs = list(zip(row, other, strict=True))
    return all(type(x) is type(y) and order(x) == order(y) for x, y in pairs)


class ProofJudge:
    """Judges the proofs of one state.

    Attributes:
        truth: what the oracle knows of the state.
        counts: what was judged.
    """

    def __init__(self, truth: Derivations) -> None:
        self.truth = truth
        self.counts: Counter[str] = Counter()
        self._rules = [
            number for number, rule in enumerate(truth.program.rules) if not is_fact(rule)
        ]

    def judge(self, proof: Proof, goal: Fact, *, is_whole: bool = True) -> None:
        """Judge a proof.

        Args:
            proof: the proof.
            goal: the tuple that was asked for.
            is_whole: whether nothing may be left out, since the limits are far away.
        """
        self.counts["questions"] += 1
        assert proof.holds == self.truth.holds(goal), f"holds: {proof.holds}, {goal}"
        if not proof.holds:
            assert not proof.nodes
            return
        self._judge_shape(proof, goal)
        if proof.height is None:  # the limits were reached before there was a proof
            self.counts["without a proof"] += 1
            assert not is_whole
            assert proof.cuts
            assert not proof.minimal
            assert not proof.canonical
            fact = self._fact(proof.nodes[0])
            doubtful = fact in self.truth.doubtful
            assert doubtful or proof.height_at_least <= self.truth.heights[fact]
            return
        shown = proof.tuples
        for node in proof.nodes:
            if node.id in shown:
                self._judge_tuple(proof, node, is_whole=is_whole)
            for note in node.notes:
                self._judge_note(proof.nodes[note])
        self._judge_claims(proof, goal, is_whole=is_whole)

    def _judge_shape(self, proof: Proof, goal: Fact) -> None:
        root = proof.nodes[0]
        assert root.relation == goal[0]
        assert same_row(root.row, goal[1]), (root, goal)
        assert [node.id for node in proof.nodes] == list(range(len(proof.nodes)))
        order_, work = [0], deque([0])
        while work:
            node = proof.nodes[work.popleft()]
            for child in (*node.premises, *node.notes):
                if child not in order_:
                    order_.append(child)
                    work.append(child)
        assert order_ == list(range(len(proof.nodes))), "ids are not breadth-first"
        tuples = [proof.nodes[each] for each in sorted(proof.tuples)]
        keys = Counter((node.relation, repr(node.row), node.kind) for node in tuples)
        assert max(keys.values()) == 1, "a tuple is there twice"
        is_cut = any(each.reason is CutReason.NODES for each in proof.cuts)
        assert proof.size > len(tuples) - 1 if is_cut else proof.size == len(tuples)
        assert {node.rule for node in proof.nodes} - {None} == set(proof.rules)

    # --- nodes ---------------------------------------------------------------------------------

    def _fact(self, node: ProofNode) -> Fact:
        """Return the oracle's own object of a tuple, so that NaN equals itself."""
        for row in self.truth.relations[node.relation]:
            if same_row(row, node.row):
                return node.relation, row
        raise AssertionError(f"not there: {node}")

    def _judge_tuple(self, proof: Proof, node: ProofNode, *, is_whole: bool) -> None:
        fact = self._fact(node)
        below = [proof.nodes[each] for each in node.premises]
        self.counts["tuples"] += 1
        is_cut = not is_whole and any(each.node == node.id for each in proof.cuts)
        match node.kind:
            case ProofKind.BASE:
                assert fact in self.truth.base, f"not given: {node}"
                assert node.height == 0
                assert not below
            case ProofKind.CHAIN:
                if not is_cut:
                    self._judge_chain(node, below)
            case ProofKind.DERIVED:
                premises = {self._fact(each) for each in below}
                if is_cut:
                    assert any(premises <= set(one.premises) for one in self.truth.instances[fact])
                    return
                highest = max((each.height for each in below), default=0)
                is_seed = node.relation in self.truth.equivalences
                assert node.height == highest + (not is_seed), (node, below)
                found = self._instances(fact, node.rule, premises)
                assert found, f"no such instance: {node} {premises}"
            case _:
                raise AssertionError(f"not a tuple: {node}")

    def _judge_chain(self, node: ProofNode, links: list[ProofNode]) -> None:
        self.counts["chains"] += 1
        assert node.height == 1 + max(each.height for each in links)
        x, y = node.row
        for link in links:
            assert link.relation == node.relation
            assert self.truth.is_seed(self._fact(link)), f"no seed: {link}"
        if order(x) == order(y):
            (link,) = links
            assert order(x) in map(order, link.row)
            return
        at = order(x)
        for link in links:
            one, other = map(order, link.row)
            assert at in (one, other), f"no chain: {node} {links}"
            at = other if at == one else one
        assert at == order(y), f"no chain: {node} {links}"

    def _instances(self, fact: Fact, number: int | None, premises: set[Fact]) -> list[Instance]:
        """Return the instances of a rule that a node may be, given its premises."""
        assert number is not None, fact
        rule = self._rules[number - 1]
        return [
            one
            for one in self.truth.instances[fact]
            if one.rule == rule
            and premises <= set(one.premises)
            and {each for place, each in enumerate(one.premises) if place not in one.optional}
            <= premises
        ]

    def _judge_note(self, note: ProofNode) -> None:
        self.counts[str(note.kind)] += 1
        assert note.height == 0
        if note.kind is ProofKind.ABSENT and note.relation in self.truth.relations:
            if note.text.startswith("no "):
                return  # an empty group
            pattern = tuple(ANYTHING if value is None else value for value in note.row)
            every = self.truth.relations[note.relation]
            assert not any(fits(row, pattern) for row in every) or None in note.row, note

    # --- claims --------------------------------------------------------------------------------

    def _judge_claims(self, proof: Proof, goal: Fact, *, is_whole: bool) -> None:
        assert proof.height == proof.nodes[0].height
        assert proof.height_at_least <= proof.height
        assert proof.minimal == (proof.height_at_least == proof.height)
        self.counts["minimal"] += proof.minimal
        self.counts["canonical"] += proof.canonical
        if is_whole:
            # Of large groups only some rows are shown, and it is said.
            assert all(each.reason is CutReason.ROWS for each in proof.cuts), proof.cuts
            assert proof.minimal
            assert proof.canonical
        fact = self._fact(proof.nodes[0])
        self.counts["high"] += proof.height > 3
        if fact in self.truth.doubtful:
            self.counts["doubtful"] += 1
            return
        least = self.truth.heights[fact]
        assert proof.height_at_least <= least <= proof.height, (
            f"{proof.height_at_least} <= {least} <= {proof.height}: {goal}"
        )
        if proof.canonical:
            cut = {each.node for each in proof.cuts}
            for number in proof.tuples - cut:
                self._judge_canonical(proof, proof.nodes[number])

    def _judge_canonical(self, proof: Proof, node: ProofNode) -> None:
        fact = self._fact(node)
        assert node.height == self.truth.heights[fact], f"{node} has {self.truth.heights[fact]}"
        if node.kind is ProofKind.BASE:
            return
        premises = {self._fact(proof.nodes[each]) for each in node.premises}
        canonical = self.truth.canonical(fact)
        assert any(
            set(one.premises) == premises and one.rule == self._rules[(node.rule or 0) - 1]
            for one in canonical
        ), f"{node} {premises} instead of {canonical}"
