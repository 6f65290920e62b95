"""The types that SQL names: `INT`, `DECIMAL(12, 2)`, `STRING` …."""

from contextlib import suppress
from dataclasses import replace

from sqlglot import exp

from corollary.core import types
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.parse import span_of, text_of
from corollary.source import SourceFile, Span


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type of SQL, and the bits of its integers."""

    type: types.Type
    bits: int = 64


_TYPES = {
    "TINYINT": ColumnType(types.NUMBER, 8),
    "SMALLINT": ColumnType(types.NUMBER, 16),
    "INT": ColumnType(types.NUMBER, 32),
    "BIGINT": ColumnType(types.NUMBER, 64),
    "DOUBLE": ColumnType(types.FLOAT),
    "FLOAT": ColumnType(types.FLOAT32),
    "TEXT": ColumnType(types.SYMBOL),
    "VARCHAR": ColumnType(types.SYMBOL),
    "CHAR": ColumnType(types.SYMBOL),
    "BOOLEAN": ColumnType(types.BOOL),
    "BINARY": ColumnType(types.BINARY),
    "DATE": ColumnType(types.DATE),
    "TIMESTAMP": ColumnType(types.TIMESTAMP),
    "TIME": ColumnType(types.TIME_OF_DAY),
    "TIMESTAMPNTZ": ColumnType(types.TIMESTAMP_NTZ),
    "TIMESTAMPTZ": ColumnType(types.TIMESTAMP),
    "TIMESTAMPLTZ": ColumnType(types.TIMESTAMP),
}
"""sqlglot's names for Spark's types; STRING is TEXT, TIMESTAMP is TIMESTAMPTZ."""

_LENGTHS = ("VARCHAR", "CHAR")


def read_type(node: exp.Expr, file: SourceFile) -> ColumnType:
    """Return the type that a node names.

    Raises:
        InputError: there is no such type here.
    """
    written = text_of(node, file) or node.sql("spark")
    note = (
        "types are BIGINT, INT, SMALLINT, TINYINT, DECIMAL(p, s), DOUBLE, FLOAT, STRING, BINARY, "
        "BOOLEAN, DATE, TIME, TIMESTAMP, TIMESTAMP_NTZ, INTERVAL YEAR TO MONTH, "
        "INTERVAL DAY TO SECOND, ARRAY<type>, STRUCT<name: type, …> and MAP<type, type>"
    )
    if isinstance(node, exp.DataType) and isinstance(node.this, exp.Interval):
        unit = node.this.args["unit"]
        parts = [unit.this, unit.expression] if isinstance(unit, exp.IntervalSpan) else [unit]
        with suppress(ValueError):
            return ColumnType(types.interval(" TO ".join(each.name.upper() for each in parts)))
    name = node.this.name if isinstance(node, exp.DataType) and node.this else ""
    digits = [each.name for each in node.expressions]
    unknown = {"this", "expressions", "nested"} | ({"kind"} if not node.args.get("kind") else set())
    has_more = any(value for key, value in node.args.items() if key not in unknown)
    if name == "DECIMAL" and not has_more:
        numbers = [int(each) for each in digits if each.isascii() and each.isdigit()]
        precision, scale = [*numbers, *((10, 0)[len(numbers) :])][:2]
        is_plain = len(numbers) == len(digits) <= 2
        if is_plain and 1 <= precision <= types.DECIMAL_MAX_DIGITS and scale <= precision:
            return ColumnType(types.decimal(precision, scale))
        note = f"a decimal has 1 to {types.DECIMAL_MAX_DIGITS} digits, some of them after the point"
    elif name == "ARRAY" and len(node.expressions) == 1 and not has_more:
        return ColumnType(types.array_of(_sized(read_type(node.expressions[0], file))))
    elif name == "MAP" and len(node.expressions) == 2 and not has_more:
        key, value = (_sized(read_type(each, file)) for each in node.expressions)
        if not key.has_maps:
            return ColumnType(types.map_of(key, value))
        note = "the keys of a map are not maps"
    elif name == "STRUCT" and node.expressions and not has_more:
        return ColumnType(types.struct_of(_fields(node, file)))
    elif name in _TYPES and not has_more and (not digits or name in _LENGTHS):
        return _TYPES[name]
    elif name == "TIME" and not has_more:
        if digits == ["6"]:
            return _TYPES[name]
        note = "write `TIME`, which has six digits after the point, and `time_trunc`"
    if name == "INTERVAL":
        note = "name its fields: intervals of months and of days together cannot be compared"
    message = f"`{written}` is not a type that columns can have here."
    raise InputError.of("C1308", message, span_of(node, file), note)


def _sized(held: ColumnType) -> types.Type:
    """Return the type of a part of others, which has the bits of its integers."""
    return replace(held.type, bits=held.bits if held.type.is_number else 0)


def _fields(node: exp.Expr, file: SourceFile) -> list[tuple[str, types.Type]]:
    """Return the fields of a struct; a comment on one is left out."""
    found: list[tuple[str, types.Type]] = []
    for each in node.expressions:
        constraints = each.args.get("constraints") or []
        kinds = [part.kind for part in constraints]
        if not all(isinstance(kind, exp.CommentColumnConstraint) for kind in kinds):
            message = f"The field `{text_of(each, file)}` of a struct has a constraint."
            note = "leave out NOT NULL: the fields of a struct may be null"
            raise InputError.of("C1308", message, span_of(each, file), note)
        found.append((each.name, _sized(read_type(each.kind, file))))
    check_field_names([name for name, _ in found], span_of(node, file))
    return found


def check_field_names(names: list[str], span: Span) -> None:
    """Refuse a struct that has a field twice, in whatever letters."""
    known: set[str] = set()
    for name in names:
        if name.lower() in known:
            note = "give them different names, as in `struct(x AS a, y AS b)`"
            raise InputError.of("C1308", f"A struct has the field `{name}` twice.", span, note)
        known.add(name.lower())
