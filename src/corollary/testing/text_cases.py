"""Reads cases from Datalog and SQL, in which comments begin the sections of a case.

| Datalog                              | SQL                              |
|--------------------------------------|----------------------------------|
| `// case: a cable is cut`            | `-- case: a price rises`         |
| `// given`                           | `-- given price`                 |
| `cable("a", "b"). cable("b", "c").`  | `VALUES ('pen', 2)`              |
| `// when`                            | `-- when`                        |
| `-cable("b", "c"). cable("b", "d").` | `UPDATE price SET net = 3`       |
| `// then detour`                     | `-- then price`                  |
| `link("a", "b"). -link("b", "c").`   | `VALUES ('pen', 3)`              |

A text becomes what the same case is in YAML, and is read as that.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from datetime import date
from pathlib import Path

from corollary.core.logic import Atom, Constant, Term
from corollary.core.printer import print_atom, print_body, print_clause, print_reaction, print_term
from corollary.core.program import Program
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.datalog.parser import parse
from corollary.frontends.datalog.preprocessor import read_source
from corollary.source import SourceFile, Span
from corollary.testing.cases import Case, CaseValue, ProgramFiles, YamlReader

LINES = ("case", "program", "today", "refused", "alert", "no alerts")
"""The sections that are one line."""
ROW_SECTIONS = {"then": "rows", "added": "added", "removed": "removed"}
"""The sections with rows that are expected, and what YAML calls them."""
KEY_BY_SIGN = {"": "rows", "+": "added", "-": "removed"}
_NAMES = "|".join((*LINES, *ROW_SECTIONS, "given", "when", "remove", "proof"))
_SECTION = re.compile(
    rf"[ \t]*(?://|--)[ \t]*({_NAMES})"
    r"(?:[ \t]*:|(?=[ \t])|$)[ \t]*(.*)"
)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a case.

    Attributes:
        argument: what follows its name in the line.
        body: the file with nothing but its lines.
    """

    name: str
    argument: str
    span: Span
    body: SourceFile


@dataclass(slots=True)
class _Draft:
    """What a case has so far: its members, and those of its steps."""

    span: Span
    members: dict[str, CaseValue] = field(default_factory=dict)
    steps: list[tuple[list[CaseValue], dict[str, CaseValue]]] = field(default_factory=list)

    def value(self) -> CaseValue:
        """Return it as YAML has it."""
        at = self.span
        steps: list[CaseValue] = []
        for when, then in self.steps:
            step = {"then": _mapping(then, at)}
            if when:
                step["when"] = CaseValue(when, at)
            steps.append(_mapping(step, at))
        return _mapping({**self.members, "steps": CaseValue(steps, at)}, at)


def _mapping(members: dict[str, CaseValue], at: Span) -> CaseValue:
    return CaseValue(members, at, keys={name: each.span for name, each in members.items()})


def read_texts(path: Path, programs: Sequence[Path]) -> list[Case]:
    """Return the cases of a file; programs are those of cases that name none.

    Raises:
        InputError: with the findings of the first section that is wrong.
    """
    file = read_source(path)
    reader = YamlReader(path.parent, ProgramFiles(programs))
    drafts: list[_Draft] = []
    for section in _sections(file):
        at, text = section.span, CaseValue(section.argument, section.span)
        if section.name == "case":
            drafts.append(_Draft(at, {"name": text}))
        elif not drafts:
            if section.name != "program":
                note = "begin with a line `case: NAME` in a comment"
                raise InputError.of("C1801", "There is no case yet.", at, note)
            reader.files = reader.program(text)
        else:
            _add(section, drafts[-1], text, is_sql=file.is_sql)
    return [reader.case(each.value()) for each in drafts]


def _sections(file: SourceFile) -> Iterator[Section]:
    lines = file.text.split("\n")
    found = [(at, mark) for at, each in enumerate(lines) if (mark := _SECTION.fullmatch(each))]
    ends = [at for at, _ in found[1:]] + [len(lines)]
    for (at, mark), end in zip(found, ends, strict=True):
        body = "\n" * (at + 1) + "\n".join(lines[at + 1 : end])
        span = Span(file, at + 1, mark.start(1) + 1, at + 1, len(lines[at].rstrip()) + 1)
        yield Section(mark[1], mark[2].strip(), span, SourceFile(file.name, body))


