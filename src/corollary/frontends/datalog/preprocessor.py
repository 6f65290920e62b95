"""The built-in preprocessor: comments, `#include`, `#define`, conditions and `.once`.

Comments and directives become blanks of the same length, so that all text outside of macros keeps
its position; expansions have that of their invocation. Macros are expanded as in cpp: arguments
first, then the body, then the result again with the macro itself switched off.
"""

import re
from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.if_conditions import ConditionError, condition_holds
from corollary.frontends.datalog.literals import STRING_PATTERN
from corollary.frontends.datalog.macros import Macro, MacroError, Macros, read_arguments
from corollary.frontends.datalog.source_map import ExpandedText, Segment, identity_map
from corollary.source import SourceFile

Include = Callable[[str, SourceFile], SourceFile]
"""Finds the file for a name in an including file, or raises `InputError`."""

MAX_INCLUDES = 10_000
INCLUDES_MAX_DEPTH = 50
EXPANDED_MAX_CHARS = 100_000_000

_CONDITIONALS = ("#if", "#ifdef", "#ifndef", "#elif", "#else", "#endif")
_KNOWN = ("#include", "#define", "#undef", *_CONDITIONALS)
_STRING = r'[dt]?"(?:[^"\\\n]|\\.)*"?|`(?:[^`\\\n]|\\.)*`?'
_BLOCK = r"/\*(?s:.*?)(?:\*/|\Z)"
_INTERESTING = rf"""
    (?P<directive>^[ \t]*(?:\#|\.include\b|\.once\b)(?:\\\r?\n|{_STRING}|//[^\n]*|{_BLOCK}|[^\n])*)
  | (?P<comment>//[^\n]*|{_BLOCK})
  | (?P<literal>{STRING_PATTERN}|{_STRING}|[0-9]\w*)
    """
_FLAGS = re.VERBOSE | re.MULTILINE | re.ASCII
_WITHOUT_WORDS = re.compile(_INTERESTING, _FLAGS)
_WITH_WORDS = re.compile(
    # Words with letters of other scripts are no macros, nor are parts of them.
    rf"{_INTERESTING} | (?<![^\x00-\x7f])(?P<word>\??[A-Za-z_]\w*+)(?![^\x00-\x7f])",
    _FLAGS,
)
_DIRECTIVE = re.compile(
    r"\s*(?:#\s*(?P<name>[A-Za-z]*)|(?P<dotted>\.include|\.once))(?P<rest>.*)", re.DOTALL
)
_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*", re.ASCII)
_DEFINITION = re.compile(r"\s*([A-Za-z_]\w*)(\(([^)]*)\))?(.*)", re.ASCII | re.DOTALL)
_QUOTED = re.compile(r'\s*"([^"\n]*)"\s*')
_ANGLED = re.compile(r"\s*<([^>\n]*)>\s*")
LIBRARY = Path(__file__).parents[2] / "library"
"""The files that come with the package: `#include <name.dl>`."""
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|{_BLOCK}")


@dataclass(slots=True)
class _Conditional:
    """An open `#if`: its span, whether its text is active, whether a branch was, or `#else`."""

    start: int
    end: int
    is_active: bool
    is_decided: bool
    is_else: bool = False


