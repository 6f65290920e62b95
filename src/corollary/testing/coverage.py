"""Coverage: which rules of programs, and alternatives of them, derive something in some case.

Beside each rule `p(x) :- q(x), (r(x) ; s(x)).` stand probes for the cases:

    covered.1(x) :- q(x), r(x).
    covered.2(x) :- q(x), s(x).

They are virtual relations, read after each transaction; of a rule with events they are events with
an alert. A transaction that a constraint refuses has no alerts: the constraint's rules count then.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from corollary.core.logic import Atom, BodyItem, Clause
from corollary.core.printer import print_body, print_clause
from corollary.core.program import Declaration, Program, Reaction, owner_of
from corollary.data_class import dataclass
from corollary.database.database import Database
from corollary.database.transaction import Transaction
from corollary.errors import CorollaryError, InputError
from corollary.rewrite.clauses.disjunctions import alternatives
from corollary.source import Span
from corollary.testing.cases import ProgramFiles
from corollary.testing.program_under_test import declaration_of

PROBE_PREFIX = "covered."


@dataclass(slots=True)
class RuleProbe:
    """A rule, or an alternative of one.

    Attributes:
        name: of its probes.
        relations: those that it derives tuples of, or that SQL derives by it on the way.
        alternative: its number from 1, if there are several.
    """

    name: str
    span: Span
    text: str
    relations: set[str]
    alternative: int | None = None
    is_covered: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "file": self.span.file.name,
            "line": self.span.line,
            "rule": self.text,
            "alternative": self.alternative,
            "covered": self.is_covered,
        }


class Coverage:
    """Collects which rules have derived something while cases run."""

    def __init__(self) -> None:
        self._probes: dict[tuple[str, int, int, int | None], RuleProbe] = {}

    # --- probes --------------------------------------------------------------------------------

    def _probes_of(self, clause: Clause) -> Iterator[tuple[RuleProbe, tuple[BodyItem, ...]]]:
        """Yield the probes of a rule, each with its body."""
        span = clause.span
        if span is None or not clause.body or clause.dominating is not None:
            return
        bodies = list(alternatives(clause.body))
        for number, body in enumerate(bodies, 1):
            alternative = number if len(bodies) > 1 else None
            key = (*_place(span), alternative)
            probe = self._probes.get(key)
            if probe is None:
                name = f"{PROBE_PREFIX}{len(self._probes)}"
                text = span.file.line(span.line)[span.column - 1 :] if span.is_sql else ""
                text = text or (print_clause(clause) if alternative is None else print_body(body))
                probe = self._probes[key] = RuleProbe(name, span, text, set(), alternative)
            probe.relations.add(clause.heads[0].relation)
            yield probe, body

    def prepare(self, files: ProgramFiles, program: Program) -> Program:
        """Return a program with probes.

        Args:
            files: those of the program, all of whose rules are to be covered.
            program: what a case leaves of it.
        """
        normal = files.normal
        for clause in files.program.clauses:
            list(self._probes_of(clause))
        events = normal.active.relations
        declarations: list[Declaration] = []
        reactions: list[Reaction] = []
        clauses: list[Clause] = []
        for clause in program.clauses:
            head = clause.heads[0]
            relation = events.get(head.relation) or normal.relations[head.relation]
            is_event = bool(head.sign) or head.relation in events
            for probe, body in self._probes_of(clause):
                # Others with the same span and alternative derive tuples of other types.
                name = f"{probe.name}.{len(clauses)}"
                made = Atom(name, head.arguments)
                clauses.append(replace(clause, heads=(made,), body=body, plan=()))
                storage = "" if is_event else "virtual"
                declarations.append(replace(declaration_of(relation, name), storage=storage))
                if is_event:
                    reactions.append(Reaction("alert", name, ""))
        return replace(
            program,
            declarations=(*program.declarations, *declarations),
            clauses=(*program.clauses, *clauses),
            reactions=(*program.reactions, *reactions),
        )

    # --- what has happened ---------------------------------------------------------------------

    def inspect(self, database: Database, transaction: Transaction) -> None:
        """Note what the rules have derived, after a transaction."""
        happened = {each.event for each in transaction.alerts}
        probes = {each.name: each for each in self._probes.values()}
        for declaration in database.program.declarations:
            probe = probes.get(declaration.name.rpartition(".")[0])
            if probe is not None and not probe.is_covered:
                name = declaration.name
                is_read = declaration.storage == "virtual" and len(database.relation(name)) > 0
                probe.is_covered = name in happened or is_read

    def inspect_refusal(self, database: Database, refusal: CorollaryError) -> None:
        """Note the rules of constraints that have refused a transaction."""
        findings = refusal.diagnostics if isinstance(refusal, InputError) else ()
        messages = [each.message for each in findings if each.code == "C1051"]
        for reaction in database.program.reactions:
            begins = (f"The constraint `{reaction.relation}` ", reaction.message.partition("{")[0])
            if reaction.name != "abort" or not any(m.startswith(begins) for m in messages):
                continue
            for probe in self._probes.values():
                probe.is_covered |= any(
                    owner_of(each, {reaction.relation}) is not None for each in probe.relations
                )

    # --- the report ----------------------------------------------------------------------------

    @property
    def rules(self) -> list[RuleProbe]:
        """The rules and alternatives, in the order of the text."""
        split = {_place(each.span) for each in self._probes.values() if each.alternative}
        every = (
            each
            for each in self._probes.values()
            if each.alternative or _place(each.span) not in split
        )
        return sorted(every, key=lambda each: (*_place(each.span), each.alternative or 0))

    def lines(self) -> Iterator[str]:
        """Yield which rules no case has derived anything with, as lines of text."""
        every = self.rules
        missed = [each for each in every if not each.is_covered]
        done = len(every) - len(missed)
        yield f"{done:,} of {len(every):,} rules and alternatives have derived something"
        for each in missed:
            number = "" if each.alternative is None else f" (alternative {each.alternative})"
            yield f"  never  {each.span.file.name}:{each.span.line}{number} {each.text}"

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        every = self.rules
        return {
            "covered": sum(each.is_covered for each in every),
            "total": len(every),
            "rules": [each.as_json() for each in every],
        }


def _place(span: Span) -> tuple[str, int, int]:
    return span.file.name, span.line, span.column
