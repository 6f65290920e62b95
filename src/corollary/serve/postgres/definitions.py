"""Definitions in PostgreSQL's dialect as statements of Corollary's SQL."""

from dataclasses import replace

from sqlglot import exp

from corollary.data_class import dataclass
from corollary.serve.postgres.parameter_types import type_parameters
from corollary.serve.postgres.problems import PgError, not_supported
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.postgres.statements import StatementSource, parse_source
from corollary.serve.postgres.translation import PUBLIC, SPARK, name_columns, spark_text

_IDENTITIES = (exp.GeneratedAsIdentityColumnConstraint, exp.AutoIncrementColumnConstraint)
_COUNTERS = frozenset({"SERIAL", "BIGSERIAL", "SMALLSERIAL"})
_WITH_DATA = ("WITH", "DATA"), ("WITH", "NO", "DATA")
"""What a view may end with: it always has its rows."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What a statement defines, alters or drops.

    Attributes:
        tag: how the statement is called when it is complete.
        statements: in Corollary's SQL.
        is_edit: whether it can be made in a transaction, with others.
    """

    tag: str
    statements: tuple[str, ...]
    is_edit: bool


def read_definition(source: StatementSource, relations: VisibleRelations) -> Definition:
    """Return what a statement defines.

    Args:
        source: the statement.
        relations: what a query in it may name.

    Raises:
        PgError: it cannot be read, or there is no such definition here.
    """
    words = tuple(each.text.upper() for each in source.tokens[-3:])
    for end in _WITH_DATA:
        if words[-len(end) :] == end:
            source = replace(source, tokens=source.tokens[: -len(end)])
    tree = parse_source(source)
    for table in tree.find_all(exp.Table):
        if table.db.lower() not in ("", PUBLIC):
            raise PgError("3F000", f"There is no schema `{table.db}`.", "relations are in `public`")
        if table.name.lower() in relations.temporary:
            text = f"`{table.name}` is a temporary table, which nothing else can be made of."
            raise not_supported(text, "create a table, and insert its rows")
    match tree:
        case exp.Create(kind="TABLE" | "VIEW"):
            return _created(tree, relations)
        case exp.Drop(kind="TABLE" | "VIEW"):
            return _dropped(tree)
        case exp.Alter(kind="TABLE"):
            return Definition("ALTER TABLE", (spark_text(tree),), is_edit=False)
        case exp.TruncateTable():
            texts = [f"TRUNCATE TABLE {_written_name(each)}" for each in tree.expressions]
            return Definition("TRUNCATE TABLE", tuple(texts), is_edit=True)
        case exp.Comment():
            return Definition("COMMENT", (spark_text(tree),), is_edit=False)
        case _:
            text = " ".join(each.text for each in source.tokens[:2]).upper()
            raise not_supported(
                f"{text} is not supported.",
                "there are CREATE, ALTER, DROP, TRUNCATE and COMMENT of tables and views",
            )


def _created(tree: exp.Create, relations: VisibleRelations) -> Definition:
    if tree.find(*_IDENTITIES) or any(
        each.this.name in _COUNTERS for each in tree.find_all(exp.DataType)
    ):
        raise not_supported("Columns do not count by themselves.", "give a value for each row")
    words = [str(tree.args["kind"])]
    if tree.find(exp.MaterializedProperty):
        words.insert(0, "MATERIALIZED")
    tag, query = f"CREATE {' '.join(words)}", tree.expression
    if not isinstance(query, exp.Query):
        return Definition(tag, (spark_text(tree),), is_edit=True)
    name_columns(query)
    tree.set("expression", None)
    # Its texts and divisions mean what they mean in a question.
    typed, _ = type_parameters(query, (), relations, is_catalog=False)
    text = f"{spark_text(tree)} AS {typed.sql(SPARK, identify=True, comments=False)}"
    return Definition(tag, (text,), is_edit=True)


def _dropped(tree: exp.Drop) -> Definition:
    """Return a DROP, each name as a statement."""
    kind = str(tree.args["kind"])
    words = ["DROP", kind, *["IF EXISTS"] * bool(tree.args.get("exists"))]
    end = " CASCADE" if tree.args.get("cascade") else ""
    tag = f"DROP {'MATERIALIZED ' * bool(tree.args.get('materialized'))}{kind}"
    texts = [f"{' '.join(words)} {_written_name(each)}{end}" for each in tree.args["tables"]]
    return Definition(tag, tuple(texts), is_edit=True)


def _written_name(table: exp.Expr) -> str:
    return exp.to_identifier(table.name, quoted=True).sql("spark")
