"""The statements of SQL text; queries and conditions in them are trees of sqlglot."""

from enum import StrEnum

from sqlglot import exp

from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.frontends.sql.statements.tokens import SqlName
from corollary.source import Span


class DeleteAction(StrEnum):
    """What happens to a row when the row that it refers to is deleted."""

    REFUSE = "no action"
    CASCADE = "cascade"
    SET_NULL = "set null"


class Duplicates(StrEnum):
    """What a table without a key does with equal rows."""

    COUNT = "count"
    DROP = "drop"
    REFUSE = "refuse"


DUPLICATES = "duplicates"
"""The property that says what is done with equal rows."""


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """The type of a column.

    Attributes:
        type: nullable unless the column is NOT NULL.
        written: as the user wrote it.
        bits: how many bits an integer may have; 64 needs no check.
        length: how many characters a text may have, if that is limited.
    """

    type: Type
    written: str
    bits: int = 64
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Default:
    """The value that rows have in a column for which they give none; null if it is None."""

    value: exp.Expr | None
    text: str


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of CREATE TABLE."""

    name: SqlName
    type: DeclaredType
    default: Default | None = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class KeyConstraint:
    """PRIMARY KEY or UNIQUE."""

    columns: tuple[SqlName, ...]
    is_primary: bool
    is_enforced: bool
    span: Span
    name: str = ""


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    """CHECK (condition)."""

    condition: exp.Expr
    text: str
    name: str
    is_enforced: bool
    span: Span


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """FOREIGN KEY (columns) REFERENCES table (targets)."""

    columns: tuple[SqlName, ...]
    table: SqlName
    targets: tuple[SqlName, ...]
    on_delete: DeleteAction
    is_enforced: bool
    span: Span
    name: str = ""


Constraint = KeyConstraint | CheckConstraint | ForeignKey


@dataclass(frozen=True, slots=True)
class TableOption:
    """An entry of OPTIONS or TBLPROPERTIES."""

    name: str
    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE."""

    name: SqlName
    columns: tuple[TableColumn, ...]
    constraints: tuple[Constraint, ...]
    source_format: SqlName | None
    options: tuple[TableOption, ...]
    properties: tuple[TableOption, ...]
    comment: str
    partitions: tuple[SqlName, ...]
    if_not_exists: bool
    text: str
    span: Span

    @property
    def duplicates(self) -> Duplicates:
        """What is done with equal rows, if there is no key."""
        given = [each.value for each in self.properties if each.name.lower() == DUPLICATES]
        return Duplicates(given[-1].lower()) if given else Duplicates.COUNT


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [MATERIALIZED] VIEW.

    Attributes:
        parameters: the options of its table, as those of `.output`.
    """

    name: SqlName
    columns: tuple[SqlName, ...]
    query: exp.Expr
    is_materialized: bool
    is_replacing: bool
    if_not_exists: bool
    text: str
    span: Span
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateAssertion:
    """CREATE ASSERTION name CHECK (condition)."""

    name: SqlName
    condition: exp.Expr
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class CreateAlert:
    """CREATE ALERT name [MESSAGE 'text'] [OPTIONS (…)] AS query."""

    name: SqlName
    message: str | None
    options: tuple[TableOption, ...]
    query: exp.Expr
    text: str
    span: Span


class TriggerEvent(StrEnum):
    """What a trigger reacts to."""

    INSERT = "insert"
    DELETE = "delete"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class CreateTrigger:
    """CREATE TRIGGER name AFTER event ON table … FOR EACH STATEMENT [WHEN (c)] action.

    Attributes:
        old: the name of the transition table with the rows before, if there is one.
        new: that of the rows after.
        action: `INSERT` or `DELETE`, as sqlglot has it.
    """

    name: SqlName
    event: TriggerEvent
    table: SqlName
    old: SqlName | None
    new: SqlName | None
    condition: exp.Expr | None
    action: "Insert | Delete"
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """CREATE FUNCTION name (parameters) RETURNS type RETURN body."""

    name: SqlName
    parameters: tuple[TableColumn, ...]
    returns: DeclaredType
    body: exp.Expr
    is_replacing: bool
    if_not_exists: bool
    text: str
    span: Span


Definition = (
    CreateTable | CreateView | CreateAssertion | CreateAlert | CreateTrigger | CreateFunction
)
"""What a program consists of."""


def replaces(statement: Definition) -> bool:
    """Whether a statement takes the place of an earlier one: `OR REPLACE`."""
    return isinstance(statement, CreateView | CreateFunction) and statement.is_replacing


def yields(statement: Definition) -> bool:
    """Whether a statement does nothing if there is an earlier one: `IF NOT EXISTS`."""
    return (
        isinstance(statement, CreateTable | CreateView | CreateFunction) and statement.if_not_exists
    )


@dataclass(frozen=True, slots=True)
class AlterView:
    """ALTER VIEW name AS query.

    Attributes:
        query: its text, from `AS` on.
    """

    name: SqlName
    query: str
    span: Span


@dataclass(frozen=True, slots=True)
class ColumnPlace:
    """FIRST, or AFTER a column."""

    after: SqlName | None


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """ALTER COLUMN name …; None is said of what stays as it is."""

    name: SqlName
    type: DeclaredType | None = None
    is_nullable: bool | None = None
    default: Default | None = None
    comment: str | None = None
    place: ColumnPlace | None = None


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE name …, and COMMENT ON TABLE.

    Attributes:
        added: each column with its place; None for the last one.
        constraints: those that are added.
        dropped: the columns to drop.
        renamed: old and new names of columns.
        properties: the values of properties, None for one that goes.
        dropped_constraint: its name; `PRIMARY KEY` for that.
        if_exists: whether what is to be dropped may be missing.
    """

    name: SqlName
    span: Span
    added: tuple[tuple[TableColumn, ColumnPlace | None], ...] = ()
    constraints: tuple[Constraint, ...] = ()
    dropped: tuple[SqlName, ...] = ()
    renamed: tuple[tuple[SqlName, SqlName], ...] = ()
    new_name: SqlName | None = None
    columns: tuple[ColumnChange, ...] = ()
    properties: tuple[tuple[str, TableOption | None], ...] = ()
    comment: str | None = None
    dropped_constraint: SqlName | None = None
    if_exists: bool = False


