"""Columns and fields: what a name means, by the scopes of the query and of those around it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches

from sqlglot import exp

from corollary.core.types import SYMBOL, Type, array_of
from corollary.errors import InputError
from corollary.frontends.sql.binder.context import ExpressionContext
from corollary.frontends.sql.binder.functions.map_functions import value_of
from corollary.frontends.sql.binder.scopes import Scope, ScopeColumn, shifted
from corollary.frontends.sql.binder.session import BindingSession, type_name
from corollary.frontends.sql.binder.values.common_types import call, constant
from corollary.frontends.sql.binder.values.conversions import field
from corollary.frontends.sql.binder.values.operators import Site
from corollary.frontends.sql.query_tree import ColumnReference, Expression

_PARTS = ("catalog", "db", "table", "this")
NAMES_PER_STEP = 20
"""So many names are looked through in the time of another step of binding."""


def resolve_column(context: ExpressionContext, node: exp.Column) -> Expression:
    """Return what the name of a column, or of a field of one, stands for.

    A column of FROM wins over an alias of the SELECT, and an alias over the queries around. As many
    words as can be are those of its source: `t.s.a` is a field of `s` if there is no source `t.s`.
    """
    session = context.session
    session.check(node, "this", "table", "db", "catalog")
    if not isinstance(node.this, exp.Identifier):
        raise session.unsupported(node.this)
    session.count_steps((len(context.scope.visible) + len(context.aliases)) // NAMES_PER_STEP)
    words = [part for key in _PARTS if (part := node.args.get(key)) is not None]
    if words[0].name.lower() in context.parameters:
        found = context.parameters[words[0].name.lower()]
        return _fields_of(found, words[1:], context.site(node))
    splits = [(words[:at], words[at:]) for at in range(len(words), 0, -1)]
    for column, fields in splits:
        own = _own(context, node, column, fields)
        if own is not None:
            return own
    for depth, scope in context.scope.around():
        for column, fields in splits if depth else ():
            outer = _found(scope, column, fields)
            if outer:
                found = _from_outer(context, node, depth, scope, outer)
                return _fields_of(found, fields, context.site(node))
    raise _unknown(context, node, node.name, qualifier_of(node))


def _own(
    context: ExpressionContext, node: exp.Column, words: list[exp.Expr], fields: list[exp.Expr]
) -> Expression | None:
    """Return a field of the column of FROM, or of the SELECT, that some words mean."""
    site = context.site(node)
    qualifier, own = _dotted(words[:-1]), _found(context.scope, words, fields)
    if context.aliases_first and own and qualifier is None:
        alias = find_alias(context, words[-1])
        if alias is not None:
            return _fields_of(alias, fields, site)
    if own:
        found = _placed(_only(context, node, own).expression, context, node)
        if context.keys is None:
            return _fields_of(found, fields, site)
        for at, word in enumerate(fields):
            if found in context.keys:
                return _fields_of(context.keys[found], fields[at:], site)
            found = field_named(found, word.name, site)
        raise _ungrouped(context, node)
    alias = find_alias(context, words[-1]) if qualifier is None else None
    if alias is None or (fields and not _has_fields(alias.type)):
        return None
    return _fields_of(alias, fields, site)


def _found(scope: Scope, words: list[exp.Expr], fields: list[exp.Expr]) -> list[ScopeColumn]:
    """Return the columns that words mean, those with fields if one is asked for."""
    found = scope.find(words[-1].name, _dotted(words[:-1]))
    return [each for each in found if not fields or _has_fields(each.expression.type)]


def _has_fields(type_: Type) -> bool:
    return (type_.element or type_).is_struct or type_.is_map


def _fields_of(value: Expression, names: list[exp.Expr], site: Site) -> Expression:
    for name in names:
        value = field_named(value, name.name, site)
    return value


def qualifier_of(node: exp.Column) -> str | None:
    """Return what is written before the last dot of a name."""
    return _dotted([part for key in _PARTS[:-1] if (part := node.args.get(key)) is not None])


def _dotted(words: list[exp.Expr]) -> str | None:
    return ".".join(word.name for word in words) or None


def find_alias(context: ExpressionContext, place: exp.Expr) -> Expression | None:
    """Return the column of the SELECT with this alias, if there is one."""
    name = place.name.lower()
    found = [i for i, (alias, _) in enumerate(context.aliases) if alias.lower() == name]
    if not found:
        return None
    if len(found) > 1:
        message = f"`{place.name}` can mean several columns of the SELECT."
        raise context.session.error("C1304", message, place, "give them different aliases")
    before = context.aliases[: found[0]]
    inner = replace(context, aliases=before, aliases_first=False, parameters={})
    return inner.bind(context.aliases[found[0]][1])


def _only(context: ExpressionContext, node: exp.Column, found: list[ScopeColumn]) -> ScopeColumn:
    if len(found) > 1:
        names = [f"`{each.source}.{each.name}`" for each in found]
        note = f"write which one is meant: {' or '.join(dict.fromkeys(names))}"
        if len(set(names)) < len(names):
            note = "give the sources different aliases"
        elif len({each.lower() for each in names}) < len(names):
            note = "give the columns different names where they are defined"
        raise context.session.error("C1304", f"`{node.name}` can mean several columns.", node, note)
    return found[0]


def _placed(expression: Expression, context: ExpressionContext, node: exp.Column) -> Expression:
    if isinstance(expression, ColumnReference):
        return replace(expression, span=context.session.span(node))
    return expression


def _from_outer(
    context: ExpressionContext,
    node: exp.Column,
    depth: int,
    scope: Scope,
    found: list[ScopeColumn],
) -> Expression:
    expression = _only(context, node, found).expression
    if scope.keys is not None:
        if expression not in scope.keys:
            raise _ungrouped(context, node)
        expression = scope.keys[expression]
    return _placed(shifted(expression, depth), context, node)


def _ungrouped(context: ExpressionContext, node: exp.Column) -> InputError:
    name = context.session.text(node)
    message = f"`{name}` is neither grouped nor inside an aggregate."
    note = f"add it to GROUP BY, or take one of its values, as in `min({name})`"
    return context.session.error("C1313", message, node, note)


def _unknown(
    context: ExpressionContext, node: exp.Column, name: str, qualifier: str | None
) -> InputError:
    session = context.session
    scopes = [scope for _, scope in context.scope.around()]
    if qualifier is not None:
        sources = [source for scope in scopes for source in scope.sources]
        if not any(source.is_called(qualifier) for source in sources):
            note = near_names(qualifier, [source.name for source in sources], "the sources are")
            message = f"`{qualifier}` is not a source of this query."
            return session.error("C1303", message, node, note)
        known = [c.name for s in sources if s.is_called(qualifier) for c in s.columns]
        message = f"`{qualifier}` has no column `{name}`."
        return session.error("C1303", message, node, near_names(name, known, "its columns are"))
    known = [column.name for scope in scopes for column in scope.visible]
    known += [alias for alias, _ in context.aliases]
    note = near_names(name, known, "the columns are")
    return session.error("C1303", f"There is no column `{name}`.", node, note)


def field_named(value: Expression, name: str, site: Site) -> Expression:
    """Return a field of a struct, or that of each struct in an array."""
    held = value.type.element or value.type
    if not _has_fields(value.type):
        message = f"There is no field `{name}`: this is {type_name(value.type)}."
        raise site.error("C1303", message, "fields are those of structs")
    if value.type.is_map:
        return value_of([value, constant(name, SYMBOL)], site)
    names = [each for each, _ in held.members]
    found = next((at for at, each in enumerate(names) if each.lower() == name.lower()), None)
    if found is None:
        note = near_names(name, names, "the fields are")
        raise site.error("C1303", f"The struct has no field `{name}`.", note)
    if value.type.is_struct:
        return field(value, found)
    known, type_ = held.members[found]
    arguments = (value, constant(known, SYMBOL))
    return call("array_field", arguments, array_of(type_), site.span)


def fields_of(value: Expression, site: Site) -> Sequence[tuple[str, Expression]]:
    """Return the fields of a struct, for `s.*`."""
    if not value.type.is_struct:
        message = f"`.*` needs a struct, but this is {type_name(value.type)}."
        raise site.error("C1307", message, "name a source or a struct before it")
    return [(name, field(value, at)) for at, (name, _) in enumerate(value.type.members)]


def starred(item: exp.Expr, scope: Scope, session: BindingSession) -> list[exp.Expr]:
    """Return the columns that a star stands for; another item is itself."""
    if not item.is_star:
        return [item]
    star, table, found = item, None, scope.visible
    if isinstance(item, exp.Column):
        session.check(item, "this", "table")
        star, table = item.this, item.args.get("table")
    if table is not None:
        found = tuple(c for s in scope.sources if s.is_called(table.name) for c in s.columns)
    left_out, replaced = changed_columns(star, [each.name for each in found], session)
    return [
        replaced.get(each.name.lower()) or exp.column(each.name, table=table, quoted=True)
        for each in found
        if each.name.lower() not in left_out
    ]


def changed_columns(
    star: exp.Expr, known: Sequence[str], session: BindingSession
) -> tuple[set[str], dict[str, exp.Expr]]:
    """Return the columns that a star leaves out, and what it has instead of others."""
    session.check(star, "except_", "replace")
    left_out, replaced = star.args.get("except_") or [], star.args.get("replace") or []
    spelled = {each.lower() for each in known}
    for each in (*left_out, *replaced):
        if each.alias_or_name.lower() not in spelled:
            note = near_names(each.alias_or_name, known, "the columns are")
            message = f"There is no column `{each.alias_or_name}`."
            raise session.error("C1303", message, each, note)
    return (
        {each.name.lower() for each in left_out},
        {each.alias.lower(): each.this for each in replaced},
    )


def near_names(name: str, known: Iterable[str], introduction: str) -> str:
    """Return a note with the name that was probably meant, or with the known ones."""
    spelled = {each.lower(): each for each in known if each}
    near = get_close_matches(name.lower(), list(spelled), n=1)
    if near:
        return f"did you mean `{spelled[near[0]]}`?"
    if not spelled:
        return "there is none here"
    shown = [f"`{each}`" for each in spelled.values()]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return f"{introduction} {', '.join(shown[:8])}{more}"
