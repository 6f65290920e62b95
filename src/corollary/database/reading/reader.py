"""A database as one reader sees it: relations that were granted, and nothing else.

Everything that a `Database` can do is either limited to the reader's grants here or refused; what
is not here cannot be done. A name that was not granted and one that does not exist get the same
answer. Grants are looked up at every call, so that revoking one takes effect at once.

What a view is computed from stays hidden, also in errors: an error in a rule would show the rule
and the values that it failed on, so the reader only learns that there was one.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from corollary.active.events import observed_change
from corollary.core.engine import TableHandle
from corollary.core.program import Relation
from corollary.database.access.grants import Grants, require_grant, unknown_relation
from corollary.database.arguments import COUNT, checked
from corollary.database.changes import Change, Changes
from corollary.database.program.goals import goal_relations
from corollary.database.program.names import list_names
from corollary.database.program.question_bounds import bounded_question
from corollary.database.reading.read_access import Callback, ReadAccess
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.errors import AccessError, Diagnostic, EvaluationError, LimitError

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.database.feed_tables import RelationFeed
    from corollary.database.history import CommitSummary
    from corollary.database.reading.answer import SqlAnswer
    from corollary.frontends.sql.catalog import SqlCatalog
    from corollary.frontends.sql.statements.questions import StatementPlace

Result = TypeVar("Result")


def _refusal(what: str) -> Callable[..., NoReturn]:
    """Return a method of `Database` that a reader may not call."""

    def refuse(reader: "Reader", *_: Any, **__: Any) -> NoReturn:
        raise AccessError.of(
            "C1041",
            f"`{reader.name}` reads, and cannot {what}.",
            None,
            "open the warehouse without `reader=`, if it is yours",
        )

    return refuse


class Reader(ReadAccess):
    """A database, limited to what was granted to a reader.

    >>> import corollary
    >>> db = corollary.open(None, engine="local")
    >>> _ = db.load(text=".decl e(x: number) .decl p(x: number) p(x) :- e(x). e(1).")
    >>> db.grant("alice", "p")
    >>> alice = db.reader("alice")
    >>> alice.relation("p").rows()
    [(1,)]
    >>> alice.relation("e")
    Traceback (most recent call last):
    ...
    corollary.errors.AccessError: error[C1040]: `alice` may not see `e`.
      = `alice` may see `p`; who runs the warehouse can grant more: `corollary grant W alice e`

    Attributes:
        name: of the reader.
    """

    def __init__(
        self, state: DatabaseState, store: Store, name: str, grants: Grants, *, owns: bool = False
    ) -> None:
        super().__init__(state, store)
        self.name = name
        self._grants = grants
        self._owns = owns

    def __repr__(self) -> str:
        return f"<Reader {self.name!r}: {self._summary()}>"

    # --- what is granted -----------------------------------------------------------------------

    @property
    def granted(self) -> frozenset[str]:
        """The relations and event predicates that the reader may see; with a bag, its counts."""
        bags, granted = self._state.loaded.normal.bags, self._grants.granted_to(self.name)
        return granted | {rows for bag, rows in bags.items() if bag in granted}

    def require(self, relation: str) -> None:
        """Refuse what was not granted.

        Raises:
            AccessError: it was not.
        """
        require_grant(self.name, relation, self.granted)

    def _require_existing(self, relation: str) -> None:
        """Refuse what was not granted, and what the program does not have."""
        self.require(relation)
        if relation not in self._state.loaded.checked.signatures:
            raise unknown_relation(self.name, relation, self.granted)

    def _without_details(self, relations: Sequence[str], compute: Callable[[], Result]) -> Result:
        """Return what a function computes; hide the details of an error in rules."""
        named = list_names(relations) or "the goal"
        hidden: AccessError | LimitError
        try:
            return compute()
        except EvaluationError:
            hidden = AccessError(
                [
                    Diagnostic(
                        "C1042",
                        f"{named} cannot be computed: an expression in a rule has no value.",
                        None,
                        "who runs the warehouse can see which rule, and for which values",
                    )
                ]
            )
        except LimitError as error:
            hidden = LimitError(
                f"a limit was hit while {named} was computed\n"
                "  = ask for less, or ask who runs the warehouse to raise the limit",
                error.limit,
            )
        # Raised above, it would have the error with all its details as its context.
        raise hidden

    # --- reading -------------------------------------------------------------------------------

    def _columns(self, name: str) -> Relation:
        self._require_existing(name)
        return super()._columns(name)

    def _handle(self, name: str) -> TableHandle:
        self._require_existing(name)
        return self._without_details([name], partial(super()._handle, name))

    @checked(goal=str)
    def answers(self, goal: str) -> "tuple[Relation, pa.Table]":
        """Return the answers to a goal, and the relation that they make."""
        self.refresh()
        with bounded_question(self._state.limits, is_sql=False):
            asked = goal_relations(goal)
            for relation in asked:
                self._require_existing(relation)
            return self._without_details(asked, partial(super().answers, goal))

    def ask_tree(self, tree: Any, place: "StatementPlace") -> "SqlAnswer":
        """Answer a question in SQL about what was granted."""
        from corollary.frontends.sql.statements.definitions import free_tables

        self.refresh()
        granted = {name.lower() for name in self.granted}
        given = {each.declaration.name.lower() for each in place.given}
        asked = sorted(set(free_tables(tree)) - given)
        for relation in asked:
            if relation not in granted:
                self.require(relation)
        return self._without_details(asked, partial(super().ask_tree, tree, place))

    def _catalog(self) -> "SqlCatalog":
        catalog, granted = super()._catalog(), self.granted
        for name in catalog.names():
            if name not in granted:
                catalog.remove(name)
        return catalog

    @property
    def _scope(self) -> object:
        return self.granted

    def _refuse_statements(self) -> None:
        _refusal("change anything")(self)

    # --- history -------------------------------------------------------------------------------

    def at(self, point: int | str | date) -> "Reader":
        """Return the database as it was, with the grants of today; see `Database.at`.

        Raises:
            InputError: it is not a commit, a date or a timestamp.
            WarehouseError: there is no such commit, or it is no longer kept.
        """
        return Reader(*self._past(point), self.name, self._grants, owns=True)

    @checked(limit=COUNT)
    def log(self, limit: int | None = None) -> "list[CommitSummary]":
        """Return the commits that are kept, newest first, with how much each has changed."""
        from corollary.database.history import commit_log

        return commit_log(self._history.warehouse, limit, self.granted)

    def changes(self, commit: int) -> Changes:
        """Return what a commit changed."""
        return _GrantedChanges(super().changes(commit), self)

    def feed(
        self, relation: str | None = None, *, since: int | None = None, upto: int | None = None
    ) -> "Iterator[RelationFeed]":
        """Yield what commits have changed, relation by relation; see `Database.feed`."""
        every = super().feed(relation, since=since, upto=upto)
        granted = self.granted
        return (each for each in every if each.relation.name in granted)

    def _past_columns(self, name: str) -> Relation:
        return self._columns(name)  # the grants of a relation go with it

    # --- watching ------------------------------------------------------------------------------

    def on(self, event: str) -> Callable[[Callback], Callback]:
        """Let a function be called when an event has happened; see `Database.on`."""
        self._require_existing(observed_change(event)[0])
        return super().on(event)

    # --- what a reader cannot do ---------------------------------------------------------------

    load = run = _refusal("change the program")
    explain = _refusal("see how something is computed")
    transaction = stream = set_today = what_if = _refusal("change data")
    publish = _refusal("publish tables")
    deliver = _refusal("deliver alerts")
    why_added = why_removed = _refusal("see which changes have led to others")
    grant = _refusal("grant anything")
    revoke = _refusal("revoke anything")
    grants = _refusal("see the grants of others")
    reader = _refusal("read as somebody else")

    # --- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the database, if it was opened for this reader."""
        if self._owns:
            super().close()


class _GrantedChanges(Changes):
    """Changes of the relations that were granted; to ask for another one is refused."""

    def __init__(self, every: Changes, reader: Reader) -> None:
        granted = reader.granted
        super().__init__(
            {name: every[name] for name in every if name in granted}, every.__getitem__
        )
        self._reader = reader

    def __getitem__(self, relation: str) -> Change:
        self._reader.require(relation)
        return super().__getitem__(relation)
