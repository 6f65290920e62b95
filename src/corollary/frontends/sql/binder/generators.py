"""Generators: `explode` and its like become subqueries that can name the sources before them.

    explode(a)        LATERAL (SELECT •exploded(a, n).* FROM •numbers(a))
    posexplode(a)     LATERAL (SELECT n AS pos, •exploded(a, n).* FROM •numbers(a))
    inline(a)         LATERAL (SELECT get(a, n).* FROM •numbers(a))
    stack(2, x, y)    LATERAL (SELECT x AS col0 UNION ALL SELECT y AS col0)
    json_tuple(j, 'a')    LATERAL (SELECT get(json_tuple(j, 'a'), 0) AS c0)

`•numbers(a)` has a row for each element of an array or map, with its number from 0;
`•exploded(a, n)` is a struct of the element as `col`, or of `key` and `value`. A generator in the
SELECT and `LATERAL VIEW` are joined to the sources; one with `_outer`, or `OUTER`, by a LEFT JOIN.
"""

from sqlglot import exp

from corollary.frontends.sql.binder.context import name_of
from corollary.frontends.sql.binder.session import BindingSession

NUMBERS, EXPLODED = "•numbers", "•exploded"
JSON_FIELDS = "json_tuple"
_NUMBER, GENERATED = "•n", "•generated"
_GENERATORS = ("explode", "posexplode", "inline", "stack", JSON_FIELDS)


def _name(text: str) -> exp.Identifier:
    return exp.to_identifier(text, quoted=True)


def is_generator(node: exp.Expr | None) -> bool:
    """Whether a node calls a generator."""
    return isinstance(node, exp.Anonymous) and name_of(node).removesuffix("_outer") in _GENERATORS


def outer_generated(call: exp.Anonymous, session: BindingSession) -> tuple[exp.Subquery, list[str]]:
    """Return the query of a generator that stands alone; with `_outer`, it is never empty."""
    query, names = generated(call, session)
    if not name_of(call).endswith("_outer"):
        return query, names
    one = exp.Subquery(this=exp.Select(expressions=[exp.alias_(exp.Literal.number(1), _name("•"))]))
    alias = exp.TableAlias(this=_name(GENERATED), columns=list(map(_name, names)))
    select = exp.Select(
        expressions=[exp.column(exp.Star(), table=_name(GENERATED))],
        from_=exp.From(this=one),
        joins=[exp.Join(this=exp.Lateral(this=query, alias=alias), side="LEFT", on=exp.true())],
    )
    return exp.Subquery(this=select), names


def generated(call: exp.Anonymous, session: BindingSession) -> tuple[exp.Subquery, list[str]]:
    """Return the query of a generator, and the names of its columns."""
    name, parts = name_of(call).removesuffix("_outer"), call.expressions
    if name == "stack":
        return _stack(call, session)
    if name == JSON_FIELDS:
        return _json_fields(call, session)
    if len(parts) != 1:
        message = f"`{name}` takes one argument."
        raise session.error("C1306", message, call, f"write `{name}(array)`")
    number = exp.column(_NUMBER, quoted=True)
    functor = "get" if name == "inline" else EXPLODED
    element = exp.Anonymous(this=functor, expressions=[parts[0].copy(), number.copy()])
    items: list[exp.Expr] = [exp.Dot(this=element, expression=exp.Star())]
    if name == "posexplode":
        items.insert(0, exp.alias_(number, _name("pos")))
    numbers = exp.Anonymous(this=NUMBERS, expressions=[parts[0].copy()])
    for each in (element, numbers):
        each.meta.update(call.meta)
    alias = exp.TableAlias(this=_name(NUMBERS), columns=[_name(_NUMBER)])
    source = exp.From(this=exp.Table(this=numbers, alias=alias))
    return exp.Subquery(this=exp.Select(expressions=items, from_=source)), []


