"""What answers are made of: nodes, rules, cuts, attempts, changes, each with its JSON."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any

from corollary.core.logic import Value
from corollary.core.types import Type
from corollary.core.values import value_to_json
from corollary.data_class import dataclass

Row = tuple[Value, ...]
"""A tuple as Python values."""


def fields_to_json(record: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return fields of a record as JSON, by their names; all of them if none are given."""
    every = (each.name for each in fields(record)) if names is None else names
    return {name: _to_json(getattr(record, name)) for name in every}


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_to_json, value))
    if isinstance(value, StrEnum):
        return str(value)
    return value.to_json() if hasattr(value, "to_json") else value


class ProofKind(StrEnum):
    """What a node is."""

    DERIVED = "derived"
    """A tuple, and the rule that derives it."""
    BASE = "base"
    """A tuple that was given, and who gave it."""
    ABSENT = "absent"
    """A tuple that is not there."""
    AGGREGATE = "aggregate"
    """The value of a group, and some of its rows."""
    COMPUTED = "computed"
    """A condition, with its values put in."""
    CHAIN = "chain"
    """A tuple of an `eqrel`, and the tuples that connect its two values."""
    CHANGE = "change"
    """A tuple that a commit has added or removed."""
    SEALED = "sealed"
    """A tuple of which a reader may not see more."""


class CutReason(StrEnum):
    """Why something was left out."""

    NODES = "nodes"
    WORK = "work"
    SECONDS = "seconds"
    INSTANCES = "instances"
    ROWS = "rows"
    HISTORY = "history"
    DRY_RUNS = "dry-runs"


@dataclass(frozen=True, slots=True)
class FactOrigin:
    """Who asserts a base tuple.

    Attributes:
        part: of the relation: `text`, `source` or `manual`.
        file: in which it is.
        line: of the file.
        commit: the last one that added it, or `before N` if that is no longer kept.
    """

    part: str
    file: str | None = None
    line: int | None = None
    commit: int | str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return fields_to_json(self)


@dataclass(frozen=True, slots=True)
class ProofRule:
    """A rule as the user wrote it, or the statement of SQL that it was made of.

    Attributes:
        number: among the rules of the program, from 1.
    """

    number: int
    text: str
    file: str | None = None
    line: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return fields_to_json(self, ("text", "file", "line"))


@dataclass(frozen=True, slots=True)
class ProofCut:
    """Something that was left out.

    Attributes:
        node: the id of the node at which it was; None if at all of them.
        shown: how much is there.
        total: how much there would be; None if that is not known.
    """

    reason: CutReason
    node: int | None = None
    shown: int | None = None
    total: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return fields_to_json(self, ("node", "reason", "shown", "total"))


@dataclass(frozen=True, slots=True)
class AggregateValue:
    """The value of a group.

    The premises of its node are some of its rows: of `min` and `max` those that attain the value,
    of `sum` and `mean` the largest ones.

    Attributes:
        operator: `count`, `sum`, `min`, `max` or `mean`.
        keys: the columns and values that make the group.
        value: of the aggregate.
        rows: the number of rows in the group.
        rest: of `sum` and `mean`, the sum of the rows that are not shown.
        type: of the value.
    """

    operator: str
    keys: tuple[tuple[str, Value, Type], ...]
    value: Value
    rows: int
    rest: Value
    type: Type

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "operator": self.operator,
            "group": {name: value_to_json(value, type_) for name, value, type_ in self.keys},
            "value": value_to_json(self.value, self.type),
            "rows": self.rows,
            "rest": value_to_json(self.rest, self.type),
        }


@dataclass(frozen=True, slots=True)
class FailingLiteral:
    """A literal or condition that fails in an attempt.

    Attributes:
        literal: as written, with the values that are known put in.
        kind: `missing` (a tuple that is not there), `blocking` (one that is), or `condition`.
        node: the id of the node that shows it.
    """

    literal: str
    kind: str
    node: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return fields_to_json(self)


@dataclass(frozen=True, slots=True)
class Attempt:
    """Values with which a rule almost derives a tuple.

    Attributes:
        rule: its number.
        distance: the number of literals and conditions that fail; no instance has fewer. If more
            than three fail, four.
        count: the number of instances that fail in that many.
        bindings: the values of the rule's variables with their types; those that nothing binds are
            left out.
        failing: what fails, in the order of the text.
        beginning: if more than three fail, how many literals and conditions hold together, from
            the first one on; `count` is the number of their instances, and `failing` what is next.
    """

    rule: int
    distance: int
    count: int
    bindings: Mapping[str, tuple[Value, Type]]
    failing: tuple[FailingLiteral, ...]
    beginning: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        beginning = {} if self.beginning is None else {"beginning": self.beginning}
        return {
            "rule": self.rule,
            "distance": self.distance,
            "count": self.count,
            "bindings": {
                name: value_to_json(value, type_) for name, (value, type_) in self.bindings.items()
            },
            "failing": [each.to_json() for each in self.failing],
            **beginning,
        }


