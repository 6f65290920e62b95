"""What a case is: given rows, and steps that change something and say what holds then.

Values of rows are kept as the texts of their file until the relation they are for is known: the
type of a column says what a text means, and a finding about it has its position.

Cases are read from YAML: our own, and the `unit_tests` of dbt. Nodes are read, not values: YAML
would make numbers, dates and truth values of texts. So every finding has a position, too.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from corollary.analysis.phrases import suggest_name
from corollary.console import counted
from corollary.core.logic import Value
from corollary.core.program import NormalProgram, Program, Relation
from corollary.core.types import Type
from corollary.core.values import parse_value
from corollary.data_class import dataclass
from corollary.database.program.loaded_program import load_program, read_programs
from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.preprocessor import read_source
from corollary.source import SourceFile, Span


@dataclass(frozen=True, slots=True)
class CaseValue:
    """A value in a file of cases: a text, None for null, a list of nodes, or a mapping to nodes.

    Attributes:
        keys: of a mapping, where its keys are.
    """

    value: "str | list[CaseValue] | dict[str, CaseValue] | None"
    span: Span
    keys: dict[str, Span] = field(default_factory=dict)

    def typed(self, type_: Type) -> Value:
        """Return it as a value of a type.

        Raises:
            ValueError: it is none; the message is for users.
        """
        match self.value:
            case None if type_.nullable or type_.record is not None:
                return None
            case None:
                raise ValueError("null, where no null is allowed")
            case str(text):  # also the empty one, in a column that may be null
                return parse_value(text, type_.with_null(False))
            case list(parts) if type_.element is not None:
                return tuple(each.typed(type_.element.with_null(True)) for each in parts)
            case dict(parts) if type_.is_struct:
                none = CaseValue(None, self.span)
                return tuple(
                    parts.get(name, none).typed(inner.with_null(True))
                    for name, inner in type_.members
                )
            case dict(parts) if type_.is_map:
                (_, key), (_, held) = type_.members
                pairs = [
                    (parse_value(name, key), each.typed(held.with_null(True)))
                    for name, each in parts.items()
                ]
                return tuple(sorted(pairs, key=lambda pair: cast(Any, pair[0])))
            case _:
                raise ValueError(f"a {'list' if isinstance(self.value, list) else 'mapping'}")


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a relation as a file has them; or a question in SQL that has them.

    Attributes:
        relation: the name.
        span: of the name.
        nodes: each a list of values in the order of the columns, or a mapping from their names.
        question: instead of nodes.
    """

    relation: str
    span: Span
    nodes: tuple[CaseValue, ...] = ()
    question: str | None = None

    def columns(self, relation: Relation) -> tuple[str, ...]:
        """Return the columns that rows have values for: all unless all rows are mappings.

        Raises:
            InputError: `C1802`, the relation has no such column.
        """
        named: set[str] = set()
        for row in self.nodes:
            named |= row.keys.keys() if isinstance(row.value, dict) else set(relation.columns)
            for name, span in row.keys.items():
                if name not in relation.columns:
                    text = f"`{relation.name}` has no column `{name}`."
                    raise InputError.of("C1802", text, span, _columns_note(relation))
        return tuple(each for each in relation.columns if each in named or not self.nodes)

    def typed(self, relation: Relation, columns: Sequence[str]) -> list[tuple[Value, ...]]:
        """Return the rows as Python values of some columns.

        Raises:
            InputError: `C1802`, a row does not fit the relation.
        """
        return [self._typed_row(row, relation, columns) for row in self.nodes]

    def _typed_row(
        self, row: CaseValue, relation: Relation, columns: Sequence[str]
    ) -> tuple[Value, ...]:
        match row.value:
            case dict(members):
                cells = [members.get(name, CaseValue(None, row.span)) for name in columns]
            case list(parts) if len(parts) == relation.arity:
                cells = parts
            case list(parts):
                text = (
                    f"The row has {counted(len(parts), 'value')}, and `{relation.name}` has "
                    f"{counted(relation.arity, 'column')}."
                )
                raise InputError.of("C1802", text, row.span, _columns_note(relation))
            case _ if relation.arity == 1:
                cells = [row]
            case _:
                text = "A row is a list of values, or a mapping from the names of columns."
                raise InputError.of("C1802", text, row.span, _columns_note(relation))
        found = []
        for name, cell in zip(columns, cells, strict=True):
            type_ = relation.types[relation.columns.index(name)]
            try:
                found.append(cell.typed(type_))
            except ValueError as error:
                text = f"The value for `{name}` of `{relation.name}` does not fit: {error}."
                note = f"write a value of the type `{type_}`; a text `null` is in quotes"
                raise InputError.of("C1802", text, cell.span, note) from None
        return tuple(found)


