"""Diagnostics for text that the grammar does not accept."""

import difflib
from collections.abc import Sequence

from corollary.core.functors.catalog import FUNCTORS
from corollary.core.syntax import EXTREMES, FUNCTIONS
from corollary.errors import Diagnostic
from corollary.frontends.datalog.lexer import DIRECTIVES, QUALIFIERS, Lexeme
from corollary.frontends.datalog.literals import shorten
from corollary.source import Span

_NOT_A_LATTICE = (
    "where the least upper bound is `max` or `min`, let subsumption keep the best value: "
    "`p(x, a) <= p(x, b) :- a <= b.`; bounds that are new values are not maintained"
)
UNSUPPORTED_DIRECTIVES = {
    ".lattice": ("lattices (`.lattice`)", _NOT_A_LATTICE),
    ".debug_delta": ("`.debug_delta`", "`corollary trace` shows what each round derives"),
}
"""Directives of Soufflé that are refused, each with what to do instead."""
_UNSUPPORTED_WORDS = {
    "recursive_iteration_cnt": "iteration counters (`recursive_iteration_cnt()`)",
    "__ITERATION__": "iteration counters (`__ITERATION__()`)",
}

_TERM_STARTS = frozenset(
    {"INT", "FRACTION", "STRING", "DATE", "TIME", "TRUTH", "NULL", "UNDERSCORE", "FUNCTION"}
    | {"EXTREME", "AGGREGATE", "HOLISTIC", "APPLIED", "IDENT", "QUOTED", "LPAR", "MINUS", "PREFIX"}
    | {"NIL", "LBRACKET", "BRANCH", "AS", "PARAMETER"}
)
_LITERAL_STARTS = _TERM_STARTS | {"NOT", "CONSTRAINT", "DOTTED", "PLUS"}
_WORDS = frozenset(
    {"IDENT", "QUOTED", "DOTTED", "FUNCTION", "EXTREME", "AGGREGATE", "CONSTRAINT", "TRUTH"}
    | {"NULL", "NIL", "INFIX", "PREFIX", "RESERVED", "AS"}
)
_NAMES = frozenset({"IDENT", "QUOTED", "DOTTED"})
_RESERVED = _WORDS - _NAMES
_OPERATORS = frozenset({"PLUS", "MINUS", "OPERATOR", "INFIX"})
ITEM_STARTS = frozenset(DIRECTIVES.values())
_LABELS = {
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LBRACKET": "`[`",
    "RBRACKET": "`]`",
    "_COMMA": "`,`",
    "_SEMICOLON": "`;`",
    "_COLON": "`:`",
    "IF": "`:-`",
    "DOT": "`.`",
    "_QUESTION": "`?`",
    "_PIPE": "`|`",
    "_LESS": "`<`",
    "GREATER": "`>`",
    "_ARROW": "`->`",
    "_SUBTYPE": "`<:`",
    "EQUAL": "`=`",
    "NOT": "`!`",
    "PLUS": "`+`",
    "MINUS": "`-`",
    "INT": "a number",
    "FRACTION": "a number",
    "STRING": "a string",
    "STATE": "`@old` or `@new`",
    "$END": "the end",
}
_ORDER = ("_COMMA", "_SEMICOLON", "RPAR", "RBRACE", "RBRACKET", "IF", "DOT")


def diagnose_lexeme(lexemes: Sequence[Lexeme], position: int, expected: set[str]) -> Diagnostic:
    """Return the error for a lexeme that the grammar does not accept."""
    lexeme = lexemes[position]
    unsupported = _unsupported(lexemes, position)
    if unsupported is not None:
        feature, note = unsupported
        return Diagnostic("C0102", f"Corollary does not support {feature}.", lexeme.span, note)
    special = _special(lexemes, position)
    if special is not None:
        return special
    found = "the full stop" if lexeme.type == "DOT" else f"`{shorten(lexeme.text)}`"
    message = f"Expected {_in_words(expected)}, but found {found}."
    related: tuple[tuple[Span, str], ...] = ()
    note = _suggest(lexemes, position, expected)
    opened = _open_bracket(lexemes, position)
    if note is None and lexeme.type == "DOT" and opened is not None:
        related = ((opened.span, "opened here"),)
        closing = {"(": ")", "{": "}", "[": "]"}[opened.text]
        note = f"the bracket `{opened.text}` is never closed: add `{closing}`"
    return Diagnostic("C0101", message, lexeme.span, note, related)


def diagnose_end(
    lexemes: Sequence[Lexeme], first: int, expected: set[str], end: Span | None
) -> Diagnostic:
    """Return the error for a text that ends too early."""
    if not lexemes:
        return Diagnostic("C0101", f"Expected {_in_words(expected)}, but there is nothing.", end)
    last = lexemes[-1]
    message = f"Expected {_in_words(expected)}, but the text ends here."
    opened = _open_bracket(lexemes, len(lexemes))
    if opened is not None:
        related = ((opened.span, "opened here"),)
        never = f"the bracket `{opened.text}` is never closed"
        return Diagnostic("C0101", message, last.span, never, related)
    is_clause = lexemes[first].type not in ITEM_STARTS
    note = "a clause ends with a full stop `.`" if is_clause and "DOT" in expected else None
    return Diagnostic("C0101", message, last.span, note)