@dataclass(frozen=True, slots=True)
class BaseChange:
    """A base tuple to insert (`+`) or to delete (`-`), or a rule, whose text is the relation."""

    op: str
    relation: str
    row: Row
    types: tuple[Type, ...]

    @property
    def is_rule(self) -> bool:
        """Whether a rule comes or goes: the text of one ends with a full stop, no name does."""
        return self.relation.endswith(".")

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON: a line that `corollary apply --changes` takes."""
        if self.is_rule:
            return {"op": "add-rule" if self.op == "+" else "remove-rule", "rule": self.relation}
        op = "insert" if self.op == "+" else "delete"
        return {"op": op, "relation": self.relation, "row": row_to_json(self.row, self.types)}


@dataclass(frozen=True, slots=True)
class InsertionSets:
    """Sets of base changes, each of which alone would make a tuple true.

    Attributes:
        size: of the smallest ones; None if there is none.
        complete: whether these are all of that size, and no smaller one is enough.
    """

    sets: tuple[tuple[BaseChange, ...], ...]
    size: int | None
    complete: bool

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return fields_to_json(self)


_UNSAID = (None, "", ())


@dataclass(frozen=True, slots=True)
class ProofNode:
    """A tuple, or a note beside one.

    Attributes:
        id: its place among the nodes, breadth-first.
        relation: as the user calls it; empty for a condition.
        row: the tuple; of an aggregate, the group and its value.
        types: of the row.
        height: 0 for base tuples and notes.
        rule: the number of the rule that derives it.
        premises: the ids of the tuples that it is derived from; of an aggregate, its rows.
        notes: the ids of what else the rule needs: absent tuples, aggregates, conditions.
        sources: of a base tuple.
        text: how it reads: a tuple, a condition with its values, a literal as written.
        alternative: of a rule with a disjunction, the number of the alternative, from 1.
        aggregate: of the value of a group.
        copies: of a row of a bag.
        now: of a tuple that is not there, the one that covers or dominates it.
        sign: of a change, `+` or `-`; in why-added and why-removed, of what came and what broke.
        attempts: of an absent tuple, how it was not derived.
    """

    id: int
    kind: ProofKind
    relation: str
    row: Row
    types: tuple[Type, ...]
    height: int = 0
    rule: int | None = None
    premises: tuple[int, ...] = ()
    notes: tuple[int, ...] = ()
    sources: tuple[FactOrigin, ...] = ()
    text: str = ""
    alternative: int | None = None
    aggregate: AggregateValue | None = None
    copies: int | None = None
    now: Row | None = None
    sign: str = ""
    attempts: tuple[Attempt, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        whole = ("height", "rule", "premises", "notes", "sources", "text")
        partial = ("alternative", "aggregate", "copies", "now", "sign", "attempts")
        found = fields_to_json(self, ("id", "kind", "relation", "row", *whole))
        found |= fields_to_json(
            self, [each for each in partial if getattr(self, each) not in _UNSAID]
        )
        for name in {"row", "now"} & found.keys():
            found[name] = row_to_json(getattr(self, name), self.types)
        return found


def shift_node(node: ProofNode, by: int) -> ProofNode:
    """Return a node whose id, and those that it names, are larger."""
    return replace(
        node,
        id=node.id + by,
        premises=tuple(each + by for each in node.premises),
        notes=tuple(each + by for each in node.notes),
    )


@dataclass(frozen=True, slots=True)
class Cause:
    """A change of a commit that was needed for another one.

    Attributes:
        change: of a base tuple or a rule.
        necessary: whether the commit would not have done it without this change.
    """

    change: BaseChange
    necessary: bool

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {**self.change.to_json(), "necessary": self.necessary}


def row_to_json(row: Iterable[Value], types: Iterable[Type]) -> list[Any]:
    """Return a tuple as JSON.

    >>> from corollary.core.types import NUMBER
    >>> row_to_json((1, None), (NUMBER, NUMBER))
    [1, None]
    """
    return [value_to_json(value, type_) for value, type_ in zip(row, types, strict=True)]


def rules_to_json(rules: Iterable[ProofRule]) -> dict[str, Any]:
    """Return rules as JSON, by number."""
    ordered = sorted(rules, key=lambda each: each.number)
    return {str(each.number): each.to_json() for each in ordered}