def _json_fields(call: exp.Anonymous, session: BindingSession) -> tuple[exp.Subquery, list[str]]:
    names = call.expressions[1:]
    if not names or not all(isinstance(each, exp.Literal) and each.is_string for each in names):
        message = "`json_tuple` takes a text and literal names of fields."
        raise session.error("C1306", message, call, "write `json_tuple(j, 'a', 'b')`")
    columns = [f"c{at}" for at in range(len(names))]
    fields = exp.Anonymous(this=JSON_FIELDS, expressions=call.expressions)
    fields.meta.update(call.meta)
    items = [
        exp.alias_(
            exp.Anonymous(this="get", expressions=[fields.copy(), exp.Literal.number(at)]),
            _name(column),
        )
        for at, column in enumerate(columns)
    ]
    return exp.Subquery(this=exp.Select(expressions=items)), columns


def _stack(call: exp.Anonymous, session: BindingSession) -> tuple[exp.Subquery, list[str]]:
    first, *values = call.expressions or [exp.null()]
    count = int(first.this) if isinstance(first, exp.Literal) and first.is_int else 0
    if count < 1 or not values:
        message = "`stack` takes a literal number of rows, and values."
        raise session.error("C1306", message, call, "write `stack(2, a, b)`")
    width = -(-len(values) // count)
    names = [f"col{at}" for at in range(width)]
    padded = [*values, *(exp.null() for _ in range(count * width - len(values)))]
    rows: list[exp.Query] = [
        exp.Select(
            expressions=[
                exp.alias_(value.copy(), _name(name))
                for value, name in zip(padded[at : at + width], names, strict=True)
            ]
        )
        for at in range(0, len(padded), width)
    ]
    query = rows[0]
    for row in rows[1:]:
        query = exp.Union(this=query, expression=row, distinct=False)
    return exp.Subquery(this=query), names


def without_generators(node: exp.Select, session: BindingSession) -> exp.Select:
    """Return a SELECT in which generators are joined."""
    laterals = node.args.get("laterals") or []
    items = [
        each.this if isinstance(each, exp.Alias | exp.Aliases) else each
        for each in node.expressions
    ]
    if not laterals and not any(map(is_generator, items)):
        return node
    if sum(map(is_generator, items)) > 1:
        message = "A SELECT has one generator."
        raise session.error("C1310", message, node, "write the others as LATERAL VIEW")
    found = node.copy()
    found.set("laterals", None)
    for lateral in laterals:
        session.check(lateral, "this", "view", "outer", "alias")
        if not is_generator(lateral.this):
            raise session.unsupported(lateral.this)
        call = lateral.this.copy()
        if lateral.args.get("outer"):
            call.set("this", f"{name_of(call).removesuffix('_outer')}_outer")
        _join(found, call, lateral.args["alias"].copy(), session)
    output: list[exp.Expr] = []
    for item, call in zip(found.expressions, items, strict=True):
        if not isinstance(call, exp.Anonymous) or not is_generator(call):
            output.append(item)
            continue
        names = item.expressions if isinstance(item, exp.Aliases) else []
        names = [item.args["alias"]] if isinstance(item, exp.Alias) else names
        alias = exp.TableAlias(this=_name(GENERATED), columns=[each.copy() for each in names])
        made = _join(found, call, alias, session)
        output += [
            exp.alias_(exp.column(each, table=GENERATED, quoted=True), _name(each)) for each in made
        ]
        if not made:
            output.append(exp.column(exp.Star(), table=_name(GENERATED)))
    found.set("expressions", output)
    return found


def _join(
    select: exp.Select, call: exp.Anonymous, alias: exp.TableAlias, session: BindingSession
) -> list[str]:
    """Join a generator to the sources of a SELECT, and return the known names of its columns."""
    is_alone = select.args.get("from_") is None
    query, names = (outer_generated if is_alone else generated)(call, session)
    columns = [each.name for each in alias.args.get("columns") or []]
    if columns and names and len(columns) != len(names):
        message = f"`{name_of(call)}` has {len(names)} columns, but {len(columns)} names here."
        raise session.error("C1315", message, call, "give one name for each column")
    names = columns or names
    alias.set("columns", list(map(_name, names)))
    query.meta.update(call.meta)
    if is_alone:
        query.set("alias", alias)
        select.set("from_", exp.From(this=query))
        return names
    lateral = exp.Lateral(this=query, alias=alias)
    lateral.meta.update(call.meta)
    select.append("joins", exp.Join(this=lateral, kind="CROSS"))
    if name_of(call).endswith("_outer"):
        select.args["joins"][-1] = exp.Join(this=lateral, side="LEFT", on=exp.true())
    return names
