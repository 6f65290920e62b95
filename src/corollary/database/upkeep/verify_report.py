"""The report of `verify`: each finding with the file, and what can be done about it."""

from dataclasses import field
from enum import StrEnum
from typing import Any

from corollary.data_class import dataclass
from corollary.errors import Diagnostic, render


class FindingKind(StrEnum):
    """What a finding is about."""

    CATALOG = "catalog"
    CHANGE = "change"
    SNAPSHOT = "snapshot"
    INDEX = "index"
    STATE = "state"
    PAYLOAD = "payload"
    TABLE = "table"


RESTORE_CURE = "restore the warehouse from a backup: there is no other copy of this data"
REPAIR_CURE = "run `corollary verify --repair`: it can be rebuilt from what is undamaged"


@dataclass(frozen=True, slots=True)
class VerifyFinding:
    """A defect of a warehouse.

    Attributes:
        code: as in `docs/diagnostics.md`.
        file: where it is: a path in the warehouse, or the catalog.
        relation: whose tuples are concerned, if any.
        commit: the commit that is concerned, if any.
        is_repairable: whether it is derived data, which can be rebuilt.
        sound_from: a later commit from which on the defect does not matter; 0 if there is none.
    """

    kind: FindingKind
    code: str
    message: str
    file: str
    relation: str = ""
    commit: int = 0
    is_repairable: bool = False
    sound_from: int = 0

    @property
    def cure(self) -> str:
        """What to do about it."""
        if self.sound_from and not self.is_repairable:
            return (
                f"{RESTORE_CURE}; or drop commits {self.commit} to {self.sound_from - 1} and all "
                f"before them with `corollary gc --keep-commits`: from {self.sound_from} on "
                "everything is there"
            )
        return REPAIR_CURE if self.is_repairable else RESTORE_CURE

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells findings apart, in two verifications of one warehouse."""
        return str(self.kind), self.file, self.relation, str(self.commit)

    def __str__(self) -> str:
        return render(Diagnostic(self.code, self.message, None, self.cure))

    def as_json(self) -> dict[str, Any]:
        """Return the finding as `verify` prints it."""
        return {
            "kind": str(self.kind),
            "code": self.code,
            "message": self.message,
            "file": self.file,
            "relation": self.relation or None,
            "commit": self.commit or None,
            "repairable": self.is_repairable,
            "cure": self.cure,
        }


@dataclass(slots=True)
class VerifyReport:
    """What a verification found, and how much it checked.

    Attributes:
        has_recomputed: whether derived relations were compared with their recomputation, which
            is not possible if a base relation is lost.
        repaired: earlier findings that no longer apply.
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
    findings: list[VerifyFinding] = field(default_factory=list)
    repaired: list[VerifyFinding] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the report as `verify` prints it."""
        counted = ("commits", "changes", "snapshots", "index_files", "relations", "tuples")
        counts = {name: getattr(self, name) for name in (*counted, "tables", "bytes")}
        return {
            "sound": not self.findings,
            "checked": {**counts, "recomputed": self.has_recomputed},
            "findings": [each.as_json() for each in self.findings],
            "repaired": [each.as_json() for each in self.repaired],
            "seconds": round(self.seconds, 6),
        }
