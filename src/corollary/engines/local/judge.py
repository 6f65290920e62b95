"""Deciding whether a missing value counts: false dominates error.

An expression without a value (overflow, division by zero, …) is an error of its rule instance only
if all relational literals of the instance hold and no condition is false. The judge runs a body
with the relational literals first, so the answer does not depend on the order of evaluation.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from corollary.core.pipeline import Absent, Compute, Filter, Pipeline, Probe
from corollary.core.rules import names_in
from corollary.core.terms import Functor, Variable, variables_of
from corollary.core.values import text_of
from corollary.engines.local import expressions, generate, native
from corollary.engines.local.codes import Dictionary
from corollary.engines.local.pipelines import Frame, PipelineRunner
from corollary.engines.local.table import Table
from corollary.errors import EvaluationError

Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class _Trial:
    """Rows under judgement: which are still possible, and which variables lack a value."""

    frame: Frame
    alive: Mask
    reasons: list[tuple[Mask, str]] = field(default_factory=list)
    lacking: dict[str, Mask] = field(default_factory=dict)

    def take(self, rows: npt.NDArray[np.int64]) -> None:
        """Keep these rows, as often as they are named."""
        columns = {name: column[rows] for name, column in self.frame.columns.items()}
        self.frame = Frame(columns, len(rows))
        self.alive = self.alive[rows]
        self.reasons = [(mask[rows], reason) for mask, reason in self.reasons]
        self.lacking = {name: mask[rows] for name, mask in self.lacking.items()}

    def lacks(self, names: set[str]) -> Mask:
        """Return the rows in which one of the variables has no value."""
        mask = np.zeros(self.frame.count, np.bool_)
        for name in names & self.lacking.keys():
            mask |= self.lacking[name]
        return mask


def judge(pipeline: Pipeline, tables: Mapping[str, Table], dictionary: Dictionary) -> None:
    """Raise an EvaluationError if some instance of the pipeline has no value."""
    relational = tuple(stage for stage in pipeline.judge if isinstance(stage, Probe))
    rest = pipeline.judge[len(relational) :]
    names = {
        slot.name for stage in relational for slot in stage.slots if isinstance(slot, Variable)
    }
    head = tuple(Variable(name) for name in sorted(names))
    runner = PipelineRunner(Pipeline(relational, head, pipeline.origin), tables, dictionary)
    for columns, count in runner.run():
        frame = Frame(dict(zip(sorted(names), columns, strict=True)), count)
        trial = _Trial(frame, np.ones(count, np.bool_))
        for stage in rest:
            match stage:
                case Filter(condition=condition):
                    verdict = expressions.holds(
                        condition, trial.frame.columns, trial.frame.count, dictionary
                    )
                    lacking = trial.lacks(names_in(condition))
                    faulty = lacking.copy()
                    for mask, reason in verdict.faults:
                        trial.reasons.append((mask & ~lacking, reason))
                        faulty |= mask
                    trial.alive &= verdict.true | faulty
                case Compute():
                    _compute(stage, trial, dictionary)
                case Absent(slots=slots):
                    unknown = trial.lacks(
                        {slot.name for slot in slots if isinstance(slot, Variable)}
                    )
                    table = tables[stage.source.relation]
                    words = table.pack(
                        [runner.column(slot, trial.frame) for slot in slots], trial.frame.count
                    )
                    trial.alive &= unknown | ~table.contains(words, stage.source.state)
                case Probe():
                    raise AssertionError("relational literals come first")
        for mask, reason in trial.reasons:
            guilty = np.flatnonzero(mask & trial.alive)
            if len(guilty):
                raise _error(pipeline, reason, trial.frame, int(guilty[0]), dictionary)


def _compute(stage: Compute, trial: _Trial, dictionary: Dictionary) -> None:
    expression = stage.expression
    frame = trial.frame
    lacking = trial.lacks({variable.name for variable in variables_of(expression)})
    if isinstance(expression, Functor) and expression.name == "range":
        rows, codes, faulty = generate.numbers(expression, frame.columns, frame.count, dictionary)
        trial.take(np.concatenate([rows, faulty]))
        lacking = np.arange(trial.frame.count) >= len(rows)
        trial.reasons.append((lacking, "a range without a direction"))
        codes = np.concatenate([codes, np.zeros(len(faulty), np.int64)])
    else:
        batch = expressions.evaluate(expression, frame.columns, frame.count, dictionary)
        codes = expressions.encode(batch, dictionary)
        for mask, reason in batch.faults:
            trial.reasons.append((mask & ~lacking, reason))
            lacking = lacking | mask
        if batch.nulls is not None and not stage.lets_null:
            trial.alive &= ~batch.nulls | lacking
    trial.frame = Frame({**trial.frame.columns, stage.variable.name: codes}, trial.frame.count)
    trial.lacking[stage.variable.name] = lacking


def _error(
    pipeline: Pipeline, reason: str, frame: Frame, row: int, dictionary: Dictionary
) -> EvaluationError:
    values = ", ".join(
        f"{name} = {text}" for name, text in _row_values(pipeline, frame, row, dictionary)
    )
    where = f" for {values}" if values else ""
    error = EvaluationError.of(
        "C0810",
        f"{reason} in the rule `{pipeline.origin.text}`{where}",
        pipeline.origin.span,
        "add a condition that excludes these values, or change the column's type",
    )
    assert isinstance(error, EvaluationError)
    return error


def _row_values(
    pipeline: Pipeline, frame: Frame, row: int, dictionary: Dictionary
) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for stage in pipeline.judge:
        for slot in stage.slots if isinstance(stage, Probe) else ():
            if isinstance(slot, Variable) and slot.name not in seen and "." not in slot.name:
                seen.add(slot.name)
                code = frame.columns[slot.name][row : row + 1]
                type_ = expressions.type_of(slot)
                value = native.to_python(dictionary.decode(code, type_)[0], type_)
                yield slot.name, "null" if code[0] == 0 else text_of(value, type_)
