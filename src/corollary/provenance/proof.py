"""The answers to questions: proofs, absences, and why commits have changed something."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from html import escape
from typing import Any

from corollary.console import counted
from corollary.core.graph import reachable
from corollary.data_class import dataclass
from corollary.engines.budget import WorkUsed
from corollary.provenance.nodes import (
    Attempt,
    Cause,
    InsertionSets,
    ProofCut,
    ProofKind,
    ProofNode,
    ProofRule,
    fields_to_json,
    rules_to_json,
)
from corollary.provenance.render.svg import absence_as_svg, proof_as_html, proof_as_svg
from corollary.provenance.render.text import (
    INDENT,
    align,
    attempt_lines,
    cause_lines,
    cut_lines,
    insertion_lines,
    tree_lines,
)


@dataclass(frozen=True, slots=True, repr=False)
class Proof:
    """Why a tuple holds: each tuple of the proof once, with one rule that derives it.

    Attributes:
        goal: what was asked.
        commit: of the state in which it was asked.
        holds: whether it holds; if not, there are no nodes.
        height: of the proof, 0 for a base tuple; None if the limits were reached before there was
            a proof.
        height_at_least: no proof is lower than this.
        minimal: whether no proof is lower.
        canonical: whether every tuple has its least height and its smallest tree.
        nodes: the first one is the goal's tuple.
        rules: those that nodes name, by number.
        cuts: what was left out.
        others: if the goal has variables, the proofs of its next answers.
        answers: if the goal has variables, how many there are.
        left_out: how many of its tuples are not among the nodes.
        work: that the search for it took; None if none was made.
    """

    goal: str
    commit: int
    holds: bool
    height: int | None = None
    height_at_least: int = 0
    minimal: bool = False
    canonical: bool = False
    nodes: tuple[ProofNode, ...] = ()
    rules: Mapping[int, ProofRule] = field(default_factory=dict)
    cuts: tuple[ProofCut, ...] = ()
    others: tuple["Proof", ...] = ()
    answers: int | None = None
    left_out: int = 0
    work: WorkUsed | None = None

    @property
    def size(self) -> int:
        """The number of its tuples."""
        return len(self.tuples) + self.left_out

    @property
    def tuples(self) -> frozenset[int]:
        """The ids of the tuples that the goal's tuple is derived from, and its own."""
        root = [0] if self.nodes else []
        return frozenset(reachable(root, lambda number: self.nodes[number].premises))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        claims = ("holds", "height", "height_at_least", "minimal", "canonical", "size")
        shown = ("nodes", "rules", "cuts", "work")
        several = () if self.answers is None else ("answers", "others")
        found = fields_to_json(self, ("goal", "commit", *claims, *shown, *several))
        return {**found, "rules": rules_to_json(self.rules.values())}

    def to_text(self, depth: int | None = None) -> str:
        """Return it as text: a line for each tuple and note.

        Args:
            depth: how many levels to unfold; all if it is not given.
        """
        if not self.holds:
            return f"{self.goal} {'does not hold' if self.answers is None else 'has no answer'}\n"
        lines = list(self.lines(depth))
        for each in self.others:
            lines += ["", *each.lines(depth)]
        if self.answers is not None and self.answers > 1 + len(self.others):
            lines += ["", f"{1 + len(self.others)} of {self.answers:,} answers"]
        return "".join(f"{line}\n" for line in lines)

    def lines(self, depth: int | None = None) -> Iterator[str]:
        """Yield the lines of a proof that holds, without those of other answers."""
        yield from align(tree_lines(self.nodes, self.rules, depth=depth))
        yield self.summary
        yield from cut_lines(self.cuts, self.nodes)

    @property
    def summary(self) -> str:
        """A line about all of it: its height, its size, and whether there is a lower one."""
        if self.minimal:
            claim = "no proof is lower"
        elif self.height_at_least:
            claim = f"every proof has height {self.height_at_least} or more"
        else:
            claim = "there may be a lower one"
        if self.nodes[0].kind is ProofKind.SEALED:
            claim = "what is under it may not be seen"
        if self.height is None:
            return f"it holds, but no proof was found within the limits; {claim}"
        return f"height {self.height}, {counted(self.size, 'tuple')}; {claim}"

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        found = self.summary if self.holds else "does not hold"
        return f"<Proof of {self.goal}: {found}>"

    def to_svg(self) -> str:
        """Return a picture of it: the goal on top, base tuples lowest."""
        return proof_as_svg(self.nodes, self.rules, f"why {self.goal}", self.to_text())

    def _repr_html_(self) -> str:
        """Return the picture, and the tree, for notebooks."""
        summary = "" if self.holds else self.to_text()
        every = (self, *self.others) if self.holds else ()
        shown = (
            proof_as_html(each.nodes, each.rules, each.to_svg(), each.summary) for each in every
        )
        return "".join(shown) or f"<pre>{escape(summary)}</pre>"


