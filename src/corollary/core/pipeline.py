"""Pipelines: one rule body each, its literals in the order in which they will be probed."""

from dataclasses import dataclass

from corollary.core.origin import Origin
from corollary.core.rules import Condition
from corollary.core.states import State
from corollary.core.terms import Constant, Expression, Slot, Variable


@dataclass(frozen=True, slots=True)
class Reference:
    """A relation, or a working relation of a plan, in one of its states."""

    relation: str
    state: State = State.NEW


@dataclass(frozen=True, slots=True)
class Probe:
    """Find the tuples whose `bound` columns have the values known so far; bind the others."""

    source: Reference
    slots: tuple[Slot, ...]
    bound: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """Go on only if the fully bound tuple is not there."""

    source: Reference
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Compute:
    """Bind a variable to the value of an expression; `range` gives several.

    A null value ends the row (it comes from an equation, and comparisons with null are false),
    unless `lets_null` says that it stands for an expression in a head.
    """

    variable: Variable
    expression: Expression
    lets_null: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """Go on only if the condition is true."""

    condition: Condition


Stage = Probe | Absent | Compute | Filter


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The stages of one body, then the head.

    Attributes:
        judge: the same body with every relational literal before every expression. An expression
            without a value (an overflow, say) counts only where all relational literals hold and
            no condition is false; when the stages meet one, the judge decides whether it counts.
        is_lenient: a missing value is no error, and a row in which nothing is false is kept.
        is_bag: every way to match counts, so that a head comes as often as it is derived.
    """

    stages: tuple[Stage, ...]
    head: tuple[Variable | Constant, ...]
    origin: Origin
    judge: tuple[Stage, ...] = ()
    is_lenient: bool = False
    is_bag: bool = False

    @property
    def adornments(self) -> tuple[str, ...]:
        """The binding pattern of every probe, such as `bf`."""
        return tuple(
            "".join("b" if column in stage.bound else "f" for column in range(len(stage.slots)))
            for stage in self.stages
            if isinstance(stage, Probe)
        )
