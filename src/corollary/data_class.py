"""`dataclass` of the standard library, for classes that are quick to define.

A command that answers one goal defines 300 data classes. The standard library compiles six methods
of each, which takes longer than the work of the command. Here a method is compiled when it is first
called. Type checkers, `fields` and `replace` see no difference; `InitVar` is not supported.
"""

import dataclasses
from collections.abc import Callable, Sequence
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_Fields = Sequence["dataclasses.Field[Any]"]
_standard = dataclasses.dataclass  # noqa: TID251

if TYPE_CHECKING:
    from dataclasses import dataclass  # noqa: TID251
else:

    def dataclass(cls=None, **options):
        """Make a data class, with the options of the standard library.

        >>> @dataclass(frozen=True, slots=True)
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(1), Point(1) == Point(1, 0), len({Point(1), Point(1, 0)})
        (Point(x=1, y=0), True, 1)
        >>> Point(1).x = 2
        Traceback (most recent call last):
        ...
        dataclasses.FrozenInstanceError: cannot assign to field 'x'
        """
        return _define(cls, **options) if cls else lambda each: _define(each, **options)


def _define(
    cls: type, *, frozen: bool = False, eq: bool = True, order: bool = False, **options: Any
) -> type:
    if order:
        return _standard(frozen=frozen, eq=eq, order=True, **options)(cls)
    has_repr = options.pop("repr", True)
    written = {name for name, value in vars(cls).items() if value is not None}
    cls = _standard(init=False, eq=False, repr=False, **options)(cls)
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {"__init__": _compiled_later(cls, "__init__", _write_init, frozen)}
    if has_repr:
        methods["__repr__"] = _repr([each.name for each in fields if each.repr])
    if eq:
        methods["__eq__"] = _compiled_later(cls, "__eq__", _write_eq)
        methods["__hash__"] = _compiled_later(cls, "__hash__", _write_hash) if frozen else None
    if frozen:
        methods |= _guards(cls, fields)
        if "__slots__" in vars(cls):
            methods |= _pickling(fields)
    for name, method in methods.items():
        if name not in written:
            setattr(cls, name, method)
    return cls


def _compiled_later(
    cls: type, name: str, write: Callable[..., str], *options: bool
) -> Callable[..., Any]:
    """Return a method that, when it is called, compiles the one that takes its place."""

    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        names: dict[str, Any] = {"__name__": cls.__module__}
        exec(write(cls, names, *options), names)  # noqa: S102
        compiled = names[name]
        compiled.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, compiled)
        return compiled(self, *arguments, **keywords)

    return method


def _write_init(cls: type, names: dict[str, Any], is_frozen: bool) -> str:
    """Write `__init__`; that of a frozen class sets slots by their descriptors."""
    names |= {"_set": object.__setattr__, "_absent": dataclasses.MISSING}
    parameters: list[str] = []
    keywords: list[str] = []
    body: list[str] = []
    for field in dataclasses.fields(cls):
        name = value = field.name
        default = ""
        if field.default is not dataclasses.MISSING:
            default = f"_default_{name}"
            names[default] = field.default
            value = name if field.init else default
        elif field.default_factory is not dataclasses.MISSING:
            default = "_absent"
            names[f"_make_{name}"] = field.default_factory
            made = f"_make_{name}()"
            value = f"{made} if {name} is _absent else {name}" if field.init else made
        if field.init:
            parameter = f"{name}={default}" if default else name
            (keywords if field.kw_only else parameters).append(parameter)
        elif not default:
            continue
        slot = getattr(cls, name, None)
        if not is_frozen:
            body.append(f"self.{name} = {value}")
        elif isinstance(slot, MemberDescriptorType):
            names[f"_set_{name}"] = slot.__set__
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    if keywords:
        parameters += ["*", *keywords]
    return f"def __init__({', '.join(['self', *parameters])}):\n " + "\n ".join(body or ["pass"])


def _write_eq(cls: type, _: dict[str, Any]) -> str:
    compared = [each.name for each in dataclasses.fields(cls) if each.compare]
    return (
        "def __eq__(self, other):\n if other.__class__ is self.__class__:\n"
        f"  return {_tuple('self', compared)} == {_tuple('other', compared)}\n"
        " return NotImplemented"
    )


def _write_hash(cls: type, _: dict[str, Any]) -> str:
    fields = dataclasses.fields(cls)
    hashed = [each.name for each in fields if (each.compare if each.hash is None else each.hash)]
    return f"def __hash__(self):\n return hash({_tuple('self', hashed)})"


def _tuple(of: str, names: Sequence[str]) -> str:
    return "(" + "".join([f"{of}.{name}, " for name in names]) + ")"


def _repr(names: Sequence[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _guards(cls: type, fields: _Fields) -> dict[str, Any]:
    """Return what refuses to set and to delete fields; a subclass may have attributes beside."""
    names = frozenset(each.name for each in fields)

    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _pickling(fields: _Fields) -> dict[str, Any]:
    names = [each.name for each in fields]

    def __getstate__(self: Any) -> list[Any]:  # noqa: N807
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: list[Any]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": __getstate__, "__setstate__": __setstate__}
