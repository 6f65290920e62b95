"""The database that `trace` and `explain` look at: in memory, filled, its virtual views watched."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.console import Console
from corollary.database.database import Database, state_of

if TYPE_CHECKING:
    from corollary.core.engine import Limits
    from corollary.core.program import NormalProgram


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for: an algorithm for each relation (the default under ''), what to watch."""

    algorithms: Mapping[str, str]
    watch: tuple[str, ...]

    def check(self, program: "NormalProgram") -> None:
        """Demand that the relations that are named exist, and can be maintained or watched.

        Raises:
            InputError: one does not.
        """
        from corollary.database.names import readable
        from corollary.errors import InputError

        for name in (*filter(None, self.algorithms), *self.watch):
            if not readable(program, name).is_derived:
                raise InputError.of(
                    "C0917",
                    f"`{name}` is a base relation, so nothing maintains it.",
                    None,
                    "name a relation that has rules",
                )

    def watched(self, program: "NormalProgram") -> Iterable[str]:
        """Return the relations to watch: those named, or else all declared virtual ones.

        If there are active rules, they say what is watched.
        """
        if program.active.reactions or program.active.triggers:
            return self.watch
        return self.watch or [
            name
            for name, each in program.relations.items()
            if each.is_declared and each.is_derived and each.is_virtual
        ]


def filled(
    programs: tuple[Path, ...],
    facts: Path,
    root: Path | None,
    wanted: Wanted,
    limits: "Limits",
    console: Console,
    placement: str = "driver",
    without: Iterable[str] = (),
) -> "Database":
    """Return a database with a program in force, its facts read and its virtual views watched."""
    from corollary.database.opening import open_database

    database = open_database(
        None,
        engine="local" if placement == "driver" else "spark",
        placement=placement,
        algorithm=wanted.algorithms,
        without=without,
        limits=limits,
        console=console,
    )
    state_of(database).is_trial = True
    database.load(*programs, facts=facts, root=root)
    normal = state_of(database).loaded.normal
    wanted.check(normal)
    for name in wanted.watched(normal):
        database.watch(name)
    return database