@dataclass(slots=True)
class Preprocessor:
    """Reads one file and all that it includes."""

    include: Include | None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    sources: list[SourceFile] = field(default_factory=list)
    macros: Macros = field(default_factory=Macros)
    _stack: list[str] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)
    _pieces: list[Segment] = field(default_factory=list)
    _once: set[str] = field(default_factory=set)
    _offsets: dict[int, ExpandedText] = field(default_factory=dict)
    _length: int = 0
    _included: int = 0

    def run(self, source: SourceFile) -> ExpandedText:
        """Return the text of a file with everything included and expanded."""
        self._file(source)
        return ExpandedText(
            "".join(self._texts), tuple(self._pieces) or (Segment(0, source, 0, 0, True),)
        )

    def _file(self, source: SourceFile) -> None:
        if source not in self.sources:
            self.sources.append(source)
        self._stack.append(source.name)
        text = source.text
        conditions: list[_Conditional] = []
        emitted = position = 0
        while found := (_WITH_WORDS if self.macros else _WITHOUT_WORDS).search(text, position):
            start, position = found.span()
            is_active = all(condition.is_active for condition in conditions)
            match found.lastgroup:
                case "directive":
                    self._copy(source, emitted, start, is_active)
                    is_again = is_active and source.name in self._once and _is_once(found[0])
                    if is_again:
                        position = len(text)  # it was included before: the rest is left out
                    self._copy(source, start, position, False)
                    if not is_again:
                        self._directive(source, found, conditions, is_active)
                    emitted = position
                case "comment":
                    self._copy(source, emitted, start, is_active)
                    self._copy(source, start, position, False)
                    emitted = position
                    if found[0].startswith("/*") and not _is_closed(found[0]):
                        message = "This comment is never closed."
                        self._note("C0101", message, source, start, start + 2, note="add `*/`")
                case "word" if is_active and found[0] in self.macros:
                    self._copy(source, emitted, start, True)
                    emitted = position = self._invocation(
                        source, self.macros[found[0]], start, position
                    )
                case _:
                    pass  # strings, numbers and other words stay as they are
        is_active = all(condition.is_active for condition in conditions)
        self._copy(source, emitted, len(text), is_active)
        for condition in conditions:
            message = "This condition is never closed."
            self._note(
                "C0105", message, source, condition.start, condition.end, note="add `#endif`"
            )
        self._stack.pop()

    # --- output ---------------------------------------------------------------------------------

    def _copy(self, source: SourceFile, start: int, end: int, is_active: bool) -> None:
        """Write a range of a file, as blanks if it is not active."""
        if start < end:
            text = source.text[start:end]
            self._emit(text if is_active else _blank(text), source, start, end, is_verbatim=True)

    def _emit(
        self, text: str, source: SourceFile, start: int, end: int, *, is_verbatim: bool
    ) -> None:
        self._pieces.append(Segment(self._length, source, start, end, is_verbatim))
        self._texts.append(text)
        self._length += len(text)

    def _note(
        self,
        code: str,
        message: str,
        source: SourceFile,
        start: int,
        end: int,
        *,
        note: str | None = None,
    ) -> None:
        offsets = self._offsets.setdefault(id(source), identity_map(source))
        self.diagnostics.append(Diagnostic(code, message, offsets.span(start, end), note))

    # --- macros ---------------------------------------------------------------------------------

    def _invocation(self, source: SourceFile, macro: Macro, start: int, end: int) -> int:
        """Write the expansion of a macro; return the offset after its invocation."""
        arguments: tuple[str, ...] = ()
        try:
            if macro.parameters is not None:
                read = read_arguments(source.text, end)
                if read is None:
                    self._copy(source, start, end, True)
                    return end
                arguments, end = read
                arguments = tuple(_uncomment(argument) for argument in arguments)
            text = self.macros.expand(macro, arguments)
        except MacroError as error:
            self._note("C0105", str(error), source, start, end)
            self.macros.clear()  # later invocations could take as long again
            text = ""
        self._emit(f" {text} ", source, start, end, is_verbatim=False)
        return end

    # --- directives -----------------------------------------------------------------------------

    def _directive(
        self,
        source: SourceFile,
        found: re.Match[str],
        conditions: list[_Conditional],
        is_active: bool,
    ) -> None:
        start = found.start() + len(found[0]) - len(found[0].lstrip())
        end = found.start() + len(found[0].rstrip())
        parts = _DIRECTIVE.fullmatch(found[0])
        assert parts is not None
        name = parts["dotted"].removeprefix(".") if parts["dotted"] else parts["name"]
        rest = _uncomment(parts["rest"].replace("\\\r\n", " ").replace("\\\n", " "))
        match name:
            case "ifdef" | "ifndef":
                is_true = (self._name(source, rest, start, end) in self.macros) == (name == "ifdef")
                conditions.append(_Conditional(start, end, is_true, is_true))
            case "if":
                is_true = is_active and self._condition(source, rest, start, end)
                conditions.append(_Conditional(start, end, is_true, is_true))
            case "elif" if conditions and not conditions[-1].is_else:
                last = conditions[-1]
                # Behind the branch that is taken, and in text that is left out, it is not read.
                is_asked = not last.is_decided and all(each.is_active for each in conditions[:-1])
                last.is_active = is_asked and self._condition(source, rest, start, end)
                last.is_decided |= last.is_active
            case "else" if conditions and not conditions[-1].is_else:
                last = conditions[-1]
                last.is_active, last.is_decided, last.is_else = not last.is_decided, True, True
            case "endif" if conditions:
                conditions.pop()
            case "elif" | "else" | "endif":
                message = f"This `#{name}` belongs to no `#if`, `#ifdef` or `#ifndef`."
                self._note("C0105", message, source, start, end)
            case _ if not is_active:
                pass
            case "include":
                self._include(source, rest, start, end)
            case "once" if parts["dotted"]:
                self._once.add(source.name)
            case "define":
                self._define(source, rest, start, end)
            case "undef":
                self.macros.pop(self._name(source, rest, start, end), None)
            case "" if not rest.strip() or rest.strip()[0].isdigit():
                pass  # an empty directive, or a line marker that another preprocessor left
            case _:
                message = f"The preprocessor does not know `#{name}`."
                note = f"it knows {', '.join(_KNOWN[:-1])} and {_KNOWN[-1]}"
                self._note("C0105", message, source, start, end, note=note)

    def _name(self, source: SourceFile, rest: str, start: int, end: int) -> str:
        found = _NAME.fullmatch(rest)
        if found is None:
            self._note("C0105", "The name of a macro is expected here.", source, start, end)
            return ""
        return found[1]

    def _condition(self, source: SourceFile, rest: str, start: int, end: int) -> bool:
        try:
            return condition_holds(rest, self.macros)
        except ConditionError as error:
            note = "write `#if defined(NAME)`, `#if NAME > 1` or the like"
            self._note("C0105", str(error), source, start, end, note=note)
            return False

    def _define(self, source: SourceFile, rest: str, start: int, end: int) -> None:
        found = _DEFINITION.fullmatch(rest)
        if found is None or (found[2] is None and found[4][:1].strip()):
            message = "The name of a macro and what it stands for are expected here."
            self._note("C0105", message, source, start, end, note="write `#define NAME value`")
            return
        parameters = None
        if found[2] is not None:
            parameters = (
                tuple(word.strip() for word in found[3].split(",")) if found[3].strip() else ()
            )
            if not all(_NAME.fullmatch(word) for word in parameters):
                message = f"The parameters of the macro `{found[1]}` must be names."
                self._note("C0105", message, source, start, end)
                return
        self.macros[found[1]] = Macro(found[1], parameters, found[4].strip())

    def _include(self, source: SourceFile, rest: str, start: int, end: int) -> None:
        include = self.include
        found = _QUOTED.fullmatch(rest)
        if found is None:
            found, include = _ANGLED.fullmatch(rest), _library_file
        if found is None:
            message = "The name of a file in double quotes is expected after `include`."
            self._note("C0104", message, source, start, end, note='write `#include "file.dl"`')
            return
        problem = note = None
        included = None
        if include is None:
            problem = "No file can be included here."
        elif (
            len(self._stack) >= INCLUDES_MAX_DEPTH
            or self._included >= MAX_INCLUDES
            or self._length > EXPANDED_MAX_CHARS
        ):
            problem = "Too much is included."
        else:
            try:
                included = include(found[1], source)
            except InputError as error:
                problem, note = error.diagnostics[0].message, error.diagnostics[0].note
        if included is not None and included.name in {*self._stack} - self._once:
            circle = " → ".join((*self._stack[self._stack.index(included.name) :], included.name))
            problem = f"The file `{found[1]}` includes itself: {circle}."
        if problem is not None or included is None:
            self._note("C0104", problem or "", source, start, end, note=note)
            return
        included = next((known for known in self.sources if known == included), included)
        self._included += 1
        self._emit("\n", source, start, end, is_verbatim=False)
        self._file(included)
        self._emit("\n", source, start, end, is_verbatim=False)


