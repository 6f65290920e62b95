"""Corollary keeps derived data true while the data under it changes."""

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from corollary.errors import (
    AccessError,
    ConflictError,
    ConstraintError,
    CorollaryError,
    EvaluationError,
    InputError,
    LimitError,
    WarehouseError,
)
from corollary.registry import EXTENSIONS
from corollary.version import __version__ as __version__

if TYPE_CHECKING:
    from corollary.core.engine import Limits
    from corollary.core.user_functors.registration import functor
    from corollary.database.database import Database
    from corollary.database.opening import open_database as open  # noqa: A004
    from corollary.database.reading.reader import Reader
    from corollary.database.transaction import Transaction
    from corollary.documents.active_collection import ActiveCollection
    from corollary.documents.document import ActiveDocument
    from corollary.pipelines.views import view


__all__ = [
    "AccessError",
    "ActiveCollection",
    "ActiveDocument",
    "ConflictError",
    "ConstraintError",
    "CorollaryError",
    "Database",
    "EvaluationError",
    "InputError",
    "LimitError",
    "Limits",
    "Reader",
    "Transaction",
    "WarehouseError",
    "functor",
    "open",
    "view",
]


def __getattr__(name: str) -> Any:
    """Return what is loaded when it is first asked for, so that importing `corollary` is quick."""
    match name:
        case "open":
            from corollary.database.opening import open_database

            return open_database
        case "Database":
            from corollary.database.database import Database

            return Database
        case "Reader":
            from corollary.database.reading.reader import Reader

            return Reader
        case "Transaction":
            from corollary.database.transaction import Transaction

            return Transaction
        case "functor":
            from corollary.core.user_functors.registration import functor

            return functor
        case "Limits":
            from corollary.core.engine import Limits

            return Limits
        case "ActiveCollection":
            from corollary.documents.active_collection import ActiveCollection

            return ActiveCollection
        case "ActiveDocument":
            from corollary.documents.document import ActiveDocument

            return ActiveDocument
        case "view":
            from corollary.pipelines.views import view

            return view
        case "spark":
            return import_module("corollary.spark")
        case _:
            raise AttributeError(f"module 'corollary' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _start_stream(*arguments: Any, **options: Any) -> Any:
    from corollary.streaming.stream import start

    return start(*arguments, **options)


def _run_pipeline(*arguments: Any, **options: Any) -> Any:
    from corollary.database.intake.pipeline import run_files

    return run_files(*arguments, **options)


def _answer_why(*arguments: Any, **options: Any) -> Any:
    from corollary.provenance.queries import answer

    return answer(*arguments, **options)


def _run_command(*arguments: Any, **options: Any) -> Any:
    from corollary.cli.run_served import run_command

    return run_command(*arguments, **options)


def _place_of(name: str) -> Any:
    from corollary.warehouse.files.places import place_of

    return place_of(name)


def _remove_files(place: Any, names: Iterable[str]) -> None:
    from corollary.warehouse.files.places import remove_files

    remove_files(place, names)


EXTENSIONS.start_stream = _start_stream
EXTENSIONS.run_pipeline = _run_pipeline
EXTENSIONS.answer_why = _answer_why
EXTENSIONS.run_command = _run_command
EXTENSIONS.place_of = _place_of
EXTENSIONS.remove_files = _remove_files