def _add(section: Section, draft: _Draft, text: CaseValue, *, is_sql: bool) -> None:
    """Add a section to a case."""
    at, name = section.span, section.name
    is_change = name in ("when", "remove")
    if name in ("program", "today"):
        draft.members[name] = text
        return
    if name == "given":
        _add_rows(section, draft.members, "given", is_sql=is_sql)
        return
    if not draft.steps or (is_change and draft.steps[-1][1]):
        draft.steps.append(([], {}))
    when, then = draft.steps[-1]
    if is_change:
        when += [_sql_change(section)] if is_sql else _changes(section)
    elif name == "refused":
        then["refused"] = text
    elif name in ("alert", "no alerts"):
        alerts = then.setdefault("alerts", CaseValue([], at)).value
        assert isinstance(alerts, list)
        alerts += [text] if name == "alert" else []
    elif name == "proof":
        proofs = then.setdefault("proof", CaseValue({}, at))
        for clause in _program(section).clauses:
            base = [CaseValue(print_body((each,)), at) for each in clause.body]
            _put(proofs, print_atom(clause.heads[0]), CaseValue(base, clause.span or at))
    else:
        _add_rows(section, then, ROW_SECTIONS[name], is_sql=is_sql)


def _put(mapping: CaseValue, name: str, value: CaseValue) -> CaseValue:
    """Return the member of a mapping, which is added if it is not there."""
    assert isinstance(mapping.value, dict)
    mapping.keys.setdefault(name, value.span)
    return mapping.value.setdefault(name, value)


def _add_rows(section: Section, members: dict[str, CaseValue], key: str, *, is_sql: bool) -> None:
    """Add the rows of a section: the answer to a question in SQL, or facts."""
    at = section.span
    rows = members.setdefault(key, CaseValue({}, at))
    if is_sql:
        _put(rows, section.argument, CaseValue(_statement(section), at))
        return
    for relation in section.argument.replace(",", " ").split():
        _put(rows, relation, CaseValue([], at))
    for clause in _program(section).clauses:
        for atom in clause.heads:
            signed = KEY_BY_SIGN[atom.sign] if key == "rows" else key
            span = atom.span or at
            rows = members.setdefault(signed, CaseValue({}, at))
            found = _put(rows, atom.relation, CaseValue([], span)).value
            assert isinstance(found, list)
            found.append(_row(atom, span))


def _row(atom: Atom, span: Span) -> CaseValue:
    return CaseValue([_cell(each, span) for each in atom.arguments], span)


def _cell(term: Term, span: Span) -> CaseValue:
    """Return a value as its column reads it."""
    match term:
        case Constant(value=None):
            return CaseValue(None, span)
        case Constant(value=str(text)):
            return CaseValue(text, span)
        case Constant(value=date() as moment):
            return CaseValue(moment.isoformat(), span)
        case _:
            return CaseValue(print_term(term), span)


def _changes(section: Section) -> Iterator[CaseValue]:
    """Yield the changes of a section: tuples with signs, rules, alerts and constraints."""
    at, program = section.span, _program(section)
    operation = "remove-rule" if section.name == "remove" else "add-rule"
    for clause in program.clauses:
        span = clause.span or at
        if clause.body or section.name == "remove":
            yield _mapping({operation: CaseValue(print_clause(clause), span)}, span)
            continue
        for atom in clause.heads:
            key = "delete" if atom.sign == "-" else "insert"
            rows = _mapping({atom.relation: CaseValue([_row(atom, span)], span)}, span)
            yield _mapping({key: rows}, span)
    for reaction in program.reactions:
        span = reaction.span or at
        yield _mapping({operation: CaseValue(print_reaction(reaction), span)}, span)


def _sql_change(section: Section) -> CaseValue:
    return _mapping({"sql": CaseValue(_statement(section), section.span)}, section.span)


def _statement(section: Section) -> str:
    return section.body.text.strip(" \t\r\n;")


def _program(section: Section) -> Program:
    """Return the clauses and reactions of a section.

    Raises:
        InputError: it has something else, or a rule where only tuples can be.
    """
    found = parse(section.body)
    allowed = Program(clauses=found.clauses, reactions=found.reactions)
    has_rules = section.name in ("when", "remove", "proof")
    if found != allowed or not (has_rules or all(not each.body for each in found.clauses)):
        text = f"`{section.name}` has something else than tuples{' and rules' * has_rules}."
        note = "write tuples, as in `edge(1, 2).`, each with a full stop"
        raise InputError.of("C1801", text, section.span, note)
    return found
