"""Programs, goals and clauses from text.

The text is preprocessed, split into lexemes and parsed item by item: an item ends where the grammar
accepts its end and not the next lexeme. After an error parsing resumes after the next full stop or
at the next directive, so that one run reports several errors.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

from corollary.core import logic, program
from corollary.core.engine import check_deadline
from corollary.core.syntax import PRECEDENCE
from corollary.errors import Diagnostic, InputError, Severity, sort_by_position
from corollary.frontends.datalog import syntax_errors
from corollary.frontends.datalog.components import expand_components
from corollary.frontends.datalog.grammar import Parser, UnexpectedLexemeError
from corollary.frontends.datalog.inline_rules import inline_rules
from corollary.frontends.datalog.lexer import Lexeme, tokenise
from corollary.frontends.datalog.parse_nodes import ComponentDefinition, Item, WrittenPlan
from corollary.frontends.datalog.preprocessor import (
    Include,
    Preprocessor,
    include_under,
    read_source,
)
from corollary.source import SourceFile, Span

Parsed = TypeVar("Parsed", logic.Clause, program.Reaction)

MAX_ERRORS = 50
NESTING_MAX_DEPTH = 100
"""How deeply a program may be nested, so that no later pass exhausts the stack."""

_OPENING = frozenset({"LPAR", "LBRACE", "LBRACKET"})
_CLOSING = frozenset({"RPAR", "RBRACE", "RBRACKET"})
_PREFIXES = frozenset({"NOT", "MINUS", "PREFIX", "AGGREGATE", "EXTREME"})


def parse(source: SourceFile, include: Include | None = None) -> program.Program:
    """Return the program of a text.

    Args:
        source: the text.
        include: finds included files; without it nothing can be included.

    Raises:
        InputError: with all errors of the text.

    >>> parse(SourceFile("example", "p(1). p(2).")).clauses[1].heads[0].relation
    'p'
    """
    preprocessor = Preprocessor(include)
    diagnostics = preprocessor.diagnostics
    expanded = preprocessor.run(source)
    items = [] if diagnostics else list(_items(tokenise(expanded, diagnostics), diagnostics))
    if diagnostics:
        raise InputError(sort_by_position(diagnostics, preprocessor.sources))
    items = inline_rules(expand_components(items, lambda lexemes: list(_items(lexemes, []))))
    return program.Program(
        tuple(item for item in items if isinstance(item, program.TypeDeclaration)),
        tuple(item for item in items if isinstance(item, program.Declaration)),
        tuple(item for item in items if isinstance(item, program.FunctionalDependency)),
        tuple(item for item in items if isinstance(item, logic.Clause)),
        tuple(item for item in items if isinstance(item, program.Directive)),
        tuple(item for item in items if isinstance(item, program.Reaction)),
        tuple(item for item in items if isinstance(item, program.Pragma)),
        tuple(preprocessor.sources),
        tuple(item for item in items if isinstance(item, Diagnostic)),
        tuple(item for item in items if isinstance(item, program.FunctorDeclaration)),
    )


def parse_file(path: str | Path, root: str | Path | None = None) -> program.Program:
    """Return the program of a file; included files are found relative to it, under `root`.

    Args:
        path: the file.
        root: the directory of all included files; by default that of the file.
    """
    file = Path(path)
    return parse(read_source(file), include_under(file.parent if root is None else Path(root)))


def parse_goal(text: str) -> tuple[logic.BodyItem, ...]:
    """Return the body of a goal; a full stop or question mark may follow.

    >>> [type(item).__name__ for item in parse_goal('link("a", y), y != "b"')]
    ['Atom', 'Comparison']
    """
    return cast(tuple[logic.BodyItem, ...], _parse_single(text, "goal", "goal"))


def parse_clause(text: str, name: str = "rule") -> logic.Clause:
    """Return the rule or fact of a text; its full stop may be missing.

    Messages call the text by this name.

    >>> len(parse_clause("p(x) :- q(x), x > 3").body)
    2
    """
    return _parse_item(text, name, logic.Clause, "A rule or fact")


def parse_rule(text: str, name: str = "rule") -> logic.Clause | program.Reaction:
    """Return the rule, fact, `.alert` or `.abort` of a text.

    Messages call the text by this name.

    >>> parse_rule('.alert lost "lost {x}"').relation
    'lost'
    """
    if not text.lstrip().startswith("."):
        return parse_clause(text, name)
    return _parse_item(text, name, program.Reaction, "A rule, a fact, `.alert` or `.abort`")


def _parse_item(text: str, name: str, kind: type[Parsed], expected: str) -> Parsed:
    items = cast(tuple[Item, ...], _parse_single(text, "item", name))
    if len(items) != 1 or not isinstance(items[0], kind):
        span = getattr(items[0], "span", None) if items else None
        raise InputError.of("C0101", f"{expected} is expected here.", span)
    return items[0]


def _parse_single(text: str, start: str, name: str) -> object:
    source = SourceFile(name, text)
    preprocessor = Preprocessor(None)
    diagnostics = preprocessor.diagnostics
    expanded = preprocessor.run(source)
    if diagnostics:
        raise InputError(diagnostics)
    lexemes = tokenise(expanded, diagnostics, is_body=start == "goal")
    end = expanded.span(len(expanded.text), len(expanded.text))
    has_end = start == "goal" or not text.lstrip().startswith(".")
    if has_end and lexemes and lexemes[-1].type not in ("DOT", "_QUESTION"):
        lexemes.append(Lexeme("DOT", ".", ".", end))
    try:
        _check_nesting(lexemes)
        item, position = _parse_at(lexemes, 0, start, end)
        if position < len(lexemes):
            raise _StopError(syntax_errors.diagnose_lexeme(lexemes, position, {"$END"}), position)
    except InputError as error:
        raise InputError(sort_by_position([*diagnostics, *error.diagnostics], [source])) from None
    except _StopError as stop:
        raise InputError(sort_by_position([*diagnostics, stop.diagnostic], [source])) from None
    if diagnostics:
        raise InputError(diagnostics)
    return item


# --- items -------------------------------------------------------------------------------------


class _StopError(Exception):
    """The grammar accepts nothing at a position, or only the full stop of a clause."""

    def __init__(self, diagnostic: Diagnostic, position: int, is_clause_end: bool = False) -> None:
        self.diagnostic = diagnostic
        self.position = position
        self.is_clause_end = is_clause_end


def _items(lexemes: Sequence[Lexeme], diagnostics: list[Diagnostic]) -> Iterator[Item]:
    """Yield the items of a text, each rule with the `.plan` behind it."""
    held: Item | None = None
    for item in _written_items(lexemes, diagnostics):
        if isinstance(item, WrittenPlan):
            if isinstance(held, logic.Clause) and held.body:
                held = replace(held, plan=held.plan + item.orders)
            else:
                message = "This `.plan` follows no rule; it changes nothing."
                note = "write it right behind the rule that it is for"
                yield Diagnostic("C0709", message, item.span, note, severity=Severity.WARNING)
            continue
        if held is not None:
            yield held
        held = item
    if held is not None:
        yield held


def _written_items(lexemes: Sequence[Lexeme], diagnostics: list[Diagnostic]) -> Iterator[Item]:
    try:
        _check_nesting(lexemes)
    except InputError as error:
        diagnostics += error.diagnostics
        return
    position = 0
    while position < len(lexemes) and len(diagnostics) < MAX_ERRORS:
        try:
            items, position = _parse_at(lexemes, position, "item", None)
            for item in cast(tuple[Item, ...], items):
                if isinstance(item, ComponentDefinition):
                    body, position = _block(lexemes, position)
                    _parse_block(body, diagnostics)
                    yield item._replace(body=tuple(body))
                else:
                    yield item
        except InputError as error:
            diagnostics += error.diagnostics
            position = _resume(lexemes, position, position, is_clause_end=False)
        except _StopError as stop:
            diagnostics.append(stop.diagnostic)
            position = _resume(lexemes, position, stop.position, stop.is_clause_end)


def _parse_at(
    lexemes: Sequence[Lexeme], position: int, start: str, end: Span | None
) -> tuple[object, int]:
    """Return the item at a position, and the position after it."""
    parser = Parser(start)
    first = position
    try:
        while position < len(lexemes):
            lexeme = lexemes[position]
            check_deadline()
            parser.feed(lexeme)
            position += 1
            is_block = lexeme.type == "LBRACE" and lexemes[first].type == "COMP"
            if lexeme.type == "DOT" or is_block:
                break
    except UnexpectedLexemeError:
        expected = parser.accepts()
        is_end = position > first and "$END" in expected and _may_follow(lexemes, position)
        if not is_end:
            diagnostic = syntax_errors.diagnose_lexeme(lexemes, position, expected)
            raise _StopError(diagnostic, position, "DOT" in expected) from None
    try:
        result = parser.finish()
    except UnexpectedLexemeError:
        expected = parser.accepts()
        raise _StopError(
            syntax_errors.diagnose_end(lexemes, first, expected, end), position
        ) from None
    if position - first > NESTING_MAX_DEPTH:  # no item is deeper than it has lexemes
        _check_depth(result if isinstance(result, tuple) else (result,))
    return result, position


def _block(lexemes: Sequence[Lexeme], position: int) -> tuple[Sequence[Lexeme], int]:
    """Return the lexemes of a component, after its opening brace, and the position after it."""
    depth = 1
    for index in range(position, len(lexemes)):
        depth += {"LBRACE": 1, "RBRACE": -1}.get(lexemes[index].type, 0)
        if not depth:
            return lexemes[position:index], index + 1
    message = "This component is never closed."
    diagnostic = Diagnostic("C0101", message, lexemes[position - 1].span, "end it with `}`")
    raise _StopError(diagnostic, len(lexemes))


def _parse_block(body: Sequence[Lexeme], diagnostics: list[Diagnostic]) -> None:
    """Find the errors of a component; its items are made anew for each instance."""
    for _ in _items(body, diagnostics):
        pass


def _may_follow(lexemes: Sequence[Lexeme], position: int) -> bool:
    """Whether the lexeme after a directive looks like the start of another item."""
    lexeme = lexemes[position]
    following = lexemes[position + 1].type if position + 1 < len(lexemes) else ""
    return (
        lexeme.starts_line
        or lexeme.type in syntax_errors.ITEM_STARTS
        or lexeme.type in ("PLUS", "MINUS")
        or following in ("LPAR", "STATE")
    )


def _resume(lexemes: Sequence[Lexeme], first: int, position: int, is_clause_end: bool) -> int:
    """Return where to resume after an error in the item that begins at `first`.

    That is after the full stop of a clause or at the next line that begins a new item.
    """
    if lexemes[first].type == "COMP" or lexemes[first].text in syntax_errors.UNSUPPORTED_DIRECTIVES:
        position = _skip_block(lexemes, first)
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


def _skip_block(lexemes: Sequence[Lexeme], first: int) -> int:
    """Return the position after the block `{ … }` of a directive, if it has one."""
    depth = 0
    for index in range(first + 1, len(lexemes)):
        lexeme = lexemes[index]
        if depth == 0 and (lexeme.type == "DOT" or lexeme.type in syntax_errors.ITEM_STARTS):
            break
        depth += {"LBRACE": 1, "RBRACE": -1}.get(lexeme.type, 0)
        if lexeme.type == "RBRACE" and depth <= 0:
            return index + 1
    return first + 1


# --- nesting -----------------------------------------------------------------------------------


def _check_nesting(lexemes: Iterable[Lexeme]) -> None:
    """Raise an error where too many brackets are open or too many prefixes follow each other."""
    depth = 0
    row = 0
    for lexeme in lexemes:
        if lexeme.type in _OPENING:
            depth += 1
        elif lexeme.type in _CLOSING:
            depth = max(0, depth - 1)
        elif lexeme.type == "DOT":
            depth = 0
        row = row + 1 if lexeme.type in _PREFIXES else 0
        if depth > NESTING_MAX_DEPTH or row > NESTING_MAX_DEPTH:
            raise _too_deep(lexeme.span)


def _check_depth(items: Iterable[object]) -> None:
    """Raise an error where terms or bodies are nested too deeply.

    The left operand of an operator is as deep as the operator: long sums are not nested.
    """
    stack = [(item, 0) for item in items]
    while stack:
        node, depth = stack.pop()
        if depth > NESTING_MAX_DEPTH:
            raise _too_deep(getattr(node, "span", None))
        below: tuple[object, ...] = ()
        match node:
            case logic.Clause(heads=heads, body=body):
                below = (*heads, *body)
            case logic.Functor(name=name, arguments=(left, right)) if name in PRECEDENCE:
                stack.append((left, depth))
                below = (right,)
            case logic.Atom(arguments=arguments) | logic.Functor(arguments=arguments):
                below = arguments
            case logic.Negation(atom=atom):
                below = (atom,)
            case logic.Comparison(left=left, right=right):
                below = (left, right)
            case logic.Disjunction(alternatives=alternatives):
                below = tuple(item for alternative in alternatives for item in alternative)
            case logic.AggregateTerm(target=target, body=body):
                below = body if target is None else (target, *body)
            case _:
                pass  # a leaf
        stack += [(child, depth + 1) for child in below]


def _too_deep(span: Span | None) -> InputError:
    return InputError.of(
        "C0101",
        f"This is nested more than {NESTING_MAX_DEPTH} levels deep.",
        span,
        "split it into several rules",
    )
