"""Statements that were read, what they give, and the columns and types that they have."""

from collections.abc import Sequence
from dataclasses import field
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from corollary.data_class import dataclass
from corollary.serve.postgres.copy_in import CopyReader
from corollary.serve.postgres.messages import FieldDescription
from corollary.serve.postgres.parameter_types import type_parameters
from corollary.serve.postgres.parameters import ParameterValue
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.postgres.settings import SessionSettings
from corollary.serve.postgres.statements import (
    CopyStatement,
    EmptyStatement,
    FetchStatement,
    PgStatement,
    SetStatement,
    StatementWithTree,
    WriteStatement,
    parse_source,
)
from corollary.serve.postgres.subscription import Subscription
from corollary.serve.postgres.translation import (
    TranslatedShape,
    is_catalog_query,
    name_temporary,
)
from corollary.serve.postgres.wire_types import TEXT, WireType, arrow_column_type, column_type


@dataclass(frozen=True, slots=True)
class PreparedStatement:
    """A statement that was read.

    Attributes:
        statement: what it is.
        tree: the tree of a query or a write, in Corollary's SQL if it is not about `pg_catalog`.
        types: the types of its parameters.
        is_catalog: whether it is about `pg_catalog`.
        temporary: the relations of temporary tables that it reads, or writes to.
        translations: what it was translated to, by the types of values.
    """

    statement: PgStatement
    tree: exp.Expr | None = None
    types: tuple[WireType, ...] = ()
    is_catalog: bool = False
    temporary: frozenset[str] = frozenset()
    translations: dict[object, TranslatedShape] = field(
        default_factory=dict, compare=False, repr=False
    )


def prepare_statement(
    statement: StatementWithTree, oids: Sequence[int], relations: VisibleRelations
) -> PreparedStatement:
    """Return a statement with its tree and the types of its parameters.

    Args:
        statement: what was read of it.
        oids: the types of its first parameters, 0 where the client does not say one.
        relations: what it may name.

    Raises:
        PgError: it cannot be read.
    """
    source = statement.source
    tree = source if isinstance(source, exp.Select) else parse_source(source)
    is_write = isinstance(statement, WriteStatement)
    if is_write != isinstance(tree, exp.Insert | exp.Delete | exp.Update):
        raise PgError("42601", "The statement cannot be read.")
    tree.set("locks", None)  # `FOR UPDATE` changes nothing: readers wait for nobody
    temporary = name_temporary(tree, relations)
    is_catalog = not is_write and is_catalog_query(tree, relations)
    tree, types = type_parameters(tree, oids, relations, is_catalog=is_catalog)
    return PreparedStatement(statement, tree, types, is_catalog, temporary)


def prepare_tree(tree: exp.Expr, relations: VisibleRelations) -> PreparedStatement:
    """Return the query of a definition, which has no parameters.

    Raises:
        PgError: it cannot be read.
    """
    temporary = name_temporary(tree, relations)
    tree, types = type_parameters(tree, (), relations, is_catalog=False)
    return PreparedStatement(EmptyStatement(), tree, types, temporary=temporary)


def counting_query(tree: exp.Expr) -> exp.Select:
    """Return the query that counts the rows which a write finds."""
    if isinstance(tree, exp.Insert):
        source: exp.Expr = exp.Subquery(this=tree.expression.copy(), alias="given")
    else:
        source = tree.this.copy()
    counted = exp.select(exp.Count(this=exp.Star())).from_(source)
    if not isinstance(tree, exp.Insert) and tree.args.get("where"):
        counted.set("where", tree.args["where"].copy())
    return counted


@dataclass(frozen=True, slots=True)
class StatementResult:
    """What a statement gives.

    Attributes:
        tag: how the statement is called when it is complete; the number of rows follows.
        table: its rows, if it has some.
        copy: the form of the rows of COPY.
        reader: takes the rows of COPY FROM, which are to come.
        stream: has further rows, without an end.
    """

    tag: str
    table: pa.Table | None = None
    copy: CopyStatement | None = None
    reader: CopyReader | None = None
    stream: Subscription | None = None


@dataclass(slots=True)
class OpenCursor:
    """A cursor: its rows, and how many of them were fetched; or a stream of more of them."""

    table: pa.Table
    is_held: bool
    position: int = 0
    stream: Subscription | None = None

    @property
    def rest(self) -> pa.Table:
        """The rows that were not fetched."""
        return self.table.slice(self.position)

    def fetch(self, statement: FetchStatement, most: int | None = None) -> StatementResult:
        """Return the next rows; where all are wanted, at most some."""
        rows = self.rest.slice(0, statement.count if statement.count is not None else most)
        self.position += rows.num_rows
        if statement.is_move:
            return StatementResult(f"MOVE {rows.num_rows}")
        return StatementResult("FETCH", rows)


