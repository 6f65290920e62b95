"""A plan as text: strata, procedures with their pipelines and adornments, and column orders."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, assert_never

from corollary.analysis.monotonicity import is_ranked_by_value
from corollary.analysis.pivots import pivots
from corollary.analysis.strata import Stratum, strata
from corollary.core import plans
from corollary.core.logic import Aggregation, Slot, Variable, Windowing
from corollary.core.pipeline import AntiProbe, Compute, Filter, Pipeline, Probe, Reference, Stage
from corollary.core.printer import print_condition, print_term
from corollary.core.program import ActiveRules, Arithmetic, NormalProgram, relations_read
from corollary.core.states import State
from corollary.core.titles import show_titles
from corollary.core.windows import print_functions
from corollary.data_class import dataclass

INDENT = "    "
SIGNS = {State.ADDED: "+", State.REMOVED: "-"}

REDUCTIONS = {
    plans.Reduce.MIN: ", each with the least last column",
    plans.Reduce.MAX: ", each with the greatest last column",
    plans.Reduce.SUM: ", each with the sum of the last column",
}


NotedStep = plans.Derive | plans.Aggregate | plans.Total | plans.Window | plans.CompareWindows
StepNote = Callable[[NotedStep], str]
"""Returns what an engine has to say about a step; the empty text for nothing."""


def print_plan(plan: plans.Plan, program: NormalProgram, note: StepNote | None = None) -> str:
    """Return the plan as text, procedure by procedure."""
    text = "\n".join([*print_strata(program), *print_procedures(plan, note)])
    return show_titles(text, program)


def print_strata(program: NormalProgram) -> list[str]:
    """Return the lines that name the base relations and the strata in order."""
    lines = [f"base relations: {', '.join(_base_relations(program)) or 'none'}"]
    if program.arithmetic is Arithmetic.WORDS:
        lines.append("arithmetic: 32-bit words that wrap around")
    lines += [_stratum_line(layer, program) for layer in strata(program)]
    return [*lines, *_print_events(program)]


def _base_relations(program: NormalProgram) -> list[str]:
    return [
        name
        for name, each in program.relations.items()
        if not each.is_derived and name not in program.constants
    ]


def print_procedures(plan: plans.Plan, note: StepNote | None = None) -> list[str]:
    """Return the lines of all procedures and orders."""
    lines: list[str] = []
    for name, steps in plan.procedures.items():
        if name == plan.main and all(isinstance(step, plans.Call) for step in steps):
            continue
        printer = _Printer(plan, name, note)
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
    if stratum.is_grouped:
        facts.append("recursive, group by group on the driver")
    elif stratum.dominated:
        facts.append("recursive, subsumption in rounds on the driver")
    elif stratum.is_recursive:
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
    if stratum.subsumption:
        types = {name: program.relations[name].types for name in stratum.relations}
        orders = stratum.subsumption
        is_by_value = is_ranked_by_value(stratum.rules, stratum.members, orders, types)
        facts.append(f"the best tuples, ranked by {'value' if is_by_value else 'round'}")
    rules = "1 rule" if len(stratum.rules) == 1 else f"{len(stratum.rules)} rules"
    is_window = any(isinstance(each, Windowing) for each in stratum.aggregations)
    kind = "window functions" if is_window else "aggregate"
    facts.append(kind if stratum.aggregations else rules)
    last = {rule.origin.passes[-1:] for rule in stratum.rules}
    facts += [f"copied by {name}" for name in ("specialise", "magic_sets") if (name,) in last]
    statement = _sql_place(stratum)
    if statement:
        facts.append(f"SQL at {statement}")
    return f"stratum {names}: {', '.join(facts)}"


def _sql_place(stratum: Stratum) -> str:
    """Return where the SQL is that a stratum was made of; nothing for rules of the user."""
    spans = [rule.origin.span for rule in stratum.rules]
    spans += [each.origin.span for each in stratum.aggregations]
    return next((str(span) for span in spans if span and span.file.is_sql), "")


@dataclass(frozen=True, slots=True)
class _Printer:
    """Prints the steps of one procedure, its locals without the prefix of the procedure."""

    plan: plans.Plan
    procedure: str
    note: StepNote | None = None

    @property
    def heading(self) -> str:
        """The name of the procedure, with its parameter."""
        local = self.plan.locals.get(self.procedure, ())
        return _display_name(self.procedure) + (f" ({self._name(local[0])})" if local else "")

    @property
    def locals(self) -> Iterator[str]:
        """The line that names the other locals, if there are any."""
        local = self.plan.locals.get(self.procedure, ())
        if local[1:]:
            yield f"locals {', '.join(map(self._name, local[1:]))}"

    def steps(self, steps: Sequence[plans.Step]) -> Iterator[str]:
        """Yield the lines of steps, one after another."""
        for step in steps:
            yield from self._step(step)

    def _inner(self, steps: Sequence[plans.Step]) -> Iterator[str]:
        yield from (INDENT + line for line in self.steps(steps))

    def _step(self, step: plans.Step) -> Iterator[str]:
        match step:
            case plans.Derive(target=target, pipelines=pipelines, reduce=reduce, role=role):
                reduction = REDUCTIONS[reduce] if reduce else ""
                counter = f" ({str(role).replace('_', ' ')})" if role else ""
                less = self._less(step.without)
                yield f"derive {self._name(target)}{counter}{reduction}{less}{self._noted(step)}"
                for pipeline in pipelines:
                    yield INDENT + self.pipeline(pipeline)
            case plans.Extend(target=target, source=source):
                yield f"extend {self._name(target)} by {self._name(source)}"
            case plans.ExtendWithRound(target=target, source=source):
                rows = f"{self._name(source)}, each with the number of the round"
                yield f"extend {self._name(target)} by {rows}"
            case plans.Aggregate(
                target=target, aggregation=aggregation, body=body, without=without
            ):
                groups = " ".join(map(str, aggregation.groups)) or "none"
                yield (
                    f"aggregate {self._name(target)} = {_accumulators(aggregation)} over "
                    f"{self._reference(body)}, groups by column {groups}{self._less(without)}"
                    f"{self._noted(step)}"
                )
            case plans.Window() | plans.CompareWindows():
                yield from self._window_step(step)
            case plans.Total() | plans.ReadTotals() | plans.Accumulate():
                yield self._totals_step(step)
            case (
                plans.Improve()
                | plans.Judge()
                | plans.Overrun()
                | plans.FindDescent()
                | plans.CheckAcyclic()
                | plans.Choose()
            ):
                yield from self._recursion_step(step)
            case plans.Clear(relations=relations):
                yield f"clear {', '.join(map(self._name, relations)) or 'nothing'}"
            case plans.StoreRelation(relation=relation, source=source):
                yield f"store {relation} = {self._name(source)}"
            case plans.Remove(relation=relation, source=source):
                yield f"remove from {relation}: {self._name(source)}"
            case plans.Add(relation=relation, source=source):
                yield f"add to {relation}: {self._name(source)}"
            case plans.CancelOut(relation=relation):
                yield f"cancel {relation}: tuples both added and removed"
            case plans.Loop(steps=steps, until_empty=until_empty):
                yield f"repeat until empty: {self._references(until_empty)}"
                yield from self._inner(steps)
            case plans.When(nonempty=nonempty, steps=steps):
                yield f"unless empty: {self._references(nonempty)}"
                yield from self._inner(steps)
            case plans.Within(budget=budget, steps=steps, otherwise=otherwise, outset=outset):
                first = "" if outset is None else f", {outset:,} until a loop has gone round"
                yield f"within {budget:,} rows{first}"
                yield from self._inner(steps)
                yield "otherwise fail" if otherwise is None else "otherwise"
                yield from self._inner(otherwise or ())
            case plans.Call(procedure=procedure, argument=argument):
                passed = f" ({self._name(argument)})" if argument else ""
                yield f"call {_display_name(procedure)}{passed}"
            case plans.PlacedCall(procedure=procedure, placement=placement, columns=columns):
                by = ", ".join(f"{name} by column {at}" for name, at in columns)
                yield f"call {_display_name(procedure)} ({placement}, partitioned: {by})"
            case plans.RecordTrace(updates=updates, approximation=approximation):
                yield (
                    f"record updates {self._references(updates)}"
                    f" | approximation {self._references(approximation)}"
                    f" | disqualified {self._references(step.disqualified)}"
                    f" | actual {self._references(step.actual)}"
                )
            case _:
                assert_never(step)

    def _window_step(self, step: plans.Window | plans.CompareWindows) -> Iterator[str]:
        functions, noted = print_functions(step.windowing), self._noted(step)
        if isinstance(step, plans.Window):
            rows = f"{self._reference(step.body)} with {functions}"
            yield f"window {self._name(step.target)} = {rows}{self._less(step.without)}{noted}"
            return
        targets = f"{self._name(step.added)}, {self._name(step.removed)}"
        rows = f"rows of {self._name(step.body)} that differ"
        yield f"compare windows {targets} = {rows}, with {functions}{noted}"
        if noted:  # they are compared here by other steps
            yield from self._inner(step.steps)

    def _totals_step(self, step: plans.Total | plans.ReadTotals | plans.Accumulate) -> str:
        match step:
            case plans.Total(target=target, aggregation=aggregation, body=body):
                groups = " ".join(map(str, aggregation.groups)) or "none"
                weighted = ", weighted by the last column" if step.is_weighted else ""
                return (
                    f"total {self._name(target)} = {_accumulators(aggregation)} over "
                    f"{self._reference(body)}, groups by column {groups}{weighted}"
                    f"{self._noted(step)}"
                )
            case plans.ReadTotals(target=target, aggregation=aggregation, totals=totals):
                names = ", ".join(each.operator for each in aggregation.accumulators)
                read = f"{names} that {self._reference(totals)} says"
                return f"read {self._name(target)} = {read}"
            case plans.Accumulate(relation=relation, change=change, additive=additive):
                columns = "column" if additive == 1 else f"{additive} columns"
                by = f"add the last {columns} of {self._name(change)}, key by key"
                return f"accumulate {self._name(relation)}: {by}"
            case _:
                assert_never(step)

    def _recursion_step(self, step: plans.RecursionStep) -> Iterator[str]:
        match step:
            case plans.CheckAcyclic(suspects=suspects, is_counted=is_counted):
                listed = ", ".join(map(self._name, suspects))
                when = "if there are more rounds than" if is_counted else "unless empty:"
                yield f"fail with a cycle {when} {listed}"
            case plans.Choose(target=target, source=source, domains=domains):
                listed = ", ".join("(" + " ".join(map(str, each)) + ")" for each in domains)
                names = f"{self._name(target)} from {self._name(source)}"
                yield f"choose {names}, domains {listed}"
            case plans.Improve(target=target, source=source, rivals=rivals):
                best = f"the best of {self._name(source)} that {self._name(rivals)} does not cover"
                yield f"improve {self._name(target)} = {best}"
            case plans.Judge(steps=steps):
                yield "if an expression had no value"
                yield from self._inner(steps)
            case plans.Overrun(relations=relations, steps=steps):
                yield f"after more rounds than {', '.join(map(self._name, relations))} has tuples"
                yield from self._inner(steps)
            case plans.FindDescent(links=links):
                names = ", ".join(self._name(each.relation) for each in links)
                yield f"fail if {names or 'nothing'} leads from a key back to it"
            case _:
                assert_never(step)

    def _name(self, relation: str) -> str:
        if relation in self.plan.locals.get(self.procedure, ()):
            return relation.removeprefix(plans.working_relation(self.procedure, ""))
        return relation

    def _reference(self, reference: Reference) -> str:
        name = self._name(reference.relation)
        return name if reference.state is State.NEW else f"{name}@{reference.state}"

    def _references(self, references: Sequence[Reference]) -> str:
        return ", ".join(map(self._reference, references)) or "none"

    def _noted(self, step: NotedStep) -> str:
        said = "" if self.note is None else self.note(step)
        return f" ({said})" if said else ""

    def _less(self, without: Sequence[Reference]) -> str:
        return f", less {self._references(without)}" if without else ""

    def pipeline(self, pipeline: Pipeline) -> str:
        """Return a pipeline as one line."""
        stages = " → ".join(self._stage(stage) for stage in pipeline.stages) or "once"
        return f"{stages} ⇒ ({_slots(pipeline.head)})"

    def _stage(self, stage: Stage) -> str:
        match stage:
            case Probe(source=source, slots=slots):
                adornment = f"^{stage.adornment}" if slots else ""
                found = f"{self._reference(source)}{adornment}({_slots(slots)})"
                if stage.extreme is None:
                    return found
                which = "greatest" if stage.extreme.is_greatest else "least"
                return f"{which} column {stage.extreme.column} of {found}"
            case AntiProbe(source=source, slots=slots):
                return f"!{self._reference(source)}({_slots(slots)})"
            case Filter(condition=condition):
                return _plain(print_condition(condition))
            case Compute(variable=variable, expression=expression):
                return f"{variable.name} := {_plain(print_term(expression))}"
            case _:
                assert_never(stage)


def print_pipeline(pipeline: Pipeline) -> str:
    """Return a pipeline as one line: its stages in order, then the head."""
    return _Printer(plans.Plan({}, {}), "").pipeline(pipeline)


def _display_name(procedure: str) -> str:
    return procedure.replace(plans.WORKING_SEPARATOR, " ").strip()


def _slots(slots: Sequence[Slot]) -> str:
    return ", ".join(
        slot.name if isinstance(slot, Variable) else print_term(slot) for slot in slots
    )


def _plain(text: str) -> str:
    """Return a condition without backquotes around the variables of plans, such as `rank'`."""
    return re.sub(r"`(\w+')`", r"\1", text)


def plan_as_json(
    plan: plans.Plan, program: NormalProgram, note: StepNote | None = None
) -> dict[str, Any]:
    """Return the plan as a JSON document: strata, procedures as lines, orders."""
    document = {
        "base": _base_relations(program),
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
            _display_name(name): list(_Printer(plan, name, note).steps(steps))
            for name, steps in plan.procedures.items()
        },
        "orders": {name: [list(order) for order in each] for name, each in plan.orders.items()},
        **(_events_as_json(program) if program.active.relations else {}),
    }
    return show_titles(document, program)


# --- active rules --------------------------------------------------------------------------------


def _print_events(program: NormalProgram) -> list[str]:
    """Return the lines about event predicates, triggers, alerts and constraints."""
    active = program.active
    lines = [
        f"event {name}: reads {', '.join(_read(active, name)) or 'nothing'}"
        f"{_reactions(active, name)}"
        for name, each in active.relations.items()
        if each.is_declared and name not in active.merged
    ]
    for merged in dict.fromkeys(active.merged.values()):
        names = [name for name, each in active.merged.items() if each == merged]
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
        reads = ", ".join(_read(active, merged))
        lines.append(f"events {shown}: alike, evaluated as one, read {reads}")
    lines += [
        f"trigger {SIGNS[sign]}{relation}: reads {', '.join(_read(active, name))}"
        for name, (relation, sign) in active.triggers.items()
    ]
    watched = [each for each in active.reactions if each.relation in program.relations]
    lines += [f"{each.name} on +{each.relation}" for each in watched]
    return lines


def _events_as_json(program: NormalProgram) -> dict[str, Any]:
    """Return the event predicates and triggers, with the relations they read and the reactions."""
    active = program.active
    return {
        "events": [
            {
                "event": name,
                "reads": _read(active, active.merged.get(name, name)),
                "reactions": [each.name for each in active.reactions if each.relation == name],
            }
            for name, each in active.relations.items()
            if each.is_declared
        ],
        "triggers": [
            {"head": f"{SIGNS[sign]}{relation}", "reads": _read(active, name)}
            for name, (relation, sign) in active.triggers.items()
        ],
    }


def _read(active: ActiveRules, name: str) -> list[str]:
    """Return the changes, states and event predicates that a relation is derived from."""
    reads = relations_read(active.rules, active.aggregations)

    def all_read(reader: str) -> Iterator[str]:
        for each in reads.get(reader, ()):
            made = active.relations.get(each)
            if made is not None and not made.is_declared and each != reader:
                yield from all_read(each)
            elif not each.startswith("constants "):
                yield each

    return sorted({*all_read(name)})


def _reactions(active: ActiveRules, name: str) -> str:
    found = dict.fromkeys(each.name for each in active.reactions if each.relation == name)
    return f"; {', '.join(found)}" if found else ""


def _accumulators(aggregation: Aggregation) -> str:
    """Return what is computed of each group."""
    return ", ".join(
        f"{each.operator} of column {' '.join(map(str, each.columns))}"
        if each.columns
        else each.operator
        for each in aggregation.accumulators
    )
