"""The types of records: those of the fields follow from that of the record."""

from collections.abc import Sequence

from corollary.analysis.types import mismatch
from corollary.analysis.types.unify import Reason, Unifier
from corollary.core import logic
from corollary.core.types import NIL
from corollary.errors import Diagnostic

RecordTerm = tuple[logic.Functor, int, tuple[int, ...]]
"""A record as it is written, its node and those of its fields."""


def resolve_records(
    unifier: Unifier, records: Sequence[RecordTerm]
) -> tuple[list[RecordTerm], list[Diagnostic]]:
    """Let the fields of records have their types, where the types of the records are known.

    Returns:
        The records whose types are not known yet, and what is wrong with the others.
    """
    findings: list[Diagnostic] = []
    waiting, left = list(records), len(records) + 1
    while waiting and len(waiting) < left:
        left, pending, waiting = len(waiting), waiting, []
        for term, node, fields in pending:
            record = unifier.record(node)
            if record is None:
                waiting.append((term, node, fields))
                continue
            branch = record.branches.get(term.name.removeprefix("$"))
            if term.name == NIL and not record.is_algebraic:
                continue
            if branch is None or len(branch.types) != len(fields):
                findings.append(mismatch.record_mismatch(term, record))
                continue
            for at, (argument, inner) in enumerate(zip(term.arguments, fields, strict=True)):
                reason = Reason(f"field `{branch.fields[at]}` of `{record.name}`", argument.span)
                if not unifier.assign(inner, branch.types[at], reason):
                    known = unifier.partial_type(inner)
                    findings.append(mismatch.field_mismatch(argument, known, record, branch, at))
    return waiting, findings
