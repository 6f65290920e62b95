"""Checks the arguments of what users call, so that a wrong one is an `InputError` that names it."""

import os
from collections.abc import Callable
from enum import StrEnum
from functools import cache, wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from corollary.data_class import dataclass
from corollary.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")
Choice = TypeVar("Choice", bound=StrEnum)

Classes = type | tuple[type, ...]


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Accepts whole numbers from one on."""

    least: int


PATH: Classes = (str, os.PathLike)
TEXTS: Classes = (list, tuple, set, frozenset)
"""Several texts; one by itself would be taken for its letters."""
COUNT = AtLeast(0)
SHOWN_MAX_CHARACTERS = 60


def checked(**classes: Classes | AtLeast) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that checks the classes of arguments, or least numbers, by their names.

    None is accepted where it is the default. A truth value is not a number.

    >>> @checked(limit=int)
    ... def first(limit=None, *others): ...
    >>> first(), first(3)
    (None, None)
    >>> first("3")
    Traceback (most recent call last):
    ...
    corollary.errors.InputError: error[C0924]: `first` takes an `int` for `limit`, not '3'.
      = give another value
    >>> checked(limit=COUNT)(first)(-1)
    Traceback (most recent call last):
    ...
    corollary.errors.InputError: error[C0924]: `first` takes a number from 0 on for `limit`, not -1.
      = give 0 or more
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @cache  # many functions are defined for each that is called
        def describe() -> tuple[dict[int, str], int | None, set[str]]:
            parameters = signature(function).parameters
            places = {
                at: name
                for at, (name, each) in enumerate(parameters.items())
                if name in classes and each.kind is not Parameter.KEYWORD_ONLY
            }
            many = (at for at, name in places.items() if _takes_many(parameters[name]))
            accepts_none = {name for name in classes if parameters[name].default is None}
            return places, next(many, None), accepts_none

        def check(name: str, value: object) -> None:
            if value is None and name in describe()[2]:
                return
            given = classes[name]
            accepted = int if isinstance(given, AtLeast) else given
            is_truth = isinstance(value, bool) and accepted is not bool
            if is_truth or not isinstance(value, accepted):
                raise wrong_argument(function.__name__, name, accepted, value)
            if isinstance(given, AtLeast) and isinstance(value, int) and value < given.least:
                raise InputError.of(
                    "C0924",
                    f"`{function.__name__}` takes a number from {given.least} on for `{name}`, "
                    f"not {value}.",
                    None,
                    f"give {given.least} or more",
                )

        @wraps(function)
        def call(*arguments: P.args, **named: P.kwargs) -> R:
            places, rest, _ = describe()
            for at, value in enumerate(arguments):
                name = places[rest] if rest is not None and at >= rest else places.get(at)
                if name is not None:
                    check(name, value)
            for name, value in named.items():
                if name in classes:
                    check(name, value)
            return function(*arguments, **named)

        return call

    return decorate


def chosen(choices: type[Choice], name: str, code: str, what: str) -> Choice:
    """Return a choice by its name.

    Raises:
        InputError: there is no such choice.
    """
    if name in set(choices):
        return choices(name)
    text = f"`{name}` is not {what}."
    raise InputError.of(code, text, None, f"the choices are {', '.join(choices)}")


def wrong_argument(function: str, name: str, accepted: Classes, value: object) -> InputError:
    """Return the error of an argument of another class."""
    every = accepted if isinstance(accepted, tuple) else (accepted,)
    listed = " or ".join(f"`{each.__name__}`" for each in every)
    article = "an" if every[0].__name__[0] in "aeiouAEIOU" else "a"
    shown = repr(value)
    if len(shown) > SHOWN_MAX_CHARACTERS:
        shown = f"a `{type(value).__name__}`"
    message = f"`{function}` takes {article} {listed} for `{name}`, not {shown}."
    return InputError.of("C0924", message, None, "give another value")


def _takes_many(parameter: Parameter) -> bool:
    return parameter.kind is Parameter.VAR_POSITIONAL


def check_function(function: Any, name: str) -> Any:
    """Return a function that users pass.

    Raises:
        InputError: it is not one.
    """
    if not callable(function):
        raise InputError.of(
            "C0924", f"`{name}` takes a function, not {function!r}.", None, "give a function"
        )
    return function