# --- what is expected ----------------------------------------------------------------------------


def _in_words(expected: set[str]) -> str:
    left = set(expected)
    if "IF" in left:
        left.discard("COMPARISON")  # few who stop after a head mean subsumption
    words: list[str] = []
    if left >= ITEM_STARTS:
        return "a clause or a directive"
    if {"INT", "STRING", "NOT"} <= left:
        words.append("a literal")
        left -= _LITERAL_STARTS
    elif {"INT", "STRING", "UNDERSCORE"} <= left:
        words.append("a term")
        left -= _TERM_STARTS
    elif {"IDENT", "RESERVED"} <= left or {"IDENT", "DOTTED"} <= left:
        words.append("a name")
        left -= _WORDS
    if {"OPERATOR", "INFIX"} <= left:
        left -= _OPERATORS
        if "COMPARISON" in left:
            words.append("a comparison such as `=`")
            left -= {"COMPARISON", "EQUAL", "_COMMA", "_SEMICOLON", "DOT", "RPAR", "RBRACE"}
    if {"QUALIFIER", "KEY"} <= left:
        words.append("a qualifier")
        left -= {"QUALIFIER", "KEY", "CHOICE"}
    signs = [name for name in _ORDER if name in left]
    signs += sorted(left - set(_ORDER) - {"$END", "STATE"})
    for name in signs or sorted(left):
        label = _LABELS.get(name, f"`{name.lower()}`")
        if label not in words:
            words.append(label)
    if not words:
        return "an operator"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


# --- special cases --------------------------------------------------------------------------------


def _unsupported(lexemes: Sequence[Lexeme], position: int) -> tuple[str, str | None] | None:
    lexeme = lexemes[position]
    clause = _item_before(lexemes, position)
    starts = clause[0].type if clause else ""
    if lexeme.type == "BAD" and lexeme.text in UNSUPPORTED_DIRECTIVES:
        return UNSUPPORTED_DIRECTIVES[lexeme.text]
    if lexeme.text == "@" and clause and clause[-1].type in ("IDENT", "DOTTED", "QUOTED"):
        return None
    if lexeme.text in _UNSUPPORTED_WORDS and lexeme.type in ("BAD", "RESERVED"):
        return _UNSUPPORTED_WORDS[lexeme.text], None
    if lexeme.type == "LPAR" and clause:
        name = clause[-1].text
        if name in _UNSUPPORTED_WORDS:
            return _UNSUPPORTED_WORDS[name], None
    if lexeme.type == "EQUAL" and starts == "DECL":
        return "`debug_delta`", None
    return None


def _special(lexemes: Sequence[Lexeme], position: int) -> Diagnostic | None:
    """Return the error for text that is not a lexeme of the language."""
    lexeme = lexemes[position]
    if lexeme.type == "APPLIED" and lexeme.is_adjacent and lexemes[position - 1].type in _NAMES:
        message = "Only `old` or `new` can follow `@` after a relation."
        return Diagnostic("C0101", message, lexeme.span, "write `p@old(x)` or `p@new(x)`")
    if lexeme.type != "BAD":
        return None
    text = lexeme.text
    match text[0]:
        case '"' | "`":
            message = (
                "This string is never closed." if text[0] == '"' else "This name is never closed."
            )
            note = f"add the closing `{text[0]}`" if text[0] == '"' else "add the closing backquote"
            return Diagnostic("C0101", message, lexeme.span, note)
        case "d" | "t" if text[1:2] == '"':
            message = "This literal is never closed."
            return Diagnostic("C0101", message, lexeme.span, 'add the closing `"`')
        case "." if len(text) > 1:
            known = [*DIRECTIVES, ".include"]
            close = difflib.get_close_matches(text.lower(), known, 1)
            note = f"did you mean `{close[0]}`?" if close else f"directives are {', '.join(known)}"
            return Diagnostic("C0101", f"There is no directive `{text}`.", lexeme.span, note)
        case "\0":
            message = "The text contains a NUL character."
            return Diagnostic("C0101", message, lexeme.span, "is this a text file?")
        case "'":
            message = "Strings are not written in single quotes."
            return Diagnostic("C0101", message, lexeme.span, 'write double quotes: "…"')
        case "&" | "~" | "\\" | "¬":
            return None
        case "@":
            message = "A name is missing after `@`."
            note = "write `p@old(x)`, `p@new(x)`, or `@f(x)` for a functor `f`"
            return Diagnostic("C0101", message, lexeme.span, note)
        case _:
            shown = text if text.isprintable() else f"U+{ord(text[0]):04X}"
            message = f"The character `{shown}` does not belong here."
            signs = {"≤": "write `<=`", "≥": "write `>=`", "≠": "write `!=`"}
            hint = signs.get(text)
            if hint is None and text.isprintable() and not text.isascii():
                hint = f"a name with it is written in backquotes, as in `` `x{text}` ``"
            return Diagnostic("C0101", message, lexeme.span, hint)


