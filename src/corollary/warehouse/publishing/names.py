"""The names of published tables: directories that every file system takes, columns Delta takes.

A directory is named as its relation, with `-2e-` for a character that is no letter, digit or
underscore (here a dot, by its code point), so that two relations never share a directory. On a file
system that holds `Edge` and `edge` for the same, the second one is refused as somebody else's.
"""

import hashlib
import re
from collections.abc import Sequence

LONGEST = 200
"""A longer directory name is cut and gets a digest; file systems end at 255 bytes."""

_ODD = re.compile(r"[^A-Za-z0-9_]|^_")
_REFUSED = re.compile(r"[ ,;{}()\n\t=]")
"""The characters that Delta does not allow in the name of a column."""


def directory_name(relation: str) -> str:
    """Return the name of the directory of a relation's table.

    >>> directory_name("Path"), directory_name('my "edge"'), directory_name("a.b")
    ('Path', 'my-20--22-edge-22-', 'a-2e-b')
    """
    name = _ODD.sub(lambda found: f"-{ord(found[0]):x}-", relation)
    if len(name) <= LONGEST:
        return name
    digest = hashlib.blake2b(relation.encode(), digest_size=16).hexdigest()
    return f"{name[:LONGEST]}-{digest}"


def column_names(columns: Sequence[str]) -> list[str]:
    """Return the names of a table's columns: as declared, if Delta can tell them apart.

    >>> column_names(["x", "X", "a b", "a,b"])
    ['x', 'X_2', 'a_b', 'a_b_2']
    """
    names: list[str] = []
    taken: set[str] = set()
    for column in columns:
        plain = name = _REFUSED.sub("_", column)
        number = 1
        while name.lower() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.lower())
        names.append(name)
    return names
