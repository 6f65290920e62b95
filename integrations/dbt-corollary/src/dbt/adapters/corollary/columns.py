"""Types of the columns of queries, as the descriptions of results have them."""

NAMES = {
    16: "boolean",
    17: "bytea",
    20: "bigint",
    21: "smallint",
    23: "integer",
    700: "real",
    701: "double precision",
    1082: "date",
    1083: "time",
    1114: "timestamp",
    1184: "timestamp with time zone",
    1700: "numeric",
}
"""The names of types by the numbers that PostgreSQL has for them; all others are texts."""


def sql_type(number: int, precision: int | None, scale: int | None) -> str:
    """Return the name of a type.

    >>> sql_type(1700, 12, 2), sql_type(25, None, None)
    ('numeric(12, 2)', 'text')
    """
    name = NAMES.get(number, "text")
    return name if name != "numeric" or precision is None else f"{name}({precision}, {scale or 0})"
