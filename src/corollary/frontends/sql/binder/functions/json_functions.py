"""`from_json`, `to_json` and `schema_of_json`; types, patterns and other options are literals."""

import json
from dataclasses import replace
from typing import Any

from corollary.core.functors.spec import TEXT
from corollary.core.functors.texts import FROM_JSON
from corollary.core.types import SYMBOL, TYPE_SPECS, Type
from corollary.errors import InputError
from corollary.frontends.sql.binder.functions.arguments import SqlFunction, fitted, literal_text
from corollary.frontends.sql.binder.functions.json_schema import SCHEMA_OPTIONS, infer_schema
from corollary.frontends.sql.binder.functions.time_functions import read_formats, time_formats
from corollary.frontends.sql.binder.values.common_types import call
from corollary.frontends.sql.binder.values.operators import Site
from corollary.frontends.sql.column_types import read_type
from corollary.frontends.sql.parse import parse_type, split_statements
from corollary.frontends.sql.query_tree import ConstantValue, Expression, FunctionCall
from corollary.source import SourceFile

_MODES = ("PERMISSIVE", "FAILFAST")
_CORRUPT = "columnnameofcorruptrecord"
_EXAMPLE = "write it as in `from_json(s, 'a INT, b ARRAY<STRING>')`"
_TIME_OPTIONS = tuple(each.json_option for each in TYPE_SPECS.values() if each.json_option)
"""The options that say how times are written."""


def _options(arguments: list[Expression], at: int, known: tuple[str, ...], site: Site) -> Any:
    """Return the options `map('name', 'value', …)` by their names in small letters."""
    if len(arguments) <= at:
        return {}
    given = arguments[at]
    parts = given.arguments if isinstance(given, FunctionCall) else ()
    lists = [each.value for each in parts if isinstance(each, ConstantValue)]
    if given.type.is_map and len(lists) == 2:
        names, values = (list(each) for each in lists if isinstance(each, tuple))
        if all(isinstance(each, str) for each in (*names, *values)):
            found = {str(k).lower(): str(x) for k, x in zip(names, values, strict=True)}
            more = [each for each in names if str(each).lower() not in known]
            if not more:
                return found
            message = f"The option `{more[0]}` of `{site.name}` is not known here."
            note = f"options are {', '.join(f'`{each}`' for each in known)}"
            raise site.error("C1311", message, note)
    message = f"The options of `{site.name}` are no literals."
    raise site.error("C1306", message, "write `map('dateFormat', 'dd.MM.yyyy')`")


def _formats(options: dict[str, str], site: Site, *, are_read: bool) -> dict[str, Any]:
    """Return the formats of times by the names of their options."""
    return {
        name: read_formats(
            "parse_date" if name.startswith("date") else "parse_time", options[name.lower()], site
        )
        if are_read
        else time_formats(options[name.lower()], site)
        for name in _TIME_OPTIONS
        if name.lower() in options
    }


def _schema(text: str, site: Site) -> Type:
    """Return the type that a text says: one of SQL, or the fields of a struct."""
    problem: InputError | None = None
    for written in (text, f"STRUCT<{text}>"):
        file = SourceFile("schema", written)
        try:
            (tokens,) = split_statements(file) or [[]]
            return read_type(parse_type(tokens, file), file).type
        except InputError as error:
            problem = error
        except ValueError:  # several statements
            pass
    reason, note = "It is no type.", _EXAMPLE
    if problem is not None:
        reason, note = problem.diagnostics[0].message, problem.diagnostics[0].note or note
    raise site.error("C1308", f"`{text}` cannot be a schema here. {reason}", note)


def _as_read(type_: Type, site: Site) -> list[Any]:
    """Return a type as JSON, in which integers have their bits for a precision."""
    if type_.is_map and not type_.members[0][1].is_symbol:
        raise site.error("C1308", "A key of an object is a STRING.", "write `MAP<STRING, …>`")
    if type_.is_number:
        return replace(type_, precision=type_.bits or 64).as_json
    head = type_.as_json[:4]
    return [*head, *([name, _as_read(each, site)] for name, each in type_.members)]


