"""A plan, printed: strata, rules as pipelines with their adornments, and the orders they need."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from corollary.analysis.pivots import pivots
from corollary.analysis.strata import Stratum, strata
from corollary.core.pipeline import Absent, Compute, Filter, Pipeline, Probe, Reference, Stage
from corollary.core.plan import (
    WORKING,
    Aggregate,
    Call,
    Clear,
    Derive,
    Extend,
    Grow,
    Loop,
    Number,
    Place,
    Placement,
    Plan,
    Reduce,
    Remove,
    Row,
    Settle,
    Step,
    Store,
    When,
    Within,
    working,
)
from corollary.core.printer import print_condition, print_term
from corollary.core.program import NormalProgram
from corollary.core.states import State
from corollary.core.terms import Slot, Variable
from corollary.explain.events import events_as_json, print_events

INDENT = "    "

REDUCED = {
    Reduce.MIN: ", each with the least last column",
    Reduce.SUM: ", each with the sum of the last column",
}


def print_plan(plan: Plan, program: NormalProgram) -> str:
    """Return the plan as text, procedure by procedure."""
    return "\n".join([*print_strata(program), *print_procedures(plan)])


def print_strata(program: NormalProgram) -> list[str]:
    """Return the lines that name the base relations and the strata in order."""
    base = [
        name
        for name, each in program.relations.items()
        if not each.is_derived and name not in program.constants
    ]
    lines = [f"base relations: {', '.join(base) or 'none'}"]
    lines += [_stratum_line(layer, program) for layer in strata(program)]
    return [*lines, *print_events(program)]


def print_procedures(plan: Plan) -> list[str]:
    """Return the lines of all procedures and orders."""
    lines: list[str] = []
    for name, steps in plan.procedures.items():
        if name == plan.main and all(isinstance(step, Call) for step in steps):
            continue
        printer = _Printer(plan, name)
        lines += ["", f"procedure {printer.heading}"]
        lines += [INDENT + line for line in (*printer.locals, *printer.steps(steps))]
    if plan.orders:
        lines += ["", "orders (columns as they are sorted)"]
        for relation, orders in sorted(plan.orders.items()):
            listed = ", ".join("(" + " ".join(map(str, order)) + ")" for order in orders)
            lines.append(f"{INDENT}{relation}: {listed}")
    return lines


def _stratum_line(stratum: Stratum, program: NormalProgram) -> str:
    names = ", ".join(
        f"{name} ({'virtual' if program.relations[name].is_virtual else 'stored'})"
        for name in stratum.relations
    )
    facts = []
    if stratum.is_recursive:
        facts.append("recursive")
        pivot = pivots(stratum)
        if pivot:
            chosen = ", ".join(
                f"{name}.{program.relations[name].columns[column]}"
                for name, column in pivot.items()
            )
            facts.append(f"pivot {chosen}")
        else:
            facts.append("no pivot")
    rules = "1 rule" if len(stratum.rules) == 1 else f"{len(stratum.rules)} rules"
    facts.append("aggregate" if stratum.aggregations else rules)
    return f"stratum {names}: {', '.join(facts)}"


@dataclass(frozen=True, slots=True)
class _Printer:
    """Prints the steps of one procedure; its locals go without the name of the procedure."""

    plan: Plan
    procedure: str

    @property
    def heading(self) -> str:
        """The name of the procedure, with its parameter."""
        local = self.plan.locals.get(self.procedure, ())
        return _spoken(self.procedure) + (f" ({self._name(local[0])})" if local else "")

    @property
    def locals(self) -> Iterator[str]:
        """The line that names the other locals, if there are any."""
        local = self.plan.locals.get(self.procedure, ())
        if local[1:]:
            yield f"locals {', '.join(map(self._name, local[1:]))}"

    def steps(self, steps: Sequence[Step]) -> Iterator[str]:
        """Yield the lines of steps, one after another."""
        for step in steps:
            yield from self._step(step)

    def _inner(self, steps: Sequence[Step]) -> Iterator[str]:
        yield from (INDENT + line for line in self.steps(steps))

    def _step(self, step: Step) -> Iterator[str]:
        match step:
            case Derive(target=target, pipelines=pipelines, reduce=reduce, role=role):
                combined = REDUCED[reduce] if reduce else ""
                counted = f" ({str(role).replace('_', ' ')})" if role else ""
                yield f"derive {self._name(target)}{counted}{combined}{self._less(step.without)}"
                for pipeline in pipelines:
                    yield INDENT + self.pipeline(pipeline)
            case Extend(target=target, source=source):
                yield f"extend {self._name(target)} by {self._name(source)}"
            case Number(target=target, source=source):
                numbered = f"{self._name(source)}, each with the number of the round"
                yield f"extend {self._name(target)} by {numbered}"
            case Aggregate(target=target, aggregation=aggregation, body=body, without=without):
                groups = " ".join(map(str, aggregation.groups)) or "none"
                of = "" if aggregation.value is None else f" of column {aggregation.value}"
                yield (
                    f"aggregate {self._name(target)} = {aggregation.operator}{of} over "
                    f"{self._reference(body)}, groups by column {groups}{self._less(without)}"
                )
            case Clear(relations=relations):
                yield f"clear {', '.join(map(self._name, relations)) or 'nothing'}"
            case Store(relation=relation, source=source):
                yield f"store {relation} = {self._name(source)}"
            case Remove(relation=relation, source=source):
                yield f"remove from {relation}: {self._name(source)}"
            case Grow(relation=relation, source=source):
                yield f"add to {relation}: {self._name(source)}"
            case Settle(relation=relation):
                yield f"settle {relation}: what went and came back is no change"
            case Loop(steps=steps, until_empty=until_empty):
                yield f"repeat until empty: {self._references(until_empty)}"
                yield from self._inner(steps)
            case When(nonempty=nonempty, steps=steps):
                yield f"unless empty: {self._references(nonempty)}"
                yield from self._inner(steps)
            case Within(budget=budget, steps=steps, otherwise=otherwise):
                yield f"within {budget:,} rows"
                yield from self._inner(steps)
                yield "otherwise fail" if otherwise is None else "otherwise"
                yield from self._inner(otherwise or ())
            case Call(procedure=procedure, argument=argument):
                given = f" ({self._name(argument)})" if argument else ""
                yield f"call {_spoken(procedure)}{given}"
            case Place(procedure=procedure, placement=placement, columns=columns):
                by = ", ".join(f"{name} by column {at}" for name, at in columns if at is not None)
                shared = f", shared out: {by}" if placement is Placement.TASKS else ""
                yield f"call {_spoken(procedure)} ({placement}{shared})"
            case Row(updates=updates, approximation=approximation):
                yield (
                    f"tell updates {self._references(updates)}"
                    f" | approximation {self._references(approximation)}"
                    f" | disqualified {self._references(step.disqualified)}"
                    f" | actual {self._references(step.actual)}"
                )
            case _:
                assert_never(step)

    def _name(self, relation: str) -> str:
        if relation in self.plan.locals.get(self.procedure, ()):
            return relation.removeprefix(working(self.procedure, ""))
        return relation

    def _reference(self, reference: Reference) -> str:
        name = self._name(reference.relation)
        return name if reference.state is State.NEW else f"{name}@{reference.state}"

    def _references(self, references: Sequence[Reference]) -> str:
        return ", ".join(map(self._reference, references)) or "none"

    def _less(self, without: Sequence[Reference]) -> str:
        return f", less {self._references(without)}" if without else ""

    def pipeline(self, pipeline: Pipeline) -> str:
        """Return a pipeline as one line."""
        stages = " → ".join(self._stage(stage) for stage in pipeline.stages) or "once"
        return f"{stages} ⇒ ({_slots(pipeline.head)})"

    def _stage(self, stage: Stage) -> str:
        match stage:
            case Probe(source=source, slots=slots, bound=bound):
                pattern = "".join("b" if at in bound else "f" for at in range(len(slots)))
                adornment = f"^{pattern}" if pattern else ""
                return f"{self._reference(source)}{adornment}({_slots(slots)})"
            case Absent(source=source, slots=slots):
                return f"!{self._reference(source)}({_slots(slots)})"
            case Filter(condition=condition):
                return _plain(print_condition(condition))
            case Compute(variable=variable, expression=expression):
                return f"{variable.name} := {_plain(print_term(expression))}"
            case _:
                assert_never(stage)


def print_pipeline(pipeline: Pipeline) -> str:
    """Return a pipeline as one line: its stages in order, then the head."""
    return _Printer(Plan({}, {}), "").pipeline(pipeline)


def _spoken(procedure: str) -> str:
    return procedure.replace(WORKING, " ").strip()


def _slots(slots: Sequence[Slot]) -> str:
    return ", ".join(
        slot.name if isinstance(slot, Variable) else print_term(slot) for slot in slots
    )


def _plain(text: str) -> str:
    """Return a condition with the variables of plans, such as `rank'`, out of their backquotes."""
    return re.sub(r"`(\w+')`", r"\1", text)


def plan_as_json(plan: Plan, program: NormalProgram) -> dict[str, Any]:
    """Return the plan as a JSON document: strata, procedures as lines, orders."""
    return {
        "base": [
            name
            for name, each in program.relations.items()
            if not each.is_derived and name not in program.constants
        ],
        "strata": [
            {
                "relations": list(layer.relations),
                "stored": [n for n in layer.relations if not program.relations[n].is_virtual],
                "recursive": layer.is_recursive,
                "pivot": pivots(layer),
                "aggregate": bool(layer.aggregations),
            }
            for layer in strata(program)
        ],
        "procedures": {
            _spoken(name): list(_Printer(plan, name).steps(steps))
            for name, steps in plan.procedures.items()
        },
        "orders": {name: [list(order) for order in each] for name, each in plan.orders.items()},
        **(events_as_json(program) if program.active.relations else {}),
    }