class DroppedKind(StrEnum):
    """What a DROP names."""

    TABLE = "table"
    VIEW = "view"
    ASSERTION = "assertion"
    ALERT = "alert"
    TRIGGER = "trigger"
    FUNCTION = "function"


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP TABLE|VIEW|ASSERTION|ALERT|TRIGGER [IF EXISTS] name [CASCADE].

    Attributes:
        cascades: whether what reads it is dropped as well.
    """

    kind: DroppedKind
    name: SqlName
    if_exists: bool
    span: Span
    cascades: bool = False


@dataclass(frozen=True, slots=True)
class OnConflict:
    """ON CONFLICT [(columns)] DO NOTHING, or DO UPDATE SET column = value, … [WHERE condition].

    Attributes:
        alias: another name of the table.
        columns: of a key; none for all keys.
        assignments: none for `DO NOTHING`.
    """

    alias: str
    columns: tuple[SqlName, ...]
    assignments: tuple[exp.Expr, ...]
    condition: exp.Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO|OVERWRITE table [(columns)] query [ON CONFLICT …] [RETURNING …].

    Attributes:
        returning: the columns of the rows as they are written that are wanted.
    """

    table: SqlName
    columns: tuple[SqlName, ...]
    query: exp.Expr
    span: Span
    is_overwriting: bool = False
    conflict: OnConflict | None = None
    returning: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE FROM table [AS alias] [WHERE condition] [RETURNING …].

    Attributes:
        join: a join with the source of a MERGE.
    """

    table: SqlName
    alias: str
    condition: exp.Expr | None
    span: Span
    join: exp.Join | None = None
    returning: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateStatement:
    """UPDATE table [AS alias] SET column = value, … [WHERE condition] [RETURNING …]."""

    table: SqlName
    alias: str
    assignments: tuple[tuple[SqlName, exp.Expr], ...]
    condition: exp.Expr | None
    span: Span
    join: exp.Join | None = None
    returning: tuple[exp.Expr, ...] = ()


Write = Insert | Delete | UpdateStatement


class Boundary(StrEnum):
    """Where a transaction begins or ends."""

    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class TransactionBoundary:
    """BEGIN, COMMIT or ROLLBACK."""

    boundary: Boundary
    span: Span


@dataclass(frozen=True, slots=True)
class QueryStatement:
    """SELECT, WITH or VALUES."""

    query: exp.Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE INTO table USING source ON condition WHEN …."""

    table: SqlName
    alias: str
    tree: exp.Merge
    span: Span


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """CREATE TABLE name AS query."""

    name: SqlName
    query: exp.Expr
    if_not_exists: bool
    span: Span


class Shown(StrEnum):
    """What a SHOW, DESCRIBE or EXPLAIN shows."""

    TABLES = "tables"
    VIEWS = "views"
    COLUMNS = "columns"
    DESCRIPTION = "description"
    DEFINITION = "definition"
    DETAILS = "details"
    PROPERTIES = "properties"
    FUNCTIONS = "functions"
    FUNCTION = "function"
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW TABLES, SHOW COLUMNS IN name, DESCRIBE name, EXPLAIN question and their like.

    Attributes:
        relation: the relation or function that is shown.
        pattern: the names to be listed, with `*` for any characters and `|` between choices.
        text: the question whose plan is shown.
        view: the view whose maintenance is shown.
        query: the question whose columns are shown.
    """

    shown: Shown
    span: Span
    relation: SqlName | None = None
    pattern: str = "*"
    text: str = ""
    view: CreateView | None = None
    query: exp.Expr | None = None


Statement = (
    Definition
    | AlterTable
    | AlterView
    | Drop
    | Write
    | Merge
    | TransactionBoundary
    | QueryStatement
    | CreateTableAs
    | Show
)
