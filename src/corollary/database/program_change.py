"""An edit of the program in the engine: the relations of both programs, until one is in force."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace

from corollary.core.engine import Engine, Limits
from corollary.core.plans import WORKING_SEPARATOR
from corollary.core.program import NormalProgram, Relation
from corollary.data_class import dataclass
from corollary.database.program import transitions
from corollary.database.program.parts import split_parts
from corollary.database.writing.operations import Operation, apply_operations
from corollary.maintain.payload import payload_relations_of


@dataclass(frozen=True, slots=True)
class Conversion:
    """Relations that others take the place of, and what these hold from the start.

    Attributes:
        replaced: the relations that become others, whatever their types are.
        tuples: operations on the new ones.
        dropped: the relations that are dropped with rows, and how many these are.
    """

    replaced: frozenset[str] = frozenset()
    tuples: tuple[Operation, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filling:
    """A stored relation that gets a content in OLD.

    Attributes:
        rules: the program whose rules say what it contains.
        is_readable: which relations can be read, and need not be derived.
    """

    relation: str
    rules: NormalProgram
    is_readable: Callable[[str], bool]


class ProgramChange:
    """Gives an engine the relations of two programs; takes those of one away at the end.

    Attributes:
        before: the old program, with what the transaction needs of the new one.
        after: the new program as it is planned for: what becomes virtual is stored.
        created: the relations that were declared for it, or are stored in another way.
        refilled: the new relations whose OLD is what their rules give on the old data.
        has_other_relations: whether a relation has other columns, or is stored in another way.

    Args:
        engine: of the relations.
        old: the program in force.
        new: the one that follows it.
        conversion: of relations that have other columns.
    """

    def __init__(
        self,
        engine: Engine,
        old: NormalProgram,
        new: NormalProgram,
        conversion: Conversion,
    ) -> None:
        self._engine, self._conversion = engine, conversion
        self._old, self._new = old, new
        self.before, self.after = old, new
        self.created: set[str] = set()
        self.refilled: list[str] = []
        self.has_other_relations = False
        self._known: set[str] = set()
        self._emptied: list[str] = []
        self._undo: list[Callable[[], object]] = []

    def begin(self, observed: Collection[str]) -> list[Filling]:
        """Declare what the engine does not have; return what is to be filled.

        Args:
            observed: the relations whose changes are asked for.
        """
        engine, old, new = self._engine, self._old, self._new
        payload = payload_relations_of(old)
        also = {name: name + transitions.ASIDE_SUFFIX for name in self._conversion.replaced}
        replaced = transitions.replaced_relations(old, new)
        replaced |= {name: aside for name, aside in also.items() if name in new.relations}
        owned = [name for name in payload if name.partition(WORKING_SEPARATOR)[0] in replaced]
        going = replaced | {name: name + transitions.ASIDE_SUFFIX for name in owned}
        for name, aside in going.items():
            self._rename(name, aside)
        before = transitions.set_aside(old, replaced)

        relabelled = transitions.relabelled_relations(before, new)
        for relation in relabelled:
            self._relabel(before.relations[relation.name], relation)
        self._emptied = transitions.relations_to_empty(before, new)
        self.after = transitions.as_stored(new, self._emptied)

        self._known = {going.get(name, name) for name in (*old.relations, *payload)}
        every = {**self.after.relations, **payload_relations_of(self.after)}
        declared = {name: each for name, each in every.items() if name not in self._known}
        engine.declare(declared)
        self._undo.append(lambda: engine.drop(declared))
        for name, base in transitions.relations_given_rules(before, new).items():
            engine.copy(name, base)
        for part, name in split_parts(before, new).items():
            engine.copy(name, part)
        before = transitions.with_base_parts(before, new)

        stored = transitions.relations_to_store(before, new)
        relations = before.relations
        work = [Filling(name, before, lambda each: relations[each].is_stored) for name in stored]
        self._undo.append(lambda: engine.clear(stored))
        before = transitions.as_stored(before, stored)
        self.refilled, self.before = transitions.relations_to_refill(before, self.after, observed)
        work += [Filling(name, new, self._is_base) for name in self.refilled]

        self.created = {*declared, *(each.name for each in relabelled), *stored}
        self.has_other_relations = bool(replaced or relabelled or stored or self._emptied)
        return work

    def fill(self, limits: Limits) -> None:
        """Give new base relations the tuples that they have in both states."""
        engine, new, converted = self._engine, self._new, self._conversion.tuples
        if not converted:
            return
        apply_operations(engine, new, converted, limits)
        names = {new.bases.get(each.relation, each.relation) for each in converted}
        engine.commit(engine.changed())
        relations = {name: new.relations[name] for name in names}
        facts = {name: rows for name, rows in new.facts.items() if name in names}
        self.before = replace(
            self.before,
            relations={**self.before.relations, **relations},
            facts={**self.before.facts, **facts},
        )

    def _is_base(self, name: str) -> bool:
        return not self._new.relations[name].is_derived

    def _rename(self, name: str, other: str) -> None:
        self._engine.rename(name, other)
        self._undo.append(lambda: self._engine.rename(other, name))

    def _relabel(self, was: Relation, now: Relation) -> None:
        self._engine.relabel(now)
        self._undo.append(lambda: self._engine.relabel(was))

    def undo(self) -> None:
        """Let the engine have the relations of the old program as they were."""
        while self._undo:
            self._undo.pop()()

    def finish(self) -> None:
        """Drop what only the old program has."""
        new = self._new
        needed = {**new.relations, **payload_relations_of(new)}
        self._engine.drop(name for name in {*self._known, *self.created} if name not in needed)
        given = transitions.relations_given_rules(self._old, new)
        virtual = [name for name in given if not new.relations[name].is_stored]
        self._engine.clear([*self._emptied, *virtual])
