"""A stratum whose counts or sums are recursive, seen as groups.

A group is a key of a relation with groups, its *owner*. The relations that rewriting made of an
aggregate (its body, its values, their projection) begin with the key, and belong to the groups of
the relation whose rule has the aggregate.
"""

from collections.abc import Iterator, Sequence

from corollary.analysis.strata import Stratum
from corollary.core import plans
from corollary.core.graph import strongly_connected_components
from corollary.core.logic import Aggregation, Constant, Literal, Rule, Variable
from corollary.core.pipeline import Reference
from corollary.core.plans import Step, working_relation
from corollary.core.states import State
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.maintain.delta import LiteralReader, make_body
from corollary.maintain.draft import Draft, working_goal
from corollary.maintain.sip import Goal


@dataclass(frozen=True, slots=True)
class ReadPairs:
    """The groups of `reader` and those of `read` that they read."""

    reader: str
    read: str
    relation: str


class GroupedStratum:
    """A stratum seen as groups.

    Attributes:
        owners: the relations that have groups, with the columns of the key.
        owner_of: for each relation of the stratum the one whose groups it belongs to.
        order: all relations, each after those of the same group that it reads.
        pairs: which groups read which.
    """

    def __init__(self, stratum: Stratum, draft: Draft, state: State) -> None:
        self.stratum, self.draft, self.state = stratum, draft, state
        relations = draft.tables.programs[state].relations
        self.owners: dict[str, tuple[int, ...]] = {}
        self.pairs: list[ReadPairs] = []
        for name in stratum.relations:
            grouping = relations[name].grouping
            if grouping is not None:
                self.owners[name] = grouping.key
                self.pairs += [ReadPairs(name, read, pairs) for read, pairs in grouping.reads]
        self.aggregations = {each.relation: each for each in stratum.aggregations}
        inside = {name: self._read_inside(name) for name in stratum.relations}
        self.order = tuple(
            name for names in strongly_connected_components(inside) for name in names
        )
        self.owner_of = {name: name for name in self.owners}
        for name in reversed(self.order):  # readers first
            for below in inside[name]:
                self.owner_of.setdefault(below, self.owner_of[name])

    def _read_inside(self, name: str) -> list[str]:
        """Return the relations of the same group that a relation reads."""
        read = [each.relation for rule in self.rules(name) for each in rule.literals]
        read += [each.body for each in self.stratum.aggregations if each.relation == name]
        return [each for each in read if each in self.stratum.members and each not in self.owners]

    def rules(self, name: str) -> Sequence[Rule]:
        """Return the rules of a relation."""
        return self.stratum.rules_by_head.get(name, ())

    def key(self, name: str, slots: Sequence[object]) -> tuple[Variable | Constant, ...]:
        """Return the key of the group that a tuple of a relation belongs to."""
        columns = self.owners.get(name, range(len(self.owners[self.owner_of[name]])))
        chosen = (slots[column] for column in columns)
        return tuple(slot for slot in chosen if isinstance(slot, Variable | Constant))

    def key_types(self, owner: str) -> tuple[Type, ...]:
        """Return the types of the keys of a relation's groups."""
        return tuple(self.draft.types[owner][column] for column in self.owners[owner])

    def key_relation(self, owner: str, role: str, *more: Type) -> str:
        """Return a working relation of keys of groups."""
        name = working_relation(owner, role)
        self.draft.types[name] = (*self.key_types(owner), *more)
        return name

    def key_variables(self, owner: str, prefix: str = "k") -> tuple[Variable, ...]:
        """Return distinct variables for the key of a group."""
        return tuple(
            Variable(f"{prefix}{at}'", type_) for at, type_ in enumerate(self.key_types(owner))
        )

    def readers(self, owner: str) -> Iterator[ReadPairs]:
        """Yield the pairs by which groups of a relation read others."""
        return (each for each in self.pairs if each.reader == owner)

    def pair_goal(self, pairs: ReadPairs, state: State | None = None) -> Goal:
        """Return the literal of pairs: the reader's key `k…`, and the key `r…` of what it reads."""
        slots = (*self.key_variables(pairs.reader), *self.key_variables(pairs.read, "r"))
        source = Reference(pairs.relation, self.state if state is None else state)
        return Goal(Literal(pairs.relation, slots), source)

    def current_steps(
        self, name: str, role: str, read: LiteralReader, without: Sequence[Reference] = ()
    ) -> list[Step]:
        """Return the steps that derive what a relation has for the current groups.

        Args:
            name: the relation.
            role: that of the working relation to derive.
            read: where the literals of its rules are read.
            without: tuples to leave out.
        """
        target = self.draft.working_relation(name, role)
        if name in self.aggregations:
            aggregation = self.aggregations[name]
            assert isinstance(aggregation, Aggregation), "windows are not recursive"
            body = Reference(working_relation(aggregation.body, role))
            return [plans.Aggregate(target, aggregation, body)]
        current = working_relation(self.owner_of[name], "current")
        bodies = [
            make_body(
                rule,
                read,
                lead=working_goal(current, self.key(name, rule.head.slots)),
                is_judged=self.state is State.NEW,
            )
            for rule in self.rules(name)
        ]
        return self.draft.derive(target, bodies, without=without)

    def check(self, suspects: Sequence[str], *, is_counted: bool) -> plans.CheckAcyclic:
        """Return the step that fails if groups read themselves."""
        origins = (rule.origin for name in self.owners for rule in self.rules(name))
        pairs = ((each.reader, each.read, self._reference(each.relation)) for each in self.pairs)
        origin = next(each for each in origins if "aggregates" in each.passes)
        return plans.CheckAcyclic(tuple(suspects), tuple(pairs), origin, is_counted)

    def _reference(self, relation: str) -> Reference:
        return Reference(relation, self.state)
