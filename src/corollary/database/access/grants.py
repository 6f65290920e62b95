"""Grants: which reader may see which relation or event predicate.

A reader of a view needs no grant for the relations it is derived from, and one of a bag none for
its counts.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from corollary.analysis.phrases import suggest_name
from corollary.core.values import quote_text
from corollary.database.program.names import list_names
from corollary.errors import AccessError, InputError

if TYPE_CHECKING:
    from corollary.analysis.check import RelationSignature

READER_MAX_CHARACTERS = 200
"""The maximum length of the name of a reader."""


class Grants(Protocol):
    """The grants of a database: in its catalog, or in memory."""

    def granted_to(self, reader: str) -> frozenset[str]:
        """Return what a reader may see."""

    def by_reader(self) -> dict[str, list[str]]:
        """Return what all readers may see, in the order of their names."""

    def add(self, reader: str, relations: Iterable[str]) -> None:
        """Let a reader see relations, too."""

    def remove(self, reader: str, relations: Iterable[str]) -> None:
        """Withdraw relations from a reader."""


class MemoryGrants:
    """The grants of a database in memory."""

    def __init__(self) -> None:
        self._granted: dict[str, set[str]] = {}

    def granted_to(self, reader: str) -> frozenset[str]:
        """Return what a reader may see."""
        return frozenset(self._granted.get(reader, ()))

    def by_reader(self) -> dict[str, list[str]]:
        """Return what all readers may see, in the order of their names."""
        return {name: sorted(self._granted[name]) for name in sorted(self._granted)}

    def add(self, reader: str, relations: Iterable[str]) -> None:
        """Let a reader see relations, too."""
        self._granted[reader] = {*self.granted_to(reader), *relations}

    def remove(self, reader: str, relations: Iterable[str]) -> None:
        """Withdraw relations from a reader."""
        left = self.granted_to(reader) - set(relations)
        self._granted.pop(reader, None)
        if left:
            self._granted[reader] = set(left)


def check_reader_name(name: str) -> str:
    """Return the name of a reader.

    Raises:
        InputError: it is not valid.
    """
    if name.isprintable() and name.strip() == name and 0 < len(name) <= READER_MAX_CHARACTERS:
        return name
    raise InputError.of(
        "C1044",
        f"{quote_text(name)} is not a name of a reader.",
        None,
        f"use 1 to {READER_MAX_CHARACTERS} printable characters, without blanks at the ends",
    )


def require_grant(reader: str, relation: str, granted: frozenset[str]) -> None:
    """Refuse a relation that was not granted to a reader.

    Raises:
        AccessError: it was not.
    """
    if relation not in granted:
        raise AccessError.of(
            "C1040",
            f"`{reader}` may not see `{relation}`.",
            None,
            f"{may_see(reader, granted)}; who runs the warehouse can grant more: "
            f"`corollary grant W {reader} {relation}`",
        )


def unknown_relation(reader: str, relation: str, granted: frozenset[str]) -> InputError:
    """Return the error of a relation that was granted to a reader, but does not exist."""
    text = f"There is no relation `{relation}`."
    return InputError.of("C0916", text, None, may_see(reader, granted))


def may_see(reader: str, granted: frozenset[str]) -> str:
    """Return a clause for messages about what a reader may see."""
    return f"`{reader}` may see {list_names(sorted(granted)) or 'nothing'}"


def check_grantable(
    relations: Iterable[str], signatures: "Mapping[str, RelationSignature]"
) -> tuple[str, ...]:
    """Return the names of existing relations and event predicates.

    Raises:
        InputError: one does not exist, or nothing is named.
    """
    names = tuple(dict.fromkeys(relations))
    if not names:
        raise InputError.of("C1043", "No relation is named.", None, "name one or several")
    for name in names:
        if name not in signatures:
            near = suggest_name(name, signatures)
            raise InputError.of(
                "C1043",
                f"There is no relation or event predicate `{name}` to grant.",
                None,
                near or "load a program that has it first",
            )
    return names
