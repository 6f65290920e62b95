"""What packages call in those that they do not know: `corollary` fills it when it is imported."""

from collections.abc import Callable, Iterable
from typing import Any


class Extensions:
    """Functions that import what they need when they are called.

    Attributes:
        start_stream: starts `Database.stream`, see `corollary.streaming.stream.start`.
        run_pipeline: does `Database.run`, see `corollary.database.intake.pipeline.run_files`.
        run_command: runs a command for a client of a server, see `corollary.cli.run_served`.
        place_of: names a directory, or a place in an object store, see
            `corollary.warehouse.files.places.place_of`.
        remove_files: removes files there, see `corollary.warehouse.files.places.remove_files`.
        answer_why: does `Database.why` and its like, see `corollary.provenance.queries.answer`.
    """

    start_stream: Callable[..., Any]
    run_pipeline: Callable[..., Any]
    answer_why: Callable[..., Any]
    place_of: Callable[[str], Any]
    remove_files: Callable[[Any, Iterable[str]], None]
    run_command: Callable[..., Any]


EXTENSIONS = Extensions()