def describe_table(table: pa.Table) -> list[FieldDescription]:
    """Return the columns of a table.

    Raises:
        PgError: values of one of them cannot be sent.
    """
    found = []
    for column in table.schema:
        type_, modifier = arrow_column_type(column.type)
        found.append(FieldDescription(column.name, type_.oid, type_.size, modifier))
    return found


def text_field(name: str) -> FieldDescription:
    """Return the description of a column of texts."""
    return FieldDescription(name, TEXT.oid, TEXT.size)


def shown_columns(name: str) -> list[str]:
    """Return the columns of SHOW."""
    return ["name", "setting", "description"] if name == "all" else [name]


def session_tag(action: str, name: str | None) -> str:
    """Return the command tag of a statement about what has a name, or about all of it."""
    match action:
        case "CLOSE":
            return "CLOSE CURSOR" + " ALL" * (name is None)
        case "DISCARD":
            return f"DISCARD {(name or 'all').upper()}"
        case "DEALLOCATE":
            return "DEALLOCATE" + " ALL" * (name is None)
        case _:
            return action


def change_setting(settings: SessionSettings, statement: SetStatement) -> StatementResult:
    """Do what SET or RESET says.

    Raises:
        PgError: there is no such setting, or it cannot have this value.
    """
    name, value = statement.name, statement.value
    if name == "transaction_modes":
        assert value is not None
        if statement.is_local:
            settings.set_modes(value)
        else:
            settings.set_default_modes(value)
    elif value is None:
        settings.reset(name)
        return StatementResult("RESET")
    else:
        settings.set(name, value, is_local=statement.is_local)
    return StatementResult("SET")


def show_settings(settings: SessionSettings, name: str) -> pa.Table:
    """Return the value of a setting, or of all.

    Raises:
        PgError: there is no such setting.
    """
    if name == "all":
        found = sorted(settings.all().items())
        columns = [[each for each, _ in found], [value for _, value in found]]
        columns.append([""] * len(found))
        return pa.table([pa.array(each) for each in columns], shown_columns(name))
    value = settings.get(name)
    if value is None:
        raise PgError("42704", f"There is no setting `{name}`.")
    return pa.table({name: [value]})


_EXAMPLES: dict[str, ParameterValue] = {"B": False, "N": 0, "S": "", "A": [], "X": ""}


def example_value(type_: WireType) -> ParameterValue:
    """Return some value of a type, for a statement that is only described."""
    match type_.name:
        case "date":
            return date(2000, 1, 1)
        case "timestamp" | "timestamptz":
            return datetime(2000, 1, 1, tzinfo=UTC)
        case "numeric":
            return Decimal(0)
        case "float4" | "float8":
            return 0.0
        case _:
            return _EXAMPLES.get(type_.category)


def write_tag(tree: exp.Expr) -> str:
    """Return the command tag of a write, which the number of rows follows."""
    if isinstance(tree, exp.Insert):
        return "INSERT 0"
    return "DELETE" if isinstance(tree, exp.Delete) else "UPDATE"


def returned_fields(
    tree: exp.Expr | None, relations: VisibleRelations
) -> list[FieldDescription] | None:
    """Return the columns of RETURNING; None if there is none."""
    returning = None if tree is None else tree.args.get("returning")
    if tree is None or returning is None:
        return None
    target = target_of(tree)
    relation = relations.get(target.name)
    columns = () if relation is None else relation.columns
    found = []
    for each in returning.expressions:
        for column in columns:
            if each.is_star or each.unalias().name.lower() == column.name.lower():
                type_, modifier = column_type(column.type)
                name = column.name if each.is_star else each.alias_or_name
                found.append(FieldDescription(name, type_.oid, type_.size, modifier))
    return found


def target_of(tree: exp.Expr) -> exp.Expr:
    """Return the table that a write names."""
    target: exp.Expr = tree.this
    return target.this if isinstance(target, exp.Schema) else target


def check_target(tree: exp.Expr, relations: VisibleRelations) -> None:
    """Refuse to write to what is not a base relation.

    Raises:
        PgError: it is not there, or rules fill it.
    """
    target = target_of(tree)
    if not isinstance(target, exp.Table):
        raise PgError("42601", "The statement cannot be read.")
    if target.db and target.db.lower() != "public":
        raise PgError("42501", f"`{target.db}` cannot be changed.", "relations are in `public`")
    relation = relations.get(target.name)
    if relation is None:
        raise PgError("42P01", f"There is no relation `{target.name}`.")
    if not relation.is_base:
        raise PgError(
            "42809",
            f"`{relation.name}` is a view: its rules fill it.",
            "change the relations that it is derived from",
        )
