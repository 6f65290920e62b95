"""Data classes of ours behave as those of the standard library, which is the judge."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from corollary.data_class import dataclass

T = TypeVar("T")


def define(decorate: Callable[..., Any]) -> dict[str, Any]:
    """Defines classes with everything that is in use."""

    @decorate(frozen=True, slots=True)
    class Plain(Generic[T]):
        kind: ClassVar[str] = "plain"
        x: T
        y: int = 0
        note: str | None = field(default=None, compare=False, repr=False)
        deep: tuple[int, ...] = field(default=(), hash=False)

    @decorate(frozen=True, slots=True)
    class Derived(Plain[int]):
        z: int = field(default=1, kw_only=True)
        double: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "double", 2 * self.x)

    @decorate(slots=True)
    class Changing:
        items: list[int] = field(default_factory=list)
        seen: dict[int, int] = field(default_factory=dict, init=False)
        count: int = field(default=0, init=False)

    @decorate(frozen=True)
    class Open:
        name: str

    @decorate(frozen=True, slots=True, eq=False, repr=False)
    class Identity:
        name: str

    @decorate(frozen=True, slots=True)
    class Own:  # noqa: PLW1641
        value: float

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    @decorate(frozen=True, slots=True)
    class Empty:
        pass

    @decorate(frozen=True, slots=True, order=True)
    class Ordered:
        x: int

    return {each.__name__: each for each in list(locals().values()) if isinstance(each, type)}


OURS, STANDARD = define(dataclass), define(dataclasses.dataclass)
NOT_A_NUMBER = float("nan")


def examples(classes: dict[str, Any]) -> list[Any]:
    """Makes instances, some of which are equal."""
    plain, derived, changing = classes["Plain"], classes["Derived"], classes["Changing"]
    return [
        plain(1), plain(1, 0, "a"), plain(x=1, y=2), plain("1", deep=(1,)), plain(NOT_A_NUMBER),
        plain(NOT_A_NUMBER), derived(1), derived(1, 0, z=1), derived(1, z=2), changing(),
        changing([1]), changing([1]), classes["Open"]("a"), classes["Open"]("a"),
        classes["Identity"]("a"), classes["Own"](1.0), classes["Own"](2.0), classes["Empty"](),
        classes["Empty"](), classes["Ordered"](1), classes["Ordered"](2),
    ]  # fmt: skip


def outcome(work: Callable[..., Any], *arguments: Any) -> Any:
    """Calls, and returns the result or the class of the error."""
    try:
        return work(*arguments)
    except Exception as error:  # noqa: BLE001
        return type(error)


def test_instances_compare_hash_and_print_alike() -> None:
    ours, standard = examples(OURS), examples(STANDARD)
    for one, other in zip(ours, standard, strict=True):
        if type(one).__name__ != "Identity":
            assert repr(one).replace("OURS", "") == repr(other)
            assert outcome(hash, one) == outcome(hash, other)
        assert one.__match_args__ == other.__match_args__
        assert (one == "text", one != 1) == (other == "text", other != 1)
    pairs = [(one, other) for one in range(len(ours)) for other in range(len(ours))]
    assert [ours[one] == ours[other] for one, other in pairs] == [
        standard[one] == standard[other] for one, other in pairs
    ]


@pytest.mark.parametrize("classes", [OURS, STANDARD], ids=["ours", "standard"])
def test_fields_are_guarded_copied_and_replaced(classes: dict[str, Any]) -> None:
    derived = classes["Derived"](3, z=5)
    assert (derived.double, replace(derived, x=4).double, replace(derived, x=4).z) == (6, 8, 5)
    assert copy.deepcopy(derived) == copy.copy(derived) == derived
    for each in (derived, classes["Plain"](1), classes["Open"]("a")):
        with pytest.raises(FrozenInstanceError):
            each.x = 1
        with pytest.raises(FrozenInstanceError):
            del each.x
    for wrong in ((), (1, 2, 3, 4, 5)):
        with pytest.raises(TypeError):
            classes["Plain"](*wrong)
    first, second = classes["Changing"](), classes["Changing"]()
    first.items.append(1)
    first.seen[1] = 1
    assert (second.items, second.seen, second.count) == ([], {}, 0)
    assert not hasattr(first, "__dict__")


@dataclass(frozen=True, slots=True)
class Pickled:
    """Of a module, so that it can be found again."""

    x: int
    y: tuple[int, ...] = ()


def test_frozen_slots_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled(1, (2,)))) == Pickled(1, (2,))
