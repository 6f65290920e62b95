"""Columns: which one a name means, by the scopes of the query and of those around it."""

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches

from sqlglot import exp

from corollary.errors import InputError
from corollary.frontends.sql.binder.context import ExpressionContext
from corollary.frontends.sql.binder.scopes import Scope, ScopeColumn, shifted
from corollary.frontends.sql.query_tree import ColumnReference, Expression

NAMES_PER_STEP = 20
"""So many names are looked through in the time of another step of binding."""


def resolve_column(context: ExpressionContext, node: exp.Column) -> Expression:
    """Return what a column's name stands for.

    A column of FROM wins over an alias of the SELECT, and an alias over the queries around.
    """
    session = context.session
    session.check(node, "this", "table", "db", "catalog")
    if not isinstance(node.this, exp.Identifier):
        raise session.unsupported(node.this)
    name, qualifier = node.name, qualifier_of(node)
    session.count_steps((len(context.scope.visible) + len(context.aliases)) // NAMES_PER_STEP)
    own = context.scope.find(name, qualifier)
    if context.aliases_first and own and qualifier is None:
        alias = find_alias(context, node)
        if alias is not None:
            return alias
    if own:
        found = _only(context, node, own)
        if context.keys is not None:
            raise _ungrouped(context, node)
        return _placed(found.expression, context, node)
    if qualifier is None:
        alias = find_alias(context, node)
        if alias is not None:
            return alias
    for depth, scope in context.scope.around():
        outer = scope.find(name, qualifier) if depth else []
        if outer:
            return _from_outer(context, node, depth, scope, outer)
    raise _unknown(context, node, name, qualifier)


def qualifier_of(node: exp.Column) -> str | None:
    """Return what is written before the last dot of a name."""
    parts = [node.args.get(part) for part in ("catalog", "db", "table")]
    return ".".join(part.name for part in parts if part is not None) or None


def find_alias(context: ExpressionContext, place: exp.Column) -> Expression | None:
    """Return the column of the SELECT with this alias, if there is one."""
    name = place.name.lower()
    found = [i for i, (alias, _) in enumerate(context.aliases) if alias.lower() == name]
    if not found:
        return None
    if len(found) > 1:
        message = f"`{place.name}` can mean several columns of the SELECT."
        raise context.session.error("C1304", message, place, "give them different aliases")
    inner = replace(context, aliases=context.aliases[: found[0]], aliases_first=False)
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


def near_names(name: str, known: Iterable[str], introduction: str) -> str:
    """Return a note with the name that was probably meant, or with the known ones."""
    spelled = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), list(spelled), n=1)
    if near:
        return f"did you mean `{spelled[near[0]]}`?"
    if not spelled:
        return "there is none here"
    shown = [f"`{each}`" for each in spelled.values()]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return f"{introduction} {', '.join(shown[:8])}{more}"
