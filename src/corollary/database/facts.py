"""Tuples as users write them: `edge("a", "b")`."""

from dataclasses import replace

from corollary.core.program import Program
from corollary.core.rules import Clause, Functor, Value
from corollary.database.names import writable
from corollary.database.program import Loaded, load
from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.parse import parse
from corollary.source import SourceFile, Span

Fact = tuple[str, tuple[Value, ...]]
"""A relation and one of its tuples."""


def read_facts(loaded: Loaded, text: str, place: str) -> list[Fact]:
    """Return the tuples that a text stands for, each with its relation.

    They are checked as facts of the program, so that names, number of arguments, types and values
    are judged as they are there.

    Args:
        loaded: the program whose relations they are for.
        text: one fact or several; the last full stop may be missing.
        place: what messages call the text.

    Raises:
        InputError: the text holds something else, or does not fit the program.
    """
    if not text.strip():
        raise _no_tuple("A tuple is expected, but nothing is there.", None)
    ended = text if text.rstrip().endswith(".") else f"{text.rstrip()}."
    given = parse(SourceFile(place, ended))
    is_plain = all(not each.body and not any(h.sign for h in each.heads) for each in given.clauses)
    if not (given.clauses and is_plain) or given != Program(clauses=given.clauses):
        raise _no_tuple(f"`{text.strip()}` is no tuple.", None)
    return [fact for clause in given.clauses for fact in _read(loaded, clause)]


def _read(loaded: Loaded, clause: Clause) -> list[Fact]:
    for head in clause.heads:
        writable(loaded.normal, head.relation, head.span)
        if any(isinstance(each, Functor) for each in head.arguments):
            raise _no_tuple("A value of this tuple is computed.", head.span)
    program = loaded.program
    declared = tuple(replace(each, is_equivalence=False) for each in program.declarations)
    alone = load(Program(types=program.types, declarations=declared, clauses=(clause,)))
    return [(name, row) for name, rows in alone.normal.facts.items() for row in rows]


def _no_tuple(message: str, span: Span | None) -> InputError:
    cure = 'write a relation and its values, as in `edge("a", "b")`'
    return InputError([Diagnostic("C0919", message, span, cure)])
