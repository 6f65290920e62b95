"""Answers as text: a proof as a tree of lines, what a tuple lacks, what a commit has done.

```text
link("a", "d")               rule 2  network.dl:9
+- link("a", "c")            rule 1  network.dl:8
|  +- direct_link("a", "c")  direct_link.facts:2, commit 1
+- direct_link("c", "d")     by hand, commit 3
height 2, 4 tuples; no proof is lower
```

A tuple that occurs several times is unfolded where it occurs first. The same answer always gives
the same text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from corollary.console import counted
from corollary.core.printer import print_relation, print_value
from corollary.data_class import dataclass
from corollary.provenance.nodes import (
    Attempt,
    BaseChange,
    Cause,
    CutReason,
    FactOrigin,
    InsertionSets,
    ProofCut,
    ProofKind,
    ProofNode,
    ProofRule,
)

LEFT_MAX_CHARACTERS = 72
"""Longer lines of a tree do not push the column beside them further to the right."""

INDENT = "   "

Line = tuple[str, str]
"""A line of a tree, and what is said beside it."""


# --- proofs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Visit:
    """A node that is to be printed.

    Attributes:
        lead: what its line begins with.
        below: what the lines below it begin with.
        level: how many nodes are above it.
    """

    node: int
    lead: str = ""
    below: str = ""
    level: int = 0


def tree_lines(
    nodes: Sequence[ProofNode],
    rules: Mapping[int, ProofRule],
    root: int = 0,
    depth: int | None = None,
    shown: set[int] | None = None,
) -> Iterator[Line]:
    """Yield a node and what is below it.

    Args:
        nodes: all nodes.
        rules: by number.
        root: the id of the first node.
        depth: how many levels to unfold; all if it is not given.
        shown: the ids of the nodes that were unfolded before; those unfolded now are added.
    """
    shown = set() if shown is None else shown
    work: list[_Visit | Line] = [_Visit(root)]
    while work:
        visit = work.pop()
        if not isinstance(visit, _Visit):
            yield visit
            continue
        node = nodes[visit.node]
        below: list[int | Line] = [*node.premises, *_more_rows(node), *node.notes]
        below += [(words, "") for attempt in node.attempts for words in attempt_words(attempt)]
        beside = [beside_of(node, rules)]
        is_folded = depth is not None and visit.level >= depth
        if below and (visit.node in shown or is_folded):
            beside.append("…" if is_folded and visit.node not in shown else "as above")
            below = []
        yield f"{visit.lead}{label_of(node)}", ", ".join(filter(None, beside))
        shown.add(visit.node)
        for place in reversed(range(len(below))):
            each = below[place]
            lead = f"{visit.below}+- "
            if isinstance(each, int):
                bar = INDENT if place == len(below) - 1 else "|  "
                work.append(_Visit(each, lead, visit.below + bar, visit.level + 1))
            else:
                work.append((f"{lead}{each[0]}", each[1]))


def label_of(node: ProofNode) -> str:
    """Return the words of a node: a tuple, a literal or a condition; a change with its sign."""
    copies = f" × {node.copies}" if node.copies is not None and node.copies > 1 else ""
    return f"{node.sign}{node.text}{copies}"


def beside_of(node: ProofNode, rules: Mapping[int, ProofRule]) -> str:
    """Return what is said beside a node: the rule that derives it, or where it is from."""
    match node.kind:
        case ProofKind.DERIVED | ProofKind.CHANGE:
            if node.rule is None:
                return origins_text(node.sources)
            return rule_place(rules[node.rule], node.alternative)
        case ProofKind.BASE:
            return origins_text(node.sources)
        case ProofKind.CHAIN:
            return f"connected by {counted(len(node.premises), 'tuple')}"
        case ProofKind.AGGREGATE:
            if node.aggregate is None:
                return "rows not looked at"
            return f"{node.aggregate.operator} of {counted(node.aggregate.rows, 'row')}"
        case ProofKind.ABSENT | ProofKind.COMPUTED | ProofKind.SEALED:
            return str(node.kind)
        case _:
            assert_never(node.kind)


def rule_place(rule: ProofRule, alternative: int | None = None) -> str:
    """Return the number and the place of a rule.

    >>> rule_place(ProofRule(2, "p(x) :- q(x).", "p.dl", 9))
    'rule 2  p.dl:9'
    """
    number = f"rule {rule.number}"
    if alternative is not None:
        number = f"{number}, alternative {alternative}"
    return f"{number}  {place_text(rule.file, rule.line)}".rstrip()


def place_text(file: str | None, line: int | None) -> str:
    """Return a place in a file; nothing if there is none."""
    if file is None:
        return ""
    return file if line is None else f"{file}:{line}"


def origins_text(origins: Iterable[FactOrigin]) -> str:
    """Return who asserts a base tuple.

    >>> origins_text([FactOrigin("text", "p.dl", 3, 1), FactOrigin("manual", commit="before 5")])
    'p.dl:3, commit 1; by hand, before commit 5'
    """
    return "; ".join(_origin_text(each) for each in origins)


def _origin_text(origin: FactOrigin) -> str:
    words = {"manual": "by hand", "text": "the program", "source": "a source"}
    parts = [place_text(origin.file, origin.line) or words.get(origin.part, origin.part)]
    if isinstance(origin.commit, int):
        parts.append(f"commit {origin.commit}")
    elif origin.commit is not None:
        parts.append(f"before commit {origin.commit.removeprefix('before ')}")
    return ", ".join(parts)


def _more_rows(node: ProofNode) -> Iterator[Line]:
    """Yield a line about the rows of a group that are not shown."""
    group = node.aggregate
    if group is None:
        return
    more = group.rows - len(node.premises)
    if more > 0:
        total = ""
        if group.rest is not None:
            total = f", together {print_value(group.rest, group.type)}"
        yield f"{counted(more, 'more row')}{total}", ""


# --- absences ------------------------------------------------------------------------------------


def attempt_words(attempt: Attempt) -> Iterator[str]:
    """Yield what fails in an attempt, a line for each literal."""
    known = ", ".join(
        f"{name} = {print_value(value, type_)}" for name, (value, type_) in attempt.bindings.items()
    )
    where = f" with {known}" if known else ""
    for place, each in enumerate(attempt.failing):
        rule = f"rule {attempt.rule}{where}: " if place == 0 else "and "
        literal = each.literal.removeprefix("!") if each.kind == "blocking" else each.literal
        yield f"{rule}{literal} {FAILURES.get(each.kind, each.kind)}"


FAILURES = {"missing": "is missing", "blocking": "is there", "condition": "is false"}
"""How a literal fails, in words."""


def attempt_lines(
    attempts: Sequence[Attempt],
    nodes: Sequence[ProofNode],
    rules: Mapping[int, ProofRule],
    depth: int | None = None,
) -> Iterator[Line]:
    """Yield the attempts of each rule, and the proofs of what is in their way."""
    last, shown = None, set[int]()
    for attempt in attempts:
        if attempt.rule != last:
            last = attempt.rule
            rule = rules[attempt.rule]
            yield rule.text, rule_place(rule)
            yield from _count_lines(attempts, attempt)
        for each, line in zip(attempt.failing, attempt_words(attempt), strict=True):
            yield f"{INDENT}{line}", ""
            node = None if each.node is None else nodes[each.node]
            if node is not None and node.kind not in (ProofKind.ABSENT, ProofKind.COMPUTED):
                tree = tree_lines(nodes, rules, node.id, depth, shown)
                yield from ((f"{INDENT * 2}{left}", right) for left, right in tree)


def _count_lines(attempts: Sequence[Attempt], first: Attempt) -> Iterator[Line]:
    shown = sum(each.rule == first.rule for each in attempts)
    fails = "fails" if first.distance == 1 else "fail"
    of = f"{shown} of {first.count:,}" if shown < first.count else f"{first.count:,}"
    nearest = "attempt" if first.count == 1 else "attempts"
    yield f"{INDENT}{of} {nearest} in which {counted(first.distance, 'literal')} {fails}", ""


def insertion_lines(insertions: InsertionSets) -> Iterator[str]:
    """Yield the sets of base changes that would make a tuple true."""
    if not insertions.sets:
        yield "no set of insertions was found" + (
            "; there is none of that size" if insertions.complete else ""
        )
        return
    claim = "all of the smallest ones" if insertions.complete else "there may be others"
    many = "this set" if len(insertions.sets) == 1 else "one of these sets"
    yield f"it would hold after {many} of changes ({claim})"
    for each in insertions.sets:
        yield INDENT + ", ".join(change_text(change) for change in each)


def change_text(change: BaseChange) -> str:
    """Return a change of a base tuple, or of a rule, with its sign."""
    if change.is_rule:
        return f"{change.op}{change.relation}"
    values = ", ".join(map(print_value, change.row, change.types))
    return f"{change.op}{print_relation(change.relation)}({values})"


# --- causes --------------------------------------------------------------------------------------


def cause_lines(
    goal: str, commit: int, sign: str, cause: Sequence[Cause], *, smallest: bool
) -> Iterator[str]:
    """Yield which changes of a commit have added or removed a tuple."""
    done = "added" if sign == "+" else "removed"
    yield f"commit {commit} {done} {goal} because of"
    yield from align(
        (f"{INDENT}{change_text(each.change)}", "necessary" if each.necessary else "not necessary")
        for each in cause
    )
    yield (
        "no smaller set of its changes would have done it"
        if smallest
        else "none of them can be left out; a smaller set of other changes may do it too"
    )


# --- what was left out ---------------------------------------------------------------------------


def cut_lines(cuts: Iterable[ProofCut], nodes: Sequence[ProofNode]) -> Iterator[str]:
    """Yield a line for each thing that was left out."""
    for cut in cuts:
        place = "" if cut.node is None else f" at {label_of(nodes[cut.node])}"
        number = ""
        if cut.shown is not None:
            total = "" if cut.total is None else f" of {cut.total:,}"
            number = f", {cut.shown:,}{total} shown"
        yield f"cut: {CUT_WORDS[cut.reason]}{place}{number}"


CUT_WORDS = {
    CutReason.NODES: "the limit of nodes was reached",
    CutReason.WORK: "the limit of work was reached",
    CutReason.SECONDS: "the time was over",
    CutReason.INSTANCES: "not all instances were looked at",
    CutReason.ROWS: "not all rows are shown",
    CutReason.HISTORY: "history is not kept that far back",
    CutReason.DRY_RUNS: "not all changes were tried",
}
"""Reasons for leaving something out, in words."""


# --- lines ---------------------------------------------------------------------------------------


def align(lines: Iterable[Line]) -> Iterator[str]:
    """Yield lines with what is said beside them in one column."""
    every = list(lines)
    lengths = [len(left) for left, right in every if right and len(left) <= LEFT_MAX_CHARACTERS]
    width = max(lengths, default=0)
    for left, right in every:
        yield f"{left.ljust(width)}  {right}" if right else left
