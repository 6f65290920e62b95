"""Digests of queries: that of one that computes the same is the same, in every process.

The plan of a query is written anew whenever its project is loaded. What differs then is left out:

| in a plan | differs by | counts as |
|---|---|---|
| numbers of relations, names of the variables of lambdas | what was made before | numbers from 1 |
| origins of expressions | lines above | nothing |
| functions in Python, pickled | which texts are one object, hashes | what they do |

What a function does is its code with constants, defaults, the values that it closes over, and the
globals that it names, each in the same way: also functions and modules that the user has written.
What comes with Python or was installed counts by its name.
"""

import hashlib
import pickle
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from copyreg import dispatch_table
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    ModuleType,
)
from typing import Any

from corollary.pipelines.graph import RecordedQuery

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
_OF_THE_CLASS = frozenset(
    (
        "__dict__",
        "__weakref__",
        "__module__",
        "__firstlineno__",
        "__static_attributes__",
        "_abc_impl",
    )
)
"""Attributes that Python gives to each class."""
_FOLDERS = tuple(sysconfig.get_path(each) for each in ("stdlib", "platstdlib", "purelib"))
_INSTALLED = ("site-packages", "dist-packages")
"""Where modules are that came with Python or were installed."""


def digest_of(query: RecordedQuery) -> str:
    """Return the digest of a query."""
    relation = query.relation
    if relation:
        from pyspark.sql.connect.proto import Relation

        found = Relation.FromString(relation)
        _normalize(found, {})
        relation = found.SerializeToString(deterministic=True)
    return hashlib.sha256(relation + query.text.encode()).hexdigest()


def _normalize(message: Any, known: dict[object, int]) -> None:
    """Replace what differs from load to load, in place."""

    def number(value: object) -> int:
        return known.setdefault(value, len(known) + 1)

    is_variable = message.DESCRIPTOR.name == "UnresolvedNamedLambdaVariable"
    for each, value in message.ListFields():
        if each.name == "plan_id":
            message.plan_id = number(value)
        elif each.name == "plan_ids" or (is_variable and each.name == "name_parts"):
            value[:] = [type(part)(number(part)) for part in value]
        elif each.name == "command" and isinstance(value, bytes):
            message.command = _pickled_digest(value)
        elif each.name == "origin":
            message.ClearField(each.name)
        elif each.message_type is not None and not each.message_type.GetOptions().map_entry:
            for part in value if each.is_repeated else (value,):
                _normalize(part, known)


def _pickled_digest(command: bytes) -> bytes:
    """Return the digest of what was pickled while the project was loaded."""
    try:
        return _ValueDigests().of(pickle.loads(command))  # noqa: S301 - we have just written it
    except Exception:  # noqa: BLE001 - of the user's own classes: such a one counts as another one
        return command


class _ValueDigests:
    """Digests values of Python by what they are, whichever of them are one object.

    A value that is inside of itself counts there by how many levels it is above.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, bytes]] = {}
        self._open: list[int] = []

    def of(self, value: Any) -> bytes:
        """Return the digest of a value."""
        if type(value) in _PLAIN:
            return _joined([type(value).__name__, repr(value)])
        at = id(value)
        if at in self._open:
            return _joined(["above", str(len(self._open) - self._open.index(at))])
        if at not in self._known:
            self._open.append(at)
            found = _joined([type(value).__qualname__, *self._parts(value)])
            self._open.pop()
            self._known[at] = value, found  # the value is kept, so that its id stays its own
        return self._known[at][1]

    def _parts(self, value: Any) -> Iterable[bytes | str]:
        """Return what a value consists of."""
        if isinstance(value, set | frozenset):
            return sorted(map(self.of, value))
        if type(value) in (tuple, list):
            return map(self.of, value)
        if type(value) in (dict, MappingProxyType):
            return (self.of(part) for pair in value.items() for part in pair)
        if isinstance(value, CodeType):
            return self._code_parts(value)
        if isinstance(value, ModuleType):
            return [value.__name__]
        if isinstance(value, CellType):
            return [self.of(value.cell_contents)] if _is_full(value) else []
        if isinstance(value, property):
            return map(self.of, (value.fget, value.fset, value.fdel))
        if isinstance(value, staticmethod | classmethod):
            return [self.of(value.__func__)]
        if isinstance(value, type | FunctionType | BuiltinFunctionType) and _is_installed(value):
            return [value.__module__, value.__qualname__]
        if isinstance(value, FunctionType):
            return self._function_parts(value)
        if isinstance(value, type):
            own = {key: each for key, each in vars(value).items() if key not in _OF_THE_CLASS}
            return [
                value.__qualname__,
                self.of(value.__bases__),
                self.of(dict(sorted(own.items()))),
            ]
        return self._reduced_parts(value)

    def _code_parts(self, code: CodeType) -> Iterator[bytes]:
        yield from map(self.of, (code.co_code, code.co_exceptiontable, code.co_consts))
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        yield from map(self.of, (counts, names))

    def _function_parts(self, function: FunctionType) -> Iterator[bytes | str]:
        cells = function.__closure__ or ()
        given = function.__defaults__, function.__kwdefaults__, function.__dict__, cells
        yield from map(self.of, (function.__code__, given))
        names = _names_in(function.__code__)
        scopes: list[tuple[str, Any]] = [("", function.__globals__)]
        held = [each.cell_contents for each in cells if _is_full(each)]
        scopes += [("", vars(each)) for each in held if _is_own_module(each)]
        for prefix, scope in scopes:  # which grow by the modules that are named
            for name in sorted(names & scope.keys()):
                value = scope[name]
                yield f"{prefix}{name}"
                yield self.of(value)
                if _is_own_module(value) and all(vars(value) is not each for _, each in scopes):
                    scopes.append((f"{prefix}{name}.", vars(value)))

    def _reduced_parts(self, value: Any) -> Iterator[bytes | str]:
        """Yield what an object would be pickled as."""
        reduce = dispatch_table.get(type(value))
        try:
            found = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except TypeError:
            return  # a lock, an open file: it counts by its type
        if isinstance(found, str):
            yield from (str(getattr(value, "__module__", "")), found)
            return
        for part in found:
            yield self.of(list(part) if isinstance(part, Iterator) else part)


def _joined(parts: Iterable[bytes | str]) -> bytes:
    """Return the digest of some parts, each told from the next one."""
    found = hashlib.sha256()
    for each in parts:
        part = each if isinstance(each, bytes) else each.encode(errors="surrogatepass")
        found.update(b"%d:%b" % (len(part), part))
    return found.digest()


def _names_in(code: CodeType) -> set[str]:
    inner = (_names_in(each) for each in code.co_consts if isinstance(each, CodeType))
    return {*code.co_names}.union(*inner)


def _is_full(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _is_own_module(value: object) -> bool:
    return isinstance(value, ModuleType) and not _is_module_installed(value.__name__)


def _is_installed(value: type | FunctionType | BuiltinFunctionType) -> bool:
    """Whether a function or class is that of its name, in a module that was installed."""
    name = value.__module__ or ""
    found: Any = sys.modules.get(name)
    if found is None or not _is_module_installed(name):
        return False
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is value


def _is_module_installed(name: str) -> bool:
    """Whether a module comes with Python or was installed: it changes with its version only."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if module is None or file is None:
        return name in sys.builtin_module_names
    return file.startswith(_FOLDERS) or any(each in file for each in _INSTALLED)