def _is_closed(comment: str) -> bool:
    return len(comment) >= len("/**/") and comment.endswith("*/")


def _is_once(directive: str) -> bool:
    return directive.split(maxsplit=1)[0] == ".once"


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _uncomment(text: str) -> str:
    return _COMMENT.sub(lambda found: found[1] or " ", text)


# --- files ---------------------------------------------------------------------------------------


def read_source(path: Path) -> SourceFile:
    """Return a file of a program; its name in messages is the path as given."""
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        raise InputError.of("C0104", f"The file `{path}` cannot be read: {reason}.") from None
    try:
        return SourceFile(str(path), data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError.of(
            "C0101",
            f"The file `{path}` is not UTF-8 text (byte {error.start}, line {line}).",
            note="save it in the encoding UTF-8",
        ) from None


def include_under(root: Path) -> Include:
    """Return a function that finds files relative to the including one, but only under `root`."""
    limit = root.resolve()

    def include(name: str, source: SourceFile) -> SourceFile:
        path = Path(source.name).parent / name
        try:
            is_inside = path.resolve().is_relative_to(limit)
        except (OSError, RuntimeError, ValueError):
            is_inside = False
        if not is_inside:
            message = f"The file `{name}` lies outside the directory `{root}`."
            raise InputError.of("C0104", message)
        return read_source(_tidy(path))

    return include


def _library_file(name: str, _: SourceFile) -> SourceFile:
    """Return a file that comes with the package."""
    path = LIBRARY / name
    if path.parent != LIBRARY or not path.is_file():
        known = ", ".join(f"<{each.name}>" for each in sorted(LIBRARY.glob("*.dl")))
        message = f"The library has no file `{name}`."
        raise InputError.of("C0104", message, None, f"it has {known}")
    return SourceFile(f"<{name}>", path.read_text("utf-8"))


def _tidy(path: Path) -> Path:
    """Return the path without `x/..`, so that one file has one name."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts and parts[-1] not in ("..", path.anchor):
            parts.pop()
        else:
            parts.append(part)
    return Path(*parts)
