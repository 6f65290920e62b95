"""A plan, printed: strata, rules as pipelines with their adornments, and the orders they need."""

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from corollary.analysis.pivots import pivots
from corollary.analysis.strata import Stratum, strata
from corollary.core.pipeline import Absent, Compute, Filter, Pipeline, Probe, Reference, Stage
from corollary.core.plan import WORKING, Aggregate, Call, Derive, Extend, Loop, Plan, Step, Store
from corollary.core.printer import print_condition, print_term
from corollary.core.program import NormalProgram
from corollary.core.states import State
from corollary.core.terms import Slot

INDENT = "    "


def print_plan(plan: Plan, program: NormalProgram) -> str:
    """Return the plan as text, procedure by procedure."""
    base = [name for name, each in program.relations.items() if not each.is_derived]
    lines = [f"base relations: {', '.join(base) or 'none'}"]
    lines += [_stratum_line(layer, program) for layer in strata(program)]
    for name, steps in plan.procedures.items():
        if name == plan.main and all(isinstance(step, Call) for step in steps):
            continue
        lines += ["", f"procedure {_spoken(name)}"]
        for step in steps:
            lines += [INDENT + line for line in _step(step)]
    if plan.orders:
        lines += ["", "orders (columns as they are sorted)"]
        for relation, orders in sorted(plan.orders.items()):
            listed = ", ".join("(" + " ".join(map(str, order)) + ")" for order in orders)
            lines.append(f"{INDENT}{relation}: {listed}")
    return "\n".join(lines)


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


def _step(step: Step) -> Iterator[str]:
    match step:
        case Derive(target=target, pipelines=pipelines, without=without):
            less = f", less {', '.join(map(_reference, without))}" if without else ""
            yield f"derive {target}{less}"
            for pipeline in pipelines:
                yield INDENT + _pipeline(pipeline)
        case Extend(target=target, source=source):
            yield f"extend {target} by {source}"
        case Aggregate(target=target, aggregation=aggregation, body=body):
            groups = " ".join(map(str, aggregation.groups)) or "none"
            of = "" if aggregation.value is None else f" of column {aggregation.value}"
            yield (
                f"aggregate {target} = {aggregation.operator}{of} over {_reference(body)}, "
                f"groups by column {groups}"
            )
        case Store(relation=relation, source=source):
            yield f"store {relation} = {source}"
        case Loop(steps=steps, until_empty=until_empty):
            yield f"repeat until empty: {', '.join(map(_reference, until_empty))}"
            for inner in steps:
                yield from (INDENT + line for line in _step(inner))
        case Call(procedure=procedure):
            yield f"call {_spoken(procedure)}"
        case _:
            assert_never(step)


def _spoken(procedure: str) -> str:
    return procedure.replace(WORKING, " ").strip()


def _pipeline(pipeline: Pipeline) -> str:
    stages = " → ".join(_stage(stage) for stage in pipeline.stages) or "once"
    return f"{stages} ⇒ ({_slots(pipeline.head)})"


def _stage(stage: Stage) -> str:
    match stage:
        case Probe(source=source, slots=slots, bound=bound):
            pattern = "".join("b" if at in bound else "f" for at in range(len(slots)))
            adornment = f"^{pattern}" if pattern else ""
            return f"{_reference(source)}{adornment}({_slots(slots)})"
        case Absent(source=source, slots=slots):
            return f"!{_reference(source)}({_slots(slots)})"
        case Filter(condition=condition):
            return print_condition(condition)
        case Compute(variable=variable, expression=expression):
            return f"{variable.name} := {print_term(expression)}"
        case _:
            assert_never(stage)


def _slots(slots: Sequence[Slot]) -> str:
    return ", ".join(print_term(slot) for slot in slots)


def _reference(reference: Reference) -> str:
    if reference.state is State.NEW:
        return reference.relation
    return f"{reference.relation}@{reference.state}"


def plan_as_json(plan: Plan, program: NormalProgram) -> dict[str, Any]:
    """Return the plan as a JSON document: strata, procedures as lines, orders."""
    return {
        "base": [name for name, each in program.relations.items() if not each.is_derived],
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
            _spoken(name): [line for step in steps for line in _step(step)]
            for name, steps in plan.procedures.items()
        },
        "orders": {name: [list(order) for order in each] for name, each in plan.orders.items()},
    }
