"""Programs, goals and clauses from text.

The text is preprocessed, cut into lexemes and read item by item: an item ends where the grammar
accepts its end and not the next lexeme. After an error reading goes on behind the next full stop
or at the next directive, so that one run reports several errors.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from corollary.core.program import (
    Declaration,
    Dependency,
    Directive,
    Program,
    Reaction,
    TypeDeclaration,
)
from corollary.core.rules import Atom, Clause
from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.includes import include_under, read_source
from corollary.frontends.datalog.lexer import Lexeme, tokenise
from corollary.frontends.datalog.nesting import MAXIMAL_DEPTH, check_depth, check_nesting
from corollary.frontends.datalog.pieces import Item
from corollary.frontends.datalog.preprocess import Include, Preprocessor
from corollary.frontends.datalog.syntax_errors import (
    ITEM_STARTS,
    UNSUPPORTED_DIRECTIVES,
    explain,
    explain_end,
)
from corollary.source import SourceFile, Span

MAXIMAL_ERRORS = 50


def parse(source: SourceFile, include: Include | None = None) -> Program:
    """Return the program that a text stands for.

    Args:
        source: the text.
        include: finds included files; without it nothing can be included.

    Raises:
        InputError: with all the errors that were found.

    >>> parse(SourceFile("example", "p(1). p(2).")).clauses[1].heads[0].relation
    'p'
    """
    preprocessor = Preprocessor(include)
    diagnostics = preprocessor.diagnostics
    expanded = preprocessor.run(source)
    items = [] if diagnostics else list(_items(tokenise(expanded, diagnostics), diagnostics))
    if diagnostics:
        raise InputError(_in_order(diagnostics, preprocessor.sources))
    return Program(
        tuple(item for item in items if isinstance(item, TypeDeclaration)),
        tuple(item for item in items if isinstance(item, Declaration)),
        tuple(item for item in items if isinstance(item, Dependency)),
        tuple(item for item in items if isinstance(item, Clause)),
        tuple(item for item in items if isinstance(item, Directive)),
        tuple(item for item in items if isinstance(item, Reaction)),
        tuple(preprocessor.sources),
        tuple(item for item in items if isinstance(item, Diagnostic)),
    )


def parse_file(path: str | Path, root: str | Path | None = None) -> Program:
    """Return the program of a file; includes are found beside it and must stay under `root`.

    Args:
        path: the file.
        root: the directory that includes may not leave; the file's own where it is not given.
    """
    file = Path(path)
    return parse(read_source(file), include_under(file.parent if root is None else Path(root)))


def parse_goal(text: str) -> Atom:
    """Return the atom that a goal stands for; a full stop or question mark may follow.

    >>> parse_goal('link("a", y)').relation
    'link'
    """
    return cast(Atom, _only(text, "goal", "goal"))


def parse_clause(text: str, place: str = "rule") -> Clause:
    """Return the rule or fact that a text stands for; its full stop may be missing.

    Messages call the text by its place.

    >>> len(parse_clause("p(x) :- q(x), x > 3").body)
    2
    """
    items = cast(tuple[Item, ...], _only(text, "item", place))
    if len(items) != 1 or not isinstance(items[0], Clause):
        raise InputError.of(
            "C0101",
            "A rule or fact is expected here.",
            getattr(items[0], "span", None) if items else None,
        )
    return items[0]


def parse_rule(text: str, place: str = "rule") -> Clause | Reaction:
    """Return the rule, fact, `.alert` or `.abort` that a text stands for.

    Messages call the text by its place.

    >>> parse_rule('.alert lost "lost {x}"').relation
    'lost'
    """
    if not text.lstrip().startswith("."):
        return parse_clause(text, place)
    items = cast(tuple[Item, ...], _only(text, "item", place))
    if len(items) != 1 or not isinstance(items[0], Reaction):
        raise InputError.of(
            "C0101",
            "A rule, a fact, `.alert` or `.abort` is expected here.",
            getattr(items[0], "span", None) if items else None,
        )
    return items[0]


def _only(text: str, start: str, place: str) -> object:
    source = SourceFile(place, text)
    preprocessor = Preprocessor(None)
    diagnostics = preprocessor.diagnostics
    expanded = preprocessor.run(source)
    if diagnostics:
        raise InputError(diagnostics)
    lexemes = tokenise(expanded, diagnostics)
    end = expanded.span(len(expanded.text), len(expanded.text))
    is_clause = start == "item" and not text.lstrip().startswith(".")
    if is_clause and lexemes and lexemes[-1].type != "DOT":
        lexemes.append(Lexeme("DOT", ".", ".", end))
    try:
        check_nesting(lexemes)
        item, position = _read(lexemes, 0, start, end)
        if position < len(lexemes):
            raise _StopError(explain(lexemes, position, {"$END"}), position)
    except InputError as error:
        raise InputError(_in_order([*diagnostics, *error.diagnostics], [source])) from None
    except _StopError as stop:
        raise InputError(_in_order([*diagnostics, stop.diagnostic], [source])) from None
    if diagnostics:
        raise InputError(diagnostics)
    return item


# --- reading items -----------------------------------------------------------------------------


class _StopError(Exception):
    """The grammar stops at a position; perhaps only the full stop of a clause is missing."""

    def __init__(self, diagnostic: Diagnostic, position: int, is_clause_end: bool = False) -> None:
        self.diagnostic = diagnostic
        self.position = position
        self.is_clause_end = is_clause_end


def _items(lexemes: list[Lexeme], diagnostics: list[Diagnostic]) -> Iterator[Item]:
    try:
        check_nesting(lexemes)
    except InputError as error:
        diagnostics += error.diagnostics
        return
    position = 0
    while position < len(lexemes) and len(diagnostics) < MAXIMAL_ERRORS:
        try:
            items, position = _read(lexemes, position, "item", None)
            yield from cast(tuple[Item, ...], items)
        except InputError as error:
            diagnostics += error.diagnostics
            position = _resume(lexemes, position, position, is_clause_end=False)
        except _StopError as stop:
            diagnostics.append(stop.diagnostic)
            position = _resume(lexemes, position, stop.position, stop.is_clause_end)


def _read(lexemes: list[Lexeme], position: int, start: str, end: Span | None) -> tuple[object, int]:
    """Return what stands at a position, and the position behind it."""
    # Loaded here, so that reading the command line does not load lark.
    from corollary.frontends.datalog.grammar import UnexpectedToken, parser_for

    parser = parser_for(start)
    first = position
    try:
        while position < len(lexemes):
            lexeme = lexemes[position]
            parser.feed_token(lexeme)
            position += 1
            if lexeme.type == "DOT":
                break
    except UnexpectedToken:
        expected = set(parser.accepts())
        is_end = position > first and "$END" in expected and _may_follow(lexemes, position)
        if not is_end:
            diagnostic = explain(lexemes, position, expected)
            raise _StopError(diagnostic, position, "DOT" in expected) from None
    try:
        result = parser.feed_eof()
    except UnexpectedToken:
        expected = set(parser.accepts())
        raise _StopError(explain_end(lexemes, first, expected, end), position) from None
    if position - first > MAXIMAL_DEPTH:
        check_depth(result if isinstance(result, tuple) else (result,))
    return result, position


def _may_follow(lexemes: list[Lexeme], position: int) -> bool:
    """Whether a lexeme behind a directive looks like the start of another item."""
    lexeme = lexemes[position]
    behind = lexemes[position + 1].type if position + 1 < len(lexemes) else ""
    return (
        lexeme.starts_line
        or lexeme.type in ITEM_STARTS
        or lexeme.type in ("PLUS", "MINUS")
        or behind in ("LPAR", "STATE")
    )


def _resume(lexemes: list[Lexeme], first: int, position: int, is_clause_end: bool) -> int:
    """Return where to read on after an error in the item that begins at `first`.

    That is behind the full stop of a clause or at the next line that begins a new item.
    """
    if lexemes[first].text in UNSUPPORTED_DIRECTIVES:
        position = _behind_block(lexemes, first)
    is_directive = lexemes[first].text.startswith(".") and lexemes[first].type != "DOT"
    for index in range(position, len(lexemes)):
        lexeme = lexemes[index]
        is_adjacent = index + 1 < len(lexemes) and lexemes[index + 1].is_adjacent
        if lexeme.type == "DOT" and not is_directive and not is_adjacent:
            return index + 1
        if index > first and lexeme.starts_line:
            starts_clause = lexeme.span.column == 1 and (is_directive or is_clause_end)
            if lexeme.text.startswith(".") or starts_clause:
                return index
    return len(lexemes)


def _behind_block(lexemes: list[Lexeme], first: int) -> int:
    """Return the position behind the block `{ … }` of a directive, if it has one."""
    depth = 0
    for index in range(first + 1, len(lexemes)):
        lexeme = lexemes[index]
        if depth == 0 and (lexeme.type == "DOT" or lexeme.type in ITEM_STARTS):
            break
        depth += {"LBRACE": 1, "RBRACE": -1}.get(lexeme.type, 0)
        if lexeme.type == "RBRACE" and depth <= 0:
            return index + 1
    return first + 1


def _in_order(diagnostics: list[Diagnostic], sources: list[SourceFile]) -> list[Diagnostic]:
    ranks = {source.name: rank for rank, source in enumerate(sources)}

    def place(diagnostic: Diagnostic) -> tuple[int, int, int]:
        span = diagnostic.span
        return (0, 0, 0) if span is None else (ranks.get(span.file.name, 0), span.line, span.column)

    return sorted(diagnostics, key=place)
