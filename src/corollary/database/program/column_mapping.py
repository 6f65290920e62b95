"""How the columns of a relation change: which are kept under which name, which are new."""

from collections.abc import Mapping
from dataclasses import field

import pyarrow as pa

from corollary.core.arrow import nullary_table, schema_of
from corollary.core.logic import Value
from corollary.core.program import Column, Relation
from corollary.core.types import DECIMAL_MAX_DIGITS, Type, is_wider
from corollary.core.values import parse_value
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from corollary.warehouse.copies import distinct


@dataclass(frozen=True, slots=True)
class Alteration:
    """A change of the columns of a relation.

    Attributes:
        relation: the relation whose columns change.
        add: new columns, such as `note: symbol?`; they become the last ones.
        values: what old tuples have in new columns, as text; null where nothing is given.
        rename: new names by old ones.
        drop: the columns that are dropped.
        constants: what old tuples have in new columns, as values.
        new_name: of the relation; empty if it keeps its own.
    """

    relation: str
    add: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    rename: Mapping[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    constants: Mapping[str, Value] = field(default_factory=dict)
    new_name: str = ""

    def columns_to_add(self) -> tuple[Column, ...]:
        """Return the new columns.

        Raises:
            InputError: one does not have the form of a column.
        """
        found: list[Column] = []
        for text in self.add:
            try:
                (declared,) = parse(SourceFile("--add", f".decl r({text})")).declarations
                found += declared.columns
            except (InputError, ValueError):
                cure = "write one such as `note: symbol?`"
                raise alter_error(f"`{text}` is not a column.", cure) from None
        return tuple(found)


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """How a tuple of a relation becomes one of the relation after it.

    Attributes:
        before: the relation until now.
        after: the relation from now on.
        sources: for each new column, the position of the old one, or a value.
    """

    before: Relation
    after: Relation
    sources: tuple["int | FillValue", ...]

    @property
    def is_same(self) -> bool:
        """Whether the tuples stay as they are; columns may have other names."""
        is_there = self.sources == tuple(range(self.before.arity))
        return is_there and self.before.types == self.after.types

    @property
    def loses_columns(self) -> bool:
        """Whether different tuples may become equal."""
        return len({each for each in self.sources if isinstance(each, int)}) < self.before.arity

    def convert(self, old: pa.Table, *, has_copies: bool = False) -> pa.Table:
        """Return old tuples, converted; each once, unless they are copies.

        Raises:
            InputError: `C0967`, a column has nulls that may have none.
        """
        if not self.after.arity:
            return nullary_table(int(old.num_rows > 0))
        schema = schema_of(self.after)
        columns = [
            _cast(old.column(each), kind.type)
            if isinstance(each, int)
            else pa.repeat(pa.scalar(each.value, kind.type), old.num_rows)
            for each, kind in zip(self.sources, schema, strict=True)
        ]
        for column, kind in zip(columns, schema, strict=True):
            if column.null_count and not kind.nullable:
                text = f"`{kind.name}` of `{self.after.name}` has nulls, and may have none."
                cure = "give these rows a value, or delete them, first"
                raise InputError.of("C0967", text, None, cure)
        made = pa.Table.from_arrays(columns, schema=schema)
        return distinct(made) if self.loses_columns and not has_copies else made


def _cast(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_integer(column.type) and pa.types.is_decimal(to):
        column = column.cast(pa.decimal128(DECIMAL_MAX_DIGITS, to.scale))
    return column.cast(to)


@dataclass(frozen=True, slots=True)
class FillValue:
    """The value that old tuples get in a new column."""

    value: Value


def map_columns(before: Relation, after: Relation, asked: Alteration) -> ColumnMapping:
    """Return how the tuples of a relation are converted.

    Raises:
        InputError: `C0966`, a new column has no value; `C0967`, a column has another type.
    """
    findings: list[Diagnostic] = []
    old_names = {asked.rename.get(name, name): at for at, name in enumerate(before.columns)}
    for name in asked.drop:
        old_names.pop(name, None)
    sources: list[int | FillValue] = []
    added: set[str] = set()
    for name, type_ in zip(after.columns, after.types, strict=True):
        at = old_names.get(name)
        if at is None:
            added.add(name)
            try:
                sources.append(FillValue(_value(name, type_, asked)))
            except ValueError as error:
                text = f"The new column `{name}` of `{after.name}` has no value: {error}."
                cure = f"give the value of old tuples with `--value {name}=…`"
                findings.append(Diagnostic("C0966", text, None, cure))
            continue
        sources.append(at)
        was = before.types[at]
        if not is_wider(was, type_):
            text = f"The column `{name}` of `{after.name}` is a `{was}`, and would be a `{type_}`."
            cure = (
                "the new type has to have all values of the old one; add a column of the new type, "
                "and drop the old one later"
            )
            findings.append(Diagnostic("C0967", text, None, cure))
    for name in asked.values.keys() - added:
        text = f"There is no new column `{name}` that could get a value."
        findings.append(Diagnostic("C0962", text, None, "name a column that is added"))
    if findings:
        raise InputError(findings)
    return ColumnMapping(before, after, tuple(sources))


def _value(name: str, type_: Type, asked: Alteration) -> Value:
    if name in asked.constants:
        return asked.constants[name]
    if name in asked.values:
        return parse_value(asked.values[name], type_)
    if not type_.nullable:
        raise ValueError(f"a `{type_}` is never null")
    return None


def alter_error(message: str, cure: str) -> InputError:
    """Return the error of columns that do not exist, or exist already."""
    return InputError([Diagnostic("C0962", message, None, cure)])
