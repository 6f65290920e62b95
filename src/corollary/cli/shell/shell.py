"""The loop of the shell: reads entries, runs them, prints results; errors do not end it."""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from corollary.cli.commands.query import print_answer, print_answers
from corollary.cli.output import print_json
from corollary.cli.report.tables import align, signed
from corollary.cli.shell.entries import Entry, EntryBuffer, EntryKind
from corollary.console import TerminalConsole, counted
from corollary.core.arrow import sort_rows
from corollary.core.printer import print_clause, print_declaration, print_reaction
from corollary.database.database import Database, state_of
from corollary.database.program.names import readable_relation
from corollary.database.reading.answer import SqlAnswer
from corollary.database.transaction import Transaction
from corollary.errors import CorollaryError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile

if TYPE_CHECKING:
    from corollary.core.program import NormalProgram

HELP = r"""SELECT …;  INSERT …;  CREATE VIEW …;   SQL, up to `;`: questions, changes, definitions
link("a", y), y != "b".                a goal in Datalog, up to `.`
link(x, y) :- cable(x, y).             adds a rule; a line such as .decl adds that
+cable("a", "b").  -cable("a", "b").   adds a tuple, removes one
BEGIN;  COMMIT;  ROLLBACK;             several changes as one transaction
\d             lists the relations
\d NAME        describes one: its columns, and the SQL or the rules that define it
\explain …     shows how a question or goal is answered
\why …         proves a tuple such as link("a", "d"); \why-not … says what one lacks
\timing        shows how long entries take, or stops showing it
\q             ends the shell, as Ctrl-D does;  Ctrl-C interrupts what runs"""


class Shell:
    """A database and what the user has set.

    Attributes:
        has_failed: whether an entry had an error.
    """

    def __init__(
        self, database: Database, console: TerminalConsole, *, is_json: bool = False
    ) -> None:
        self._database = database
        self._console = console
        self._is_json = is_json
        self._is_timing = False
        self.has_failed = False

    def run(self, read_line: Callable[[bool], str | None]) -> None:
        """Run what is entered, up to the end of the input.

        Args:
            read_line: returns the next line, None at the end; it gets whether a new entry begins.
        """
        buffer = EntryBuffer()
        while True:
            try:
                line = read_line(buffer.is_empty)
                for entry in buffer.finish() if line is None else buffer.feed(line):
                    if not self._enter(entry):
                        return
            except KeyboardInterrupt:
                buffer.clear()
                self._console.done()
                click.echo("interrupted", err=True)
                continue
            if line is None:
                return

    def _enter(self, entry: Entry) -> bool:
        """Run an entry; return whether the shell goes on."""
        if entry.kind is EntryKind.COMMAND and entry.text.split()[0] in ("\\q", "\\quit", "\\exit"):
            return False
        began = time.monotonic()
        try:
            self._run(entry)
        except CorollaryError as error:
            self._console.done()
            self.has_failed = True
            click.echo(str(error), err=True)
        except (MemoryError, RecursionError) as error:
            self._console.done()
            self.has_failed = True
            click.echo(f"error: {str(error) or 'out of memory'}", err=True)
        self._console.done()
        if self._is_timing and entry.kind is not EntryKind.COMMAND:
            click.echo(f"{time.monotonic() - began:.3f} s", err=True)
        return True

    def _run(self, entry: Entry) -> None:
        match entry.kind:
            case EntryKind.SQL:
                self._show(self._database.sql(entry.text))
            case EntryKind.DATALOG:
                self._datalog(entry.text)
            case EntryKind.COMMAND:
                self._command(entry.text)

    # --- Datalog -------------------------------------------------------------------------------

    def _datalog(self, text: str) -> None:
        if text[:1] in "+-" and ":-" not in text and ":=" not in text:
            self._change_tuples(text)
        elif text.startswith(".") or ":-" in text or ":=" in text:
            added = parse(SourceFile("entry", text))
            with self._database.transaction() as transaction:
                transaction.edit(lambda program: program + added)
            self._show(transaction)
        else:
            relation, table = self._database.answers(text)
            print_answers(relation, sort_rows(table), is_json=self._is_json)

    def _change_tuples(self, text: str) -> None:
        from corollary.database.program.loaded_program import read_facts

        facts = read_facts(state_of(self._database).loaded, text[1:], "fact")
        with self._database.transaction() as transaction:
            for name, row in facts:
                if text[0] == "+":
                    transaction.insert(name, [row])
                else:
                    transaction.delete(name, [row])
        self._show(transaction)

    # --- results -------------------------------------------------------------------------------

    def _show(self, result: SqlAnswer | Transaction | None) -> None:
        match result:
            case SqlAnswer():
                print_answer(result, is_json=self._is_json)
                self._console.note(f"({counted(len(result), 'row')})")
            case Transaction() if self._is_json:
                print_json(result.as_json())
            case Transaction():
                for line in _change_lines(result):
                    click.echo(line)
            case None:
                self._console.note("done when the transaction is committed")

    # --- commands ------------------------------------------------------------------------------

    def _command(self, text: str) -> None:
        name, _, argument = text.partition(" ")
        argument = argument.strip()
        match name:
            case "\\d" if argument:
                lines: Iterator[str] = description_lines(
                    self._database, argument.rstrip(";").strip("`")
                )
            case "\\d":
                self._database.refresh()
                lines = relation_lines(self._database)
            case "\\explain" if argument:
                lines = self._explain(argument)
            case "\\why" if argument:
                lines = self._why(argument.rstrip(". "))
            case "\\why-not" if argument:
                absence = self._database.why_not(argument.rstrip(". "))
                lines = iter(absence.to_text().splitlines())
            case "\\timing":
                self._is_timing = not self._is_timing
                lines = iter([f"timing is {'on' if self._is_timing else 'off'}"])
            case "\\?" | "\\h" | "\\help":
                lines = iter(HELP.splitlines())
            case _:
                lines = iter([f"there is no command {name}; \\? lists them"])
                self.has_failed = True
        for line in lines:
            click.echo(line)

    def _why(self, goal: str) -> Iterator[str]:
        proof = self._database.why(goal)
        self.has_failed |= not proof.holds
        yield from proof.to_text().splitlines()

    def _explain(self, text: str) -> Iterator[str]:
        yield from self._database.explain(text.rstrip("; ")).splitlines()


