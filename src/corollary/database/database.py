"""A database: a program, an engine that holds its relations, and transactions on them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corollary.analysis.strata import strata
from corollary.console import Console, SilentConsole
from corollary.core.arrow import to_python
from corollary.core.engine import Engine, Limits
from corollary.core.plan import working
from corollary.core.program import NormalProgram, Program, Relation
from corollary.core.recorder import Tally
from corollary.core.states import State
from corollary.database.counters import Counters
from corollary.database.names import readable, writable
from corollary.database.once import Places, answer_relation, inputs
from corollary.database.planning import Planning, algorithms_by_relation
from corollary.database.program import Loaded, load, read_goal, read_programs
from corollary.database.rules import moved, with_base_parts
from corollary.database.transaction import SIGNS, Transaction
from corollary.engines.local.engine import LocalEngine
from corollary.errors import InputError
from corollary.frontends.datalog.parse import parse
from corollary.maintain.maintenance import (
    Maintenance,
)
from corollary.maintain.payload import payload_relations
from corollary.maintain.solve import answer
from corollary.maintain.update import EMPTY, Update
from corollary.source import SourceFile

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class RelationView:
    """A stored relation, or a base relation, as it is when asked."""

    _database: "Database"
    name: str

    def arrow(self) -> "pa.Table":
        """Return the tuples as an Arrow table."""
        return self._database.read(self.name)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the tuples as Python values."""
        return list(to_python(self.arrow()))

    def pandas(self) -> Any:
        """Return the tuples as a pandas frame."""
        return self.arrow().to_pandas()

    def __len__(self) -> int:
        return int(self.arrow().num_rows)


