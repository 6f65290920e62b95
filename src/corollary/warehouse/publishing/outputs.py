"""Outputs: what is kept in step with a relation after commits, one after the other.

Each output knows by itself which commit it shows: a Delta table by its log, a replica by what is
committed along with its rows. So it is brought forward from there, whatever happened before, and
one that cannot be reached now is left behind and catches up: the commit itself is safe.
"""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, Severity, WarehouseError
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.catalog_rows import Commit
from corollary.warehouse.publishing.history import History

RETRY_FIRST_SECONDS = 1.0
RETRY_MAX_SECONDS = 60.0
"""How long an output that has failed is left alone: first, and at most."""
RECORD_INTERVAL_COMMITS = 64
"""After this many commits without a change to a relation, the catalog records that its outputs are
up to date, so that the history since is not needed any more."""
UNREACHABLE = "C0949"
"""The code of an output that cannot be reached: it is tried again, by itself."""


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """What one publication has done.

    Attributes:
        commit: the commit that the output shows.
        version: its number in the Delta log; of a replica, the commit.
        added: how many tuples were added; all of them if the whole relation was written.
        removed: how many were removed.
        files: how many data files were written.
        new_columns: the columns of the table, if they are not those of the version before.
        replica: the replica, as the program declares it; empty for the Delta table.
        reason: why a replica was compared with the whole relation, or filled anew.
    """

    relation: str
    commit: int
    version: int
    added: int
    removed: int
    files: int
    new_columns: tuple[str, ...] = ()
    replica: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The result of publishing several outputs.

    Attributes:
        published: what was done.
        problems: why other outputs are left behind, as warnings: the commit itself is safe.
        retry_seconds: when to try again, if an output could not be reached.
    """

    published: tuple[PublishedVersion, ...]
    problems: tuple[Diagnostic, ...]
    retry_seconds: float | None = None


class Output(Protocol):
    """What can be brought forward to a commit."""

    @property
    def relation(self) -> Relation:
        """The relation."""

    @property
    def name(self) -> str:
        """What it is known by, together with its relation."""

    def publish(self, commit: Commit, history: History) -> PublishedVersion | None:
        """Bring it forward to a commit; return what was done, if anything.

        Raises:
            WarehouseError: it cannot be written, or is not as it was left.
        """


class Retries:
    """When outputs that could not be reached are tried again: later and later."""

    def __init__(self) -> None:
        self._waits: dict[tuple[str, str], tuple[float, float]] = {}

    def wait_for(self, output: Output) -> float:
        """Return for how many seconds an output is left alone."""
        due, _ = self._waits.get((output.relation.name, output.name), (0.0, 0.0))
        return max(0.0, due - time.monotonic())

    def note_failed(self, output: Output) -> None:
        """Leave an output alone for a while."""
        key = output.relation.name, output.name
        _, last = self._waits.get(key, (0.0, 0.0))
        wait = min(2 * last, RETRY_MAX_SECONDS) or RETRY_FIRST_SECONDS
        self._waits[key] = time.monotonic() + wait, wait

    def note_done(self, output: Output) -> None:
        """Forget that an output could not be reached."""
        self._waits.pop((output.relation.name, output.name), None)

    @property
    def seconds(self) -> float | None:
        """When the first output is to be tried again; None if there is none."""
        now = time.monotonic()
        return min((max(0.0, due - now) for due, _ in self._waits.values()), default=None)


def publish_all(
    outputs: Iterable[Output],
    upto: int,
    catalog: Catalog,
    history: History,
    retries: Retries,
) -> PublishResult:
    """Bring outputs forward to a commit; problems become warnings.

    Args:
        outputs: which.
        upto: the commit.
        catalog: has the commits.
        history: what they have changed.
        retries: which outputs are left alone for a while.
    """
    commit = commit_of(catalog, upto)
    published: list[PublishedVersion] = []
    problems: list[Diagnostic] = []
    for output in outputs:
        if retries.wait_for(output):
            continue
        try:
            made = output.publish(commit, history)
        except WarehouseError as error:
            problems += (replace(e, severity=Severity.WARNING) for e in error.diagnostics)
            if any(each.code == UNREACHABLE for each in error.diagnostics):
                retries.note_failed(output)
        else:
            retries.note_done(output)
            published += [] if made is None else [made]
    return PublishResult(tuple(published), tuple(problems), retries.seconds)


def commit_of(catalog: Catalog, number: int) -> Commit:
    """Return a commit.

    Raises:
        WarehouseError: `C0936`, there is no such commit.
    """
    commit = catalog.find_commit(number)
    if commit is None:
        raise WarehouseError.of("C0936", f"There is no commit {number} to publish.")
    return commit
