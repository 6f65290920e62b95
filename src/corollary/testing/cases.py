"""What a case is: given rows, and steps that change something and say what holds then.

Values of rows are kept as the texts of their file until the relation they are for is known: the
type of a column says what a text means, and a finding about it has its position.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from corollary.console import counted
from corollary.core.logic import Value
from corollary.core.program import NormalProgram, Program, Relation
from corollary.core.types import Type
from corollary.core.values import parse_value
from corollary.data_class import dataclass
from corollary.database.program.loaded_program import load_program, read_programs
from corollary.errors import InputError
from corollary.source import Span


@dataclass(frozen=True, slots=True)
class CaseValue:
    """A value in a file of cases: a text, None for null, a list of nodes, or a mapping to nodes.

    Attributes:
        keys: of a mapping, where its keys are.
    """

    value: "str | list[CaseValue] | dict[str, CaseValue] | None"
    span: Span
    keys: dict[str, Span] = field(default_factory=dict)

    def typed(self, type_: Type) -> Value:
        """Return it as a value of a type.

        Raises:
            ValueError: it is none; the message is for users.
        """
        match self.value:
            case None if type_.nullable or type_.record is not None:
                return None
            case None:
                raise ValueError("null, where no null is allowed")
            case str(text):  # also the empty one, in a column that may be null
                return parse_value(text, type_.with_null(False))
            case list(parts) if type_.element is not None:
                return tuple(each.typed(type_.element.with_null(True)) for each in parts)
            case dict(parts) if type_.is_struct:
                none = CaseValue(None, self.span)
                return tuple(
                    parts.get(name, none).typed(inner.with_null(True))
                    for name, inner in type_.members
                )
            case dict(parts) if type_.is_map:
                (_, key), (_, held) = type_.members
                pairs = [
                    (parse_value(name, key), each.typed(held.with_null(True)))
                    for name, each in parts.items()
                ]
                return tuple(sorted(pairs, key=lambda pair: cast(Any, pair[0])))
            case _:
                raise ValueError(f"a {'list' if isinstance(self.value, list) else 'mapping'}")


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a relation as a file has them; or a question in SQL that has them.

    Attributes:
        relation: the name.
        span: of the name.
        nodes: each a list of values in the order of the columns, or a mapping from their names.
        question: instead of nodes.
    """

    relation: str
    span: Span
    nodes: tuple[CaseValue, ...] = ()
    question: str | None = None

    def columns(self, relation: Relation) -> tuple[str, ...]:
        """Return the columns that rows have values for: all unless all rows are mappings.

        Raises:
            InputError: `C1802`, the relation has no such column.
        """
        named: set[str] = set()
        for row in self.nodes:
            named |= row.keys.keys() if isinstance(row.value, dict) else set(relation.columns)
            for name, span in row.keys.items():
                if name not in relation.columns:
                    text = f"`{relation.name}` has no column `{name}`."
                    raise InputError.of("C1802", text, span, _columns_note(relation))
        return tuple(each for each in relation.columns if each in named or not self.nodes)

    def typed(self, relation: Relation, columns: Sequence[str]) -> list[tuple[Value, ...]]:
        """Return the rows as Python values of some columns.

        Raises:
            InputError: `C1802`, a row does not fit the relation.
        """
        return [self._typed_row(row, relation, columns) for row in self.nodes]

    def _typed_row(
        self, row: CaseValue, relation: Relation, columns: Sequence[str]
    ) -> tuple[Value, ...]:
        match row.value:
            case dict(members):
                cells = [members.get(name, CaseValue(None, row.span)) for name in columns]
            case list(parts) if len(parts) == relation.arity:
                cells = parts
            case list(parts):
                text = (
                    f"The row has {counted(len(parts), 'value')}, and `{relation.name}` has "
                    f"{counted(relation.arity, 'column')}."
                )
                raise InputError.of("C1802", text, row.span, _columns_note(relation))
            case _ if relation.arity == 1:
                cells = [row]
            case _:
                text = "A row is a list of values, or a mapping from the names of columns."
                raise InputError.of("C1802", text, row.span, _columns_note(relation))
        found = []
        for name, cell in zip(columns, cells, strict=True):
            type_ = relation.types[relation.columns.index(name)]
            try:
                found.append(cell.typed(type_))
            except ValueError as error:
                text = f"The value for `{name}` of `{relation.name}` does not fit: {error}."
                note = f"write a value of the type `{type_}`; a text `null` is in quotes"
                raise InputError.of("C1802", text, cell.span, note) from None
        return tuple(found)


def _columns_note(relation: Relation) -> str:
    return f"the columns are {', '.join(relation.columns) or 'none'}"


class ProgramFiles:
    """The files of a program, which several cases may have; they are read once."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = tuple(paths)

    @cached_property
    def program(self) -> Program:
        """The program.

        Raises:
            InputError: with the findings of all files.
        """
        return read_programs(self.paths)

    @cached_property
    def normal(self) -> NormalProgram:
        """Its normal form."""
        return load_program(self.program).normal


@dataclass(frozen=True, slots=True)
class CaseChange:
    """One operation of a step.

    Attributes:
        operation: `insert`, `delete` or `upsert` with rows; `add-rule`, `remove-rule`, `sql` or
            `today` with a text; `program` with files.
    """

    operation: str
    span: Span
    rows: Rows | None = None
    text: str = ""
    files: ProgramFiles | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """That the step is refused: with this code, by this constraint, with this in its message."""

    span: Span
    code: str = ""
    constraint: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ExpectedProof:
    """That a tuple holds, and which base tuples its proof of least height rests on."""

    goal: str
    span: Span
    base: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expectations:
    """What holds after a step.

    Attributes:
        rows: all rows of some relations.
        added: all that some relations gain in the step; `removed` what they lose.
        events: all tuples of events that are alerted.
        messages: those of all alerts; None if nothing is said of them.
    """

    rows: tuple[Rows, ...] = ()
    added: tuple[Rows, ...] = ()
    removed: tuple[Rows, ...] = ()
    events: tuple[Rows, ...] = ()
    messages: tuple[str, ...] | None = None
    refusal: Refusal | None = None
    proofs: tuple[ExpectedProof, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseStep:
    """One transaction, and what holds after it."""

    changes: tuple[CaseChange, ...]
    expected: Expectations


@dataclass(frozen=True, slots=True)
class Case:
    """A case: the rows there are first, and the steps from there.

    Attributes:
        steps: the first one has no changes if something is expected of the given rows alone.
        today: the day that `today()` gives at first.
    """

    name: str
    span: Span
    files: ProgramFiles
    given: tuple[Rows, ...]
    steps: tuple[CaseStep, ...]
    today: str = ""
