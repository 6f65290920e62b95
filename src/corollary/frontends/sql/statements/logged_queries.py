"""The different queries in a text of SQL statements, and how often each is there."""

from sqlglot import exp

from corollary.data_class import dataclass
from corollary.frontends.sql.parse import parse_statements, text_of
from corollary.source import SourceFile


@dataclass(frozen=True, slots=True)
class RepeatedQuery:
    """A query, its text where it is first, and how often it is there."""

    tree: exp.Query
    text: str
    count: int


def read_queries(file: SourceFile) -> tuple[list[RepeatedQuery], int]:
    """Return the different queries of a text, and the number of statements that are not queries.

    What is done to the rows in the end (`ORDER BY`, `LIMIT`) makes no other query.

    Raises:
        InputError: the text is not SQL.
    """
    found: dict[str, RepeatedQuery] = {}
    skipped = 0
    for tree in parse_statements(file):
        if isinstance(tree, exp.Query):
            key = _without_order(tree).sql(dialect="spark", comments=False)
            first = found.get(key)
            found[key] = (
                RepeatedQuery(tree, text_of(tree, file), 1)
                if first is None
                else RepeatedQuery(first.tree, first.text, first.count + 1)
            )
        elif not isinstance(tree, exp.Semicolon):  # which is a comment alone
            skipped += 1
    return list(found.values()), skipped


def _without_order(tree: exp.Query) -> exp.Query:
    found = tree.copy()
    for part in ("order", "limit", "offset"):
        found.set(part, None)
    return found