class Database:
    """Relations kept true while the data under them changes.

    >>> db = open_database(None)
    >>> _ = db.load(
    ...     text=".decl e(x: number, y: number) .decl p(x: number, y: number) "
    ...     "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z)."
    ... )
    >>> with db.transaction() as tx:
    ...     tx.insert("e", [(1, 2), (2, 3)])
    >>> sorted(db.relation("p").rows())
    [(1, 2), (1, 3), (2, 3)]
    >>> with db.transaction() as tx:
    ...     tx.delete("e", [(1, 2)])
    >>> tx.changes["p"].counts
    (0, 2)
    """

    def __init__(
        self,
        engine: Engine,
        algorithm: str | Mapping[str, str] = "auto",
        *,
        is_strict: bool = False,
        limits: Limits | None = None,
        console: Console | None = None,
    ) -> None:
        self.engine = engine
        self.limits = limits or Limits()
        self.console = console or SilentConsole()
        self.commits = 0
        self.loaded = Loaded(Program(), load(Program()).checked, EMPTY)
        self.watched: dict[str, frozenset[State]] = {}
        self.planning = Planning(engine, algorithm, is_strict=is_strict)

    @property
    def program(self) -> Program:
        """The program in force."""
        return self.loaded.program

    # --- using it ------------------------------------------------------------------------------

    def load(
        self,
        *paths: str | Path,
        text: str | None = None,
        facts: str | Path | None = None,
        root: str | Path | None = None,
    ) -> Transaction:
        """Put a program into force and derive everything it defines.

        If one is in force already, this is an edit: what differs is maintained, the data stays.

        Args:
            paths: files that make the program.
            text: the program itself, instead of files.
            facts: a directory; if given, the `.input` files in it are read too.
            root: the directory that these files may not leave; that of `facts` if not given.

        Raises:
            InputError: the program or a facts file is not acceptable.
        """
        if text is not None:
            program = parse(SourceFile("program", text))
        else:
            program = read_programs([Path(each) for each in paths])
        transaction = self.transaction()
        transaction.set_program(program)
        with transaction:
            if facts is not None:
                places = Places(Path(facts), root=None if root is None else Path(root))
                for relation, table in inputs(load(program), places, self.console):
                    transaction.insert_input(relation, table)
        return transaction

    def transaction(self, *, algorithm: str | None = None, is_traced: bool = False) -> Transaction:
        """Begin a transaction.

        Args:
            algorithm: instead of the database's own.
            is_traced: whether to keep the rows of the papers' tables in `trace`.
        """
        if algorithm is not None:
            algorithms_by_relation(algorithm)
        return Transaction(self, algorithm, is_traced)

    def watch(self, relation: str, *, added: bool = True, removed: bool = True) -> None:
        """Ask for the changes of a virtual relation in every transaction from now on."""
        readable(self.loaded.normal, relation)
        wanted = {State.ADDED} if added else set()
        self.watched[relation] = frozenset(wanted | ({State.REMOVED} if removed else set()))
        self.planning.forget(self.loaded.normal)
        self._declare_deltas(self.loaded.normal)

    def relation(self, name: str) -> RelationView:
        """Return a relation to read."""
        readable(self.loaded.normal, name)
        return RelationView(self, name)

    def read(self, name: str) -> "pa.Table":
        """Return the tuples of a relation; a virtual one is computed."""
        relation = readable(self.loaded.normal, name)
        if relation.is_derived and relation.is_virtual:
            columns = ", ".join(f"v{at}" for at in range(relation.arity))
            answers = self.query(f"{name}({columns})")
            return answers.rename_columns(list(relation.columns)) if relation.arity else answers
        return self.engine.read(name)

    def query(self, goal: str) -> "pa.Table":
        """Return the answers to a goal such as `link("a", y)`: a column for each variable."""
        literal = read_goal(self.program, goal)
        normal = self.loaded.normal
        answers = answer_relation(literal)

        def is_there(name: str) -> bool:
            relation = normal.relations[name]
            return not (relation.is_derived and relation.is_virtual)

        plan = answer(normal, literal, self.planning.statistics, is_there)
        self.engine.declare({answers.name: answers})
        try:
            self.engine.run(plan, Tally(), self.limits)
            return self.engine.read(answers.name)
        finally:
            self.engine.drop([answers.name])

    def declared(self, name: str) -> Relation:
        """Return a relation that may be written to.

        Raises:
            InputError: there is none of that name, or it has rules and no base part.
        """
        return writable(self.loaded.normal, name)

    # --- what transactions need ----------------------------------------------------------------

    @contextmanager
    def attempt(self, after: Loaded) -> Iterator[NormalProgram]:
        """Let a transaction change relations; if it fails, everything is as it was.

        Yields the program before, with the relations that the one after has.
        """
        before = self.loaded.normal
        known = set(before.relations)
        fresh: dict[str, Relation] = {}
        if after.normal is not before:
            fresh = {
                name: each for name, each in after.normal.relations.items() if name not in known
            }
            fresh |= self._payload_of(after.normal)
            fresh = {name: each for name, each in fresh.items() if not self._is_known(name)}
            self.engine.declare(fresh)
            for name, base in moved(before, after.normal).items():
                self.engine.copy(name, base)
            before = with_base_parts(before, after.normal)
            self._declare_deltas(after.normal)
        commits = self.commits
        try:
            yield before
        finally:
            if self.commits == commits:
                self.console.done()
                self._clear_deltas()
                self.engine.rollback()
                self.engine.drop(fresh)

    def _is_known(self, name: str) -> bool:
        return name in self.loaded.normal.relations or name in self._payload_of(self.loaded.normal)

    @staticmethod
    def _payload_of(program: NormalProgram) -> dict[str, Relation]:
        """Return the payload relations of a program by name."""
        return {
            each.name: each
            for stratum in strata(program)
            for each in payload_relations(stratum, program).values()
        }

    def _declare_deltas(self, program: NormalProgram) -> None:
        """Declare where the changes of watched virtual relations stand during a transaction."""
        self.engine.declare(
            {
                working(name, sign): replace(
                    program.relations[name], name=working(name, sign), is_declared=False
                )
                for name in self.watched
                for sign in SIGNS
            }
        )

    def accept(
        self, after: Loaded, update: Update, maintenance: Maintenance, recorder: Counters
    ) -> None:
        """Commit: NEW becomes OLD, the program after the one in force."""
        self.planning.note(update, maintenance, recorder)
        self._clear_deltas()
        self.engine.commit()
        self.commits += 1
        if after.normal is not self.loaded.normal:
            self._replace(after)

    def _clear_deltas(self) -> None:
        """Forget the changes of virtual relations."""
        self.engine.clear(working(name, sign) for name in self.watched for sign in SIGNS)

    def adopt(self, after: Loaded) -> None:
        """Put a program into force that says the same as the one before."""
        if after is not self.loaded:
            self.loaded = after
            self.planning.forget(after.normal)

    def _replace(self, after: Loaded) -> None:
        """Put a program into force: forget relations it has no more, and payload of other kind."""
        old, new = self.loaded.normal, after.normal
        kept = {**new.relations, **self._payload_of(new)}
        known = {**old.relations, **self._payload_of(old)}
        self.engine.drop(name for name in known if name not in kept)
        self.engine.clear(name for name in moved(old, new) if new.relations[name].is_virtual)
        self.loaded = after
        self.planning.forget(new)


def open_database(
    path: str | None = None,
    *,
    engine: str = "local",
    algorithm: str | Mapping[str, str] = "auto",
    strict: bool = False,
    limits: Limits | None = None,
    console: Console | None = None,
) -> Database:
    """Open a database in memory; nothing of it is durable.

    Args:
        path: None.
        engine: `local`.
        algorithm: what maintains views, for all relations or by relation: `auto`, `recompute`,
            `dred`, `pf`, `epf`, `counting` (no recursion) or `ranked`.
        strict: fail rather than recompute in full when an increment turns out too large.
        limits: bounds on every transaction.
        console: where progress is shown; nowhere if it is not given.

    Raises:
        InputError: something is asked for that there is not.
    """
    if path is not None or engine != "local":
        raise InputError.of(
            "C0918",
            "So far a database lives in memory, on the local engine.",
            None,
            'open it with `corollary.open(None, engine="local")`',
        )
    return Database(LocalEngine(), algorithm, is_strict=strict, limits=limits, console=console)
