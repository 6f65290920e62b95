"""`corollary.toml`: what it says, checked, with the line of what is wrong."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any

from corollary.analysis.phrases import suggest_name
from corollary.cli.parameters import PROJECT_FILE
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError
from corollary.source import SourceFile, Span


class SettingKind(StrEnum):
    """What a setting is, as messages call it."""

    TEXT = "a text"
    TEXTS = "a text, or a list of texts"
    FLAG = "true or false"
    COUNT = "a whole number"
    NUMBER = "a number"
    BOUND = "a number of rows, or a text such as '10%' or 'off'"


@dataclass(frozen=True, slots=True)
class Setting:
    """A key of the file: the parameter of commands that it is the default of, and its values."""

    parameter: str
    kind: SettingKind = SettingKind.TEXT
    choices: tuple[str, ...] = ()


TEXT, TEXTS = SettingKind.TEXT, SettingKind.TEXTS
FLAG, COUNT = SettingKind.FLAG, SettingKind.COUNT
PLACES = {
    "program": Setting("programs", TEXTS),
    "facts": Setting("facts"),
    "root": Setting("root"),
    "outputs": Setting("outputs"),
    "warehouse": Setting("warehouse"),
    "functors": Setting("functors", TEXTS),
}
OPTIONS = {
    "engine": Setting("engine", choices=("spark", "local")),
    "placement": Setting("placement", choices=("auto", "partitions", "driver")),
    "driver-memory": Setting("driver_memory"),
    "bulk": Setting("bulk", choices=("auto", "always", "never")),
    "algorithm": Setting("algorithm"),
    "strict": Setting("strict", FLAG),
    "existing": Setting("existing", choices=("report", "refuse", "accept")),
    "publish": Setting("publish", choices=("commit", "1s", "manual")),
    "bad-rows": Setting("bad_rows", choices=("abort", "quarantine")),
    "max-bad": Setting("max_bad", SettingKind.BOUND),
    "max-deletes": Setting("max_deletes", SettingKind.BOUND),
    "alerts": Setting("alerts"),
    "allow-webhook": Setting("allow_webhook", TEXTS),
    "allow": Setting("allow", TEXTS),
    "max-rows": Setting("max_rows", COUNT),
}
LIMITS = {
    "rounds": Setting("limit_rounds", COUNT),
    "tuples": Setting("limit_tuples", COUNT),
    "seconds": Setting("limit_seconds", SettingKind.NUMBER),
    "memory": Setting("limit_memory"),
}
TABLES: Mapping[str, Mapping[str, Setting]] = {"options": OPTIONS, "limits": LIMITS}
ENVIRONMENT, ENVIRONMENTS = "environment", "environments"


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """What a project says, in one of its environments.

    Attributes:
        programs: the files of the program.
        warehouse: where results are kept, if it is named.
        defaults: of the parameters of commands.
        environment: the name of the environment, if one is chosen.
        environments: the warehouse of each, if it names one.
    """

    programs: tuple[str, ...]
    warehouse: str | None
    defaults: Mapping[str, Any]
    environment: str | None
    environments: Mapping[str, str | None] = field(default_factory=dict)


def read_project(
    environment: str | None = None, directory: Path = Path()
) -> ProjectSettings | None:
    """Return the project of a directory; None if it has no file `corollary.toml`.

    Raises:
        InputError: with all that is wrong with the file; or there is no such environment.
    """
    path = directory / PROJECT_FILE
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        if environment is None:
            return None
        raise InputError.of(
            "C1904",
            f"There is no `{PROJECT_FILE}` here that could have the environment `{environment}`.",
            None,
            "go to the directory of the project, or make one with `corollary init`",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = f"`{PROJECT_FILE}` cannot be read: {error}."
        raise InputError.of("C1900", reason, None, "let it be a file of UTF-8") from None
    return _Reader(SourceFile(PROJECT_FILE, text), directory).read(environment)


def named_warehouse(name: str) -> str:
    """Return the warehouse of an environment of that name; else it is one itself."""
    project = read_project()
    found = None if project is None else project.environments.get(name)
    return found or name


class _Reader:
    """Reads one file, and collects what is wrong."""

    def __init__(self, source: SourceFile, directory: Path) -> None:
        self._source = source
        self._directory = directory
        self._findings: list[Diagnostic] = []

    def read(self, environment: str | None) -> ProjectSettings:
        document = self._document()
        environments = document.pop(ENVIRONMENTS, {})
        chosen = document.pop(ENVIRONMENT, None)
        if chosen is not None and not isinstance(chosen, str):
            self._wrong_type(ENVIRONMENT, TEXT, ())
        found = self._settings(document, ())
        if not isinstance(environments, dict):
            self._wrong_table(ENVIRONMENTS, (), "write `[environments.dev]`")
            environments = {}
        of_each = {
            name: self._settings(each, (ENVIRONMENTS, name))
            for name, each in environments.items()
            if isinstance(each, dict) or self._wrong_table(name, (ENVIRONMENTS,), "")
        }
        name = environment or (chosen if isinstance(chosen, str) else None)
        if name is not None and name not in environments and not self._findings:
            self._report_environment(name, environments, is_named_here=environment is None)
        merged = {**found, **of_each.get(name or "", {})}
        programs = tuple(self._programs(merged.pop("programs", ())))
        self._check_facts(merged.get("facts"))
        if self._findings:
            raise InputError(self._findings)
        warehouses = {each: settings.get("warehouse") for each, settings in of_each.items()}
        return ProjectSettings(programs, merged.pop("warehouse", None), merged, name, warehouses)

    def _document(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self._source.text)
        except tomllib.TOMLDecodeError as error:
            at = re.search(r"\(at line (\d+), column (\d+)\)$", str(error))
            line, column = (int(each) for each in at.groups()) if at else (1, 1)
            reason = str(error).partition(" (at ")[0]
            span = Span(self._source, line, column, line, column + 1)
            text = f"This is not TOML: {reason[:1].lower()}{reason[1:]}."
            cure = 'correct the line: texts are in quotes, as in `facts = "data"`'
            raise InputError.of("C1900", text, span, cure) from None

    def _settings(self, table: Mapping[str, Any], at: tuple[str, ...]) -> dict[str, Any]:
        """Return the defaults of parameters that a table gives, with those of tables in it."""
        found: dict[str, Any] = {}
        for key, value in table.items():
            inner = TABLES.get(key)
            if inner is not None:
                if isinstance(value, dict):
                    found |= self._values(value, inner, (*at, key))
                else:
                    self._wrong_table(key, at, f"write `[{'.'.join((*at, key))}]`")
            else:
                found |= self._values({key: value}, PLACES, at)
        return found

    def _values(
        self, table: Mapping[str, Any], known: Mapping[str, Setting], at: tuple[str, ...]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in table.items():
            setting = known.get(key)
            if setting is None:
                self._unknown(key, known, at)
            elif not _has_kind(value, setting.kind):
                self._wrong_type(key, setting.kind, at)
            elif setting.choices and value not in setting.choices:
                listed = ", ".join(f"`{each}`" for each in setting.choices)
                text = f"`{key}` cannot be `{value}`."
                self._report("C1902", text, self._span(key, at), f"write one of {listed}")
            else:
                is_list = setting.kind is TEXTS and isinstance(value, str)
                is_bound = setting.kind is SettingKind.BOUND
                found[setting.parameter] = [value] if is_list else str(value) if is_bound else value
        return found

    def _programs(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files of the program; those of a pattern in the order of their names."""
        for name in names:
            if any(each in name for each in "*?["):
                matching = sorted(str(each) for each in self._directory.glob(name))
            else:
                matching = [name] if (self._directory / name).is_file() else []
            if not matching:
                text = f"The program `{name}` is not there."
                note = "correct the name: it is relative to the directory of the project"
                self._report("C1903", text, self._span("program", ()), note)
            yield from matching

    def _check_facts(self, facts: str | None) -> None:
        if facts is not None and "://" not in facts and not (self._directory / facts).is_dir():
            text = f"The directory of facts `{facts}` is not there."
            note = "make it, or correct the name: it is relative to the directory of the project"
            self._report("C1903", text, self._span("facts", ()), note)

    # --- findings --------------------------------------------------------------------------------

    def _report(self, code: str, text: str, span: Span | None, note: str) -> None:
        self._findings.append(Diagnostic(code, text, span, note))

    def _unknown(self, key: str, known: Mapping[str, Setting], at: tuple[str, ...]) -> None:
        tables = () if at[-1:] in {("options",), ("limits",)} else TABLES
        names = [*known, *tables, *(() if at else (ENVIRONMENT, ENVIRONMENTS))]
        elsewhere = [name for name, each in TABLES.items() if key in each and name not in at]
        note = suggest_name(key, names) or f"there are {', '.join(f'`{each}`' for each in names)}"
        if elsewhere:
            note = f"write it below `[{'.'.join((*at, elsewhere[0]))}]`"
        where = f" in `[{'.'.join(at)}]`" if at else ""
        self._report("C1901", f"There is no setting `{key}`{where}.", self._span(key, at), note)

    def _wrong_type(self, key: str, kind: SettingKind, at: tuple[str, ...]) -> None:
        text = f'{key} = "one"'
        examples = {
            TEXTS: f'{key} = ["one", "two"]',
            FLAG: f"{key} = true",
            COUNT: f"{key} = 1000",
            SettingKind.NUMBER: f"{key} = 60",
            SettingKind.BOUND: f'{key} = "10%"',
        }
        note = f"write `{examples.get(kind, text)}`"
        self._report("C1902", f"`{key}` has to be {kind}.", self._span(key, at), note)

    def _wrong_table(self, key: str, at: tuple[str, ...], note: str) -> bool:
        note = note or f"write `[{'.'.join((*at, key))}]`, and its settings below"
        self._report("C1902", f"`{key}` has to be a table.", self._span(key, at), note)
        return False

    def _report_environment(self, name: str, known: Iterable[str], *, is_named_here: bool) -> None:
        span = self._span(ENVIRONMENT, ()) if is_named_here else None
        listed = ", ".join(f"`{each}`" for each in known)
        note = suggest_name(name, known) or (
            f"there {'are' if ',' in listed else 'is'} {listed}"
            if listed
            else f'write `[environments.{name}]` with a line such as `warehouse = "{name}"`'
        )
        text = f"`{PROJECT_FILE}` has no environment `{name}`."
        self._report("C1904", text, span, note)

    def _span(self, key: str, at: tuple[str, ...]) -> Span | None:
        """Return where a key is, as far as it stands at the beginning of a line or in a header."""
        word = rf"[\"']?{re.escape(key)}[\"']?"
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._source.text.splitlines(), 1):
            header = re.match(r"\s*\[([^\[\]]+)\]", line)
            if header:
                table = tuple(each.strip(" \"'") for each in header[1].split("."))
            found = re.match(rf"(\s*){word}\s*[=.]", line) if table == at else None
            if found is None and header and table == (*at, key):
                found = re.match(rf"(\s*\[.*?){word}\s*\]", line)
            if found:
                column = found.end(1) + 1
                return Span(self._source, number, column, number, column + len(key))
        return None


def _has_kind(value: Any, kind: SettingKind) -> bool:
    match kind:
        case SettingKind.TEXT:
            return isinstance(value, str)
        case SettingKind.TEXTS:
            values = value if isinstance(value, list) else [value]
            return all(isinstance(each, str) for each in values)
        case SettingKind.FLAG:
            return isinstance(value, bool)
        case SettingKind.COUNT:
            return type(value) is int and value >= 0
        case SettingKind.NUMBER:
            return type(value) in (int, float) and value >= 0
        case SettingKind.BOUND:
            return isinstance(value, str) or (type(value) is int and value >= 0)
