"""Runs a case on a database of its own in memory, and compares what holds with what should."""

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from textwrap import indent
from typing import Any

from corollary.core.alerts import distinct_alerts
from corollary.core.arrow import to_python
from corollary.core.logic import Value
from corollary.core.printer import print_value
from corollary.core.program import NormalProgram, Program, Relation, RelationKind
from corollary.core.states import State
from corollary.core.values import format_value
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of
from corollary.database.intake.change_files import row_key
from corollary.database.opening import open_with
from corollary.database.options import LOCAL, DatabaseOptions
from corollary.database.program.loaded_program import read_facts
from corollary.database.program.names import readable_relation, writable_relation
from corollary.database.transaction import Transaction
from corollary.errors import CorollaryError, InputError, LimitError
from corollary.testing import cases
from corollary.testing.coverage import PROBE_PREFIX, Coverage
from corollary.testing.program_under_test import with_mocked_views

Row = tuple[Value, ...]

MAX_ROWS = 10
"""The maximum number of rows of a list in text."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that does not hold as it should.

    Attributes:
        subject: what it is about, such as `rows of link`.
        missing: the rows that should be there; `unexpected` those that should not.
        reason: a sentence, if it is not about rows.
    """

    subject: str
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    reason: str = ""

    def lines(self) -> Iterator[str]:
        """Yield it as lines of text."""
        rows = [f"missing     {each}" for each in _cut(self.missing)]
        rows += [f"unexpected  {each}" for each in _cut(self.unexpected)]
        yield f"  {self.subject}: {self.reason}" if self.reason else f"  {self.subject}:"
        yield from (f"    {each}" for each in rows)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "subject": self.subject,
            "missing": list(self.missing),
            "unexpected": list(self.unexpected),
            "reason": self.reason,
        }


def _cut(rows: tuple[str, ...]) -> list[str]:
    more = len(rows) - MAX_ROWS
    return [*rows[:MAX_ROWS], *([f"and {more:,} more"] if more > 0 else [])]


@dataclass(slots=True)
class Outcome:
    """What came of a case.

    Attributes:
        error: what is wrong with the case itself, if something is.
    """

    case: cases.Case
    failures: list[Failure] = field(default_factory=list)
    error: CorollaryError | None = None
    seconds: float = 0.0

    @property
    def is_passed(self) -> bool:
        """Whether all holds as it should."""
        return not self.failures and self.error is None

    def lines(self) -> Iterator[str]:
        """Yield what does not hold as lines of text."""
        for each in self.failures:
            yield from each.lines()
        if self.error is not None:
            yield from str(self.error).splitlines()

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        diagnostics = getattr(self.error, "diagnostics", ())
        kind = "passed" if self.is_passed else "failed" if self.error is None else "error"
        return {
            "file": self.case.span.file.name,
            "line": self.case.span.line,
            "name": self.case.name,
            "outcome": kind,
            "seconds": round(self.seconds, 4),
            "failures": [each.as_json() for each in self.failures],
            "diagnostics": [each.as_json() for each in diagnostics],
        }


def run_case(case: cases.Case, coverage: Coverage | None = None) -> Outcome:
    """Run a case, and note which rules it covers."""
    outcome = Outcome(case)
    start = time.perf_counter()
    try:
        with open_with(None, DatabaseOptions(LOCAL)) as database:
            state_of(database).is_trial = True
            _CaseRun(case, database, outcome.failures, coverage).run()
    except CorollaryError as error:
        outcome.error = error
    outcome.seconds = time.perf_counter() - start
    return outcome


