"""Random programs with active rules, on top of `programs`: events, triggers, alerts, constraints.

A delta is a relation of another name to the maker of bodies: `+b0`, `-d1`, `d2@old`. An event
predicate reads relations, their changes and event predicates made before it, and (positively)
itself, so every program is stratified; a trigger may set off itself and others, also without end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from support.generators.programs import Body, Case, Maker, Relation, primitive, spelled

FEATURES = (
    "added", "removed", "old", "new", "event_over_event", "recursive_event", "negated_event",
    "aggregate_in_event", "declared_event", "trigger_insert", "trigger_delete", "alert",
    "alert_of_relation", "abort", "abort_of_relation",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ActiveProgram:
    """A program, its database, and its active rules.

    Attributes:
        case: the program without active rules.
        rules: the lines of the active rules.
        features: which of `FEATURES` they have.
    """

    case: Case
    rules: tuple[str, ...]
    features: frozenset[str]

    @property
    def text(self) -> str:
        """The whole program."""
        return self.case.text + "\n".join(self.rules) + "\n"


class ActiveMaker(Maker):
    """Draws the active rules of a program that it has drawn."""

    def __init__(self, draw: st.DrawFn) -> None:
        super().__init__(draw, simple=False)
        self.rules: list[str] = []
        self.events: list[Relation] = []
        self.marks: set[str] = set()

    # --- what bodies read

    def changes(self) -> list[Relation]:
        """The changes of all relations; those of base relations more than once."""
        found = [*self.relations, *self.base, *self.base]
        return [Relation(f"{sign}{r.name}", r.types) for r in found for sign in "++-"]

    def states(self) -> list[Relation]:
        """The relations as they were and as they are."""
        return [
            Relation(f"{r.name}{mark}", r.types)
            for r in self.relations
            for mark in ("@old", "@new", "")
        ]

    def body(self) -> Body:
        """A body with at least one event, which binds a variable."""
        body = Body(self)
        changes, states = self.changes(), self.states()
        old = [each for each in states if each.name.endswith("@old")]
        sources = [changes, changes, changes, changes, old, self.events or changes]
        body.add_atoms(self.pick(sources), 1)
        if self.chance(45):
            body.literals.append(body.atom(self.pick([*states, *changes, *self.events * 3])))
        if self.chance(40):
            body.add_negation([*states, *self.events * 3])
        if self.chance(30):
            body.add_comparison(states)
        if self.chance(10):
            body.add_arithmetic(states)
        if self.chance(10):
            body.add_disjunction(states)
        if self.chance(15):
            body.add_aggregate([*states, *changes, *self.events])
            self.marks.add("aggregate_in_event")
        self._note(body)
        return body

    def _note(self, body: Body) -> None:
        """Note which features a body has."""
        for literal in body.literals:
            name = literal.lstrip("!").partition("(")[0]
            for mark, is_there in (
                ("added", name.startswith("+")),
                ("removed", name.startswith("-")),
                ("old", name.endswith("@old")),
                ("new", name.endswith("@new")),
            ):
                self.marks |= {mark} if is_there else set()
            if name in {each.name for each in self.events}:
                self.marks.add("negated_event" if literal[0] == "!" else "event_over_event")

    # --- active rules

    def make_copy(self, relation: Relation) -> None:
        """A view that changes whenever a base relation does."""
        made = self.declare(relation.types)
        args = ", ".join(f"v{i}" for i in range(len(relation.types)))
        self.lines.append(f"{made.name}({args}) :- {relation.name}({args}).")
        self.relations.append(made)

    def make_event(self) -> None:
        """An event predicate of one rule or two."""
        body = self.body()
        args, types = self.head(body)
        name = f"ev{len(self.events)}"
        is_plain = len(set(args)) == len(args) and set(args) <= set(body.types)
        if not is_plain or self.chance(25):
            columns = ", ".join(f"c{i}: {spelled(t)}" for i, t in enumerate(types))
            self.rules.append(f".decl {name}({columns})")
            self.marks.add("declared_event")
        self.rules.append(f"{name}({', '.join(args)}) :- {body.text()}.")
        if len(types) == 2 and types[0] == types[1] and self.chance(70):
            self._make_recursive(name, types[0])
        elif self.chance(25):
            second = self.body()
            args = self._fitting(second, types)
            self.rules.append(f"{name}({', '.join(args)}) :- {second.text()}.")
        self.events.append(Relation(name, types))

    def _make_recursive(self, name: str, type_: str) -> None:
        step = self.fitting_edges(type_)
        if step:
            edge, _, rest = step.format(x="y", y="z").partition("(")
            mark = self.pick(("@old", "@new", ""))
            self.rules.append(f"{name}(x, z) :- {name}(x, y), {edge}{mark}({rest}.")
            self.marks.add("recursive_event")

    def _fitting(self, body: Body, types: Sequence[str]) -> list[str]:
        """Arguments for columns: variables of the same type that cannot be null, or constants."""
        args = []
        for type_ in types:
            fitting = [v for v in body.bound(type_) if body.types[v] in (type_, primitive(type_))]
            args.append(self.pick(fitting) if fitting else self.head_constant(type_))
        return args

    def make_trigger(self) -> None:
        """A rule that changes a base relation; every other one by the change of a base relation."""
        if self.chance(60):
            body = Body(self)
            body.add_atoms([r for r in self.changes() if r.name[1] == "b"], 1)
            self._note(body)
        else:
            body = self.body()
        if self.chance(25):
            body.add_comparison(self.relations)
        relation = self.pick(self.base[:2] if self.chance(50) else self.base)
        sign = self.pick("++-")
        args = ", ".join(self._fitting(body, relation.types))
        self.rules.append(f"{sign}{relation.name}({args}) :- {body.text()}.")
        self.marks.add("trigger_insert" if sign == "+" else "trigger_delete")

    def make_reaction(self, kind: str) -> None:
        """An alert or a constraint; constraints watch something of their own, which is rarer."""
        if self.chance(25):
            watched = self.pick(self.relations)
            columns = [f"c{i}" for i in range(len(watched.types))]
            name = watched.name
            self.marks |= {kind, f"{kind}_of_relation"}
        else:
            body = self.body()
            if kind == "abort":
                body.literals.append(body.atom(self.pick([*self.states(), *self.changes()])))
                body.add_comparison(self.relations)
                self._note(body)
            name = f"{kind}{len(self.rules)}"
            args = list(body.types)[: self.pick((1, 2, 3))]
            columns = args
            self.rules.append(f"{name}({', '.join(args)}) :- {body.text()}.")
            self.marks.add(kind)
        shown = " ".join(f"{{{column}}}" for column in columns)
        self.rules.append(f'.{kind} {name} "{{{{{name}}}}} {shown}"')

    def make_active(self) -> ActiveProgram:
        """The whole program."""
        case = self.make()
        self.base = [each for each in self.relations if each.name in case.base]
        for relation in self.base:
            if self.chance(45):
                self.make_copy(relation)
        case = replace(case, text="\n".join(self.lines) + "\n")
        for _ in range(self.pick((1, 2, 3))):
            self.make_event()
        for _ in range(self.pick((3, 4, 2, 1, 0))):
            self.make_trigger()
        for event in self.events:
            if self.chance(60):
                self.rules.append(f'.alert {event.name} "{event.name} happened"')
                self.marks.add("alert")
        for _ in range(self.pick((0, 1, 2))):
            self.make_reaction("alert")
        for _ in range(self.pick((0, 1, 0))):
            self.make_reaction("abort")
        return ActiveProgram(case, tuple(self.rules), frozenset(self.marks))


@st.composite
def active_programs(draw: st.DrawFn) -> ActiveProgram:
    """A valid program with active rules, and a small database."""
    return ActiveMaker(draw).make_active()