def _change_lines(transaction: Transaction) -> Iterator[str]:
    """Yield what a transaction changed."""
    if transaction.commit_number is None:
        yield "nothing changed"
        return
    yield f"commit {transaction.commit_number}"
    sizes = [(name, each.counts) for name, each in transaction.changes.items()]
    yield from align((name, signed(counts)) for name, counts in sizes if any(counts))
    for name, rows in transaction.dropped.items():
        yield f"dropped {name} with {counted(rows, 'row')}"
    for alert in transaction.alerts:
        yield f"alert: {alert.message}"


# --- descriptions of relations -------------------------------------------------------------------


def relation_lines(database: Database) -> Iterator[str]:
    """Yield a line for each relation that users have defined."""
    from corollary.core.program import sql_texts

    loaded = state_of(database).loaded
    texts = sql_texts(loaded.program)
    rows = [
        (name, _kind(loaded.normal, name), _size(database, name), "SQL" * (name in texts))
        for name in loaded.normal.declared_relations
    ]
    if rows:
        yield from align([("relation", "kind", "tuples", ""), *sorted(rows)])


def _kind(normal: "NormalProgram", name: str) -> str:
    words = {"base": "base", "derived": "stored view", "virtual": "view"}
    return words[normal.kind_of(name)] + ", copies" * (name in normal.bags)


def _size(database: Database, name: str) -> str:
    state = state_of(database)
    holder = state.loaded.normal.holder_of(name)
    return f"{state.engine.size(holder.name):,}" if holder.is_stored else ""


def description_lines(database: Database, name: str) -> Iterator[str]:
    """Yield the columns of a relation, and what defines it: its SQL, or its rules.

    Raises:
        InputError: there is no such relation.
    """
    from corollary.core.program import sql_texts

    loaded = state_of(database).loaded
    known = {each.lower(): each for each in loaded.normal.relations}
    relation = readable_relation(loaded.normal, known.get(name.lower(), name))
    yield from align(
        (column, str(type_)) for column, type_ in zip(relation.columns, relation.types, strict=True)
    )
    text = sql_texts(loaded.program).get(relation.name)
    yield ""
    if text is not None:
        yield from text.splitlines()
        return
    defined = {relation.name, loaded.normal.holder_of(relation.name).name}
    for declaration in loaded.program.declarations:
        if declaration.name == relation.name:
            yield print_declaration(declaration)
    for clause in loaded.program.clauses:
        if clause.body and any(head.relation in defined for head in clause.heads):
            yield print_clause(clause)
    for reaction in loaded.program.reactions:
        if reaction.relation == relation.name:
            yield print_reaction(reaction)