@dataclass(frozen=True, slots=True, repr=False)
class Absence:
    """Why a tuple does not hold: how near each rule comes to deriving it.

    Attributes:
        goal: what was asked.
        commit: of the state in which it was asked.
        attempts: the nearest ones of each rule, in the order of the text.
        insertions: base changes that would make it true, if they were asked for.
        nodes: what attempts show: missing tuples, conditions, blocking tuples with their proofs.
        rules: those that attempts and nodes name, by number.
        cuts: what was left out.
        work: that the search took; None if none was made.
        covered_by: the node of a tuple that is there instead, with its proof.
        cover: how that one keeps the tuple out, if there is one.
    """

    goal: str
    commit: int
    attempts: tuple[Attempt, ...] = ()
    insertions: InsertionSets | None = None
    nodes: tuple[ProofNode, ...] = ()
    rules: Mapping[int, ProofRule] = field(default_factory=dict)
    cuts: tuple[ProofCut, ...] = ()
    work: WorkUsed | None = None
    covered_by: int | None = None
    cover: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        names = ("covered_by", "attempts", "insertions", "nodes", "rules", "cuts", "work")
        found = {**fields_to_json(self, ("goal", "commit")), "holds": False}
        found |= fields_to_json(self, names)
        return {**found, "rules": rules_to_json(self.rules.values())}

    def to_text(self, depth: int | None = None) -> str:
        """Return it as text: the nearest attempts of each rule, and what would help.

        Args:
            depth: how many levels of the proofs of blocking tuples to unfold; all if not given.
        """
        return "".join(f"{line}\n" for line in self._lines(depth))

    def _lines(self, depth: int | None) -> Iterator[str]:
        yield f"{self.goal} does not hold"
        if self.covered_by is not None:
            yield f"it {self.cover}: {self.nodes[self.covered_by].text} is there"
            tree = tree_lines(self.nodes, self.rules, self.covered_by, depth)
            yield from align((f"{INDENT}{left}", right) for left, right in tree)
        elif not self.attempts:
            yield "no rule has a head that fits"
        yield from align(attempt_lines(self.attempts, self.nodes, self.rules, depth))
        if self.insertions is not None:
            yield from insertion_lines(self.insertions)
        yield from cut_lines(self.cuts, self.nodes)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Absence of {self.goal}: {counted(len(self.attempts), 'attempt')}>"

    def to_svg(self) -> str:
        """Return a picture of it: the attempts of its rules, and what fails in each."""
        shown = self.attempts, self.covered_by, self.nodes, self.rules
        return absence_as_svg(self.goal, *shown, text=self.to_text())

    def _repr_html_(self) -> str:
        """Return the picture and the text, for notebooks."""
        return f"<div>{self.to_svg()}<pre>{escape(self.to_text())}</pre></div>"


@dataclass(frozen=True, slots=True, repr=False)
class ChangeExplanation:
    """Why a commit has added or removed a tuple.

    Attributes:
        goal: what was asked.
        commit: the commit.
        sign: `+` if it has added the tuple, `-` if it has removed it.
        cause: changes of the commit that do it alone, and none of which can be left out.
        smallest: whether all smaller sets were tried.
        before: the absence before the commit, or the proof with what broke marked.
        after: the proof with the cause marked, or the absence after the commit.
        cuts: what was left out.
        work: that the search for the cause took.
    """

    goal: str
    commit: int
    sign: str
    cause: tuple[Cause, ...]
    smallest: bool
    before: Proof | Absence
    after: Proof | Absence
    cuts: tuple[ProofCut, ...] = ()
    work: WorkUsed | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return fields_to_json(self)

    def to_text(self, depth: int | None = None) -> str:
        """Return it as text: the cause, then the states before and after the commit.

        Args:
            depth: how many levels of a proof to unfold; all if it is not given.
        """
        lines = cause_lines(self.goal, self.commit, self.sign, self.cause, smallest=self.smallest)
        parts = [
            "".join(f"{line}\n" for line in lines),
            f"before commit {self.commit}\n{self.before.to_text(depth)}",
            f"after commit {self.commit}\n{self.after.to_text(depth)}",
            "".join(f"{line}\n" for line in cut_lines(self.cuts, ())),
        ]
        return "\n".join(filter(None, parts))

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        changes = counted(len(self.cause), "change")
        return f"<ChangeExplanation of {self.sign}{self.goal} in commit {self.commit}: {changes}>"

    def to_svg(self) -> str:
        """Return a picture of its proof, with what came or went in colour."""
        return self.after.to_svg() if self.sign == "+" else self.before.to_svg()

    def _repr_html_(self) -> str:
        """Return the picture and the text, for notebooks."""
        return f"<div>{self.to_svg()}<pre>{escape(self.to_text())}</pre></div>"