def _suggest(lexemes: Sequence[Lexeme], position: int, expected: set[str]) -> str | None:
    """Return the note for a common mistake."""
    lexeme = lexemes[position]
    clause = _item_before(lexemes, position)
    previous = clause[-1] if clause else None
    before = previous.text if previous is not None else ""
    for mistake, note in (
        ("==", "equality is written `=`"),
        ("<>", "inequality is written `!=`"),
        ("=<", "write `<=`"),
        ("=>", "write `>=`"),
        (":=", "equality is written `=`; `:=` is the arrow of a rule in which null joins null"),
        ("<-", "a rule's arrow is written `:-`"),
        ("&&", "literals are joined with `,`"),
        ("||", "alternatives are separated by `;`"),
        ("\\+", "negation is written `!p(x)`"),
        ("~", "negation is written `!p(x)`"),
        ("¬", "negation is written `!p(x)`"),
        ("&", "literals are joined with `,`"),
    ):
        starts = [position] if len(mistake) == 1 else [position, position - 1]
        if any(start >= 0 and _reads(lexemes, start, mistake) for start in starts):
            return note
    if before.lower() == "not" and lexeme.type in ("IDENT", "DOTTED", "QUOTED", "LPAR"):
        return "negation is written `!p(x)`"
    if before.lower() in ("and", "or") or lexeme.text.lower() in ("and", "or"):
        return "literals are joined with `,`, alternatives separated by `;`"
    if lexeme.type == "LPAR" and previous is not None and previous.type == "IDENT":
        open_names = (spec.name for spec in FUNCTORS.values() if spec.is_open)
        names = [*FUNCTIONS, *open_names, *EXTREMES]
        close = difflib.get_close_matches(before, names, 1, 0.7)
        hint = f"; did you mean `{close[0]}`?" if close else ""
        return f"`{before}` is not a function, and relations cannot be inside terms{hint}"
    if "_COLON" in expected:
        words = [word.text for word in clause if word.type in ("AGGREGATE", "EXTREME")]
        if words:
            extreme = f", the function `{words[-1]}(x, y)`" if words[-1] in EXTREMES else ""
            target = "" if words[-1] == "count" else " x"
            return f"the aggregate is written `{words[-1]}{target} : {{ p(x) }}`{extreme}"
    if lexeme.type in _RESERVED and expected & {"IDENT", "QUOTED"}:
        return f"`{lexeme.text}` is a reserved word; write it in backquotes to use it as a name"
    if clause and clause[0].type == "DECL" and before == ")" and lexeme.type == "IDENT":
        close = difflib.get_close_matches(lexeme.text, [*QUALIFIERS, "key"], 1)
        return f"did you mean `{close[0]}`?" if close else None
    if lexeme.type in ("RPAR", "RBRACE", "RBRACKET") and _open_bracket(lexemes, position) is None:
        return f"no bracket is open that this `{lexeme.text}` could close"
    if "DOT" in expected and lexeme.starts_line:
        return "is the full stop `.` at the end of the clause before missing?"
    if "DOT" in expected and lexeme.type in ("IDENT", "DOTTED", "NOT"):
        return "is a `,` or a full stop `.` missing before it?"
    has_clause = any(each.type == "IF" for each in clause) or _open_bracket(lexemes, position)
    if lexeme.type == "DOT" and clause and clause[0].type in ITEM_STARTS and not has_clause:
        return "a directive has no full stop at its end"
    return None


# --- context --------------------------------------------------------------------------------------


def _item_before(lexemes: Sequence[Lexeme], position: int) -> list[Lexeme]:
    """Return the lexemes of the same item before a position."""
    start = position
    while start > 0 and lexemes[start - 1].type != "DOT":
        start -= 1
        if lexemes[start].type in ITEM_STARTS:
            break
    return list(lexemes[start:position])


def _open_bracket(lexemes: Sequence[Lexeme], position: int) -> Lexeme | None:
    depth = 0
    for lexeme in reversed(_item_before(lexemes, position)):
        if lexeme.type in ("RPAR", "RBRACE", "RBRACKET"):
            depth += 1
        elif lexeme.type in ("LPAR", "LBRACE", "LBRACKET"):
            if depth == 0:
                return lexeme
            depth -= 1
    return None


def _reads(lexemes: Sequence[Lexeme], position: int, text: str) -> bool:
    """Whether the lexemes from a position on spell a text without white space in between."""
    spelled = ""
    for lexeme in lexemes[position : position + len(text)]:
        if spelled and not lexeme.is_adjacent:
            return False
        spelled += lexeme.text
        if len(spelled) >= len(text):
            break
    return spelled == text
