"""A functor of a program's own, `@f(x, y)`: its types, and the Python function that computes it."""

from collections.abc import Callable
from dataclasses import field
from typing import Any

from corollary.core.logic import Functor
from corollary.core.types import Type
from corollary.data_class import dataclass

SIGN = "@"
"""The sign before the name of such a functor wherever it is applied."""


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A Python function that `corollary.functor` has registered.

    Attributes:
        name: that of the functor, without `@`.
        is_vectorised: whether it takes Arrow arrays and returns one, for many rows at once; else it
            takes Python values and returns one.
    """

    name: str
    function: Callable[..., Any]
    is_vectorised: bool = False

    @property
    def place(self) -> tuple[str, str]:
        """The module and the name of the function in it."""
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return str(getattr(self.function, "__module__", "")), str(name)


@dataclass(frozen=True, slots=True)
class UserFunctor:
    """A functor of a program's own, with its types resolved.

    Attributes:
        name: as declared, without `@`.
        parameters: the types of its arguments; none is nullable.
        result: the type of its values; a nullable one says that it may give null.
        function: what computes it; None where no function of its name is registered.
    """

    name: str
    parameters: tuple[Type, ...]
    result: Type
    function: UserFunction | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class UserCall(Functor):
    """A functor of a program's own, applied to terms; `name` begins with `@`."""

    functor: UserFunctor = field(kw_only=True, repr=False)
