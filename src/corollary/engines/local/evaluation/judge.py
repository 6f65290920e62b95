"""Deciding whether a missing value is an error: false dominates error.

An expression without a value (overflow, division by zero, …) is an error of its rule instance only
if all relational literals of the instance hold and no condition is false. The judge runs a body
with expressions last, so that the answer does not depend on the order of evaluation.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import assert_never

import numpy as np

from corollary.core import logic
from corollary.core.pipeline import (
    AntiProbe,
    Compute,
    Filter,
    Pipeline,
    Probe,
    Stage,
    is_range,
    slot_names,
)
from corollary.core.values import format_value
from corollary.data_class import dataclass
from corollary.engines.local.evaluation import expressions
from corollary.engines.local.evaluation.frames import Frame
from corollary.engines.local.evaluation.kernels import FAILED_CONVERSION, OVERFLOW
from corollary.engines.local.evaluation.pipelines import PipelineRunner, RunContext
from corollary.engines.local.evaluation.value_vector import dense_mask
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values import native
from corollary.engines.local.values.codes import Dictionary
from corollary.errors import EvaluationError

FAULT = re.compile(r'to_[a-z]+\("([^"]*more than one row)"')
"""A conversion that SQL makes to fail: the text says why."""
GENERATED_VARIABLE = re.compile(r"_[0-9]")
"""The names of variables that rewriting introduced; messages omit these."""


@dataclass(slots=True)
class Trial:
    """The instances of a body that the judge decides about, one per row.

    Attributes:
        possible: the rows in which nothing is false so far.
        reasons: rows in which an expression has no value, each with the reason.
        missing: for each variable that some rows have no value of, these rows.
    """

    frame: Frame
    dictionary: Dictionary
    possible: Mask
    reasons: list[tuple[Mask, str]] = field(default_factory=list)
    missing: dict[str, Mask] = field(default_factory=dict)

    def missing_mask(self, names: set[str]) -> Mask:
        """Return the mask of rows in which one of the variables has no value."""
        mask = np.zeros(self.frame.count, np.bool_)
        for name in names & self.missing.keys():
            mask |= self.missing[name]
        return mask

    def expand_range(self, variable: logic.Variable, functor: logic.Functor) -> None:
        """Bind a variable to the values of a range: a row becomes several, one without stays."""
        frame = self.frame
        numbers = expressions.RangeValues(functor, frame.columns, frame.count, self.dictionary)
        batches = list(numbers.batches())
        faulty = numbers.faulty_rows
        rows = np.concatenate([faulty[:0], *(rows for rows, _ in batches)])
        codes = np.concatenate([faulty[:0], *(codes for _, codes in batches)])
        taken = np.concatenate([rows, faulty])
        columns = {name: column[taken] for name, column in frame.columns.items()}
        columns[variable.name] = np.concatenate([codes, np.zeros(len(faulty), np.int64)])
        self.frame = Frame(columns, len(taken))
        self.possible = self.possible[taken]
        self.missing = {name: mask[taken] for name, mask in self.missing.items()}
        self.missing[variable.name] = np.arange(len(taken)) >= len(rows)
        self.reasons = [(mask[taken], reason) for mask, reason in self.reasons]
        self.reasons.append((self.missing[variable.name], "a range without a direction"))

    def bind_equations(self, equations: list[tuple[logic.Variable, logic.Expression]]) -> None:
        """Bind variables by equations until nothing changes.

        A variable may have several equations; the first one with a value in a row binds it there.
        """
        for variable, _ in equations:
            if variable.name not in self.frame.columns:
                unknown = np.zeros(self.frame.count, np.int64)
                self.frame = Frame({**self.frame.columns, variable.name: unknown}, len(unknown))
                self.missing[variable.name] = np.ones(len(unknown), np.bool_)
        has_changed = True
        while has_changed:
            has_changed = False
            for variable, expression in equations:
                missing = self.missing.get(variable.name)
                if missing is None or not missing.any():
                    continue
                frame = self.frame
                batch = expressions.evaluate(
                    expression, frame.columns, frame.count, self.dictionary, self.missing
                )
                found = missing & ~dense_mask(batch.fault_mask, frame.count)
                if found.any():
                    codes = expressions.encode_vector(batch, self.dictionary)
                    column = np.where(found, codes, frame.columns[variable.name])
                    self.frame = Frame({**frame.columns, variable.name: column}, frame.count)
                    self.missing[variable.name] = missing & ~found
                    has_changed = True

    def heads(self, pipeline: Pipeline, runner: PipelineRunner) -> tuple[list[Codes], int]:
        """Return the heads of the rows in which nothing is false and the head has its values."""
        names = slot_names(pipeline.head)
        frame = self.frame.select(self.possible & ~self.missing_mask(names))
        return [runner.operand_column(slot, frame) for slot in pipeline.head], frame.count

    def check_condition(self, condition: logic.Condition) -> None:
        """Exclude the rows in which a condition is false; record those in which it has no value."""
        frame = self.frame
        names = logic.variable_names(condition)
        missing = {name: self.missing[name] for name in names & self.missing.keys()}
        verdict = expressions.evaluate_condition(
            condition, frame.columns, frame.count, self.dictionary, missing
        )
        open_rows = np.zeros(frame.count, np.bool_)
        for mask, reason in verdict.faults:
            open_rows |= mask
            if reason != expressions.MISSING_VARIABLE:
                self.reasons.append((mask, reason))
        self.possible &= verdict.true | open_rows


def judge(tried: PipelineRunner, context: RunContext) -> list[tuple[list[Codes], int]]:
    """Decide about a pipeline in which expressions had no value.

    Returns:
        for a lenient pipeline the heads of all rows in which nothing is false, else nothing.

    Raises:
        EvaluationError: some instance has no value, and the pipeline is not lenient.
    """
    heads: list[tuple[list[Codes], int]] = []
    pipeline, tables, dictionary = tried.pipeline, tried.tables, tried.dictionary
    relational, rest = split_stages(pipeline)
    head = tuple(
        logic.Variable(name) for name in sorted(set().union(*map(bound_variables, relational)))
    )
    body = Pipeline(relational, head, pipeline.origin, is_bag=pipeline.is_bag)
    runner = PipelineRunner(body, tables, dictionary)
    for frame in runner.frames(context):
        trial = Trial(frame, dictionary, np.ones(frame.count, np.bool_))
        check_conditions(trial, rest)
        _look_up(trial, rest, tables, runner)
        if pipeline.is_lenient:
            heads.append(trial.heads(pipeline, runner))
            continue
        for mask, reason in trial.reasons:
            guilty = np.flatnonzero(mask & trial.possible)
            if len(guilty):
                raise missing_value_error(pipeline, reason, trial.frame, int(guilty[0]), dictionary)
    return heads


def split_stages(pipeline: Pipeline) -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
    """Return the stages of the judge up to its last probe, and the others."""
    probes = [at for at, stage in enumerate(pipeline.judge) if isinstance(stage, Probe)]
    end = probes[-1] + 1 if probes else 0
    return pipeline.judge[:end], pipeline.judge[end:]


def bound_variables(stage: Stage) -> set[str]:
    """Return the variables that a stage binds."""
    match stage:
        case Probe(slots=slots):
            return slot_names(slots)
        case Compute(variable=variable):
            return {variable.name}
        case _:
            return set()


def check_conditions(trial: Trial, stages: tuple[Stage, ...]) -> None:
    """Bind all variables that can be bound, then check every condition."""
    seen: list[logic.Condition] = []
    for stage in stages:
        if isinstance(stage, Compute) and is_range(stage.expression):
            assert isinstance(stage.expression, logic.Functor)
            trial.bind_equations(list(equations_of(seen)))
            trial.expand_range(stage.variable, stage.expression)
        else:
            seen += conditions_of((stage,))
    trial.bind_equations(list(equations_of(seen)))
    for condition in seen:
        trial.check_condition(condition)


def conditions_of(stages: tuple[Stage, ...]) -> list[logic.Condition]:
    """Return the conditions of stages; a computation, unless of a range, is an equation."""
    found: list[logic.Condition] = []
    for stage in stages:
        match stage:
            case Filter(condition=condition):
                found.append(condition)
            case Compute(variable=variable, expression=expression, accepts_null=lets_null):
                if not is_range(expression):
                    found.append(logic.Condition("is" if lets_null else "=", variable, expression))
            case AntiProbe() | Probe():
                pass
            case _:
                assert_never(stage)
    return found


def _look_up(
    trial: Trial, stages: tuple[Stage, ...], tables: Mapping[str, Table], runner: PipelineRunner
) -> None:
    """Exclude the rows in which a negated literal is false."""
    for stage in stages:
        if isinstance(stage, AntiProbe):
            variables = slot_names(stage.slots)
            table = tables[stage.source.relation]
            slots = [runner.operand_column(slot, trial.frame) for slot in stage.slots]
            found = table.contains_codes(slots, trial.frame.count, stage.source.state)
            trial.possible &= trial.missing_mask(variables) | ~found


def equations_of(found: list[logic.Condition]) -> Iterator[tuple[logic.Variable, logic.Expression]]:
    """Yield the variables that conditions equate with an expression, each with this."""
    for condition in found:
        if condition.operator in ("=", "is"):
            for one, other in (
                (condition.left, condition.right),
                (condition.right, condition.left),
            ):
                if isinstance(one, logic.Variable):
                    yield one, other


def missing_value_error(
    pipeline: Pipeline, reason: str, frame: Frame, row: int, dictionary: Dictionary
) -> EvaluationError:
    """Return the error for an instance without a value."""
    values = ", ".join(
        f"{name} = {text}" for name, text in _row_values(pipeline, frame, row, dictionary)
    )
    where = f" for {values}" if values else ""
    rule, cure = f" in the rule `{pipeline.origin.text}`", "or change the column's type"
    if _is_sql(pipeline):
        said = FAULT.search(pipeline.origin.text) if reason == FAILED_CONVERSION else None
        reason, rule = said[1] if said else reason, ""
        cure = "or write `try_cast`, `try_divide` and the like"
        if said:
            cure = "or let the subquery be an aggregate"
        elif reason == OVERFLOW:
            cure = "cast an operand to a wider type, or write `try_add`, `try_cast` and the like"
    return EvaluationError.of(
        "C0810",
        f"{reason[0].upper() if not rule else reason[0]}{reason[1:]}{rule}{where}",
        pipeline.origin.span,
        f"add a condition that excludes these values, {cure}",
    )


def _is_sql(pipeline: Pipeline) -> bool:
    span = pipeline.origin.span
    return span is not None and span.is_sql


def _row_values(
    pipeline: Pipeline, frame: Frame, row: int, dictionary: Dictionary
) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    is_sql = _is_sql(pipeline)
    for stage in pipeline.judge:
        slots = stage.slots if isinstance(stage, Probe) else ()
        if isinstance(stage, Probe) and is_sql and stage.source.relation.endswith(".rows"):
            slots = slots[:-1]  # the last one is the number of copies
        for slot in slots:
            if (
                isinstance(slot, logic.Variable)
                and slot.name not in seen
                and not GENERATED_VARIABLE.match(slot.name)
            ):
                seen.add(slot.name)
                code = frame.columns[slot.name][row : row + 1]
                type_ = logic.type_of(slot)
                if code[0] == 0:
                    yield slot.name, "null"
                    continue
                value = native.to_python(dictionary.decode(code, type_)[0], type_)
                yield slot.name, format_value(value, type_)
