"""What users of SQL call the relations that their statements become: a name and SQL's words.

`gaps.rank1` is `gaps [rank 1]`, the counts of a table without a key, `u.rows`, are `u [copies]`.
"""

import re
from collections.abc import Container, Iterable, Mapping
from typing import TypeVar

from corollary.core.program import NormalProgram, owner_of

WORDS = {
    "aggregate": "aggregate",
    "base": "own rows",
    "body": "aggregated rows",
    "cascade": "ON DELETE",
    "check": "CHECK",
    "distinct": "distinct values",
    "duplicate": "equal rows",
    "each": "rows",
    "foreign": "FOREIGN KEY",
    "given": "values",
    "groups": "groups",
    "join": "joined rows",
    "keys": "keys",
    "many": "more than one row",
    "max": "greatest",
    "min": "least",
    "new": "NEW TABLE",
    "of": "outer rows",
    "old": "OLD TABLE",
    "q": "subquery",
    "range": "range of the type",
    "rows": "copies",
    "some": "exists",
    "unique": "UNIQUE",
    "ways": "derivations",
}
"""The labels of relations, and what they are called; others are names of the user's tables."""

_LABEL = re.compile(r"([a-z]+?)([0-9]*)")

_Document = TypeVar("_Document")


def title_of(relation: str, statements: Container[str]) -> str:
    """Return what a relation is called, given the names that statements of SQL define.

    >>> title_of("un.q1.rows", {"un"}), title_of("p.base", {"un"}), title_of("un", {"un"})
    ('un [subquery 1, copies]', 'p.base', 'un')
    """
    owner = owner_of(relation, statements)
    if owner is None or owner == relation:
        return relation
    parts = relation[len(owner) + 1 :].split(".")
    return f"{owner} [{', '.join(map(_words, parts))}]"


def _words(part: str) -> str:
    found = _LABEL.fullmatch(part)
    if found is None:
        return part
    return f"{WORDS.get(found[1], found[1])} {found[2]}".rstrip()


def show_titles(document: _Document, program: NormalProgram) -> _Document:
    """Return a text, or a document of lists and objects, with titles for made-up names."""
    names: Iterable[str] = (*program.relations, *program.active.relations)
    titles = {name: title_of(name, program.statements) for name in names}
    changed = {name: title for name, title in titles.items() if name != title}
    if not changed:
        return document
    listed = "|".join(re.escape(name) for name in sorted(changed, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w.])(?:{listed})(?!\w)")
    return _replaced(document, pattern, changed)


def _replaced(
    document: _Document, pattern: re.Pattern[str], titles: Mapping[str, str]
) -> _Document:
    def replaced(part: object) -> object:
        match part:
            case str():
                return pattern.sub(lambda found: titles[found[0]], part)
            case list() | tuple():
                return type(part)(map(replaced, part))
            case dict():
                return {replaced(key): replaced(value) for key, value in part.items()}
            case _:
                return part

    return replaced(document)  # type: ignore[return-value]
