"""What the parts of the binder that read expressions know about the clause they are in."""

from abc import ABC, abstractmethod
from dataclasses import field, replace
from typing import Self

from sqlglot import exp

from corollary.core.types import SYMBOL
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.binder.scopes import Scope
from corollary.frontends.sql.binder.session import BindingSession
from corollary.frontends.sql.binder.values.conversions import convert
from corollary.frontends.sql.binder.values.operators import Site, condition
from corollary.frontends.sql.query_tree import Expression, Query


@dataclass(frozen=True)
class ExpressionContext(ABC):
    """A clause of a query, in which expressions are bound.

    Attributes:
        clause: its name, for messages.
        aliases: the columns of the SELECT that can be named here, in order, and their expressions.
        keys: in a grouped query, what its keys became, by the key; None before grouping.
        is_one_group: whether the query is grouped without keys, so that no row may be in the group.
        with_aggregates: whether aggregates may stand here.
        with_windows: whether window functions may stand here.
        windows: the windows that the query names.
        has_grouping_sets: whether `grouping()` means something.
        parameters: those of the lambdas around, by their names in small letters.
        aliases_first: whether an alias wins over a column that is not grouped, as in HAVING.
    """

    session: BindingSession
    scope: Scope
    clause: str
    aliases: tuple[tuple[str, exp.Expr], ...] = ()
    keys: dict[Expression, Expression] | None = None
    is_one_group: bool = False
    with_aggregates: bool = False
    with_windows: bool = False
    windows: dict[str, exp.Window] = field(default_factory=dict)
    has_grouping_sets: bool = False
    aliases_first: bool = False
    parameters: dict[str, Expression] = field(default_factory=dict)

    @abstractmethod
    def bind(self, node: exp.Expr) -> Expression:
        """Return the expression of a node."""

    def bind_condition(self, node: exp.Expr, what: str) -> Expression:
        """Return the expression of a node that must be a condition."""
        return condition(self.bind(node), self.site(node), what)

    def bind_text(self, node: exp.Expr) -> Expression:
        """Return the expression of a node as a text."""
        return convert(self.bind(node), SYMBOL)

    def try_bind(self, node: exp.Expr) -> Expression | None:
        """Return the expression of a node, or None if it cannot be bound."""
        try:
            return self.bind(node)
        except InputError:
            return None

    def ungrouped(self, clause: str) -> Self:
        """Return the context of what is computed before grouping: keys, arguments of aggregates."""
        return replace(
            self,
            clause=clause,
            keys=None,
            with_aggregates=False,
            with_windows=False,
            aliases_first=False,
            parameters={},
        )

    def site(self, node: exp.Expr, *parts: exp.Expr, name: str = "") -> Site:
        """Return a node as the place of an operator or function."""
        return Site(self.session, node, parts, name)

    def nested(self, node: exp.Expr) -> Query:
        """Return a query inside this one."""
        if self.parameters:
            message = "A subquery stands in a lambda."
            note = "join its query, and use the column in the lambda"
            raise self.session.error("C1310", message, node, note)
        before, self.scope.keys = self.scope.keys, self.keys
        try:
            return self.session.bind_nested(node, self.scope)
        finally:
            self.scope.keys = before


def name_of(node: exp.Expr) -> str:
    """Return the name of a function, in small letters."""
    return node.name.lower()
