"""`--why` of `run` and `apply`: proofs of what violates a key or a constraint."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from corollary.database.database import Database, state_of, warehouse_of
from corollary.errors import ConstraintError

if TYPE_CHECKING:
    from corollary.database.intake.pipeline import PipelineRun
    from corollary.database.options import DatabaseOptions
    from corollary.provenance.changes.transaction_proofs import ViolationExplainer, ViolationProof

why_option = click.option(
    "--why",
    is_flag=True,
    help="If a key or a constraint is violated, prove it, before everything is rolled back.",
)

PROVED_WITHOUT = ("sharing", "specialisation")
"""Optimisations of events that `--why` leaves out: they replace the user's rules by others."""


def proving_options(options: "DatabaseOptions", *, is_asked: bool) -> "DatabaseOptions":
    """Return the options with which a database is opened, so that events can be proved."""
    if not is_asked:
        return options
    return replace(options, without=(*options.without, *PROVED_WITHOUT))


@contextmanager
def proving(database: Database, *, is_asked: bool) -> "Iterator[ViolationExplainer | None]":
    """Prove what a transaction violates; a `ConstraintError` has the proofs then."""
    if not is_asked:
        yield None
        return
    from corollary.provenance.changes.transaction_proofs import ViolationExplainer

    explainer = ViolationExplainer(state_of(database))
    try:
        yield explainer
    except ConstraintError as error:
        raise error.with_proofs(with_origins(database, explainer.proofs())) from None


def note_proofs(
    outcome: "PipelineRun", database: Database, explainer: "ViolationExplainer | None"
) -> None:
    """Note in the outcome of a dry run why it would violate something."""
    if explainer is not None and outcome.plan is not None and outcome.plan.constraints:
        outcome.why = with_origins(database, explainer.proofs())


def with_origins(
    database: Database, proofs: "Sequence[ViolationProof]"
) -> "tuple[ViolationProof, ...]":
    """Return proofs in which base tuples of the state before say where they are from."""
    from corollary.provenance.origins import OriginFinder

    finder = OriginFinder(state_of(database), warehouse_of(database))
    found = []
    for each in proofs:
        nodes, cuts = finder.with_origins(each.proof.nodes)
        proof = replace(each.proof, nodes=nodes, cuts=(*each.proof.cuts, *cuts))
        found.append(replace(each, proof=proof))
    return tuple(found)


def proof_texts(proofs: Sequence[Any]) -> Iterator[str]:
    """Yield the lines of proofs of violations."""
    for each in proofs:
        yield f"why {each.message}"
        lines = list(each.proof.lines())
        if each.is_pair:
            lines = lines[1:-1]  # two tuples, and no rule
        yield from (f"  {line}" for line in lines)


def proofs_as_json(proofs: Sequence[Any]) -> list[dict[str, Any]]:
    """Return proofs of violations as JSON."""
    return [{"message": each.message, "proof": each.proof.to_json()} for each in proofs]
