"""Pipelines: one rule body each, its literals in the order in which they are probed."""

from collections.abc import Container, Iterable, Sequence
from typing import assert_never

from corollary.core import logic
from corollary.core.states import State
from corollary.data_class import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    """A relation, or a working relation of a plan, in one of its states."""

    relation: str
    state: State = State.NEW


@dataclass(frozen=True, slots=True)
class Links:
    """A working relation of pairs of tuples: a head with its rank, and a premise with its rank.

    Attributes:
        head, premise: their relations.
        head_arity: the number of columns of the head, without its rank.
        head_keys, premise_keys: their key columns.
    """

    relation: str
    head: str
    premise: str
    head_arity: int
    head_keys: tuple[int, ...]
    premise_keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least or the greatest value of a column, null left out."""

    column: int
    is_greatest: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """For each row, find the tuples that match it in the `bound` columns; bind the others.

    Attributes:
        extreme: if there is one, only a match with this value is needed for each row; an engine
            may find others, too.
    """

    source: Reference
    slots: tuple[logic.Slot, ...]
    bound: tuple[int, ...]
    extreme: Extreme | None = None

    @property
    def adornment(self) -> str:
        """The binding pattern, such as `bf`."""
        return "".join("b" if at in self.bound else "f" for at in range(len(self.slots)))


@dataclass(frozen=True, slots=True)
class AntiProbe:
    """Keep the rows whose fully bound tuple is not in the source (an anti-join)."""

    source: Reference
    slots: tuple[logic.Slot, ...]


@dataclass(frozen=True, slots=True)
class Compute:
    """Bind a variable to the value of an expression; `range` gives several rows.

    Rows with a null value are dropped (the stage comes from an equation, and comparisons with null
    are false), unless `accepts_null`, which is so for an expression in a head.
    """

    variable: logic.Variable
    expression: logic.Expression
    accepts_null: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the rows for which the condition is true."""

    condition: logic.Condition


Stage = Probe | AntiProbe | Compute | Filter


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The stages of one body, then the head.

    Attributes:
        judge: the same body with every relational literal before every expression. An expression
            without a value (an overflow, say) is an error only where all relational literals hold
            and no condition is false; when the stages meet one, the judge decides.
        is_lenient: a missing value is not an error, and a row in which nothing is false is kept.
        is_bag: heads are not made distinct: a head comes as often as it is derived.
        is_deferred: a later step decides whether a missing value is an error.
    """

    stages: tuple[Stage, ...]
    head: tuple[logic.Variable | logic.Constant, ...]
    origin: logic.Origin
    judge: tuple[Stage, ...] = ()
    is_lenient: bool = False
    is_bag: bool = False
    is_deferred: bool = False

    @property
    def first_source(self) -> Reference | None:
        """The source of the first probe, if there is one."""
        return next((each.source for each in self.stages if isinstance(each, Probe)), None)

    @property
    def adornments(self) -> tuple[str, ...]:
        """The adornment of every probe."""
        return tuple(stage.adornment for stage in self.stages if isinstance(stage, Probe))


def slot_names(slots: Iterable[logic.Slot]) -> set[str]:
    """Return the names of the variables among some arguments."""
    return {slot.name for slot in slots if isinstance(slot, logic.Variable)}


def bound_columns(slots: Sequence[logic.Slot], bound: Container[str]) -> tuple[int, ...]:
    """Return the columns that hold constants or bound variables."""
    return tuple(
        column
        for column, slot in enumerate(slots)
        if isinstance(slot, logic.Constant)
        or (isinstance(slot, logic.Variable) and slot.name in bound)
    )


def is_range(expression: logic.Expression) -> bool:
    """Whether an expression gives several values."""
    return isinstance(expression, logic.Functor) and expression.name == "range"


def names_needed(stage: Stage) -> set[str]:
    """Return the names of the variables that have values before a stage can run.

    >>> variables = logic.Variable("x"), logic.Variable("y")
    >>> sorted(names_needed(Probe(Reference("r"), variables, (0,))))
    ['x']
    """
    if not isinstance(stage, Probe):
        return names_read(stage)
    return slot_names(stage.slots[column] for column in stage.bound)


def names_read(stage: Stage) -> set[str]:
    """Return the names of the variables that a stage matches or computes with.

    >>> less = logic.Condition("<", logic.Variable("x"), logic.Variable("y"))
    >>> sorted(names_read(Filter(less)))
    ['x', 'y']
    """
    match stage:
        case Probe(slots=slots) | AntiProbe(slots=slots):
            return slot_names(slots)
        case Filter(condition=condition):
            return logic.variable_names(condition)
        case Compute(expression=expression):
            return {variable.name for variable in logic.variables_of(expression)}
        case _:
            assert_never(stage)