def _from_json(arguments: list[Expression], site: Site) -> Expression:
    """`from_json(text, schema, options)`."""
    type_ = _schema(literal_text(arguments[1], site), site)
    if not type_.members:
        message = f"The schema of `from_json` is {type_.spark_name}."
        raise site.error("C1308", message, _EXAMPLE)
    known = ("mode", _CORRUPT, *(each.lower() for each in _TIME_OPTIONS))
    given = _options(arguments, 2, known, site)
    mode = given.get("mode", _MODES[0]).upper()
    if mode not in _MODES:
        message = f"`from_json` has no mode `{mode}`."
        raise site.error("C1306", message, f"write {' or '.join(_MODES)}")
    options: dict[str, Any] = {"mode": mode, **_formats(given, site, are_read=True)}
    corrupt = given.get(_CORRUPT, "_corrupt_record")
    fields = dict(type_.members)
    if type_.is_struct and corrupt in fields:
        if not fields[corrupt].is_symbol:
            message = f"`{corrupt}` takes texts that do not fit, and is no STRING."
            raise site.error("C1308", message, "give it the type STRING")
        options["corrupt"] = corrupt
    schema = json.dumps(_as_read(type_, site), ensure_ascii=False)
    literals = (ConstantValue(each, SYMBOL) for each in (schema, json.dumps(options)))
    text = fitted(arguments[0], TEXT, site)
    return FunctionCall(FROM_JSON, (text, *literals), type_.with_null(True), site.span)


def _to_json(arguments: list[Expression], site: Site) -> Expression:
    value = arguments[0]
    if not value.type.members:
        message = "`to_json` takes an array, a struct or a map."
        raise site.error("C1308", message, "write `to_json(struct(x))`")
    _check_written(value.type, site)
    known = ("ignorenullfields", *(each.lower() for each in _TIME_OPTIONS))
    given = _options(arguments, 1, known, site)
    options: dict[str, Any] = _formats(given, site, are_read=False)
    if given.get("ignorenullfields", "true").lower() == "false":
        options["keeps_nulls"] = True
    literals = [ConstantValue(json.dumps(options), SYMBOL)] if options else []
    return call("to_json", (value, *literals), SYMBOL, site.span)


def _check_written(type_: Type, site: Site) -> None:
    if type_.is_interval:
        message = "`to_json` of intervals is refused: what is inside has no fields here."
        raise site.error("C1311", message, "cast them to STRING before")
    if type_.is_map and not type_.members[0][1].is_symbol:
        message = "`to_json` of a map is refused, but with keys of the type STRING."
        raise site.error("C1311", message, "apply it to `map_entries(m)`, or cast the keys")
    for _, each in type_.members:
        _check_written(each, site)


def _schema_of_json(arguments: list[Expression], site: Site) -> Expression:
    """`schema_of_json(text, options)`, a text that is known when the view is read."""
    given = _options(arguments, 1, ("mode", *SCHEMA_OPTIONS), site)
    given.pop("mode", None)
    for name, value in given.items():
        if value.lower() not in ("true", "false"):
            message = f"The option `{name}` of `{site.name}` is true or false, and not `{value}`."
            raise site.error("C1306", message, f"write `map('{name}', 'true')`")
    options = {name: value.lower() == "true" for name, value in given.items()}
    text = literal_text(arguments[0], site)
    try:
        found = infer_schema(text, options)
    except ValueError as error:
        message = f"The text of `{site.name}` cannot be read. {error}."
        raise site.error("C1306", message, """write one such as '{"a": 1}'""") from None
    return ConstantValue(found, SYMBOL, site.span)


JSON_FUNCTIONS: dict[str, SqlFunction] = {
    "from_json": SqlFunction(2, 3, _from_json),
    "to_json": SqlFunction(1, 2, _to_json),
    "schema_of_json": SqlFunction(1, 2, _schema_of_json),
}
"""The functions of JSON that are more than a functor, by their names in Spark."""
