"""Small queries in one part: joins and groups find their rows where they are.

Spark forgets behind a join, a group or a union that all rows are in one part, and shuffles them
before the next one. `COALESCE(1)` reminds it, so the whole query is one stage of one task.

| before                     | after                                                       |
|----------------------------|-------------------------------------------------------------|
| `SELECT … FROM a JOIN b …` | `SELECT /*+ COALESCE(1) */ … FROM a JOIN b …`               |
| `… FROM (q UNION ALL r)`   | `… FROM (SELECT /*+ COALESCE(1) */ * FROM (q UNION ALL r))` |
"""

from sqlglot import exp

from corollary.engines.spark.sql import sql

MOVING = ("joins", "distinct", "group")
"""What a SELECT may have that Spark shuffles rows for."""


def in_one_part(query: sql.Node) -> sql.Node:
    """Return a query, changed in place, that shuffles nothing when its relations are in one part.

    >>> shown = sql.select([exp.Star()], sql.view("v", "a"), is_distinct=True)
    >>> sql.text_of(in_one_part(shown))
    'SELECT /*+ COALESCE(1) */ DISTINCT * FROM `v` AS `a`'
    """
    for node in list(query.find_all(exp.Select, exp.Subquery)):
        if isinstance(node, exp.Select):
            if any(node.args.get(each) for each in MOVING):
                _remind(node)
        elif isinstance(node.this, exp.Union):
            node.set("this", _remind(sql.select([exp.Star()], sql.of(node.this, "u"))))
    return query


def _remind(select: exp.Select) -> exp.Select:
    one = exp.Anonymous(this="COALESCE", expressions=[sql.number(1)])
    select.set("hint", exp.Hint(expressions=[one]))
    return select
