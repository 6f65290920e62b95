"""Compiles a query to rules: PossibleSat, corrected, and what is built on it.

Reference: Abiteboul, Bourhis, Marinoiu 2007, Algorithms 1–3; the printed ones have errors, which
are corrected here.

For a query node p with branches c_1 … c_k:

    possible, "the value is at least 1/2"            sure, "the value is 1"
    hat_p(m)    :- reach_p(m), L_p(m).
    g_p_0(n, x) :- hat_p(n), lab(n, x).
    above_ci(n) :- g_p_{i-1}(n, …).
    reach_ci(m) :- above_ci(n), par(n, m).
    reach_ci(m) :- reach_ci(n), par(n, m).      (//)
    pos_ci(m, brought) :- reach_ci(m), call(m, f), live(f, k), can(k, ci).
    in_ci(n, …) :- pos_ci(m, …), par(n, m).          sin_ci(n, …) :- sure_ci(m, …), par(n, m).
    in_ci(n, …) :- in_ci(m, …), par(n, m).      (//) sin_ci(n, …) :- sin_ci(m, …), par(n, m).
    g_p_i(n, …) :- g_p_{i-1}(n, …), in_ci(n, …).     s_p_i(n, …) :- s_p_{i-1}(n, …), sin_ci(n, …).
    pos_p(n, …) :- g_p_k(n, …).                      sure_p(n, …) :- s_p_k(n, …).

    relevant, what an answer that is not sure can still be made of
    rel_0(n, …)  :- pos_0(n, …), !sure(n, …).        with a key: !answered(n, key) instead
    answered(n, key) :- sure(n, …).
    want_c(n, …) :- rel_p(n, …), in_c(n, …).         !sin_c(n) besides, if c has no columns
    want_c(m, …) :- want_c(n, …), par(n, m), in_c(m, …).   (//)
    rel_c(m, …)  :- want_c(n, …), par(n, m), pos_c(m, …).
    candidate(f) :- rel_c(m, …), call(m, f).

    with comparisons, instead of pos_0 and sure_0 above, for each set of unknown classes
    may_0(n, …)  :- pos_0(n, …), num(x, v), …, what is left of the comparisons.
    must_0(n, …) :- sure_0(n, …), num(x, v), …, the comparisons.

| symbol                | name here                                                              |
|-----------------------|------------------------------------------------------------------------|
| I                     | the base relations `par`, `root`, `lab`, `data`, `scalar`, `call`      |
| end(!f)               | `live(f, k)` is deleted                                                |
| can(f, c)             | `can(k, c)`: k is what kind of function f is, by its type              |
| the number of a label | `num(a, v)`, for those that spell one                                  |
| when a node came      | `arrived(n, a)`; the time that it is, `clock(n, t)`, for n a root      |
| x ⋛ a·t + b           | `timely(n, c, x)`: the numbers x for which it holds by the clock       |
| the dots              | the columns of joins and outputs, one for each class                   |
| compat                | three rules for each class that two sides share: x = x, ? = x, x = ?   |
| p-tilde, relevant     | `rel`, `want`                                                          |
| reported              | answers that stay although the nodes they came from are collected      |
| a key on answers      | `answered`: keys for which no further answer comes; none of them has ? |

There is no `anc`: it has as many tuples as all paths together are long. Each rule has one `par`, so
a Boolean query costs O(|I| |q|). The three programs are positive but for `rel`, which is above the
others; so the database maintains them like any rules.

A key is not the paper's: it promises that no two answers agree in some outputs. A match that is yet
to come and has the key of a sure answer would be that answer again, or break the promise: so it is
not relevant. A key that is not known yet (?) may still become any, and stays.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import product
from typing import assert_never

from corollary.core import logic
from corollary.core.program import Column, Declaration, Program, TypeName
from corollary.data_class import dataclass
from corollary.documents.answers.matching import call_results
from corollary.documents.answers.unknown import UNKNOWN, encode_label
from corollary.documents.queries.comparisons import CLOCK, Conditions, NumberComparison
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import (
    Columns,
    FixedLabel,
    Fork,
    Group,
    Node,
    QueryShape,
    Root,
)

NUMBER, SYMBOL, FLOAT = TypeName("number"), TypeName("symbol"), TypeName("float")
BASE = {
    "par": (("n", NUMBER), ("m", NUMBER)),
    "root": (("n", NUMBER),),
    "lab": (("n", NUMBER), ("a", SYMBOL)),
    "data": (("n", NUMBER),),
    "scalar": (("n", NUMBER), ("k", SYMBOL)),
    "call": (("n", NUMBER), ("f", NUMBER)),
    "live": (("f", NUMBER), ("k", NUMBER)),
    "can": (("k", NUMBER), ("c", SYMBOL)),
    "num": (("a", SYMBOL), ("v", FLOAT)),
    "arrived": (("n", NUMBER), ("a", SYMBOL)),
    "clock": (("n", NUMBER), ("t", FLOAT)),
    "timely": (("n", NUMBER), ("c", SYMBOL), ("v", FLOAT)),
}
"""The base relations of documents: their columns."""

_N, _M, _F, _K, _T = (logic.Variable(name) for name in "nmfkt")
_ANYTHING = logic.Constant(UNKNOWN)


def base_program() -> Program:
    """Return the declarations of the relations that documents are stored in."""
    return Program(
        declarations=tuple(
            Declaration(name, tuple(Column(*each) for each in columns))
            for name, columns in BASE.items()
        )
    )


def compile_query(view: str, shape: QueryShape) -> Program:
    """Return the rules of a query; the names of its relations begin with that of the view."""
    compiler = _Compiler(view, shape)
    compiler.compile()
    return Program(
        declarations=tuple(compiler.declarations.values()), clauses=tuple(compiler.clauses)
    )


def query_node_name(view: str, node: Node) -> str:
    """Return what `can` calls a query node."""
    return f"{view}_{node.number}"


@dataclass(slots=True)
class _Compiler:
    view: str
    shape: QueryShape
    declarations: dict[str, Declaration] = field(default_factory=dict)
    clauses: list[logic.Clause] = field(default_factory=list)

    def compile(self) -> None:
        outputs = tuple(f"o{at}" for at in range(len(self.shape.outputs)))
        for name in ("reported", "sure", "possible"):
            self.declare(name, outputs)
        self.declare("candidate", (), "f")
        answer = self.atom("reported", _N, *(logic.Variable(each) for each in outputs))
        self.rule(self.atom("sure", *answer.arguments), answer)
        if self.shape.key:
            self.answered(outputs)
        for root in self.shape.roots:
            self.root(root)

    def answered(self, outputs: Columns) -> None:
        """Make the rule of the keys of answers that are sure, for all alternatives together."""
        key = [outputs[at] for at in self.shape.key]
        self.declare("answered", key)
        found = (logic.Variable(each) if each in key else logic.Wildcard() for each in outputs)
        self.rule(
            self.atom("answered", _N, *map(logic.Variable, key)), self.atom("sure", _N, *found)
        )

    def not_new(self, answer: tuple[logic.Term, ...]) -> logic.Atom:
        """Return the condition under which an answer, should it come, is not new."""
        if not self.shape.key:
            return self.atom("sure", _N, *answer)
        return self.atom("answered", _N, *(answer[at] for at in self.shape.key))

    def root(self, root: Root) -> None:
        node = root.node
        hat = self.head("hat", node.number, ())
        self.rule(hat, logic.Atom("root", (_N,)), *self.test(node, _N))
        self.node(node)
        columns = _variables(node.columns)
        answer: tuple[logic.Term, ...] = tuple(
            logic.Constant(encode_label(each.label))
            if isinstance(each, FixedLabel)
            else _variable(each)
            for each in root.outputs
        )
        possible = self.atom(f"pos_{node.number}", _N, *columns)
        sure = self.atom(f"sure_{node.number}", _N, *columns)
        if root.conditions:
            possible, sure = self.conditions(root, possible, sure)
        self.rule(self.atom("possible", _N, *answer), possible)
        self.rule(self.atom("sure", _N, *answer), sure)
        relevant = self.head("rel", node.number, node.columns)
        # What is sure by the clock may not be later, so it needs its nodes.
        new = [] if self.shape.is_windowed else [logic.Negation(self.not_new(answer))]
        self.rule(relevant, possible, *new)
        self.relevant_below(node.group, relevant, node.columns)

    def conditions(
        self, root: Root, possible: logic.Atom, sure: logic.Atom
    ) -> tuple[logic.Atom, logic.Atom]:
        """Make the rules of matches whose comparisons may hold, and of those whose do hold.

        For each set of classes that are unknown there are rules with what is left to compare.
        """
        conditions, columns = root.conditions, root.node.columns
        may = self.head("may", root.node.number, columns)
        must = self.head("must", root.node.number, columns)
        names = conditions.classes
        for unknown in product((False, True), repeat=len(names)):
            is_unknown = dict(zip(names, unknown, strict=True))
            arguments = tuple(
                _ANYTHING if is_unknown.get(name) else _variable(name) for name in columns
            )
            items = self.compared_labels(conditions, is_unknown)
            for case in conditions.cases([name for name in names if is_unknown[name]]):
                self.rule(
                    logic.Atom(may.relation, (_N, *arguments)),
                    logic.Atom(possible.relation, (_N, *arguments)),
                    *items,
                    *_comparisons(case, conditions),
                )
        self.rule(
            must,
            sure,
            *self.compared_labels(conditions, {}),
            *_comparisons(conditions.sure_numbers, conditions),
        )
        return may, must

    @staticmethod
    def compared_labels(
        conditions: Conditions, is_unknown: Mapping[str, bool]
    ) -> list[logic.BodyItem]:
        """Return the numbers of known labels, and which of these labels have to differ."""
        items: list[logic.BodyItem] = [
            logic.Atom("num", (_variable(name), _number(name)))
            for name in conditions.numeric
            if not is_unknown.get(name)
        ]
        for each in conditions.differences:
            if not any(is_unknown.get(name) for name in each.classes):
                other: logic.Term = _variable(each.right)
                if each.is_label:
                    other = logic.Constant(encode_label(each.right))
                items.append(logic.Comparison("!=", _variable(each.left), other))
        return items

    # --- possible and sure -----------------------------------------------------------------------

    def node(self, node: Node) -> None:
        """Make the rules of a node whose hat is defined: those of its group, and its own match."""
        number = node.number
        start = logic.Atom(self.name(f"hat_{number}"), (_N,))
        if node.group.prefixes[0]:
            start = self.head("g", f"{number}_0", node.group.prefixes[0])
            body: list[logic.BodyItem] = []
            known: dict[str, logic.Term] = {}
            if node.carried is not None and node.label is not None:
                known[node.carried] = logic.Constant(encode_label(node.label))
            elif node.carried is not None:
                body.append(logic.Atom("lab", (_N, _variable(node.carried))))
            if node.arrival is not None:
                body.append(logic.Atom("arrived", (_N, _variable(node.arrival))))
            row = (known.get(each, _variable(each)) for each in node.group.prefixes[0])
            hat = logic.Atom(self.name(f"hat_{number}"), (_N,))
            self.rule(logic.Atom(start.relation, (_N, *row)), hat, *body)
        possible, sure = self.group(node.group, start)
        self.rule(self.head("pos", number, node.columns), possible)
        self.rule(self.head("sure", number, node.columns), sure)

    def group(self, group: Group, start: logic.Atom) -> tuple[logic.Atom, logic.Atom]:
        """Make the rules of a group; return what says that it matches, possibly and surely."""
        possible = sure = start
        for at, branch in enumerate(group.branches, 1):
            self.branch(branch, possible)
            columns = group.prefixes[at]
            into = self.head("g", f"{group.number}_{at}", columns)
            known = group.prefixes[at - 1]
            inside = self.atom(f"in_{branch.number}", _N)
            for left, right, joined in _compatible(known, branch.columns, columns):
                self.rule(
                    logic.Atom(into.relation, (_N, *joined)),
                    logic.Atom(possible.relation, (_N, *left)),
                    logic.Atom(inside.relation, (_N, *right)),
                )
            surely = self.head("s", f"{group.number}_{at}", columns)
            within = self.atom(f"sin_{branch.number}", _N, *_variables(branch.columns))
            self.rule(surely, sure, within)
            possible, sure = into, surely
        return possible, sure

    def branch(self, branch: Node | Fork, guard: logic.Atom) -> None:
        """Make the rules of a branch: which document nodes have a match of it in their range."""
        possible = self.head("in", branch.number, branch.columns)
        sure = self.head("sin", branch.number, branch.columns)
        unbound = logic.Atom(guard.relation, (_N, *(logic.Wildcard() for _ in guard.arguments[1:])))
        match branch:
            case Node():
                self.reached(branch, unbound)
                self.node(branch)
                for into, match in ((possible, "pos"), (sure, "sure")):
                    found = self.atom(f"{match}_{branch.number}", _M, *into.arguments[1:])
                    self.rule(into, found, _PAR)
                    if branch.axis is Axis.DESCENDANT:
                        self.rule(into, logic.Atom(into.relation, (_M, *into.arguments[1:])), _PAR)
            case Fork(alternatives=alternatives):
                for alternative in alternatives:
                    start = self.head("g", f"{alternative.number}_0", ())
                    self.rule(start, unbound)
                    maybe, surely = self.group(alternative, start)
                    self.rule(possible, maybe)
                    self.rule(sure, surely)
            case _:
                assert_never(branch)

    def reached(self, node: Node, guard: logic.Atom) -> None:
        """Make the rules of what is in range, of its hat, and of calls that can bring it."""
        reach = self.head("reach", node.number, (), "m")
        if len(guard.arguments) > 1:
            # A node with many rows and many children: one row is enough to reach each child.
            above = self.head("above", node.number, ())
            self.rule(above, guard)
            guard = above
        self.rule(reach, guard, _PAR)
        if node.axis is Axis.DESCENDANT:
            self.rule(reach, logic.Atom(reach.relation, (_N,)), _PAR)
        self.rule(self.head("hat", node.number, (), "m"), reach, *self.test(node, _M))
        into = self.head("pos", node.number, node.columns)
        for row in sorted(call_results(node)):
            self.rule(
                logic.Atom(into.relation, (_M, *map(logic.Constant, row))),
                reach,
                logic.Atom("call", (_M, _F)),
                logic.Atom("live", (_F, _K)),
                logic.Atom("can", (_K, logic.Constant(query_node_name(self.view, node)))),
            )

    @staticmethod
    def test(node: Node, at: logic.Variable) -> list[logic.Atom]:
        """Return L_p: what a document node has to be."""
        found = (
            []
            if node.label is None
            else [logic.Atom("lab", (at, logic.Constant(encode_label(node.label))))]
        )
        if node.kind is not None:
            found.append(logic.Atom("scalar", (at, logic.Constant(str(node.kind)))))
        return found or [logic.Atom("data", (at,))]

    # --- relevant --------------------------------------------------------------------------------

    def relevant_below(self, group: Group, relevant: logic.Atom, columns: Columns) -> None:
        """Make the rules of what is relevant in the branches of a group that is."""
        for branch in group.branches:
            match branch:
                case Node():
                    want = self.head("want", branch.number, branch.columns)
                    self.want(want, relevant, columns, branch, f"in_{branch.number}")
                    self.relevant_node(branch, want)
                case Fork(alternatives=alternatives):
                    for each in alternatives:
                        last = each.prefixes[-1]
                        inside = f"g_{each.number}_{len(each.branches)}"
                        chosen = self.head("rel", each.number, last)
                        self.want(chosen, relevant, columns, branch, inside)
                        self.relevant_below(each, chosen, last)
                case _:
                    assert_never(branch)

    def want(
        self,
        want: logic.Atom,
        relevant: logic.Atom,
        columns: Columns,
        branch: Node | Fork,
        inside: str,
    ) -> None:
        """Make the rules of which matches of a branch an answer that is not sure can have."""
        if not branch.columns:
            unbound = logic.Atom(relevant.relation, (_N, *(logic.Wildcard() for _ in columns)))
            matched = logic.Negation(self.atom(f"sin_{branch.number}", _N))
            self.rule(want, unbound, self.atom(inside, _N), matched)
            return
        for left, right in _refine(columns, branch.columns):
            self.rule(
                logic.Atom(want.relation, (_N, *right)),
                logic.Atom(relevant.relation, (_N, *left)),
                self.atom(inside, _N, *right),
            )

    def relevant_node(self, node: Node, want: logic.Atom) -> None:
        """Make the rules of where a node is relevant, given where a match of it is wanted.

        With columns, matches are found by labels first: a node may have many children.
        """
        columns = want.arguments[1:]

        def below(kind: str) -> tuple[logic.Atom, logic.Atom]:
            found = self.atom(f"{kind}_{node.number}", _M, *columns)
            return (found, _PAR) if columns else (_PAR, found)

        if node.axis is Axis.DESCENDANT:
            self.rule(logic.Atom(want.relation, (_M, *columns)), want, *below("in"))
        relevant = self.head("rel", node.number, node.columns)
        self.rule(logic.Atom(relevant.relation, (_M, *columns)), want, *below("pos"))
        unbound = logic.Atom(relevant.relation, (_N, *(logic.Wildcard() for _ in columns)))
        self.rule(self.atom("candidate", _F), unbound, logic.Atom("call", (_N, _F)))
        self.relevant_below(node.group, relevant, node.columns)

    # --- clauses ---------------------------------------------------------------------------------

    def name(self, name: str) -> str:
        return f"{self.view}_{name}"

    def atom(self, name: str, *arguments: logic.Term) -> logic.Atom:
        return logic.Atom(self.name(name), arguments)

    def declare(self, name: str, columns: Iterable[str], first: str = "n") -> None:
        full = self.name(name)
        named = (Column(first, NUMBER), *(Column(f"x_{each}", SYMBOL) for each in columns))
        self.declarations[full] = Declaration(full, named)

    def head(self, kind: str, number: int | str, columns: Columns, first: str = "n") -> logic.Atom:
        """Return the atom of a relation of its own, which is declared if it is not."""
        name = f"{kind}_{number}"
        if self.name(name) not in self.declarations:
            self.declare(name, columns)
        return self.atom(name, logic.Variable(first), *_variables(columns))

    def rule(self, head: logic.Atom, *body: logic.BodyItem) -> None:
        self.clauses.append(logic.Clause((head,), body))


_PAR = logic.Atom("par", (_N, _M))


def _variable(column: str) -> logic.Variable:
    return logic.Variable(f"x_{column}")


def _number(column: str) -> logic.Variable:
    """Return the variable of the number that the label of a class spells, or of the clock."""
    return _T if column == CLOCK else logic.Variable(f"v_{column}")


def _comparisons(
    several: Iterable[NumberComparison], conditions: Conditions
) -> list[logic.BodyItem]:
    """Return comparisons as conditions of a rule.

    What the clock decides of one number is looked up: so what does not change as time passes is not
    touched. Only between several numbers what time it is has to be joined.
    """
    found: list[logic.BodyItem] = []
    for each in several:
        timed = each.by_clock(conditions.arrivals)
        if timed is not None:
            test, name = timed
            number: logic.Term = logic.Constant(0.0) if name is None else _number(name)
            found.append(logic.Atom("timely", (_N, logic.Constant(test.name), number)))
        else:
            found.append(_comparison(each))
            if any(name == CLOCK for name, _ in each.terms):
                found.insert(0, logic.Atom("clock", (_N, _T)))
    return list(dict.fromkeys(found))


def _comparison(each: NumberComparison) -> logic.Comparison:
    """Return Σ c·x + k ⋛ 0 as a condition of a rule."""
    total: logic.Term = logic.Constant(float(each.constant))
    for name, factor in each.terms:
        term: logic.Term = _number(name)
        if abs(factor) != 1:
            term = logic.Functor("*", (logic.Constant(float(abs(factor))), term))
        total = logic.Functor("+" if factor > 0 else "-", (total, term))
    return logic.Comparison(each.operator, total, logic.Constant(0.0))


def _variables(columns: Columns) -> tuple[logic.Variable, ...]:
    return tuple(map(_variable, columns))


def _compatible(
    left: Columns, right: Columns, joined: Columns
) -> Iterator[tuple[tuple[logic.Term, ...], tuple[logic.Term, ...], tuple[logic.Term, ...]]]:
    """Yield the arguments of both sides and of the head, for each way in which rows can agree."""
    shared = [name for name in left if name in right]
    for ways in product("=<>", repeat=len(shared)):
        way = dict(zip(shared, ways, strict=True))
        yield (
            tuple(_ANYTHING if way.get(name) == "<" else _variable(name) for name in left),
            tuple(_ANYTHING if way.get(name) == ">" else _variable(name) for name in right),
            _variables(joined),
        )


def _refine(
    refined: Columns, parts: Columns
) -> Iterator[tuple[tuple[logic.Term, ...], tuple[logic.Term, ...]]]:
    """Yield the arguments of a joined row and of a part of it: the same label, or `?` there."""
    shared = [name for name in parts if name in refined]
    for ways in product("=?", repeat=len(shared)):
        way = dict(zip(shared, ways, strict=True))
        left = tuple(
            logic.Wildcard() if way.get(name, "?") == "?" else _variable(name) for name in refined
        )
        yield left, tuple(_ANYTHING if way.get(name) == "?" else _variable(name) for name in parts)
