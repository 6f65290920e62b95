"""What bad clients ask for: each of it has kept a server busy once, and others with it."""

from __future__ import annotations

import struct


def message(kind: bytes, body: bytes = b"") -> bytes:
    """Return a message of PostgreSQL's protocol."""
    return kind + struct.pack("!I", len(body) + 4) + body


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

_LIST = b"{" + b"1," * 7_000_000 + b"1}"
POSTGRES_MESSAGES = {
    **{name: message(b"Q", text.encode() + b"\0") for name, text in POSTGRES_STATEMENTS.items()},
    "a list of 14 million bytes": b"".join(
        (
            message(b"P", b"\0SELECT x FROM path WHERE x = ANY($1)\0\0\0"),
            message(b"B", b"\0\0\0\0\0\1" + struct.pack("!I", len(_LIST)) + _LIST + b"\0\0"),
            message(b"S"),
        )
    ),
    "a million messages": message(b"C", b"S\0") * 1_000_000,
    "a million answers": message(b"S") * 1_000_000,
}
"""The same, and what else may come over a connection."""
