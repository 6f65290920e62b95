"""The fields of change events, and the condition of deletes, as DuckDB finds them in their JSON.

| of each event | is |
|---|---|
| `row` | the JSON of its row: of an envelope, `after`, or `before` of a delete |
| `op` | of an envelope: its operation; `status` or `ddl` if it tells of others |
| `is_delete` | whether the condition of deletes holds |
| `sequence` | the text of what orders it; several fields as one text in their order |

A field of the condition is a text, but where it is compared with a number, or stands as a truth.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import sqlglot
from sqlglot import exp

from corollary.data_class import dataclass
from corollary.engines.local.bulk.connection import run_query
from corollary.errors import InputError
from corollary.source import Span
from corollary.sqlgen import nodes

_TEXTS, _EVENT, _ROW, _NUMBER = "events", "event", "row", "n"
_LOGIC = (exp.And, exp.Or, exp.Not, exp.Paren)
_TESTS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Is, exp.Between, exp.Like)
_VALUES = (exp.Column, exp.Identifier, exp.Dot, exp.Literal, exp.Boolean, exp.Null, exp.Neg)
_TRUTHS = ("is_valid", "is_delete")
_DIGITS = 20
"""To so many digits numbers are filled up where they are a part of a sequence."""


@dataclass(frozen=True, slots=True)
class EventFields:
    """Finds the fields of events.

    Attributes:
        sequence: the fields that order them.
        deletes: the condition of events that delete; empty if there is none.
        is_debezium: whether events are envelopes.
        span: the `.input`.
    """

    sequence: Sequence[str] = ()
    deletes: str = ""
    is_debezium: bool = False
    span: Span | None = None

    def are_valid(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return which texts are JSON objects."""
        valid = nodes.call("json_valid", _column(_EVENT))
        kind = exp.EQ(this=nodes.call("json_type", _column(_EVENT)), expression=_text("OBJECT"))
        test = nodes.case((valid, kind), default=exp.false())
        return _run({"is_valid": test}, texts).column("is_valid")

    def read(self, texts: pa.ChunkedArray) -> pa.Table:
        """Return the fields of events.

        Raises:
            InputError: `C1730`, the condition of deletes cannot be read.
        """
        event = self._payload() if self.is_debezium else _column(_EVENT)
        op = _get(event, "op") if self.is_debezium else exp.null()
        row: nodes.Node = nodes.call("json_extract", event, _text("$"))
        condition = _condition(self.deletes, event, self.span) if self.deletes else exp.false()
        if self.is_debezium:
            gone = exp.EQ(this=op, expression=_text("d"))
            row = nodes.case((gone, _part(event, "before")), default=_part(event, "after"))
            condition = nodes.either(gone, condition)
            others = [(_exists(event, each), _text(each)) for each in ("status", "ddl")]
            op = nodes.case((nodes.is_present(op), op), *others)
        wanted = {
            "op": nodes.cast(op, "VARCHAR"),
            "row": nodes.cast(row, "VARCHAR"),
            "is_delete": nodes.call("coalesce", condition, exp.false()),
            "sequence": nodes.cast(self._sequence(event), "VARCHAR"),
        }
        if self.is_debezium:
            wanted["schema"] = nodes.cast(_part(_column(_EVENT), "schema"), "VARCHAR")
        return _run(wanted, texts)

    def key_rows(self, keys: pa.ChunkedArray, columns: Sequence[str]) -> pa.ChunkedArray:
        """Return the keys of messages as JSON of rows: objects, or the value of a single column."""
        key = _column(_EVENT)
        is_json = nodes.call("json_valid", key)
        value = nodes.case((is_json, nodes.cast(key, "JSON")), default=nodes.call("to_json", key))
        is_object = exp.EQ(this=nodes.call("json_type", key), expression=_text("OBJECT"))
        single = nodes.call("json_object", _text(columns[0]), value)
        whole = nodes.case((is_object, self._payload()), default=single)
        missing = (nodes.is_null(key), exp.null())
        row = nodes.cast(nodes.case(missing, (is_json, whole), default=single), "VARCHAR")
        return _run({"row": row}, keys).column("row")

    def kinds(self, rows: pa.ChunkedArray, columns: Sequence[str]) -> dict[str, set[str]]:
        """Return which kinds of JSON values some fields of rows have; "" where one is missing."""
        row = _column(_EVENT)
        missing = _text("")
        wanted = {
            f"c{at}": nodes.call("coalesce", nodes.call("json_type", row, _path(name)), missing)
            for at, name in enumerate(columns)
        }
        found = _run(wanted, rows)
        return {
            name: set(found.column(f"c{at}").unique().to_pylist())
            for at, name in enumerate(columns)
        }

    def _payload(self) -> nodes.Node:
        """Return the envelope of an event that may have its schema beside it."""
        event = _column(_EVENT)
        kind = exp.EQ(
            this=nodes.call("json_type", event, _path("payload")), expression=_text("OBJECT")
        )
        has_schema = nodes.every(kind, _exists(event, "schema"))
        return nodes.case((has_schema, _part(event, "payload")), default=event)

    def _sequence(self, event: nodes.Node) -> nodes.Node:
        found = [_get(event, path) for path in self.sequence]
        if len(found) < 2:
            return found[0] if found else exp.null()
        filled = [
            nodes.case(
                (
                    exp.RegexpLike(this=each, expression=_text("^[0-9]{1,20}$")),
                    nodes.call("lpad", each, nodes.integer(_DIGITS, "INTEGER"), _text("0")),
                ),
                default=each,
            )
            for each in found
        ]
        whole = filled[0]
        for each in filled[1:]:
            whole = exp.DPipe(this=exp.DPipe(this=whole, expression=_text("/")), expression=each)
        return whole


