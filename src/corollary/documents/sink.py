"""Where the events of documents go: relations of a warehouse, published like any other.

An answer is a JSON array of labels; `document_label` has them one by one, so that rules of the same
warehouse can select and compute. What is told twice is there once.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from corollary.core.program import Program
from corollary.database.database import Database, state_of
from corollary.database.transaction import Transaction
from corollary.frontends.datalog.parse import parse
from corollary.source import SourceFile

PROGRAM = """\
.decl document_answer(doc: symbol, view: symbol, answer: symbol)
.decl document_label(doc: symbol, view: symbol, answer: symbol, place: number, label: symbol)
.decl document_value(doc: symbol, view: symbol, value: float) key(doc, view)
.decl document_closed(doc: symbol, function: symbol)
.decl document_refused(doc: symbol, function: symbol, seq: number, reason: symbol)
.output document_answer, document_label, document_value, document_closed, document_refused
"""


def sink_program(database: Database) -> None:
    """Declare the relations of the sink that the program of the warehouse does not declare."""
    sink = parse(SourceFile("documents", PROGRAM))
    known = state_of(database).loaded.normal.relations
    added = Program(
        declarations=tuple(each for each in sink.declarations if each.name not in known),
        directives=tuple(each for each in sink.directives if each.relation not in known),
    )
    if added.declarations:
        with database.transaction() as transaction:
            transaction.edit(lambda program: program + added)


def receive(database: Database, events: Iterable[Mapping[str, Any]], key: str) -> Transaction:
    """Put events into the relations, in one transaction that is made once.

    Args:
        database: where they go.
        events: as `keeping.Event`, each with its document.
        key: names the batch.
    """
    rows: dict[str, list[tuple[Any, ...]]] = {}
    past: list[tuple[Any, ...]] = []
    for each in events:
        document, view, text = each["doc"], each["view"], each["text"]
        match each["op"]:
            case "sure":
                rows.setdefault("document_answer", []).append((document, view, text))
                labels = enumerate(json.loads(text))
                rows.setdefault("document_label", []).extend(
                    (document, view, text, place, label) for place, label in labels
                )
            case "value":
                if each["before"] >= 0:
                    past.append((document, view, each["before"]))
                rows.setdefault("document_value", []).append((document, view, each["value"]))
            case "close":
                rows.setdefault("document_closed", []).append((document, text))
            case "refused":
                refused = (document, view, each["seq"], text)
                rows.setdefault("document_refused", []).append(refused)
            case other:
                raise AssertionError(other)
    with database.transaction(idempotency=key) as transaction:
        if past:
            transaction.delete("document_value", past)
        for relation, tuples in rows.items():
            transaction.insert(relation, tuples)
    return transaction
