"""What `verify` has to say: each finding with the file, and what can be done about it."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from corollary.errors import Diagnostic, render


class Kind(StrEnum):
    """What is not as it should be."""

    CATALOG = "catalog"
    CHANGE = "change"
    SNAPSHOT = "snapshot"
    INDEX = "index"
    STATE = "state"
    TABLE = "table"


UNMENDABLE = "restore the warehouse from a backup: nothing else says what was there"
MENDABLE = "run `corollary verify --repair`: it can be made anew from what is sound"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
        code: as in `docs/diagnostics.md`.
        file: where it is: a path in the warehouse, or the catalog.
        relation: whose tuples are concerned, if any.
        commit: at which commit, if any.
        is_mendable: whether it is derived data, which can be made anew.
        sound_from: a later commit from which on it does not matter; 0 if there is none.
    """

    kind: Kind
    code: str
    message: str
    file: str
    relation: str = ""
    commit: int = 0
    is_mendable: bool = False
    sound_from: int = 0

    @property
    def cure(self) -> str:
        """What to do about it."""
        if self.sound_from and not self.is_mendable:
            return (
                f"{UNMENDABLE}; or give up commits {self.commit} to {self.sound_from - 1} and all "
                f"before them with `corollary gc --keep-commits`: from {self.sound_from} on "
                "everything is there"
            )
        return MENDABLE if self.is_mendable else UNMENDABLE

    def __str__(self) -> str:
        return render(Diagnostic(self.code, self.message, None, self.cure))

    def as_json(self) -> dict[str, Any]:
        """Return it as `verify` prints it."""
        return {
            "kind": str(self.kind),
            "code": self.code,
            "message": self.message,
            "file": self.file,
            "relation": self.relation or None,
            "commit": self.commit or None,
            "repairable": self.is_mendable,
            "cure": self.cure,
        }


@dataclass(slots=True)
class Report:
    """What a verification found, and how much it looked at.

    Attributes:
        has_recomputed: whether derived relations were compared with their recomputation; they are
            not where a base relation is lost.
        repaired: what was wrong, and is no longer.
    """

    commits: int = 0
    changes: int = 0
    snapshots: int = 0
    index_files: int = 0
    relations: int = 0
    tuples: int = 0
    tables: int = 0
    bytes: int = 0
    seconds: float = 0.0
    has_recomputed: bool = False
    findings: list[Finding] = field(default_factory=list)
    repaired: list[Finding] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return it as `verify` prints it."""
        return {
            "sound": not self.findings,
            "checked": {
                "commits": self.commits,
                "changes": self.changes,
                "snapshots": self.snapshots,
                "index_files": self.index_files,
                "relations": self.relations,
                "tuples": self.tuples,
                "tables": self.tables,
                "bytes": self.bytes,
                "recomputed": self.has_recomputed,
            },
            "findings": [each.as_json() for each in self.findings],
            "repaired": [each.as_json() for each in self.repaired],
            "seconds": round(self.seconds, 6),
        }
