"""What the compiler returns: a query, the tables that it reads, and how to read its result."""

from enum import StrEnum
from typing import TYPE_CHECKING

from corollary.core.logic import Constant
from corollary.core.pipeline import Reference
from corollary.core.types import Type
from corollary.data_class import dataclass

if TYPE_CHECKING:
    from sqlglot import exp

MARK = "mark"
"""The column that says that an expression of a row has no value."""

ROWS = "rows"
"""The column that says how many rows a group has."""


class Representation(StrEnum):
    """The two forms of a column; each is the first letter of the names of such columns."""

    CODE = "c"
    VALUE = "v"


@dataclass(frozen=True, slots=True)
class InputTable:
    """A table that a query reads: a relation in a state, with some of its columns."""

    name: str
    source: Reference
    columns: tuple[tuple[Representation, int], ...]


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the result in one of the forms, or a constant that is not in the query."""

    type: Type
    form: Representation | None = None
    constant: Constant | None = None


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A pipeline or an aggregation as SQL.

    Attributes:
        query: the columns that are not constants as `h0`, `h1`, …, and `mark` if `has_mark`. Rows
            may occur more than once; those of a bag do as often as they are derived.
        fault_queries: each gives a row if an expression had no value.
        has_mark: whether rows that may lack a value are marked.
        outputs: the columns of the result.
        inputs: the tables that the queries read.
    """

    query: "exp.Select"
    fault_queries: "tuple[exp.Select, ...]"
    has_mark: bool
    outputs: tuple[OutputColumn, ...]
    inputs: tuple[InputTable, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """What is asked of the groups: the value of an aggregate, or a part of its running totals.

    Attributes:
        operator: the aggregate; of running totals, `count` for n and `sum` for the words of a sum.
        column: the column of the rows that is aggregated; None for the number of rows.
        result: the type of the value; None for running totals (`core/totals.py`).
    """

    operator: str
    column: int | None
    result: Type | None


@dataclass(frozen=True, slots=True)
class CompiledGroups:
    """A query for groups.

    Attributes:
        compiled: the query. Its columns are the keys as `h0`, `h1`, …, those of the summaries as
            `m0`, `m1`, …, the number of rows as `rows`, and `mark` if there is one; its outputs are
            the keys alone.
        summaries: for each list of summaries the number of its first column, and how many it has.
    """

    compiled: CompiledQuery
    summaries: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class NotCompiled:
    """Why something is not handed over."""

    reason: str
