"""`GROUP BY`: keys, and the sets of keys of GROUPING SETS, ROLLUP and CUBE."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

from sqlglot import exp

from corollary.data_class import dataclass
from corollary.frontends.sql.binder.aggregates import AGGREGATES
from corollary.frontends.sql.binder.context import ExpressionContext, name_of
from corollary.frontends.sql.query_tree import Expression

SETS_MAX = 4096
"""The maximum number of grouping sets of one query."""

KeySet = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    """The keys of a query, the sets of them, and what the keys are after grouping, by the key."""

    keys: tuple[Expression, ...]
    sets: tuple[frozenset[int], ...] | None
    after: dict[Expression, Expression]


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression has an aggregate of its own query, windows apart."""
    return any(_aggregates(node))


def _aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Query):
        return
    called = node
    if isinstance(node, exp.Window):
        called = node.this.this if isinstance(node.this, exp.Filter) else node.this
    elif isinstance(node, exp.Anonymous) and name_of(node) in AGGREGATES:
        yield node
        return
    for part in node.iter_expressions():
        if part is called:  # the aggregate of a window is none of the group; its arguments may be
            for inner in part.iter_expressions():
                yield from _aggregates(inner)
        elif isinstance(part, exp.Filter) and part.this is called:
            for inner in called.iter_expressions():
                yield from _aggregates(inner)
            yield from _aggregates(part.args["expression"])
        else:
            yield from _aggregates(part)


class GroupReader:
    """Reads one GROUP BY."""

    def __init__(self, context: ExpressionContext, items: list[exp.Expr]) -> None:
        self.context = context
        self.session = context.session
        self.items = items
        self.keys: list[Expression] = []

    def read(self, node: exp.Group) -> Grouping:
        """Return the keys and sets of a GROUP BY."""
        self.session.check(node, "expressions", "rollup", "cube", "grouping_sets", "all")
        parts = list(node.expressions)
        if node.args.get("all"):
            parts = [item for item in self.items if not has_aggregate(item)]
        choices: list[list[KeySet]] = []
        is_plain = True
        for part in parts:
            is_plain &= not isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets)
            choices.append(self._sets(part))
        for name in ("rollup", "cube", "grouping_sets"):
            for part in node.args.get(name) or []:
                is_plain = False
                if part.expressions:
                    choices.append(self._sets(part))
                else:  # GROUP BY a, b WITH ROLLUP
                    singles = [choice[0] for choice in choices]
                    choices = [_rollup(singles) if name == "rollup" else _cube(singles)]
        count = 1
        for choice in choices:
            count *= len(choice)
        if count > SETS_MAX:
            message = f"These are {count} groupings."
            raise self.session.error("C1322", message, node, "group by fewer sets")
        if is_plain:
            return Grouping(tuple(self.keys), None, {key: key for key in self.keys})
        sets = tuple(
            frozenset(key for each in chosen for key in each) for chosen in product(*choices)
        )
        keys = tuple(
            replace(key, type=key.type.with_null(True))
            if any(number not in chosen for chosen in sets)
            else key
            for number, key in enumerate(self.keys)
        )
        return Grouping(keys, sets, dict(zip(self.keys, keys, strict=True)))

    def _sets(self, node: exp.Expr) -> list[KeySet]:
        """Return the sets of keys that one term of GROUP BY stands for."""
        match node:
            case exp.Rollup():
                self.session.check(node, "expressions")
                return _rollup([self._composite(each) for each in node.expressions])
            case exp.Cube():
                self.session.check(node, "expressions")
                if len(node.expressions) > 12:
                    raise self.session.error(
                        "C1322", "This CUBE is too large.", node, "use fewer keys"
                    )
                return _cube([self._composite(each) for each in node.expressions])
            case exp.GroupingSets():
                self.session.check(node, "expressions")
                return [found for each in node.expressions for found in self._member(each)]
            case exp.Tuple() if node.expressions:
                return [self._composite(node)]
            case _:
                return [(self._key(node),)]

    def _member(self, node: exp.Expr) -> list[KeySet]:
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            return self._sets(node)
        return [self._composite(node)]

    def _composite(self, node: exp.Expr) -> KeySet:
        if isinstance(node, exp.Tuple):
            return tuple(self._key(each) for each in node.expressions)
        return (self._key(node.this if isinstance(node, exp.Paren) else node),)

    def _key(self, node: exp.Expr) -> int:
        """Return the number of a key, which an ordinal or an alias may stand for."""
        position = ordinal_of(node)
        if position is not None:
            if not 1 <= position <= len(self.items):
                message = f"There is no column {position} in the SELECT."
                note = f"write a number from 1 to {len(self.items)}"
                raise self.session.error("C1314", message, node, note)
            if any(item.is_star for item in self.items[:position]):
                message = "A number cannot count the columns of `*`."
                raise self.session.error("C1314", message, node, "name the column")
            item = self.items[position - 1]
            node = item.this if isinstance(item, exp.Alias) else item
        elif isinstance(node, exp.Alias):
            node = node.this
        key = self.context.bind(node)
        if key not in self.keys:
            self.keys.append(key)
        return self.keys.index(key)


def _rollup(parts: list[KeySet]) -> list[KeySet]:
    return [
        tuple(key for part in parts[:length] for key in part)
        for length in range(len(parts), -1, -1)
    ]


def _cube(parts: list[KeySet]) -> list[KeySet]:
    return [
        tuple(key for part in chosen for key in part)
        for length in range(len(parts), -1, -1)
        for chosen in combinations(parts, length)
    ]


def ordinal_of(node: exp.Expr) -> int | None:
    """Return the integer that a node is written as: it is the number of a column."""
    sign, inner = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    if isinstance(inner, exp.Literal) and not inner.is_string and inner.this.isdigit():
        return sign * int(inner.this)
    return None
