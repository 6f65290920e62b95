"""Lets a task kill its executor in the middle of a function that the file of orders names.

Python imports this module at its start where its directory is in PYTHONPATH, so in the workers of
a `StandaloneCluster`. COROLLARY_TEST_KILL names a file; where it holds `module:function before` or
`… after`, the first task that calls that function kills the executor that it runs in, and takes the
file away. With `… worker`, it kills the worker of the cluster too, as a machine goes down.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import signal
import sys
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

ORDERS = os.environ.get("COROLLARY_TEST_KILL", "")
POINTS = [each.split(":") for each in os.environ.get("COROLLARY_TEST_KILL_POINTS", "").split()]

WORKER = " worker"


def obey(order: str) -> None:
    """Kill the executor if this is what the file of orders says; of all tasks, one does it."""
    file = Path(ORDERS)
    try:
        found = file.read_text()
        if found.removesuffix(WORKER) != order:
            return
        file.rename(file.with_suffix(f".{os.getpid()}"))
    except FileNotFoundError:
        return
    # This process was forked by the daemon of Python workers, which the executor has started.
    executor = parent_of(os.getppid())
    if found.endswith(WORKER):
        os.kill(parent_of(executor), signal.SIGKILL)
    os.kill(executor, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def parent_of(process: int) -> int:
    """Return the process that started one."""
    stat = Path("/proc", str(process), "stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def mortal(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that looks for orders before and after."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        obey(f"{name} before")
        result = function(*arguments, **named)
        obey(f"{name} after")
        return result

    return call


class Loader(importlib.abc.Loader):
    """Loads a module as its own loader does, and then makes functions of it mortal."""

    def __init__(self, own: importlib.abc.Loader) -> None:
        self.own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.own.exec_module(module)
        for name, path in POINTS:
            if name == module.__name__:
                *owners, function = path.split(".")
                owner: Any = module
                for each in owners:
                    owner = getattr(owner, each)
                setattr(owner, function, mortal(f"{name}:{path}", getattr(owner, function)))


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that have points."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not any(name == module for module, _ in POINTS):
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = Loader(spec.loader)
                return spec
        return None


if ORDERS:
    sys.meta_path.insert(0, Finder())