def _run(wanted: Mapping[str, nodes.Node], texts: pa.ChunkedArray) -> pa.Table:
    """Return values of all texts, in their order."""
    numbers = pa.chunked_array([pa.array(range(len(texts)), pa.int64())])
    events = pa.table({_NUMBER: numbers, _EVENT: texts.cast(pa.large_string())})
    items = [nodes.named(value, name) for name, value in wanted.items()]
    query = nodes.select([_column(_NUMBER), *items], nodes.table(_TEXTS, _TEXTS))
    batches = list(run_query(query.sql(dialect="duckdb"), {_TEXTS: events}, lambda: None))
    if not batches:
        types = {name: pa.bool_() if name in _TRUTHS else pa.string() for name in wanted}
        return pa.table({name: pa.nulls(0, type_) for name, type_ in types.items()})
    return pa.Table.from_batches(batches).sort_by(_NUMBER).drop_columns([_NUMBER])


def _column(name: str) -> nodes.Node:
    return nodes.column(name, _TEXTS)


def _text(value: str) -> nodes.Node:
    return nodes.string(value)


def _path(path: str) -> nodes.Node:
    escaped = (part.replace('"', '\\"') for part in path.split("."))
    return _text("$" + "".join(f'."{part}"' for part in escaped))


def _get(value: nodes.Node, path: str) -> nodes.Node:
    return nodes.call("json_extract_string", value, _path(path))


def _part(value: nodes.Node, path: str) -> nodes.Node:
    return nodes.call("json_extract", value, _path(path))


def _exists(value: nodes.Node, path: str) -> nodes.Node:
    return nodes.call("json_exists", value, _path(path))


def _condition(text: str, event: nodes.Node, span: Span | None) -> nodes.Node:
    """Return a condition on the fields of events.

    Raises:
        InputError: `C1730`.
    """
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        raise _refusal(f"`{text}` is not a condition: {str(error).splitlines()[0]}", span) from None
    for each in tree.walk():
        if not isinstance(each, (*_LOGIC, *_TESTS, *_VALUES)):
            what = f"`{each.sql(dialect='spark')}` in `{text}` is more than a comparison of fields"
            raise _refusal(what, span)
    return _as_truth(tree, event)


def _refusal(message: str, span: Span | None) -> InputError:
    cure = (
        "write `apply_as_deletes=\"op = 'delete'\"`: fields, constants, AND, OR, NOT, IN, IS NULL"
    )
    return InputError.of("C1730", f"{message}.", span, f"{cure}; nothing was changed")


def _as_truth(tree: exp.Expr, event: nodes.Node) -> nodes.Node:
    """Return the tree of a condition with the values of fields in their places."""
    if isinstance(tree, _LOGIC):
        made = tree.copy()
        for name in ("this", "expression"):
            if isinstance(tree.args.get(name), exp.Expression):
                made.set(name, _as_truth(tree.args[name], event))
        return made
    if isinstance(tree, (exp.Column, exp.Dot)):
        return nodes.try_cast(_field(tree, event), "BOOLEAN")
    literals = list(tree.find_all(exp.Literal, exp.Boolean))
    type_ = ""
    if literals and all(isinstance(each, exp.Literal) and not each.is_string for each in literals):
        type_ = "DOUBLE"
    elif literals and all(isinstance(each, exp.Boolean) for each in literals):
        type_ = "BOOLEAN"

    def with_fields(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, (exp.Column, exp.Dot)):
            return node
        value = _field(node, event)
        return nodes.try_cast(value, type_) if type_ else value

    return tree.copy().transform(with_fields)


def _field(node: exp.Column | exp.Dot, event: nodes.Node) -> nodes.Node:
    """Return the value of a field that is named with dots."""
    return _get(event, ".".join(each.name for each in node.parts))
