"""Trigger rounds: what triggers do, what that sets off, until a round changes nothing.

All trigger heads of a round are computed from one state; delta literals and `@old` are relative to
the round before. Deletes apply before inserts. So the rounds are steps from state to state:

    OLD = S0 → S1 → S2 → … → Sn = NEW       operations, then what triggers do in each round

While they go on, every Si is made the OLD of the next; then all of it is taken back, so that the
transaction can do from S0 to Sn at once what it was asked and what triggers have added to it.
Constraints, alerts and the views themselves see that one step only.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self

from corollary.core.arrow import to_python
from corollary.core.plan import effect_of
from corollary.core.program import NormalProgram
from corollary.core.states import State
from corollary.core.values import row_text
from corollary.database.journal import Attempt, Ran
from corollary.database.operations import Operation
from corollary.errors import LimitError
from corollary.maintain.update import Update

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.database.kernel import Kernel

ROUNDS = 100
"""So many rounds triggers may go on for, unless a limit says otherwise."""

SHOWN = 3
"""So many tuples of a round, and twice as many rounds, are shown of a cascade that does not end."""


@dataclass(frozen=True, slots=True)
class Fired:
    """What the triggers of one round do: deletes, then inserts."""

    operations: tuple[Operation, ...]
    program: NormalProgram = field(repr=False)

    def __str__(self) -> str:
        return "; ".join(map(self._told, self.operations))

    def _told(self, operation: Operation) -> str:
        relation = self.program.relations[operation.relation]
        sign = "+" if operation.sign is State.ADDED else "-"
        listed = [
            f"{sign}{relation.name}{row_text(row, relation.types)}"
            for row in to_python(operation.rows.slice(0, SHOWN))
        ]
        more = operation.rows.num_rows - len(listed)
        return ", ".join([*listed, *([f"{more:,} more"] if more else [])])


@dataclass(slots=True)
class Cascade:
    """The rounds of one transaction; as a context manager it takes them back at the end.

    Attributes:
        chain: what triggers did, round by round.
    """

    database: "Kernel"
    attempt: Attempt
    chain: list[Fired] = field(default_factory=list)
    _steps: "list[dict[str, tuple[pa.Table, pa.Table]]]" = field(default_factory=list)
    _payload: frozenset[str] = frozenset()
    _rebuilt: set[str] = field(default_factory=set)

    def __enter__(self) -> Self:
        self._payload = self.database.planning.payload
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        engine, database = self.database.engine, self.database
        database.clear_deltas()
        engine.rollback()
        for step in reversed(self._steps):
            for name, (added, removed) in step.items():
                engine.change(name, removed, added)
        engine.commit()
        database.planning.payload = self._payload
        if self._rebuilt:
            self.attempt.rebuilt |= self._rebuilt
            database.distrust(self._rebuilt)

    @property
    def _normal(self) -> NormalProgram:
        return self.attempt.after.normal

    @property
    def operations(self) -> list[Operation]:
        """What triggers have done so far, in order."""
        return [each for fired in self.chain for each in fired.operations]

    def follow(self, fired: Fired, update: Update, ran: Ran) -> None:
        """Make the state so far the OLD one of the next round.

        Raises:
            LimitError: there were too many rounds.
        """
        self.chain.append(fired)
        limit = self.database.limits.rounds or ROUNDS
        if len(self.chain) > limit:
            raise _endless(self.chain, limit)
        database, engine = self.database, self.database.engine
        planning = database.planning
        self._steps.append(dict(self._changes()))
        self._rebuilt |= self.attempt.rebuilt
        database.clear_deltas()
        engine.commit()
        planning.payload = planning.payload_after(update, ran.maintenance, ran.recorder)

    def _changes(self) -> "Iterator[tuple[str, tuple[pa.Table, pa.Table]]]":
        engine, normal = self.database.engine, self._normal
        stored = [name for name, each in normal.relations.items() if each.is_stored]
        for name in (*stored, *self.database.payload_of(normal)):
            if engine.size(name, State.ADDED) or engine.size(name, State.REMOVED):
                yield name, (engine.read(name, State.ADDED), engine.read(name, State.REMOVED))


def fired(database: "Kernel", normal: NormalProgram) -> Fired:
    """Return what triggers change in base relations, as they have been evaluated."""
    found: list[Operation] = []
    engine = database.engine
    for name, (relation, sign) in normal.active.triggers.items():
        if engine.size(effect_of(name)):
            found.append(Operation(sign, relation, engine.read(effect_of(name))))
    found.sort(key=lambda each: each.sign is State.ADDED)
    return Fired(tuple(found), normal)


def _endless(chain: list[Fired], limit: int) -> LimitError:
    first = len(chain) - 2 * SHOWN
    rounds = "\n".join(
        f"  round {number}: {each}"
        for number, each in enumerate(chain, 1)
        if number <= SHOWN or number > first
    )
    return LimitError(
        f"triggers set each other off for more than {limit} rounds; nothing was changed\n{rounds}\n"
        "  = mend the triggers (`corollary check` shows how they depend on each other), "
        "or raise the limit of rounds"
    )
