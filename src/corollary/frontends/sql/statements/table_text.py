"""A table as CREATE TABLE says it: what ALTER TABLE leaves of a statement."""

from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.tokens import SqlName

_RESERVED = frozenset({"PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT"})


def print_table(table: nodes.CreateTable) -> str:
    """Return the statement that makes a table.

    >>> from corollary.frontends.sql.statements.parser import parse_statements
    >>> from corollary.source import SourceFile
    >>> text = "CREATE TABLE t (k INT PRIMARY KEY, `a b` STRING NOT NULL DEFAULT 'x') USING csv"
    >>> print(print_table(parse_statements(SourceFile("q", text))[0]))
    CREATE TABLE t (
      k INT,
      `a b` STRING NOT NULL DEFAULT 'x',
      PRIMARY KEY (k)
    )
    USING csv
    """
    lines = [*map(_column, table.columns), *map(_constraint, table.constraints)]
    text = f"CREATE TABLE {quoted(table.name)} (\n  " + ",\n  ".join(lines) + "\n)"
    if table.source_format is not None:
        text += f"\nUSING {quoted(table.source_format)}"
    if table.options:
        text += f"\nOPTIONS ({_options(table.options)})"
    if table.partitions:
        text += f"\nPARTITIONED BY {_names(table.partitions)}"
    if table.comment:
        text += f"\nCOMMENT {_string(table.comment)}"
    if table.properties:
        text += f"\nTBLPROPERTIES ({_options(table.properties)})"
    return text


def quoted(name: SqlName) -> str:
    """Return a name as a statement writes it, in backquotes where it needs them."""
    text = name.text
    if text.isidentifier() and text.isascii() and text.upper() not in _RESERVED:
        return text
    return "`" + text.replace("`", "``") + "`"


def _names(names: tuple[SqlName, ...]) -> str:
    return f"({', '.join(map(quoted, names))})"


def _string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _options(options: tuple[nodes.TableOption, ...]) -> str:
    return ", ".join(f"{_string(each.name)} = {_string(each.value)}" for each in options)


def _column(column: nodes.TableColumn) -> str:
    words = [quoted(column.name), column.type.written]
    if not column.type.type.nullable:
        words.append("NOT NULL")
    if column.default is not None:
        words.append(f"DEFAULT {column.default.text}")
    if column.comment:
        words.append(f"COMMENT {_string(column.comment)}")
    return " ".join(words)


def _constraint(constraint: nodes.Constraint) -> str:
    words = [f"CONSTRAINT `{constraint.name}`"] if constraint.name else []
    match constraint:
        case nodes.KeyConstraint(columns=columns, is_primary=is_primary):
            words.append(f"{'PRIMARY KEY' if is_primary else 'UNIQUE'} {_names(columns)}")
        case nodes.CheckConstraint(text=text):
            words.append(f"CHECK ({text})")
        case nodes.ForeignKey(columns=columns, table=table, targets=targets, on_delete=action):
            referred = f"{quoted(table)} {_names(targets)}" if targets else quoted(table)
            words.append(f"FOREIGN KEY {_names(columns)} REFERENCES {referred}")
            if action is not nodes.DeleteAction.REFUSE:
                words.append(f"ON DELETE {action.upper()}")
    return " ".join(words if constraint.is_enforced else [*words, "NOT ENFORCED"])
