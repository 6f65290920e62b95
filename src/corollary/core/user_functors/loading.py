"""Loading the Python code that registers functors: files and modules that a user names."""

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from corollary.core.user_functors.registration import registered_functions
from corollary.errors import InputError

_LOADED: dict[str, ModuleType] = {}


def load_functors(places: str | Path | Iterable[str | Path]) -> tuple[str, ...]:
    """Run the files and modules that register functors, each once in a process.

    Args:
        places: files such as `pricing.py`, or names of modules; code that the user trusts.

    Returns:
        the places in a form that another process can load.

    Raises:
        InputError: one cannot be loaded, or registers nothing.
    """
    given = (places,) if isinstance(places, str | Path) else tuple(places)
    return tuple(_load(each) for each in given)


def loaded_modules() -> tuple[ModuleType, ...]:
    """Return the modules that were loaded for their functors; tasks get them with the plan."""
    return tuple(_LOADED.values())


def _load(place: str | Path) -> str:
    is_file = isinstance(place, Path) or place.endswith(".py") or "/" in place
    key = str(Path(place).absolute()) if is_file else str(place)
    if key in _LOADED:
        return key
    before = registered_functions()
    try:
        module = _run_file(Path(key)) if is_file else importlib.import_module(key)
    except InputError:
        raise
    except Exception as error:  # the code of users may raise anything
        raise _cannot_load(place, error) from error
    registered = [
        name
        for name, function in registered_functions().items()
        if name not in before or function.place[0] == module.__name__
    ]
    if not registered:
        raise InputError.of(
            "C0337",
            f"`{place}` registers no functor.",
            None,
            "write `@corollary.functor` before the functions that are functors",
        )
    _LOADED[key] = module
    return key


def _run_file(path: Path) -> ModuleType:
    # Two files of one name are two modules; the same file has the same name in every process.
    name = f"corollary_functors_{path.stem}_{sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError("there is no such file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _cannot_load(place: str | Path, error: Exception) -> InputError:
    kind = "" if isinstance(error, FileNotFoundError) else f"{type(error).__name__}: "
    return InputError.of(
        "C0337",
        f"The functors of `{place}` cannot be loaded: {kind}{str(error) or 'no reason given'}.",
        None,
        "name a Python file that is there, or a module that Python can import, and fix its error",
    )
