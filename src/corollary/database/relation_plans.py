"""What a transaction does to each relation, and why: new, changed, rebuilt or dropped."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from corollary.core.engine import Engine
from corollary.core.program import NormalProgram, Relation
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.database.changes import Changes
from corollary.database.counters import Stats
from corollary.database.program.transitions import ASIDE_SUFFIX
from corollary.maintain.update import Update

REASON_MAX_NAMES = 3
"""The maximum number of relations in a reason."""


class RelationEdit(StrEnum):
    """What happens to a relation."""

    NEW = "new"
    CHANGED = "changed"
    REBUILT = "rebuilt"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class RelationPlan:
    """What a transaction does to a relation.

    Attributes:
        before: the relation until now; None if it is new.
        after: the relation from now on; None if it is dropped.
        rows_before: how many tuples it has; None if it is virtual, or new.
        rows_after: how many it gets; None if it is virtual, or dropped.
        counts: how many tuples are added and removed.
    """

    relation: str
    edit: RelationEdit
    reason: str
    before: Relation | None
    after: Relation | None
    rows_before: int | None
    rows_after: int | None
    counts: tuple[int, int]
    stats: Stats | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the plan as a dry run prints it."""
        added, removed = self.counts
        stats = self.stats
        return {
            "relation": self.relation,
            "change": str(self.edit),
            "reason": self.reason,
            "columns": {
                "before": None if self.before is None else columns_as_json(self.before),
                "after": None if self.after is None else columns_as_json(self.after),
            },
            "tuples": {
                "before": self.rows_before,
                "added": added,
                "removed": removed,
                "after": self.rows_after,
            },
            "algorithm": None if stats is None else stats.algorithm,
            "algorithm_reason": None if stats is None else stats.reason,
            "seconds": None if stats is None else round(stats.seconds, 6),
        }


def columns_as_json(relation: Relation) -> list[dict[str, str]]:
    """Return the names and types of a relation's columns."""
    pairs = zip(relation.columns, relation.types, strict=True)
    return [{"name": name, "type": str(type_)} for name, type_ in pairs]


def plan_relations(
    engine: Engine,
    *,
    old: NormalProgram,
    update: Update,
    after: NormalProgram,
    changes: Changes,
    stats: Mapping[str, Stats],
) -> list[RelationPlan]:
    """Return what happens to declared relations, before it is committed or rolled back.

    Args:
        engine: holds both states.
        old: the program in force.
        update: what was maintained.
        after: the new program.
        changes: of the tuples.
        stats: of the maintenance.
    """
    changed = {name: changes[name].counts for name in changes}
    return list(_Plans(engine, old, update, after, changed, stats).plans())


@dataclass(frozen=True, slots=True)
class _Plans:
    engine: Engine
    old: NormalProgram
    update: Update
    after: NormalProgram
    counts: Mapping[str, tuple[int, int]]
    stats: Mapping[str, Stats]

    def plans(self) -> Iterator[RelationPlan]:
        """Yield the plan of each relation that something happens to."""
        for name, now in self.after.relations.items():
            if now.is_declared:
                edit, reason = self._edit(name, self.old.relations.get(name), now)
                if edit is not None:
                    yield self._plan(name, edit, reason)
        for name, was in self.old.relations.items():
            if was.is_declared and name not in self.after.relations:
                yield self._plan(name, RelationEdit.DROPPED, "the program does not declare it")

    def _plan(self, name: str, edit: RelationEdit, reason: str) -> RelationPlan:
        was, now = self.old.relations.get(name), self.after.relations.get(name)
        before = after = None
        if was is not None and was.is_stored:
            is_aside = name + ASIDE_SUFFIX in self.update.old.relations
            before = self.engine.size(name + ASIDE_SUFFIX if is_aside else name, State.OLD)
        if now is not None and now.is_stored:
            after = self.engine.size(name)
        counts = self.counts.get(name, (0, 0))
        return RelationPlan(
            name, edit, reason, was, now, before, after, counts, self.stats.get(name)
        )

    def _edit(
        self, name: str, was: Relation | None, now: Relation
    ) -> tuple[RelationEdit | None, str]:
        """Return what happens to a relation that the new program has, and why."""
        if was is None:
            return RelationEdit.NEW, "the program declares it now"
        if was.types != now.types:
            return RelationEdit.REBUILT, f"its columns were ({columns_of(was)})"
        if was.is_derived and now.is_derived and was.is_stored != now.is_stored:
            if now.is_stored:
                return RelationEdit.REBUILT, "it was virtual"
            return RelationEdit.CHANGED, "it is virtual from now on: its tuples are not stored"
        reasons = []
        if was.columns != now.columns:
            reasons.append(f"its columns were called {', '.join(was.columns)}")
        if was.is_derived != now.is_derived:
            reasons.append("it has rules now" if now.is_derived else "it has no rules any more")
        elif name in self.update.redefined:
            reasons.append("its rules are others")
        elif name in self.counts:
            reasons.append(self._cause(name))
        return (RelationEdit.CHANGED, "; ".join(reasons)) if reasons else (None, "")

    def _cause(self, name: str) -> str:
        """Return why the tuples of a relation change whose rules stay."""
        if not self.after.relations[name].is_derived:
            return "rows come or go"
        names = [each for each in self._read(name) if each in self.counts and each != name]
        listed = ", ".join(names[:REASON_MAX_NAMES])
        more = f" and {len(names) - REASON_MAX_NAMES} more" if len(names) > REASON_MAX_NAMES else ""
        verb = "changes" if len(names) == 1 else "change"
        return f"{listed}{more} {verb}" if names else "what it reads changes"

    def _read(self, name: str) -> list[str]:
        """Return the declared relations that a relation reads, through those of rewriting."""
        found: dict[str, None] = {}
        work, seen = [name], {name}
        while work:
            for each in self.update.dependencies.get(work.pop(), ()):
                if each not in seen:
                    seen.add(each)
                    relation = self.after.relations.get(each)
                    if relation is not None and relation.is_declared:
                        found[each] = None
                    else:
                        work.append(each)
        return sorted(found)


def columns_of(relation: Relation) -> str:
    """Return the columns of a relation as they are declared."""
    pairs = zip(relation.columns, relation.types, strict=True)
    return ", ".join(f"{name}: {type_}" for name, type_ in pairs)
