"""The decorator `corollary.functor`: it registers a Python function for functors of its name.

Functions are registered in the process that runs their definition, and nowhere else: a program, a
warehouse or a client of a server names functors, and never brings code.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints, overload

from corollary.core.user_functors.user_functor import UserFunction
from corollary.errors import InputError
from corollary.source import Span

Function = TypeVar("Function", bound=Callable[..., Any])

_REGISTERED: dict[str, UserFunction] = {}


@overload
def functor(function: Function, /) -> Function: ...


@overload
def functor(
    name: str | None = None, /, *, vectorised: bool = False
) -> Callable[[Function], Function]: ...


def functor(
    function_or_name: Function | str | None = None, /, *, vectorised: bool = False
) -> Function | Callable[[Function], Function]:
    """Register a Python function as the functor of its name, for programs that declare it.

    A function must be pure: the same arguments always give the same result, and nothing else
    happens. What it raises is an error of the rule that applies it. It is trusted: it runs in this
    process, and on Spark in tasks, with all their rights.

    Args:
        function_or_name: the function, or the name of the functor if it is another.
        vectorised: whether the function takes Arrow arrays without nulls and returns an array of
            the same length, instead of Python values.

    Raises:
        InputError: another function is registered under the name.

    >>> @functor
    ... def initials(name: str) -> str:
    ...     return "".join(word[0] for word in name.split())
    >>> initials("Ada Lovelace")
    'AL'
    """
    if isinstance(function_or_name, str | None):
        name = function_or_name

        def decorate(function: Function) -> Function:
            _register(UserFunction(name or function.__name__, function, vectorised))
            return function

        return decorate
    _register(UserFunction(function_or_name.__name__, function_or_name, vectorised))
    return function_or_name


def _register(function: UserFunction) -> None:
    known = _REGISTERED.get(function.name)
    # A cell of a notebook that is run again, or a module that is loaded again, replaces its own.
    if known is not None and known.place != function.place:
        places = " and ".join(f"`{'.'.join(each.place)}`" for each in (known, function))
        raise InputError.of(
            "C0338",
            f"Two functions are registered for the functor `{function.name}`: {places}.",
            None,
            'rename one of them, or register it as another: `@corollary.functor("name")`',
        )
    _REGISTERED[function.name] = function


def registered_function(name: str) -> UserFunction | None:
    """Return the function that is registered for a functor, if one is."""
    return _REGISTERED.get(name)


def missing_function(name: str, span: Span | None = None) -> InputError:
    """Return the error of a functor that no function was registered for."""
    return InputError.of(
        "C0336",
        f"There is no Python function for the functor `{name}`.",
        span,
        f"name the file that defines it: `--functors FILE.py` or `COROLLARY_FUNCTORS`, in Python "
        f"`corollary.open(…, functors=…)`, with `@corollary.functor` before `def {name}`",
    )


def registered_functions() -> dict[str, UserFunction]:
    """Return all functions that are registered, by the name of the functor."""
    return dict(_REGISTERED)


def parameter_count(function: UserFunction) -> tuple[int, int | None] | None:
    """Return the least and the greatest number of arguments; None where Python cannot tell."""
    try:
        parameters = inspect.signature(function.function).parameters.values()
    except (TypeError, ValueError):
        return None
    positional = [
        each
        for each in parameters
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    least = len([each for each in positional if each.default is each.empty])
    is_open = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    return least, None if is_open else len(positional)


def annotated_types(function: UserFunction) -> tuple[list[object], object]:
    """Return the annotations of the parameters, in order, and of the result; None for none."""
    try:
        hints = get_type_hints(function.function)
        names = list(inspect.signature(function.function).parameters)
    except (NameError, TypeError, ValueError):
        return [], None
    return [hints.get(name) for name in names], hints.get("return")
