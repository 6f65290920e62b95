"""Proofs as lines of a tree: flat, each with its level, so that a proof may be as deep as it likes.

Works on the JSON of `why`, `why-not`, `why-added` and `why-removed`. A tuple occurs once with what
is under it; elsewhere it refers to that place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from corollary.data_class import dataclass
from corollary.web.rule_text import arguments_of, body_of, name_of
from corollary.web.wording import number

OPEN_LEVELS = 3
"""The number of levels that are unfolded at first."""

DEEPEST_INDENT = 16
"""Deeper lines are not indented any further."""


@dataclass(frozen=True, slots=True)
class RulePart:
    """A part of a rule's text; `child` is the node that a literal stands for, if any."""

    text: str
    child: int | None = None


@dataclass(frozen=True, slots=True)
class TreeLine:
    """A line of the tree.

    Attributes:
        kind: of the node (`derived`, `base`, `absent`, …), or `attempt`.
        text: the tuple, the condition, the values of an attempt.
        id: of its element.
        level: 1 is the root.
        goal: the tuple as one asks for it; empty if it is none.
        relation: of the tuple.
        sign: `+` and `-` of what came and went.
        beside: where a base tuple is from, what a group has.
        commit: the last commit that added it.
        rule: the number of the rule that derives it.
        rule_parts: the text of that rule.
        rule_place: the file and line of that rule.
        has_children: whether there is something to unfold.
        is_open: whether it is unfolded.
        is_hidden: whether something above it is not unfolded.
        repeats: the line that has what is under it.
        node: the number of its node.
    """

    kind: str
    text: str
    id: str = ""
    level: int = 1
    goal: str = ""
    relation: str = ""
    sign: str = ""
    beside: str = ""
    commit: int | None = None
    rule: int | None = None
    rule_parts: tuple[RulePart, ...] = ()
    rule_place: str = ""
    has_children: bool = False
    is_open: bool = False
    is_hidden: bool = False
    repeats: str = ""
    node: int | None = None

    @property
    def is_ground(self) -> bool:
        """Whether all values of the tuple are known: what nothing binds is written `_`."""
        _, _, values = self.goal.partition("(")
        return bool(values) and "_" not in arguments_of(values.removesuffix(")"))

    @property
    def indent(self) -> int:
        """How far it is indented."""
        return min(self.level - 1, DEEPEST_INDENT)


