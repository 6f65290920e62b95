"""The functions on maps; keys that are asked for are converted to those of the map."""

from corollary.core.functors.catalog import FUNCTORS
from corollary.core.functors.spec import TEXT
from corollary.core.types import BOOL, NUMBER, SYMBOL, Type, array_of, map_of, struct_of
from corollary.frontends.sql.binder.functions.arguments import (
    MANY,
    SqlFunction,
    fitted,
    literal_pattern,
)
from corollary.frontends.sql.binder.functions.array_functions import shaped_call
from corollary.frontends.sql.binder.values.common_types import (
    call,
    common_type,
    constant,
    is_untyped,
)
from corollary.frontends.sql.binder.values.conversions import convert, map_with
from corollary.frontends.sql.binder.values.operators import Site, choose, compare, mismatch, unfit
from corollary.frontends.sql.query_tree import ConstantValue, Expression, FunctionCall

_ANY_MAP = map_of(SYMBOL, SYMBOL)


def _map(arguments: list[Expression], site: Site) -> Expression:
    if len(arguments) % 2:
        message = "`map` takes a key and a value for each entry."
        raise site.error("C1306", message, "write `map(k, x, l, y)`")
    parts = (shaped_call(FUNCTORS["array"], arguments[at::2], site) for at in (0, 1))
    return _from_arrays(list(parts), site)


def _from_arrays(arguments: list[Expression], site: Site) -> Expression:
    keys, values = (_array(each, site) for each in arguments)
    assert keys.type.element is not None
    assert values.type.element is not None
    if keys.type.element.has_maps:
        raise site.error("C1307", "A key cannot be a map.", "use its `map_entries`")
    type_ = map_of(keys.type.element, values.type.element)
    return call("map_from_arrays", (keys, values), type_, site.span)


def _array(argument: Expression, site: Site) -> Expression:
    found = convert(argument, array_of(SYMBOL)) if is_untyped(argument) else argument
    if not found.type.is_array:
        raise unfit(site, argument, array_of(SYMBOL))
    return found


def _from_entries(arguments: list[Expression], site: Site) -> Expression:
    """Return the map of an array of structs, null if one of these is."""
    entries = _array(arguments[0], site)
    element = entries.type.element
    if element is None or len(element.members) != 2 or not element.is_struct:
        wanted = array_of(struct_of([("key", SYMBOL), ("value", SYMBOL)]))
        raise unfit(site, entries, wanted)
    parts: list[Expression] = [
        call("array_field", (entries, constant(name, SYMBOL)), array_of(type_), site.span)
        for name, type_ in element.members
    ]
    found = _from_arrays(parts, site)
    present = call("array_compact", (entries,), entries.type, site.span)
    sizes = [call("size", (each,), NUMBER, site.span) for each in (entries, present)]
    has_null = compare("ne", sizes[0], sizes[1], site)
    nothing = ConstantValue(None, found.type.with_null(True), site.span)
    return choose([(has_null, nothing)], found, found.type, site.span)


def _concat(arguments: list[Expression], site: Site) -> Expression:
    if not arguments:
        return _map([], site)
    given = [_as_map(each, site) for each in arguments]
    type_ = common_type(given)
    if type_ is None:
        raise mismatch(site, given, f"`{site.name}`")
    maps = tuple(convert(each, type_.with_null(each.type.nullable)) for each in given)
    return maps[0] if len(maps) == 1 else call("map_concat", maps, type_, site.span)


def _as_map(argument: Expression, site: Site) -> Expression:
    found = convert(argument, _ANY_MAP) if is_untyped(argument) else argument
    if not found.type.is_map:
        raise unfit(site, argument, _ANY_MAP)
    return found


def _list(which: str) -> SqlFunction:
    """Return `map_keys`, `map_values` or `map_entries`."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        found = _as_map(arguments[0], site)
        (_, key), (_, value) = found.type.members
        held = {"keys": key, "values": value}.get(which) or struct_of(found.type.members)
        return call(f"map_{which}", (found,), array_of(held), site.span)

    return SqlFunction(1, 1, build)


def _with_key(functor: str, given: list[Expression], site: Site, type_: Type) -> Expression:
    """Return what a functor finds of a key."""
    found, key = _as_map(given[0], site), given[1]
    (_, held), (_, value) = found.type.members
    wanted = common_type([ConstantValue(None, held), key], reads_texts=False)
    converted = None if wanted is None else map_with(found, map_of(wanted, value), convert)
    if wanted is None or converted is None:
        raise mismatch(site, [ConstantValue(None, held), key], f"`{site.name}`")
    key = convert(key, wanted.with_null(key.type.nullable))
    return call(functor, (converted, key), type_, site.span)


def value_of(arguments: list[Expression], site: Site) -> Expression:
    """Return `m[k]`, the value of a key, or null."""
    found = _as_map(arguments[0], site)
    type_ = found.type.members[1][1]
    made = _with_key("map_value", [found, arguments[1]], site, type_)
    assert isinstance(made, FunctionCall)
    return FunctionCall(made.functor, made.arguments, type_.with_null(True), site.span)


def _contains(arguments: list[Expression], site: Site) -> Expression:
    return _with_key("map_contains_key", arguments, site, BOOL)


def _size(arguments: list[Expression], site: Site) -> Expression:
    return call("map_size", tuple(arguments), NUMBER, site.span)


def _of_text(arguments: list[Expression], site: Site) -> Expression:
    """Return `str_to_map(s, ',', ':')`; both may be left out."""
    text = fitted(arguments[0], TEXT, site)
    signs = [constant(sign, SYMBOL) for sign in (",", ":")]
    patterns = [*arguments[1:], *signs[len(arguments) - 1 :]]
    for each in patterns:
        literal_pattern(each, site)
    type_ = map_of(SYMBOL, SYMBOL)
    return call("str_to_map", (text, *patterns), type_, site.span)


MAP_FUNCTIONS: dict[str, SqlFunction] = {
    "map": SqlFunction(0, MANY, _map),
    "map_from_arrays": SqlFunction(2, 2, _from_arrays),
    "map_from_entries": SqlFunction(1, 1, _from_entries),
    "map_concat": SqlFunction(0, MANY, _concat),
    **{f"map_{which}": _list(which) for which in ("keys", "values", "entries")},
    "map_contains_key": SqlFunction(2, 2, _contains),
    "str_to_map": SqlFunction(1, 3, _of_text),
}
"""The functions on maps, by their names in Spark."""

FUNCTIONS_OF_MAPS: dict[str, SqlFunction] = {
    **dict.fromkeys(("size", "cardinality"), SqlFunction(1, 1, _size)),
    **dict.fromkeys(("element_at", "try_element_at"), SqlFunction(2, 2, value_of)),
}
"""Functions of arrays that are others for maps."""