def _columns_note(relation: Relation) -> str:
    return f"the columns are {', '.join(relation.columns) or 'none'}"


class ProgramFiles:
    """The files of a program, which several cases may have; they are read once."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = tuple(paths)

    @cached_property
    def program(self) -> Program:
        """The program.

        Raises:
            InputError: with the findings of all files.
        """
        return read_programs(self.paths)

    @cached_property
    def normal(self) -> NormalProgram:
        """Its normal form."""
        return load_program(self.program).normal


@dataclass(frozen=True, slots=True)
class CaseChange:
    """One operation of a step.

    Attributes:
        operation: `insert`, `delete` or `upsert` with rows; `add-rule`, `remove-rule`, `sql` or
            `today` with a text; `program` with files.
    """

    operation: str
    span: Span
    rows: Rows | None = None
    text: str = ""
    files: ProgramFiles | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """That the step is refused: with this code, by this constraint, with this in its message."""

    span: Span
    code: str = ""
    constraint: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ExpectedProof:
    """That a tuple holds, and which base tuples its proof of least height rests on."""

    goal: str
    span: Span
    base: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expectations:
    """What holds after a step.

    Attributes:
        rows: all rows of some relations.
        added: all that some relations gain in the step; `removed` what they lose.
        events: all tuples of events that are alerted.
        messages: those of all alerts; None if nothing is said of them.
    """

    rows: tuple[Rows, ...] = ()
    added: tuple[Rows, ...] = ()
    removed: tuple[Rows, ...] = ()
    events: tuple[Rows, ...] = ()
    messages: tuple[str, ...] | None = None
    refusal: Refusal | None = None
    proofs: tuple[ExpectedProof, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseStep:
    """One transaction, and what holds after it."""

    changes: tuple[CaseChange, ...]
    expected: Expectations


@dataclass(frozen=True, slots=True)
class Case:
    """A case: the rows there are first, and the steps from there.

    Attributes:
        steps: the first one has no changes if something is expected of the given rows alone.
        today: the day that `today()` gives at first.
    """

    name: str
    span: Span
    files: ProgramFiles
    given: tuple[Rows, ...]
    steps: tuple[CaseStep, ...]
    today: str = ""


ROW_CHANGES = ("insert", "delete", "upsert")
TEXT_CHANGES = ("add-rule", "remove-rule", "sql", "today", "program")
CASE_KEYS = ("name", "program", "today", "given", "when", "then", "steps")
THEN_KEYS = ("rows", "added", "removed", "alerts", "refused", "proof")
FILE_KEYS = ("program", "cases", "unit_tests")
DBT_FILE_KEYS = ("version", "models", "sources", "seeds", "snapshots", "exposures", "macros")
"""What else a file of dbt may have; it says nothing about tests."""
DBT_KEYS = ("name", "description", "model", "given", "expect", "config", "tags")
DBT_ROWS_KEYS = ("input", "rows", "format", "fixture")
_REFERENCE = re.compile(r"(?:ref|source)\s*\(.*?['\"]([^'\"]+)['\"]\s*\)", re.DOTALL)
_CODE = re.compile(r"C\d{4}")


def read_yaml(path: Path, programs: Sequence[Path]) -> list[Case]:
    """Return the cases of a file.

    Args:
        path: the file.
        programs: of cases that name none; the file's own if it names one.

    Raises:
        InputError: with all findings.
    """
    file = read_source(path)
    root = _parse(file)
    given = members(root, (*FILE_KEYS, *DBT_FILE_KEYS), "file of cases")
    reader = YamlReader(path.parent, ProgramFiles(programs))
    if "program" in given:
        reader.files = reader.program(given["program"])
    found: list[Case] = []
    findings: list[Diagnostic] = []
    readers = {"cases": reader.case, "unit_tests": reader.dbt_case}
    for key in [each for each in readers if each in given]:
        for node in items(given[key], "cases"):
            try:
                found.append(readers[key](node))
            except InputError as error:
                findings += error.diagnostics
    if findings:
        raise InputError(findings)
    return found


def _parse(file: SourceFile) -> CaseValue:
    try:
        import yaml
    except ImportError:
        text = "Cases in YAML need the package PyYAML."
        raise InputError.of("C1805", text, None, "pip install 'corollary[testing]'") from None

    def span(start: Any, end: Any) -> Span:
        ends = (end.line + 1, end.column + 1)
        if start.line == end.line and start.column == end.column:
            ends = (end.line + 1, end.column + 2)
        return Span(file, start.line + 1, start.column + 1, *ends)

    def node_of(node: Any) -> CaseValue:
        place = span(node.start_mark, node.end_mark)
        if isinstance(node, yaml.ScalarNode):
            is_null = node.tag.endswith(":null")
            return CaseValue(None if is_null else node.value, place)
        if isinstance(node, yaml.SequenceNode):
            return CaseValue([node_of(each) for each in node.value], place)
        found: dict[str, CaseValue] = {}
        keys: dict[str, Span] = {}
        for key, value in node.value:
            name = str(key.value)
            keys[name] = at = span(key.start_mark, key.end_mark)
            if name in found:
                raise InputError.of("C1801", f"`{name}` is written twice.", at, "merge both")
            found[name] = node_of(value)
        return CaseValue(found, place, keys=keys)

    try:
        root = yaml.compose(file.text, yaml.SafeLoader)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        at = None if mark is None else span(mark, mark)
        reason = getattr(problem, "problem", None) or str(problem).split("\n", maxsplit=1)[0]
        note = "correct this line; texts with `: `, `{` or `[` in them are in quotes"
        raise InputError.of("C1800", f"The file is not YAML: {reason}.", at, note) from None
    return CaseValue({}, Span(file, 1, 1, 1, 2)) if root is None else node_of(root)


# --- parts ---------------------------------------------------------------------------------------


def members(node: CaseValue, keys: Sequence[str], what: str) -> dict[str, CaseValue]:
    """Return the members of a mapping, all of them known.

    Raises:
        InputError: `C1801`, it is no mapping, or has another key.
    """
    listed = ", ".join(f"`{each}`" for each in keys)
    if not isinstance(node.value, dict):
        text = f"A {what} is a mapping."
        raise InputError.of("C1801", text, node.span, f"its keys are {listed}")
    for key, span in node.keys.items():
        if key not in keys:
            note = suggest_name(key, keys) or f"the keys are {listed}"
            raise InputError.of("C1801", f"A {what} has no `{key}`.", span, note)
    return node.value


def items(node: CaseValue, what: str) -> list[CaseValue]:
    """Return the items of a list.

    Raises:
        InputError: `C1801`, it is none.
    """
    if not isinstance(node.value, list):
        text = f"`{what}` is a list."
        raise InputError.of("C1801", text, node.span, "begin each item with `- `")
    return node.value


def text_of(node: CaseValue, what: str) -> str:
    """Return a text.

    Raises:
        InputError: `C1801`, it is none.
    """
    if not isinstance(node.value, str):
        text = f"`{what}` is a text."
        raise InputError.of("C1801", text, node.span, "write it in quotes, or after `|`")
    return node.value


def _needed(given: dict[str, CaseValue], key: str, node: CaseValue, what: str) -> CaseValue:
    if key not in given:
        raise InputError.of("C1801", f"The {what} has no `{key}`.", node.span, f"add `{key}:`")
    return given[key]


class YamlReader:
    """Reads the cases of one file.

    Args:
        directory: of the file, to which names of programs are relative.
        files: the program of cases that name none.
    """

    def __init__(self, directory: Path, files: ProgramFiles) -> None:
        self._directory = directory
        self.files = files

    def program(self, node: CaseValue) -> ProgramFiles:
        """Return the program whose files are named."""
        every = node.value if isinstance(node.value, list) else [node]
        return ProgramFiles(self._directory / text_of(each, "program") for each in every)

    def case(self, node: CaseValue) -> Case:
        """Return a case of our own."""
        given = members(node, CASE_KEYS, "case")
        name = text_of(_needed(given, "name", node, "case"), "name")
        if "steps" in given:
            for key in [each for each in ("when", "then") if each in given]:
                text = f"A case with `steps` has no `{key}` of its own."
                raise InputError.of("C1801", text, node.keys[key], "make a step of it")
            steps = [self._step(each) for each in items(given["steps"], "steps")]
        else:
            only: dict[str, CaseValue] = {
                key: given[key] for key in ("when", "then") if key in given
            }
            steps = [self._step(CaseValue(only, node.span, keys=node.keys), node.span)]
        files = self.program(given["program"]) if "program" in given else self.files
        rows = self._rows(given["given"], "given") if "given" in given else ()
        today = text_of(given["today"], "today") if "today" in given else ""
        return Case(name, node.span, files, rows, tuple(steps), today)

    def _step(self, node: CaseValue, span: Span | None = None) -> CaseStep:
        step = node.value if span is not None else members(node, ("when", "then"), "step")
        assert isinstance(step, dict)
        then = _needed(step, "then", node, "case" if span is not None else "step")
        changes = self._changes(step["when"]) if "when" in step else ()
        return CaseStep(changes, self._expected(then))

    def _changes(self, node: CaseValue) -> tuple[CaseChange, ...]:
        every = node.value if isinstance(node.value, list) else [node]
        found: list[CaseChange] = []
        for each in every:
            for key, value in members(each, (*ROW_CHANGES, *TEXT_CHANGES), "change").items():
                at = each.keys[key]
                if key in ROW_CHANGES:
                    found += [CaseChange(key, rows.span, rows) for rows in self._rows(value, key)]
                elif key == "program":
                    found.append(CaseChange(key, at, files=self.program(value)))
                else:
                    texts = value.value if isinstance(value.value, list) else [value]
                    found += [CaseChange(key, at, text=text_of(text, key)) for text in texts]
        if len(found) > 1 and any(each.operation in ("sql", "today") for each in found):
            text = "`sql` and `today` are transactions of their own."
            note = "write several `steps`, each with a `when` and a `then`"
            raise InputError.of("C1801", text, node.span, note)
        return tuple(found)

    def _rows(self, node: CaseValue, what: str) -> tuple[Rows, ...]:
        """Return the rows of some relations: by name, in a list or as a question in SQL."""
        if not isinstance(node.value, dict):
            text = f"`{what}` is a mapping from relations to rows."
            note = f"write `{what}: {{edge: [[1, 2]]}}`"
            raise InputError.of("C1801", text, node.span, note)
        return tuple(
            Rows(name, node.keys[name], question=value.value)
            if isinstance(value.value, str)
            else Rows(name, node.keys[name], tuple(items(value, name)))
            for name, value in node.value.items()
        )

    def _expected(self, node: CaseValue) -> Expectations:
        given = members(node, THEN_KEYS, "`then`")
        rows = {
            key: self._rows(given[key], key) for key in ("rows", "added", "removed") if key in given
        }
        events: tuple[Rows, ...] = ()
        messages = None
        if "alerts" in given:
            alerts = given["alerts"]
            if isinstance(alerts.value, dict):
                events = self._rows(alerts, "alerts")
            else:
                messages = tuple(text_of(each, "alert") for each in items(alerts, "alerts"))
        refusal = self._refusal(given["refused"]) if "refused" in given else None
        proofs = self._proofs(given["proof"]) if "proof" in given else ()
        return Expectations(
            rows.get("rows", ()), rows.get("added", ()), rows.get("removed", ()),
            events, messages, refusal, proofs,
        )  # fmt: skip

    def _refusal(self, node: CaseValue) -> Refusal:
        if isinstance(node.value, str):
            is_code = _CODE.fullmatch(node.value) is not None
            return Refusal(node.span, **{"code" if is_code else "constraint": node.value})
        given = members(node, ("code", "constraint", "message"), "refusal")
        return Refusal(node.span, **{key: text_of(each, key) for key, each in given.items()})

    def _proofs(self, node: CaseValue) -> tuple[ExpectedProof, ...]:
        if not isinstance(node.value, dict):
            text = "`proof` is a mapping from tuples to lists of the base tuples under them."
            note = """write `proof: {'link("a", "c")': ['cable("a", "c")']}`"""
            raise InputError.of("C1801", text, node.span, note)
        return tuple(
            ExpectedProof(
                goal, node.keys[goal], tuple(text_of(each, "proof") for each in items(base, goal))
            )
            for goal, base in node.value.items()
        )

    # --- dbt -----------------------------------------------------------------------------------

    def dbt_case(self, node: CaseValue) -> Case:
        """Return a unit test of dbt: rows of what a model reads, and the rows that it has."""
        given = members(node, DBT_KEYS, "unit test")
        name = text_of(_needed(given, "name", node, "unit test"), "name")
        model = _needed(given, "model", node, "unit test")
        expect = _needed(given, "expect", node, "unit test")
        inputs = items(given["given"], "given") if "given" in given else []
        rows = tuple(self._dbt_rows(each, self._dbt_input(each), each.span) for each in inputs)
        expected = self._dbt_rows(expect, text_of(model, "model"), model.span)
        step = CaseStep((), Expectations((expected,)))
        return Case(name, node.span, self.files, rows, (step,))

    def _dbt_input(self, node: CaseValue) -> str:
        source = _needed(members(node, DBT_ROWS_KEYS, "input"), "input", node, "input")
        found = _REFERENCE.fullmatch(text_of(source, "input").strip())
        if found is None:
            text = f"`{source.value}` is neither a `ref` nor a `source`."
            note = "write `input: ref('orders')` or `input: source('shop', 'orders')`"
            raise InputError.of("C1801", text, source.span, note)
        return found[1]

    def _dbt_rows(self, node: CaseValue, relation: str, span: Span) -> Rows:
        given = members(node, DBT_ROWS_KEYS, "set of rows")
        form = text_of(given["format"], "format") if "format" in given else "dict"
        if form not in ("dict", "csv", "sql"):
            text = f"There is no format `{form}`."
            raise InputError.of("C1801", text, given["format"].span, "it is dict, csv or sql")
        if "fixture" in given and form != "dict":
            content = self._fixture(given["fixture"], form)
        else:
            content = _needed(given, "rows", node, "set of rows")
        if form == "dict":
            return Rows(relation, span, tuple(items(content, "rows")))
        text = text_of(content, "rows")
        if form == "sql":
            return Rows(relation, content.span, question=text)
        return Rows(relation, span, csv_rows(text, content.span))

    def _fixture(self, node: CaseValue, form: str) -> CaseValue:
        """Return the text of a file in `tests/fixtures` of this directory or of one above."""
        name = text_of(node, "fixture")
        for directory in (self._directory.resolve(), *self._directory.resolve().parents):
            path = directory / "tests" / "fixtures" / f"{name}.{form}"
            if path.is_file():
                file = read_source(path)
                return CaseValue(file.text, Span(file, 1, 1, 1, 2))
        text = f"There is no `tests/fixtures/{name}.{form}` here or above."
        raise InputError.of("C1801", text, node.span, "write the rows after `rows: |`")


def csv_rows(text: str, span: Span) -> tuple[CaseValue, ...]:
    """Return the rows of a text whose first line has the names of columns; empty is null."""
    lines = list(csv.reader(text.strip().splitlines(), skipinitialspace=True))
    names = [each.strip() for each in lines[0]] if lines else []
    found = []
    for line in lines[1:]:
        if len(line) != len(names):
            text = f"A row of the CSV has {len(line)} values, and its first line {len(names)}."
            raise InputError.of("C1802", text, span, "put texts with commas into quotes")
        values = [CaseValue(value or None, span) for value in line]
        cells = dict(zip(names, values, strict=True))
        found.append(CaseValue(cells, span, keys=dict.fromkeys(names, span)))
    return tuple(found)