class ProofTree:
    """The lines of an answer.

    Args:
        answer: the JSON of a proof, or of an absence.
        prefix: of the ids of its lines; another one for each tree of a page.
    """

    def __init__(self, answer: Mapping[str, Any], prefix: str = "n") -> None:
        self._answer = answer
        self._nodes: Sequence[Mapping[str, Any]] = answer["nodes"]
        self._rules: Mapping[str, Mapping[str, Any]] = answer["rules"]
        self._prefix = prefix
        self._shown: dict[int, str] = {}
        self._count = 0

    def lines(self) -> list[TreeLine]:
        """Return all lines, in their order."""
        if self._answer["holds"]:
            return list(self._walk([(0, 1, False)])) if self._nodes else []
        return list(self._absence())

    def _next_id(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def _walk(self, start: Sequence[tuple[Any, int, bool]]) -> Iterator[TreeLine]:
        """Yield lines from a stack of nodes and attempts, each with its level."""
        stack = list(reversed(start))
        while stack:
            item, level, is_hidden = stack.pop()
            line_id = self._next_id()
            if isinstance(item, Mapping):
                line = self._attempt(item)
                children: list[Any] = [
                    each["node"] for each in item["failing"] if each["node"] is not None
                ]
            else:
                node = self._nodes[item]
                line = self._node(node)
                children = [*node["premises"], *node["notes"], *node.get("attempts", ())]
                if children and item in self._shown:
                    line, children = replace(line, repeats=self._shown[item]), []
                self._shown.setdefault(item, line_id)
            is_open = level < OPEN_LEVELS and bool(children)
            yield replace(
                line,
                id=line_id,
                level=level,
                has_children=bool(children),
                is_open=is_open,
                is_hidden=is_hidden,
            )
            is_hidden = is_hidden or not is_open
            stack += [(child, level + 1, is_hidden) for child in reversed(children)]

    def _absence(self) -> Iterator[TreeLine]:
        attempts = self._answer["attempts"]
        goal = self._answer["goal"]
        yield TreeLine(
            "absent",
            goal,
            id=self._next_id(),
            goal=goal,
            relation=name_of(goal),
            has_children=bool(attempts),
            is_open=True,
        )
        for rule, alike in groupby(attempts, key=lambda each: each["rule"]):
            shown = list(alike)
            for at, line in enumerate(self._walk([(each, 2, False) for each in shown])):
                is_repeated = line.kind == "attempt" and line.rule == rule and at > 0
                yield replace(line, rule_parts=()) if is_repeated else line
            more = shown[0]["count"] - len(shown)
            if more > 0:
                text = f"rule {rule} with other values: {number(more)} more alike"
                yield TreeLine("more", text, id=self._next_id(), level=2)

    def _attempt(self, attempt: Mapping[str, Any]) -> TreeLine:
        bindings = attempt["bindings"].items()
        values = ", ".join(f"{name} = {_shown(value)}" for name, value in bindings)
        hidden = [each["literal"] for each in attempt["failing"] if each["node"] is None]
        beside = [f"fails: {', '.join(hidden)}"] if hidden else []
        rule = attempt["rule"]
        return TreeLine(
            "attempt",
            f"with {values}" if values else "",
            beside="; ".join(beside),
            rule=rule,
            rule_parts=self._rule_parts(rule, ()),
            rule_place=self._place(rule),
        )

    def _node(self, node: Mapping[str, Any]) -> TreeLine:
        is_tuple = bool(node["relation"]) and node["kind"] != "aggregate"
        rule = node["rule"]
        commits = [each["commit"] for each in node["sources"] if isinstance(each["commit"], int)]
        return TreeLine(
            node["kind"],
            node["text"],
            goal=node["text"].lstrip("!+-") if is_tuple else "",
            relation=node["relation"],
            sign=node.get("sign", ""),
            beside=_beside(node),
            commit=max(commits, default=None),
            rule=rule,
            rule_parts=self._rule_parts(rule, (*node["premises"], *node["notes"])),
            rule_place=self._place(rule),
            node=node["id"],
        )

    def _place(self, rule: int | None) -> str:
        found = self._rules.get(str(rule), {})
        if not found.get("file"):
            return ""
        return f"{found['file'].rpartition('/')[2]}:{found['line']}"

    def _rule_parts(self, rule: int | None, below: Sequence[int]) -> tuple[RulePart, ...]:
        """Return a rule's text; each literal names the node that stands for it."""
        found = self._rules.get(str(rule))
        if found is None:
            return ()
        head, body = body_of(found["text"])
        left = list(below)

        def child_of(literal: str) -> int | None:
            name, is_negated = name_of(literal), literal.startswith("!")
            for each in left:
                node = self._nodes[each]
                is_note = node["kind"] in {"computed", "aggregate"}
                fits = is_note if not name else node["relation"] == name
                if fits and (node["kind"] == "absent") == is_negated:
                    left.remove(each)
                    return each
            return None

        parts = [RulePart(text, child_of(text) if is_lit else None) for text, is_lit in body]
        return (RulePart(head), *parts)


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else "null" if value is None else str(value)


def _beside(node: Mapping[str, Any]) -> str:
    """Return what stands beside a node: where it is from, of a group its rows."""
    aggregate = node.get("aggregate")
    if aggregate is not None:
        count = aggregate["rows"]
        rows = f"{aggregate['operator']} of {number(count)} row{'s' * (count != 1)}"
        rest = aggregate["rest"]
        return rows if rest is None else f"{rows}, the rest {rest}"
    found = []
    for each in node["sources"]:
        file, line = each["file"], each["line"]
        place = {"manual": "by hand", "text": file or "the program"}.get(each["part"], file or "")
        if file and line is not None:
            place = f"{file.rpartition('/')[2]}:{line}"
        found.append(place)
    copies = node.get("copies") or 1
    if copies > 1:
        found.append(f"{number(copies)} copies")
    if node["kind"] == "sealed":
        found.append("you may not see more of it")
    return ", ".join(filter(None, found))
