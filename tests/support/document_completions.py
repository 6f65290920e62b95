"""Random documents with types, judged by `tests/oracles/document_completions.py`.

A document is made from a random tree of a random type: parts of it are taken out, and calls put in.
So most of them can be completed, some only in one way, some in none.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from corollary.documents.document import ActiveDocument
from corollary.documents.errors import ActiveDocumentError
from corollary.documents.view import View
from oracles import document_completions as completions_oracle
from oracles import document_types as typed_oracle
from oracles import documents as oracle
from oracles.document_completions import EMPTY, Instance, Model, Pool, TreeType, Verdict
from oracles.document_text import shown, shown_query, variables
from oracles.document_types import TooLargeError
from oracles.documents import Answers, Pattern, Q, Tree
from support.generators.document_rounds import said
from support.generators.documents import FUNCTIONS, LABELS, Making

NAMES = "ABC"
SIZES = (2, 3, 4)
"""The numbers of trees that streams bring; larger ones are tried if there is a difference."""


class CompletionRound:
    """Documents with random types, and a query for each.

    Args:
        seed: everything random follows from it.
        documents: how many there are.
    """

    def __init__(self, seed: int, documents: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.documents = documents
        self.counts: Counter[str] = Counter()

    def run(self) -> Counter[str]:
        """Compare verdicts, at first and after updates; return what was covered."""
        for _ in range(self.documents):
            try:
                self.judge()
            except TooLargeError:
                self.counts["typed documents too large"] += 1
        return self.counts

    def judge(self) -> None:
        type_ = self.type()
        while not Pool(type_, LABELS, 2, 200).trees("R"):  # one may need itself, for ever
            type_ = self.type()
        pattern = self.query(type_)
        instance = self.instance(type_)
        if oracle.sure(pattern, instance.tree) and self.random.random() < 0.7:
            return
        where = f"seed {self.seed}, {described(instance)}, {shown_query(pattern)}"
        number = self.number(instance, pattern)
        document = opened(instance)
        if document is None:
            assert number == 0, f"refused, though there are completions: {where}"
            self.counts["typed documents refused"] += 1
            return
        if not number and instance.constraints:  # not found out
            self.counts["constrained documents without completions"] += 1
            return
        assert number, f"accepted without completions: {where}"
        view = document.view(shown_query(pattern))
        self.start, self.log = instance.tree, list[tuple[str, Tree]]()
        self.compare(view, instance, pattern, where)
        for _ in range(3):
            instance = self.updated(document, instance, pattern, where)
            if instance.constraints and not self.number(instance, pattern):
                return
            self.compare(view, instance, pattern, f"{where}, then {described(instance)}")

    # --- what is random --------------------------------------------------------------------------

    def type(self) -> TreeType:
        """Return a random type; each refers to those after it, and some to themselves.

        Some are those of a DTD: one label for each type.
        """
        rules = {"R": (("r", self.model(NAMES, 2)),)}
        is_local = self.random.random() < 0.3
        for at, name in enumerate(NAMES):
            rest = NAMES[at + (self.random.random() < 0.85) :]
            labels = self.random.sample(LABELS, self.random.choice((1, 1, 2)))
            labels = ["*"] if self.random.random() < 0.15 else labels
            labels = [LABELS[at]] if is_local else labels
            rules[name] = tuple(
                (label, self.model(rest, 1) if rest and self.random.random() < 0.5 else EMPTY)
                for label in labels
            )
        return TreeType("R", rules)

    def query(self, type_: TreeType) -> Pattern:
        """Return a query: mostly a part of a tree of the type, sometimes any one."""
        if self.random.random() < 0.2:
            return Making(self.random).query()
        trees = Pool(type_, [*LABELS, "z"], 2, 200).trees("R")
        self.left, self.names = 3, list(self.random.choice(("", "", "x", "xy", "xx")))
        root = self.part(self.random.choice(trees))
        outputs = list(dict.fromkeys(variables(root)))
        return Pattern(root, outputs if self.random.random() < 0.8 else [])

    def part(self, tree: Tree) -> Q:
        """Return a pattern that matches a tree."""
        node = Q(tree[0])
        below = self.random.sample(tree[1], min(len(tree[1]), self.random.choice((0, 1, 1, 2))))
        for each in below:
            if self.left:
                self.left -= 1
                axis = "//" if self.random.random() < 0.2 else "/"
                if axis == "//" and each[1]:
                    each = self.random.choice(each[1])
                child = self.part(each)
                if self.random.random() < 0.25:
                    child.label = "*"
                if self.names and self.random.random() < 0.6:
                    child.variable, child.label = self.names.pop(), "*"
                node.edges.append((axis, child))
        return node

    def model(self, names: str, depth: int) -> Model:
        kind = self.random.choice(("type", "all", "all", "one", "repeat")) if depth else "type"
        if kind == "type":
            found: Model = ("type", self.random.choice(names))
            return found if self.random.random() < 0.5 else ("repeat", found, "?")
        if kind == "repeat":
            return ("repeat", self.model(names, depth - 1), self.random.choice("??*+"))
        return (kind, tuple(self.model(names, depth - 1) for _ in range(2)))

    def instance(self, type_: TreeType) -> Instance:
        pool = Pool(type_, [*LABELS, "z"], 2, 200)
        tree = self.random.choice(pool.trees("R"))
        tree = self.opened_tree(tree, is_root=True)
        once = frozenset(each for each in FUNCTIONS if self.random.random() < 0.2)
        brought, roots = {}, {}
        for name in FUNCTIONS:
            if self.random.random() < 0.2:
                brought[name] = frozenset(self.random.sample(NAMES, self.random.choice((1, 2))))
            elif self.random.random() < 0.2:
                roots[name] = frozenset(self.random.sample(LABELS, self.random.choice((1, 2))))
        return Instance(tree, type_, frozenset(FUNCTIONS), once, brought, roots)

    def opened_tree(self, tree: Tree, *, is_root: bool = False) -> Tree:
        """Return a tree with some parts taken out, and calls here and there."""
        below = [self.opened_tree(each) for each in tree[1] if self.random.random() < 0.7]
        if is_root or self.random.random() < 0.3:
            number = self.random.choice((0, 1, 1, 1, 2) if is_root else (1, 1, 1, 2))
            below += [(f"!{self.random.choice(FUNCTIONS)}", []) for _ in range(number)]
        label = tree[0] if is_root or self.random.random() < 0.95 else self.random.choice(LABELS)
        return label, below

    def updated(
        self, document: ActiveDocument, instance: Instance, pattern: Pattern, where: str
    ) -> Instance:
        """Make a random update, or an end; it is refused iff nothing could complete it."""
        if self.log and self.random.random() < 0.4:
            return self.retracted(document, instance, pattern, where)
        called = sorted(instance.live & completions_oracle.calls_in(instance.tree))
        if not called:
            return instance
        name = self.random.choice(called)
        pool = Pool(instance.type, [*LABELS, "z"], 2, 200)
        trees = [tree for each in NAMES for tree in pool.trees(each)]
        trees = [each for each in trees if instance.may_bring(name, each)]
        is_end = not trees or self.random.random() < 0.3
        tree = None if is_end else self.random.choice(trees)
        after = instance
        if tree is not None:
            after = replace(instance, tree=oracle.added(instance.tree, name, [tree]))
        if is_end or name in instance.once:
            after = replace(after, live=after.live - {name})
        number = self.number(after, pattern)
        try:
            document.apply([] if tree is None else [(name, shown(tree))], [name] if is_end else [])
        except ActiveDocumentError:
            assert number == 0, f"{name} refused: {where}, {described(after)}"
            self.counts["typed updates refused"] += 1
            return instance
        assert number or after.constraints, f"{name} accepted: {where}, {described(after)}"
        self.counts["typed updates"] += 1
        self.log += [] if tree is None else [(name, tree)]
        return after

    def retracted(
        self, document: ActiveDocument, instance: Instance, pattern: Pattern, where: str
    ) -> Instance:
        """Retract an update; it is refused iff nothing could complete what is left."""
        name, tree = self.log[-1]
        left = self.start
        for each in self.log[:-1]:
            left = oracle.added(left, each[0], [each[1]])
        after = replace(instance, tree=left)
        number = self.number(after, pattern)
        try:
            document.retract(name, shown(tree))
        except ActiveDocumentError:
            assert number == 0, f"{name} not retracted: {where}, {described(after)}"
            self.counts["typed retractions refused"] += 1
            return instance
        assert number or after.constraints, f"{name} retracted: {where}, {described(after)}"
        self.counts["typed retractions"] += 1
        self.log.pop()
        return after

    # --- the comparison --------------------------------------------------------------------------

    def number(self, instance: Instance, pattern: Pattern) -> int:
        """Return whether there is a completion; more trees are tried if there is none."""
        labels = completions_oracle.mentioned(instance, pattern)
        for size in SIZES:
            if any(True for _ in completions_oracle.completions(instance, labels, size)):
                return 1
        return 0

    def compare(self, view: View, instance: Instance, pattern: Pattern, where: str) -> None:
        found = (view.value, said(view.sure), said(view.possible()), said(view.minimal))
        difference = ""
        for size in SIZES:
            verdict = completions_oracle.verdict(instance, pattern, size)
            difference = self.difference(view, verdict, found)
            if not difference:
                break
        assert not difference, f"{where}: {difference}"
        self.counts["typed instances"] += 1
        self.counts["typed instances exact"] += view.is_exact
        plain = replace(instance, constraints=())
        if instance.constraints and view.is_exact:
            other = completions_oracle.verdict(plain, pattern, SIZES[0])
            self.counts["narrowed by constraints"] += len(other.possible) > len(verdict.possible)
            self.counts["sure by constraints"] += not other.is_true and verdict.is_true
        self.counts[f"typed value {view.value}"] += 1
        held = oracle.sure(pattern, instance.tree)
        self.counts["sure by type"] += found[0] == 1 and not held
        bound = view.maintained.possible.get(view.question.nodes.root, set())
        self.counts["narrowed by document types"] += len(bound) > len(found[1] | found[2])
        self.compare_useful(view, instance, pattern, where)

    def compare_useful(self, view: View, instance: Instance, pattern: Pattern, where: str) -> None:
        """Compare which functions are useful: exactly, if the package says so."""
        found = view.usefulness()
        for size in SIZES:
            sure = completions_oracle.verdict(instance, pattern, size).sure
            useful = completions_oracle.useful(instance, pattern, size, sure)
            if found.functions == useful or (not found.is_exact and found.functions >= useful):
                break
        else:
            raise AssertionError(f"{where}: useful {found}, not {useful}")
        self.counts["useful exact in typed documents"] += found.is_exact
        self.counts["useful in typed documents"] += len(found.functions)
        self.counts["useless in typed documents"] += len(instance.live - found.functions)

    def difference(
        self, view: View, verdict: Verdict, found: tuple[float, Answers, Answers, Answers]
    ) -> str:
        """Return how a view differs from the oracle; nothing if it does not."""
        value, sure, possible, minimal = found
        ranges = {
            answer: totals
            for answer, totals in verdict.possible.items()
            if answer in verdict.sure or not totals <= verdict.sure
        }
        expected = 1 if verdict.is_true else 0.5 if ranges else 0
        if not sure <= verdict.sure:
            return f"sure {sure}, not {verdict.sure}"
        if not possible | sure >= set(ranges) - verdict.sure:
            return f"possible {possible}, not {set(ranges) - verdict.sure}"
        if (value == 1 and expected != 1) or (value == 0 and expected != 0):
            return f"value {value}, not {expected}"
        if not view.is_exact:
            return ""
        if (value, sure) != (expected, verdict.sure):
            return f"value {value}, sure {sure}; not {expected}, {verdict.sure}"
        if possible != set(ranges) - verdict.sure:
            return f"possible {possible}, not {set(ranges) - verdict.sure}"
        if (
            view.question.document_type.grammar.constraints
        ):  # an unknown label may be one that constraints exclude
            return ""
        every = {**ranges, **{each: {each} for each in verdict.sure}}
        least = typed_oracle.minimal(every)
        return "" if minimal == least else f"minimal {minimal}, not {least}"


class ConstraintRound(CompletionRound):
    """Documents with two kinds of nodes that have values, and with keys and inclusions."""

    def type(self) -> TreeType:
        below: list[Model] = [("type", "C"), *(("repeat", ("type", "C"), each) for each in "?*")]
        signs = [("repeat", ("type", name), self.random.choice("?***")) for name in "AB"]
        return TreeType(
            "R",
            {
                "R": (("r", ("all", tuple(signs))),),
                "A": (("a", self.random.choice(below)),),
                "B": (("b", self.random.choice(below)),),
                "C": (("c", EMPTY), ("d", EMPTY)),
            },
        )

    def query(self, type_: TreeType) -> Pattern:
        """Return a query for one or two nodes with values."""
        joined = self.random.random() < 0.3
        root = Q("r")
        for name in self.random.choice(("x", "xy", "xy")):
            value = Q(self.random.choice("cd"))
            if self.random.random() < 0.4:
                value = Q("*", variable="x" if joined else name)
            elif self.random.random() < 0.2:
                value = Q("*")
            root.edges.append(("/", Q(self.random.choice("ab"), edges=[("/", value)])))
        outputs = list(dict.fromkeys(variables(root)))
        return Pattern(root, outputs if self.random.random() < 0.8 else [])

    def instance(self, type_: TreeType) -> Instance:
        """Return a document of a few nodes, with calls below the root, and in some of them."""
        nodes: list[Tree] = []
        for _ in range(self.random.choice((0, 1, 1, 2, 2, 3))):
            below: list[Tree] = [(each, []) for each in self.random.choice(("", "c", "d", "c"))]
            if self.random.random() < 0.3:
                below.append((f"!{self.random.choice(FUNCTIONS)}", []))
            nodes.append((self.random.choice("ab"), below))
        calls: list[Tree] = [(f"!{each}", []) for each in self.random.choice(("f", "f", "fg", ""))]
        brought = {
            name: frozenset(self.random.choice(("A", "B", "AB", "ABC", "C"))) for name in FUNCTIONS
        }
        once = frozenset(each for each in FUNCTIONS if self.random.random() < 0.2)
        constraints = tuple(self.constraint() for _ in range(self.random.choice((1, 1, 2))))
        tree = ("r", [*nodes, *calls])
        return Instance(tree, type_, frozenset(FUNCTIONS), once, brought, {}, constraints)

    def constraint(self) -> tuple[str, Any, Any]:
        one, two = self.random.sample("ab", 2)
        if self.random.random() < 0.5:
            return "in", ["r", one], ["r", two]
        return ("key", ["r", one], [[]]) if self.random.random() < 0.8 else ("key", ["r"], [[one]])


def opened(instance: Instance) -> ActiveDocument | None:
    """Return a document of the package; None if it is refused."""
    rules = [
        f"{name} = {' | '.join(f'{label}[{model_text(model)}]' for label, model in productions)}"
        for name, productions in instance.type.rules.items()
    ]
    types: dict[str, str | frozenset[str]] = {
        name: "\n".join((" | ".join(sorted(kinds)), *rules))
        for name, kinds in instance.brought.items()
    }
    types.update(instance.roots)
    constraints = [constraint_text(each) for each in instance.constraints]
    is_dtd = instance.type.is_local and not constraints
    text = dtd_text(instance.type) if is_dtd else "\n".join((*rules, *constraints))
    try:
        return ActiveDocument.from_terms(
            shown(instance.tree),
            document_type=text,
            types=types,
            once=instance.once,
            unknown="create",
        )
    except ActiveDocumentError:
        return None


def constraint_text(constraint: tuple[str, Any, Any]) -> str:
    kind, path, other = constraint
    if kind == "in":
        return f"{'/'.join(path)} in {'/'.join(other)}"
    return f"key {'/'.join(path)} ({', '.join('/'.join(each) or '.' for each in other)})"


def dtd_text(type_: TreeType) -> str:
    """Return a type as a DTD: its names are the labels."""
    labels = {name: productions[0][0] for name, productions in type_.rules.items()}
    lines = []
    for name, ((_, model),) in type_.rules.items():
        text = "EMPTY"
        if model != EMPTY:
            text = f"({''.join(labels.get(each, each) for each in model_text(model))})"
        lines.append(f"<!ELEMENT {labels[name]} {text}>")
    return "\n".join(lines)


def model_text(model: Model) -> str:
    kind, *parts = model
    if kind == "type":
        return str(parts[0])
    if kind == "repeat":
        return f"({model_text(parts[0])}){parts[1]}"
    sign = ", " if kind == "all" else " | "
    return sign.join(f"({model_text(each)})" for each in parts[0])


def described(instance: Instance) -> str:
    rules = "; ".join(
        f"{name} = {' | '.join(f'{label}[{model_text(model)}]' for label, model in productions)}"
        for name, productions in instance.type.rules.items()
    )
    kinds = ", ".join(
        f"{name} {sorted(each)}"
        for name, each in (*instance.brought.items(), *instance.roots.items())
    )
    once = "".join(sorted(instance.once))
    live = "".join(sorted(instance.live))
    rules = "; ".join((rules, *map(constraint_text, instance.constraints)))
    return f"{shown(instance.tree)} of {rules}; live {live}, once {once}, types {kinds}"
