"""CREATE TABLE as declarations, directives and constraints of the rule language.

| SQL | becomes |
|---|---|
| an enforced PRIMARY KEY, or else a UNIQUE of columns that are NOT NULL | `key(…)` |
| no such key | `bag`, or what `duplicates` says |
| UNIQUE besides the key | `.abort` on values that two rows have |
| FOREIGN KEY | `.abort` on values that are not there; CASCADE, SET NULL: triggers |
| INT, SMALLINT, TINYINT, VARCHAR(n) | `.abort` on values out of range |
| USING format OPTIONS (…) | `.input` |
"""

from collections.abc import Iterable, Mapping, Sequence

from corollary.analysis import change_streams
from corollary.analysis.phrases import one_of, suggest_name
from corollary.core.program import Column, Declaration, Directive, TypeName
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.tokens import SqlName
from corollary.source import Span

_FORMATS = {"csv": "csv", "json": "jsonl", "parquet": "parquet", "delta": "delta"}
_CSV_OPTIONS = {"header": "headers", "sep": "delimiter", "delimiter": "delimiter"}
_OPTIONS = {
    "path": "filename",
    "order": "order",
    "new_columns": "new_columns",
    "max_bad": "max_bad",
    "max_deletes": "max_deletes",
}
_CHANNELS = {
    **change_streams.PARAMETERS,
    "postgresql": ("connection", "table", "order", "new_columns", "max_bad", "max_deletes"),
    "iceberg": ("catalog", "table", "order", "new_columns", "max_bad", "max_deletes"),
}
"""The options of what is no file, by the value of `IO`."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table of CREATE TABLE as it is declared.

    Attributes:
        statement: what was written.
        key: the columns of the key, by number; None if there is none.
        uniques: the other enforced UNIQUE constraints, with their places.
    """

    statement: nodes.CreateTable
    declaration: Declaration
    key: tuple[int, ...] | None
    uniques: Mapping[tuple[int, ...], Span]

    def positions(self, names: Iterable[SqlName]) -> tuple[int, ...]:
        """Return the numbers of columns."""
        columns = [column.name.text for column in self.statement.columns]
        return tuple(find_column(self.statement.name.text, columns, name) for name in names)


def find_column(table: str, columns: Sequence[str], name: SqlName) -> int:
    """Return the number of a column; case does not matter unless two differ in it only.

    Raises:
        InputError: there is no such column, or there are two.
    """
    found = [at for at, each in enumerate(columns) if each.lower() == name.text.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        both = " and ".join(f"`{columns[at]}`" for at in found)
        raise InputError.of(
            "C1367",
            f"`{name.text}` can be {both} of `{table}`, which differ in case only.",
            name.span,
            "give the columns names that differ in more",
        )
    cure = (
        suggest_name(name.text, columns) or f"its columns are {one_of(f'`{c}`' for c in columns)}"
    )
    raise InputError.of("C1367", f"`{table}` has no column `{name.text}`.", name.span, cure)


def lay_out_table(statement: nodes.CreateTable) -> TableLayout:
    """Return the declaration of a table.

    Raises:
        InputError: two columns have one name, or a key does not fit.
    """
    names = [column.name.text for column in statement.columns]
    if not names:
        raise InputError.of("C1361", "A table has at least one column.", statement.span)
    _check_distinct(statement)
    keys: list[tuple[int, ...]] = []
    uniques: dict[tuple[int, ...], Span] = {}
    not_null = {at for at, each in enumerate(statement.columns) if not each.type.type.nullable}
    for constraint in statement.constraints:
        if not isinstance(constraint, nodes.KeyConstraint):
            continue
        found = tuple(find_column(statement.name.text, names, each) for each in constraint.columns)
        if constraint.is_primary:
            not_null |= set(found)
        if constraint.is_enforced and constraint.is_primary:
            if keys:
                text = f"`{statement.name.text}` has two primary keys."
                raise InputError.of("C1367", text, constraint.span, "write `UNIQUE` for the second")
            keys.append(found)
        elif constraint.is_enforced:
            uniques.setdefault(found, constraint.span)
    if not keys:
        whole = next((each for each in uniques if set(each) <= not_null), None)
        if whole is not None:
            keys.append(whole)
            del uniques[whole]
    columns = tuple(
        Column(
            each.name.text,
            TypeName.of(each.type.type.with_null(at not in not_null), each.name.span),
            each.name.span,
        )
        for at, each in enumerate(statement.columns)
    )
    key = tuple(dict.fromkeys(keys[0])) if keys else None
    is_set = key is not None or statement.duplicates is nodes.Duplicates.DROP
    declaration = Declaration(
        statement.name.text,
        columns,
        key=tuple(names[at] for at in key or ()),
        is_bag=not is_set,
        span=statement.span,
    )
    return TableLayout(statement, declaration, key, uniques)


def _check_distinct(statement: nodes.CreateTable) -> None:
    seen: set[str] = set()
    for column in statement.columns:
        if column.name.text.lower() in seen:
            raise InputError.of(
                "C1367",
                f"`{statement.name.text}` has two columns `{column.name.text}`; case does not "
                "matter.",
                column.name.span,
                "give one of them another name",
            )
        seen.add(column.name.text.lower())


# --- where the data comes from -----------------------------------------------------------------


def source_of(statement: nodes.CreateTable) -> tuple[Directive, ...]:
    """Return the `.input` of a table, if it has one.

    Raises:
        InputError: the format or an option is not known.
    """
    if statement.source_format is None:
        if statement.options:
            raise InputError.of(
                "C1366",
                "Options say how a source is read, but no format is named.",
                statement.options[0].span,
                "write `USING csv`, or another format, before them",
            )
        return ()
    given = statement.source_format
    format_ = given.text.lower()
    if format_ in _CHANNELS:
        names = {each: each for each in _CHANNELS[format_] if each != "IO"}
        if names.pop("filename", None):
            names["path"] = "filename"
        parameters = {"IO": format_, **_given_options(statement, format_, names)}
        return (Directive("input", statement.name.text, tuple(parameters.items()), given.span),)
    if format_ not in _FORMATS:
        raise InputError.of(
            "C1366",
            f"There is no format `{given.text}`.",
            given.span,
            suggest_name(format_, _FORMATS)
            or f"write {one_of(f'`{each}`' for each in (*_FORMATS, *_CHANNELS))}",
        )
    known = {**_OPTIONS, **(_CSV_OPTIONS if format_ == "csv" else {})}
    parameters = {"filename": f"{statement.name.text}.{format_}", "format": _FORMATS[format_]}
    if format_ == "csv":
        parameters |= {"delimiter": ",", "rfc4180": "true"}
    parameters |= _given_options(statement, format_, known)
    name = statement.name.text
    return (Directive("input", name, tuple(parameters.items()), given.span),)


def _given_options(
    statement: nodes.CreateTable, format_: str, known: Mapping[str, str]
) -> dict[str, str]:
    """Return the parameters that the options of a source are.

    Raises:
        InputError: one is not known.
    """
    found = {}
    for option in statement.options:
        if option.name.lower() not in known:
            listed = f"options are {one_of(f'`{each}`' for each in known)}"
            raise InputError.of(
                "C1366",
                f"A source of `{format_}` has no option `{option.name}`.",
                option.span,
                suggest_name(option.name.lower(), known) or listed,
            )
        found[known[option.name.lower()]] = option.value
    return found
