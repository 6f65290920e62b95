"""What bad clients ask for: each of it has kept a server busy once, and others with it."""

from __future__ import annotations

POSTGRES_STATEMENTS = {
    "values": f"SELECT x FROM path WHERE x IN ({'1,' * 100_000} 1)",
    "values in the catalog": f"SELECT 1 WHERE 1 IN ({'1,' * 49_000} 1)",
    "rows": f"INSERT INTO path VALUES {'(1, 2),' * 19_000} (1, 2)",
    "arrays in arrays": f"SELECT {'ARRAY[' * 40}1{']' * 40}",
    "parentheses": f"SELECT {'(' * 500_000}",
    "indices": f"SELECT x{'[1]' * 20_000} FROM path",
    "comments": f"SELECT {'/*' * 500_000}",
    "spaces": f"FETCH{' ' * 1_000_000})",
    "a name": f"RELEASE {'a' * 1_000_000}!",
    "16 million bytes": f"SELECT '{'a' * 16_000_000}'",
    "a long series": "SELECT count(*) FROM generate_series(1, 100000000000)",
    "a long text": "SELECT length(repeat('x', 2000000000))",
    "many rows": "SELECT * FROM generate_series(1, 100000000000)",
}
"""Statements of a client of PostgreSQL; none of them is longer than a message may be."""
