"""A DataFrame as a block of SQL under construction: sources, conditions, columns.

A name of the user is resolved here, once: to a column of a source. What the columns of a frame are
is known by their plan ids, so that `df["x"]` finds the column after joins and projections.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from sqlglot import exp

from corollary.data_class import dataclass

SHOWN = "shown"
"""A key of the `meta` of a column: what Spark calls it, in the names of expressions."""


@dataclass(frozen=True, slots=True)
class FrameColumn:
    """A column of a frame.

    Attributes:
        node: what it is, by the columns of the frame's sources.
        plan_ids: the DataFrames that have it, unchanged.
        qualifiers: what may stand before its name, in small letters.
        is_hidden: whether it is not in the output; a name with a qualifier finds it.
    """

    name: str
    node: exp.Expr
    plan_ids: frozenset[int] = frozenset()
    qualifiers: frozenset[str] = frozenset()
    is_hidden: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is a column of a source."""
        return isinstance(self.node, exp.Column)


@dataclass(frozen=True, slots=True)
class FrameBlock:
    """A block of SQL under construction.

    Attributes:
        source: what is after FROM; None for a row without columns.
        dropped: columns that a projection has left out; conditions and orders may still name them.
        is_closed: whether nothing but its query may be made of it: it has groups, a limit ….
        tail: further parts of the SELECT.
    """

    source: exp.Expr | None
    columns: tuple[FrameColumn, ...]
    joins: tuple[exp.Join, ...] = ()
    tests: tuple[exp.Expr, ...] = ()
    order: tuple[exp.Expr, ...] = ()
    dropped: tuple[FrameColumn, ...] = ()
    is_closed: bool = False
    tail: dict[str, exp.Expr] = field(default_factory=dict)

    @property
    def visible(self) -> tuple[FrameColumn, ...]:
        """The columns of the output."""
        return tuple(each for each in self.columns if not each.is_hidden)

    @property
    def names(self) -> list[str]:
        """The names of the output."""
        return [each.name for each in self.visible]

    def find(
        self, parts: Sequence[str], plan_id: int | None, *, is_loose: bool = False
    ) -> tuple[list[FrameColumn], Sequence[str]]:
        """Return the columns that a name can mean, and the fields of them that it names."""
        if is_loose:
            there = self.find(parts, plan_id)
            return there if there[0] else replace(self, columns=self.dropped).find(parts, plan_id)
        for at in range(len(parts), 0, -1):
            qualifier, name = ".".join(parts[: at - 1]).lower(), parts[at - 1].lower()
            found = [
                each
                for each in self.columns
                if each.name.lower() == name
                and (not qualifier or qualifier in each.qualifiers)
                and (plan_id is None or plan_id in each.plan_ids)
                and not (each.is_hidden and not qualifier and plan_id is None)
            ]
            if found:
                return found, parts[at:]
        return [], ()

    def with_plan(self, plan_id: int) -> "FrameBlock":
        """Return the frame with its columns known as those of another DataFrame."""
        columns = tuple(
            each if each.is_hidden else replace(each, plan_ids=each.plan_ids | {plan_id})
            for each in self.columns
        )
        return replace(self, columns=columns)

    def query(self, names: Iterable[str] | None = None) -> exp.Select:
        """Return the query of the frame, under names of the output if they are given."""
        chosen = self.visible if names is None else self.columns
        called = [each.name for each in chosen] if names is None else list(names)
        items = [
            exp.Alias(this=each.node.copy(), alias=identifier(name))
            for each, name in zip(chosen, called, strict=True)
        ]
        found = exp.Select(expressions=items)
        if self.source is not None:
            found.set("from_", exp.From(this=self.source.copy()))
        if self.joins:
            found.set("joins", [each.copy() for each in self.joins])
        if self.tests:
            found.set("where", exp.Where(this=conjunction(self.tests)))
        for part, node in self.tail.items():
            found.set(part, node.copy())
        return found

    def wrapped(self, alias: str) -> "FrameBlock":
        """Return the frame as a source of a new one."""
        names = distinct_names([each.name for each in self.columns])
        return source_frame(exp.Subquery(this=self.query(names)), alias, self.columns, names)


def source_frame(
    source: exp.Expr, alias: str, columns: Sequence[FrameColumn], names: Sequence[str]
) -> FrameBlock:
    """Return a frame of one source, whose columns have some names there."""
    source.set("alias", exp.TableAlias(this=identifier(alias)))
    found = tuple(
        replace(each, node=column_of(alias, name, each.name))
        for each, name in zip(columns, names, strict=True)
    )
    return FrameBlock(source, found)


def column_of(alias: str, name: str, shown: str) -> exp.Column:
    """Return a column of a source."""
    found = exp.Column(this=identifier(name), table=identifier(alias))
    found.meta[SHOWN] = shown
    return found


def identifier(name: str) -> exp.Identifier:
    """Return a name in quotes."""
    return exp.Identifier(this=name, quoted=True)


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names that differ from each other not by case alone.

    >>> distinct_names(["a", "A", "b"])
    ['a', 'A_2', 'b']
    """
    taken = {name.lower() for name in names}
    seen: set[str] = set()
    found = []
    for name in names:
        unique, number = name, 2
        while unique.lower() in seen or (unique != name and unique.lower() in taken):
            unique, number = f"{name}_{number}", number + 1
        seen.add(unique.lower())
        found.append(unique)
    return found


def conjunction(tests: Sequence[exp.Expr]) -> exp.Expr:
    """Return a condition that is all of some."""
    parts = [
        exp.Paren(this=each.copy()) if isinstance(each, exp.Or) else each.copy() for each in tests
    ]
    found = parts[0]
    for each in parts[1:]:
        found = exp.And(this=found, expression=each)
    return found
