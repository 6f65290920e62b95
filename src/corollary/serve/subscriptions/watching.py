"""Virtual relations that somebody subscribes to: the process that commits watches them."""

from collections.abc import Iterable

from corollary.analysis.relevance import BOTH_SIGNS
from corollary.database.database import Database, state_of


def set_watched(database: Database, relations: Iterable[str]) -> None:
    """Let the commits of a database watch these virtual relations, and no others.

    Names that the program does not have are left out.
    """
    state = state_of(database)
    with state.lock:
        normal = state.loaded.normal
        wanted = {
            normal.bags.get(name, name)
            for name in relations
            if name in normal.relations and normal.relations[name].is_declared
        }
        unwanted = state.watched.keys() - wanted
        if unwanted:
            state.unwatch(unwanted)
        for name in sorted(wanted - state.watched.keys()):
            state.watch(name, BOTH_SIGNS)
