"""Asking a database why: what holds, what does not, what came and went."""

from datetime import date
from typing import Any

from corollary.database.arguments import COUNT, checked
from corollary.registry import EXTENSIONS


class WhyAccess:
    """The part of a database that answers why; `corollary.provenance` does it."""

    @checked(goal=str)
    def why(self, goal: str, *, at: int | str | date | None = None, limits: Any = None) -> Any:
        """Return why a tuple holds: a proof of least height, down to who has given base tuples.

        >>> import corollary
        >>> db = corollary.open(None, engine="local")
        >>> _ = db.load(
        ...     text='''
        ... .decl e(x: number, y: number) .decl p(x: number, y: number)
        ... p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).
        ... e(1, 2). e(2, 3).
        ... '''
        ... )
        >>> print(db.why("p(1, 3)").to_text(), end="")
        p(1, 3)        rule 2  program:3
        +- p(1, 2)     rule 1  program:3
        |  +- e(1, 2)  program:4
        +- e(2, 3)     program:4
        height 2, 4 tuples; no proof is lower

        Args:
            goal: a tuple such as `link("a", "d")`; with variables, its first answers are proved.
            at: a commit or a point in time, as for `at`; now if it is not given.
            limits: a `corollary.provenance.limits.ProofLimits`.

        Returns:
            A `corollary.provenance.proof.Proof`, which notebooks show as a picture.

        Raises:
            InputError: the goal does not fit the program.
        """
        return EXTENSIONS.answer_why("why", self, goal, at=at, limits=limits)

    @checked(goal=str, insertions=COUNT)
    def why_not(
        self,
        goal: str,
        *,
        at: int | str | date | None = None,
        insertions: int | None = None,
        limits: Any = None,
    ) -> Any:
        """Return why a tuple does not hold: for each rule what it lacks, in the nearest attempts.

        Args:
            goal: a tuple such as `link("a", "z")`.
            at: a commit or a point in time, as for `at`; now if it is not given.
            insertions: the most base tuples of a set that would make it true; sets are looked for
                only if it is given.
            limits: a `corollary.provenance.limits.ProofLimits`.

        Returns:
            A `corollary.provenance.proof.Absence`.

        Raises:
            InputError: the goal does not fit the program, or holds.
        """
        return EXTENSIONS.answer_why(
            "why-not", self, goal, at=at, insertions=insertions, limits=limits
        )

    @checked(goal=str, commit=int)
    def why_added(self, goal: str, commit: int | None = None, *, limits: Any = None) -> Any:
        """Return why a commit has added a tuple: the changes of its transaction that did it.

        Args:
            goal: a tuple such as `link("a", "d")`.
            commit: its number; the last one that did it if it is not given.
            limits: a `corollary.provenance.limits.ProofLimits`.

        Returns:
            A `corollary.provenance.proof.ChangeExplanation`.

        Raises:
            InputError: the goal does not fit the program, or the commit has not added it.
            WarehouseError: there is no such commit, or it is no longer kept.
        """
        return EXTENSIONS.answer_why("why-added", self, goal, commit=commit, limits=limits)

    @checked(goal=str, commit=int)
    def why_removed(self, goal: str, commit: int | None = None, *, limits: Any = None) -> Any:
        """Return why a commit has removed a tuple; see `why_added`."""
        return EXTENSIONS.answer_why("why-removed", self, goal, commit=commit, limits=limits)

    @checked(fact=str)
    def what_if(self, fact: str) -> Any:
        """Return what would change without a base tuple, or with one that is not there.

        A dry run of its deletion, whoever asserts it, or of its insertion; nothing is changed.

        Args:
            fact: a base tuple, such as `cable("a", "b")`; or several, with full stops between them.

        Returns:
            A `corollary.database.intake.pipeline.PipelineRun`: `transaction.changes` has what each
            relation would gain and lose, `as_json` all of it.

        Raises:
            InputError: it is not a tuple of a base relation.
        """
        return EXTENSIONS.answer_why("what-if", self, fact)