@dataclass(slots=True)
class _CaseRun:
    """One run of a case; failures are collected, and errors in the case are raised."""

    _case: cases.Case
    _database: Database
    _failures: list[Failure]
    _coverage: Coverage | None

    @property
    def _normal(self) -> NormalProgram:
        return state_of(self._database).loaded.normal

    def run(self) -> None:
        """Run all steps, up to the first one that is refused without being expected to."""
        case, database = self._case, self._database
        if case.today:
            database.set_today(case.today)
        files = case.files
        program = with_mocked_views(files.program, files.normal, case.given)
        with database.transaction() as transaction:
            transaction.set_program(self._prepared(files, program))
        self._note(transaction)
        steps = list(case.steps)
        given = tuple(cases.CaseChange("insert", each.span, each) for each in case.given)
        if steps and not steps[0].changes:
            steps[0] = cases.CaseStep(given, steps[0].expected)
        else:
            steps.insert(0, cases.CaseStep(given, cases.Expectations()))
        for step in steps:
            if not self._run_step(step):
                return

    def _prepared(self, files: cases.ProgramFiles, program: Program) -> Program:
        return program if self._coverage is None else self._coverage.prepare(files, program)

    def _note(self, transaction: Transaction | None) -> None:
        if self._coverage is not None and transaction is not None:
            self._coverage.inspect(self._database, transaction)

    # --- what happens --------------------------------------------------------------------------

    def _run_step(self, step: cases.CaseStep) -> bool:
        """Run a step; return whether it went as expected, so that others may follow."""
        expected, before = step.expected, self._normal
        for name in {each.relation for each in (*expected.added, *expected.removed)}:
            if name in before.relations and before.kind_of(name) is RelationKind.VIRTUAL:
                self._database.watch(name)
        transaction, refusal = self._commit(step.changes)
        self._note(transaction)
        if self._coverage is not None and refusal is not None:
            self._coverage.inspect_refusal(self._database, refusal)
        if not self._is_refused_as_expected(expected.refusal, refusal):
            return False
        for rows in expected.rows:
            relation = readable_relation(self._normal, rows.relation, rows.span)
            self._compare("rows of", rows, relation, self._read(rows.relation))
        for sign, every in ((State.ADDED, expected.added), (State.REMOVED, expected.removed)):
            for rows in every:
                self._compare_change(sign, rows, transaction, before)
        self._compare_alerts(expected, transaction)
        for proof in expected.proofs:
            self._compare_proof(proof)
        return True

    def _commit(
        self, changes: Sequence[cases.CaseChange]
    ) -> tuple[Transaction | None, InputError | LimitError | None]:
        """Make a transaction of the changes; return it, or why it is refused."""
        operation = changes[0].operation if changes else ""
        if operation in ("sql", "today"):
            (change,) = changes
            made = self._database.sql if operation == "sql" else self._database.set_today
            try:
                found: Any = made(change.text)
            except (InputError, LimitError) as error:
                return None, error
            if found is None or isinstance(found, Transaction):
                return found, None
            text = "A question changes nothing."
            note = "write INSERT, UPDATE, DELETE, CREATE or DROP"
            raise InputError.of("C1801", text, change.span, note)
        transaction = self._database.transaction()
        for change in changes:
            self._apply(change, transaction)
        try:
            transaction.commit()
        except (InputError, LimitError) as error:
            return None, error
        return transaction, None

    def _apply(self, change: cases.CaseChange, transaction: Transaction) -> None:
        if change.rows is not None:
            relation = writable_relation(self._normal, change.rows.relation, change.rows.span)
            rows = self._resolved(change.rows, relation)
            rows.columns(relation)
            method = getattr(transaction, change.operation)
            method(relation.name, rows.typed(relation, relation.columns))
            return
        match change.operation:
            case "add-rule":
                transaction.add_rule(change.text, place="add-rule")
            case "remove-rule":
                transaction.remove_rule(change.text, place="remove-rule")
            case _:
                assert change.files is not None
                transaction.set_program(self._prepared(change.files, change.files.program))

    def _resolved(self, rows: cases.Rows, relation: Relation) -> cases.Rows:
        """Return the rows; those that a question in SQL has if there is one."""
        if rows.question is None:
            return rows
        answer = self._database.sql(rows.question)
        names, types = answer.shape.columns, answer.shape.types
        if len(names) == relation.arity and not {*names} & {*relation.columns}:
            names = relation.columns  # VALUES has no names
        found = []
        for row in to_python(answer.arrow()):
            cells = {
                name: cases.CaseValue(
                    None if value is None else format_value(value, type_), rows.span
                )
                for name, value, type_ in zip(names, row, types, strict=True)
            }
            found.append(cases.CaseValue(cells, rows.span, keys=dict.fromkeys(names, rows.span)))
        return cases.Rows(rows.relation, rows.span, tuple(found))

    # --- what holds ----------------------------------------------------------------------------

    def _is_refused_as_expected(
        self, expected: cases.Refusal | None, refusal: InputError | LimitError | None
    ) -> bool:
        if expected is None and refusal is None:
            return True
        if refusal is None:
            self._fail("refused", reason="the step should be refused, and was not")
            return False
        if expected is None:
            self._fail("refused", reason=f"the step was refused:\n{_indented(refusal)}")
            return False
        codes = {each.code for each in getattr(refusal, "diagnostics", ())}
        text = str(refusal)
        lacking = [
            f"{what} `{wanted}`"
            for what, wanted, has in (
                ("the code", expected.code, expected.code in codes),
                ("the constraint", expected.constraint, _names(text, expected.constraint)),
                ("the message", expected.message, expected.message in text),
            )
            if wanted and not has
        ]
        if lacking:
            self._fail(
                "refused", reason=f"it was refused, but not with {lacking[0]}:\n{_indented(text)}"
            )
        return not lacking

    def _fail(self, subject: str, *, reason: str) -> None:
        self._failures.append(Failure(subject, reason=reason))

    def _compare(
        self, subject: str, rows: cases.Rows, relation: Relation, held: Iterable[Row]
    ) -> None:
        """Compare the rows that should be there with those that are, as far as columns go."""
        rows = self._resolved(rows, relation)
        columns = rows.columns(relation)
        places = [relation.columns.index(each) for each in columns]
        types = [relation.types[at] for at in places]
        shown: dict[Row, str] = {}

        def count(every: Iterable[Row]) -> Counter[Row]:
            keys: Counter[Row] = Counter()
            for row in every:
                key = row_key(row)
                keys[key] += 1
                texts = map(print_value, row, types)
                shown.setdefault(key, f"{relation.name}({', '.join(texts)})")
            return keys

        expected = count(rows.typed(relation, columns))
        found = count(tuple(row[at] for at in places) for row in held)
        missing = sorted(shown[key] for key in (expected - found).elements())
        unexpected = sorted(shown[key] for key in (found - expected).elements())
        if missing or unexpected:
            name = f"{subject} {rows.relation}"
            self._failures.append(Failure(name, tuple(missing), tuple(unexpected)))

    def _read(self, name: str) -> list[Row]:
        return to_python(self._database.relation(name).arrow())

    def _compare_change(
        self, sign: State, rows: cases.Rows, transaction: Transaction | None, before: NormalProgram
    ) -> None:
        relation = readable_relation(self._normal, rows.relation, rows.span)
        held: list[Row] = []
        if rows.relation not in before.relations:  # nobody could watch it
            held = self._read(rows.relation) if sign is State.ADDED else []
        elif transaction is not None:
            change = transaction.changes[rows.relation]
            held = to_python(change.added if sign is State.ADDED else change.removed)
            if change.before is not None and sign is State.REMOVED:
                relation = change.before
        subject = "rows added to" if sign is State.ADDED else "rows removed from"
        self._compare(subject, rows, relation, held)

    def _compare_alerts(
        self, expected: cases.Expectations, transaction: Transaction | None
    ) -> None:
        every = [] if transaction is None else distinct_alerts(transaction.alerts)
        alerts = [each for each in every if not each.event.startswith(PROBE_PREFIX)]
        for rows in expected.events:
            relation = self._normal.active.relations.get(rows.relation) or readable_relation(
                self._normal, rows.relation, rows.span
            )
            held = [each.row for each in alerts if each.event == rows.relation]
            self._compare("alerts of", rows, relation, held)
        if expected.messages is not None:
            wanted, found = Counter(expected.messages), Counter(each.message for each in alerts)
            missing, unexpected = (wanted - found).elements(), (found - wanted).elements()
            if wanted != found:
                failure = Failure("alerts", tuple(sorted(missing)), tuple(sorted(unexpected)))
                self._failures.append(failure)

    def _compare_proof(self, expected: cases.ExpectedProof) -> None:
        """Compare the base tuples under a proof."""
        loaded = state_of(self._database).loaded
        wanted = {
            (name, row_key(row)): text
            for text in expected.base
            for name, row in read_facts(loaded, text, "proof")
        }
        proof = self._database.why(expected.goal)
        if not proof.holds:
            self._fail(f"proof of {expected.goal}", reason="it does not hold")
            return
        found = {
            (each.relation, row_key(each.row)): each.text
            for each in proof.nodes
            if each.kind == "base"
        }
        missing = tuple(sorted(wanted[key] for key in wanted.keys() - found.keys()))
        unexpected = tuple(sorted(found[key] for key in found.keys() - wanted.keys()))
        if missing or unexpected:
            self._failures.append(Failure(f"proof of {expected.goal}", missing, unexpected))


def _indented(text: object) -> str:
    return indent(str(text), "    ")


def _names(text: str, constraint: str) -> bool:
    """Whether a message names a constraint."""
    return re.search(rf"(?<!\w){re.escape(constraint)}(?!\w)", text) is not None
