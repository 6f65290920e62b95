"""Trigger rounds: what triggers change, and what that triggers, until a round changes nothing.

All trigger heads of a round are computed from one state; delta literals and `@old` are relative to
the round before. Deletes apply before inserts. So the rounds are steps from state to state:

    OLD = S0 → S1 → S2 → … → Sn = NEW       operations, then what triggers do in each round

During the rounds every Si becomes the OLD of the next; then all rounds are undone, so that the
transaction can apply its own operations and those of triggers in one step from S0 to Sn.
Constraints, alerts and the views themselves see that one step only.
"""

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Self

from corollary.core.arrow import to_python
from corollary.core.engine import Engine
from corollary.core.plans import effect_relation
from corollary.core.program import NormalProgram
from corollary.core.states import CHANGES, State
from corollary.core.values import format_row
from corollary.data_class import dataclass
from corollary.database.pending_commit import PendingCommit, PlanRun
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.database.writing.operations import Operation
from corollary.errors import LimitError
from corollary.maintain.payload import payload_relations_of

if TYPE_CHECKING:
    import pyarrow as pa

TRIGGER_MAX_ROUNDS = 100
"""The maximum number of rounds, unless a limit says otherwise."""

MESSAGE_TUPLES = 3
"""The maximum number of tuples of a round in a message; it shows twice as many rounds."""


@dataclass(frozen=True, slots=True)
class TriggerEffects:
    """What the triggers of one round do: deletes, then inserts."""

    operations: tuple[Operation, ...]
    program: NormalProgram = field(repr=False)

    def __str__(self) -> str:
        return "; ".join(map(self._describe, self.operations))

    def _describe(self, operation: Operation) -> str:
        relation = self.program.relations[operation.relation]
        sign = "+" if operation.sign is State.ADDED else "-"
        listed = [
            f"{sign}{relation.name}{format_row(row, relation.types)}"
            for row in to_python(operation.rows.slice(0, MESSAGE_TUPLES))
        ]
        more = operation.rows.num_rows - len(listed)
        return ", ".join([*listed, *([f"{more:,} more"] if more else [])])


@dataclass(slots=True)
class TriggerRounds:
    """The rounds of one transaction; as a context manager it undoes them at the end.

    Attributes:
        chain: what triggers did, round by round.
        steps: what was added to stored relations and removed, as each round saw it.
    """

    state: DatabaseState
    store: Store
    pending: PendingCommit
    chain: list[TriggerEffects] = field(default_factory=list)
    steps: "list[dict[str, tuple[pa.Table, pa.Table]]]" = field(default_factory=list)
    _payload: frozenset[str] = frozenset()
    _rebuilt: set[str] = field(default_factory=set)

    def __enter__(self) -> Self:
        self._payload = self.state.planner.payload
        return self

    def __exit__(self, *_: object) -> None:
        state, engine = self.state, self.state.engine
        state.clear_event_relations()
        engine.rollback()
        for step in reversed(self.steps):
            for name, (added, removed) in step.items():
                engine.apply_change(name, removed, added)
        engine.commit()
        state.planner.payload = self._payload
        if self._rebuilt:
            # Payload that was rebuilt in a round stays rebuilt in the engine, even if the
            # transaction fails; so it differs from what the store has recorded.
            self.pending.rebuilt |= self._rebuilt
            state.invalidate_payload(self._rebuilt)
            self.store.invalidate_payload(self._rebuilt)

    @property
    def operations(self) -> list[Operation]:
        """What triggers have done so far, in order."""
        return [each for effects in self.chain for each in effects.operations]

    def advance(self, effects: TriggerEffects, run: PlanRun) -> None:
        """Make the state so far the OLD of the next round.

        Raises:
            LimitError: there were too many rounds.
        """
        self.chain.append(effects)
        limit = self.state.limits.rounds or TRIGGER_MAX_ROUNDS
        if len(self.chain) > limit:
            raise _endless(self.chain, limit)
        state, planning = self.state, self.state.planner
        self.steps.append(dict(self._changes()))
        self._rebuilt |= self.pending.rebuilt
        state.clear_event_relations()
        state.engine.commit()
        planning.payload = planning.payload_after(run.update, run.maintenance, run.recorder)

    def _changes(self) -> "Iterator[tuple[str, tuple[pa.Table, pa.Table]]]":
        engine, normal = self.state.engine, self.pending.planned
        stored = [name for name, each in normal.relations.items() if each.is_stored]
        for name in (*stored, *payload_relations_of(normal)):
            if any(engine.size(name, sign) for sign in CHANGES):
                yield name, (engine.read(name, State.ADDED), engine.read(name, State.REMOVED))


def trigger_effects(engine: Engine, normal: NormalProgram) -> TriggerEffects:
    """Return what the evaluated triggers change in base relations."""
    found: list[Operation] = []
    for name, (relation, sign) in normal.active.triggers.items():
        if engine.size(effect_relation(name)):
            found.append(Operation(sign, relation, engine.read(effect_relation(name))))
    found.sort(key=lambda each: each.sign is State.ADDED)
    return TriggerEffects(tuple(found), normal)


def _endless(chain: list[TriggerEffects], limit: int) -> LimitError:
    first = len(chain) - 2 * MESSAGE_TUPLES
    rounds = "\n".join(
        f"  round {number}: {each}"
        for number, each in enumerate(chain, 1)
        if number <= MESSAGE_TUPLES or number > first
    )
    return LimitError(
        f"triggers set each other off for more than {limit} rounds; nothing was changed\n{rounds}\n"
        "  = correct the triggers (`corollary check` shows how they depend on each other), "
        "or raise the limit of rounds"
    )
