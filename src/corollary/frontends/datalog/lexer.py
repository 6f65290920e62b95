"""Lexemes of the preprocessed text, each with its span in the user's files."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest

from corollary.core.functors.catalog import FUNCTORS
from corollary.core.functors.conversions import COUNTER
from corollary.core.functors.holistic import HOLISTIC
from corollary.core.logic import Value
from corollary.core.syntax import EXTREMES, FUNCTIONS, HINTS, PRECEDENCE, TODAY, normalised_name
from corollary.data_class import dataclass
from corollary.errors import Diagnostic
from corollary.frontends.datalog import literals
from corollary.frontends.datalog.source_map import ExpandedText
from corollary.source import Span


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A word, sign or literal.

    Attributes:
        type: the name of the terminal in the grammar; `BAD` for characters that are in no terminal.
        value: the value of a literal, the characters of a name.
        is_adjacent: whether it follows the previous lexeme without white space.
        starts_line: whether it is the first on its line.
    """

    type: str
    text: str
    value: Value
    span: Span
    is_adjacent: bool = False
    starts_line: bool = False


DIRECTIVES = {
    ".decl": "DECL",
    ".type": "TYPE",
    ".number_type": "OLD_TYPE",
    ".symbol_type": "OLD_TYPE",
    ".fd": "FD",
    ".functor": "FUNCTOR",
    ".input": "DIRECTIVE",
    ".output": "DIRECTIVE",
    ".printsize": "DIRECTIVE",
    ".limitsize": "DIRECTIVE",
    ".sql": "DIRECTIVE",
    ".alert": "REACTION",
    ".abort": "REACTION",
    ".plan": "PLAN",
    ".pragma": "PRAGMA",
    ".comp": "COMP",
    ".init": "INIT",
    ".override": "OVERRIDE",
}

QUALIFIERS = frozenset(
    {*HINTS, "bag", "eqrel", "stored", "virtual", "input", "output", "printsize"}
)

_WORDS = {
    **dict.fromkeys(FUNCTIONS, "FUNCTION"),
    **dict.fromkeys(EXTREMES, "EXTREME"),
    **dict.fromkeys(("count", "sum", "mean"), "AGGREGATE"),
    **dict.fromkeys(("match", "contains"), "CONSTRAINT"),
    **dict.fromkeys(("true", "false"), "TRUTH"),
    **dict.fromkeys((word for word in PRECEDENCE if word.isalpha()), "INFIX"),
    **dict.fromkeys(("bnot", "lnot"), "PREFIX"),
    COUNTER: "FUNCTION",
    "as": "AS",
    "nil": "NIL",
    "null": "NULL",
    "_": "UNDERSCORE",
}
_VALUES: dict[str, Value] = {"true": True, "false": False, "null": None}

_SIGNS = {
    "(": "LPAR",
    ")": "RPAR",
    "{": "LBRACE",
    "}": "RBRACE",
    "[": "LBRACKET",
    "]": "RBRACKET",
    ",": "_COMMA",
    ";": "_SEMICOLON",
    ":": "_COLON",
    ":-": "IF",
    ":=": "IF",
    ".": "DOT",
    "?": "_QUESTION",
    "|": "_PIPE",
    "->": "_ARROW",
    "<:": "_SUBTYPE",
    "=": "EQUAL",
    "!=": "COMPARISON",
    "<": "COMPARISON",
    "<=": "COMPARISON",
    ">": "COMPARISON",
    ">=": "COMPARISON",
    "!": "NOT",
    "+": "PLUS",
    "-": "MINUS",
    "*": "OPERATOR",
    "/": "OPERATOR",
    "%": "OPERATOR",
    "^": "OPERATOR",
}

_BRACKETS = {"<": "_LESS", ">": "GREATER"}

_LEXEME = r"""
    (?P<quoted>[dt]?(?:CLOSED|(?P<open>"(?:[^"\\\n]|\\.)*)))
  | (?P<parameter>\\(?:START INSIDE*|`(?:[^`\\\n]|\\.)+`))
  | (?P<name>`(?:[^`\\\n]|\\.)*(?P<shut>`?))
  | (?P<address>\d+\.\d+\.\d+\.\d+)
  | (?P<number>0[xXbB]\w*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\w*)
  | (?P<word>\?*START INSIDE*(?:\?+INSIDE+)*(?P<dots>(?:\.START INSIDE*(?:\?+INSIDE+)*)*))
  | (?P<branch>\$\?*START(?:INSIDE|\?)*(?:\.START(?:INSIDE|\?)*)*)
  | (?P<directive>(?<![^\s{}])\.[A-Za-z_]\w*|\.(?:DIRECTIVES)(?=\s))
  | (?P<annotation>@!?\[)
  | (?P<state>@(?:old|new)\b)
  | (?P<applied>@START INSIDE*)
  | (?P<sign>:[-=]|->|<:|!=|<=|>=|[(){}\[\],;:.?|=<>!+\-*/%^])
  | (?P<bad>\S)
    """
_OPENING = frozenset({"LPAR", "LBRACE", "LBRACKET"})
_CLOSING = frozenset({"RPAR", "RBRACE", "RBRACKET"})
_NAME_STARTS = frozenset({"IDENT", "UNDERSCORE"})
_OPERAND_ENDS = frozenset(
    {"IDENT", "DOTTED", "QUOTED", "INT", "FRACTION", "STRING", "DATE", "TIME", "TRUTH", "NULL"}
    | {"UNDERSCORE", "PARAMETER", "RPAR", "RBRACE", "RBRACKET", "NIL", "BRANCH"}
)
_OPERATORS = frozenset(
    {"EQUAL", "COMPARISON", "IS", "OPERATOR", "INFIX", "PREFIX", "AGGREGATE", "EXTREME", "_ARROW"}
)
_BEFORE_TERMS = _OPERATORS | {"IDENT", "DOTTED", "QUOTED", "FUNCTION", "APPLIED"}
_BEFORE_TERMS |= {"CONSTRAINT", "STATE", "BRANCH", "AS"}
_ALIASES = {alias: spec.name for spec in FUNCTORS.values() for alias in spec.aliases}
_QUOTED: dict[str, tuple[str, Callable[[str], Value]]] = {
    "d": ("DATE", literals.read_date),
    "t": ("TIME", literals.read_time),
    '"': ("STRING", literals.read_string),
}


@lru_cache(maxsize=8)
def _lexeme_pattern(others: str) -> re.Pattern[str]:
    """Return the pattern of lexemes.

    Args:
        others: the characters of the text that are not ASCII: where letters of other scripts, and
            the marks that belong to them, occur in names.
    """
    starts = "".join(each for each in others if each.isidentifier())
    inside = "".join(each for each in others if f"a{each}".isidentifier())
    pattern = _LEXEME.replace("CLOSED", literals.STRING_PATTERN)
    pattern = pattern.replace("START", f"[A-Za-z_{starts}]").replace("INSIDE", f"[\\w{inside}]")
    pattern = pattern.replace("DIRECTIVES", "|".join(name.removeprefix(".") for name in DIRECTIVES))
    return re.compile(pattern, re.VERBOSE | re.ASCII)


def tokenise(
    expanded: ExpandedText, diagnostics: list[Diagnostic], *, is_body: bool = False
) -> list[Lexeme]:
    """Return the lexemes of a text; bad literals are reported and replaced by the number 0.

    Args:
        expanded: the text.
        diagnostics: gets the errors.
        is_body: whether the text is the body of a rule, as goals are.
    """
    written = _without_annotations(_scan(expanded, diagnostics), diagnostics)
    scanned = list(_mark_is(_join_questions(written)))
    lexemes = list(_join_signs(scanned, diagnostics))
    if any(_is_open(each) or each.text in HOLISTIC for each in lexemes):
        lexemes = _CallMarker(lexemes, is_body).marked()
    return list(_mark_qualifiers(list(_mark_stateful(list(_mark_brackets(lexemes))))))


def _is_open(lexeme: Lexeme) -> bool:
    """Whether a word may be a function or something else."""
    spec = FUNCTORS.get(_ALIASES.get(lexeme.text, lexeme.text))
    is_function = spec is not None and (spec.is_open or lexeme.text in _ALIASES)
    return is_function or lexeme.text == TODAY


def _scan(expanded: ExpandedText, diagnostics: list[Diagnostic]) -> Iterator[Lexeme]:
    text = expanded.text
    previous_end = 0
    others = "" if text.isascii() else "".join(sorted({each for each in text if each > "\x7f"}))
    for found in _lexeme_pattern(others).finditer(text):
        start, end = found.span()
        written = found.group()
        span = expanded.span(start, end)
        is_adjacent = start == previous_end and start > 0
        starts_line = previous_end == 0 or "\n" in text[previous_end:start]
        previous_end = end
        try:
            type_, value = _classify(found, written, span)
        except literals.LiteralError as error:
            diagnostics.append(Diagnostic("C0103", error.message, span, error.note))
            type_, value = ("QUOTED", "?") if written.startswith("`") else ("INT", 0)
        if written == "$":  # an older way to write the counter
            yield Lexeme("FUNCTION", COUNTER, COUNTER, span, is_adjacent, starts_line)
            yield Lexeme("LPAR", "(", "(", span, True, False)
            yield Lexeme("RPAR", ")", ")", span, True, False)
            continue
        yield Lexeme(type_, written, value, span, is_adjacent, starts_line)


def _without_annotations(
    lexemes: Iterable[Lexeme], diagnostics: list[Diagnostic]
) -> Iterator[Lexeme]:
    """Leave out annotations such as `@[doc = "…"]` and `@![doc = "…"]`, which change nothing.

    The lexeme after one that starts a line counts as the start of a line.
    """
    first: Lexeme | None = None
    depth = 0
    starts_line = False
    for lexeme in lexemes:
        if depth:
            is_opening = lexeme.type in _OPENING or lexeme.type == "ANNOTATION"
            depth += is_opening - (lexeme.type in _CLOSING)
        elif lexeme.type == "ANNOTATION":
            first, depth = lexeme, 1
            starts_line |= lexeme.starts_line
        else:
            yield replace(lexeme, starts_line=True) if starts_line else lexeme
            starts_line = False
    if depth and first is not None:
        message = "This annotation is never closed."
        diagnostics.append(Diagnostic("C0101", message, first.span, "add `]`"))


def _join_questions(lexemes: Iterable[Lexeme]) -> list[Lexeme]:
    """Make one name of each word and the question marks behind it, as in `x?`, `_?` and `?`.

    Behind the type of a column one means that null is a value, and at the end of a goal nothing.
    """
    joined: list[Lexeme] = []
    item, depth = "", 0
    everything = list(lexemes)
    for lexeme, following in zip_longest(everything, everything[1:]):
        if lexeme.type == "DOT" or lexeme.type in DIRECTIVES.values():
            item, depth = lexeme.type, 0
        depth += (lexeme.type in _OPENING) - (lexeme.type in _CLOSING)
        if item == "DECL" and lexeme.type == "RPAR" and not depth:
            item = ""
        after = "" if following is None else following.type
        is_type = item in ("DECL", "TYPE", "FUNCTOR") and after not in ("LPAR", "LBRACE", "_COLON")
        if lexeme.type != "_QUESTION" or is_type or not after:
            joined.append(lexeme)
            continue
        before = joined.pop() if lexeme.is_adjacent and joined[-1].type in _NAME_STARTS else lexeme
        name = "?" if before is lexeme else f"{before.value!s}?"
        span = before.span.to(lexeme.span)
        joined.append(replace(before, type="IDENT", text=name, value=name, span=span))
    return joined


def _classify(found: re.Match[str], written: str, span: Span) -> tuple[str, Value]:
    match found.lastgroup:
        case "word" if written == "__LINE__":
            return "INT", span.line
        case "word" if written == "__FILE__":
            return "STRING", span.file.name
        case "word":
            written = normalised_name(written)
            if found["dots"]:
                return "DOTTED", written
            return _WORDS.get(written, "IDENT"), _VALUES.get(written, written)
        case "sign":
            return _SIGNS[written], written
        case "address":
            return "INT", literals.read_address(written)
        case "number":
            # The value is read later, when it is known whether a minus sign is part of it.
            return ("FRACTION" if literals.is_fraction(written) else "INT"), None
        case "quoted":
            if found["open"] is not None:
                return "BAD", written
            type_, read = _QUOTED[written[0]]
            return type_, read(written[written.index('"') + 1 : -1])
        case "name":
            return (
                ("QUOTED", literals.read_string(written[1:-1]))
                if found["shut"]
                else ("BAD", written)
            )
        case "parameter":
            name = written[1:]
            is_quoted = name.startswith("`")
            return "PARAMETER", (
                literals.read_string(name[1:-1]) if is_quoted else normalised_name(name)
            )
        case "directive":
            return DIRECTIVES.get(written, "BAD"), written
        case "branch":
            return "BRANCH", normalised_name(written)
        case "state":
            return "STATE", written[1:]
        case "annotation":
            return "ANNOTATION", written
        case "applied":
            return "APPLIED", normalised_name(written)
        case _:
            return "BAD", written


def _join_signs(lexemes: list[Lexeme], diagnostics: list[Diagnostic]) -> Iterator[Lexeme]:
    """Give numbers their values; a minus sign that is not an operator becomes part of its number.

    So `-9223372036854775808` is in range. `-2 ^ 2` is `-(2 ^ 2)`, where the sign is an operator.
    """
    previous = ""
    index = 0
    while index < len(lexemes):
        lexeme = lexemes[index]
        if lexeme.type == "MINUS" and previous not in _OPERAND_ENDS and index + 1 < len(lexemes):
            number = lexemes[index + 1]
            is_power = index + 2 < len(lexemes) and lexemes[index + 2].text == "^"
            if number.type in ("INT", "FRACTION") and not is_power and number.value is None:
                index += 1
                span = lexeme.span.to(number.span)
                text = lexeme.text + number.text
                lexeme = replace(lexeme, type=number.type, text=text, value=None, span=span)
        if lexeme.value is None and lexeme.type in ("INT", "FRACTION"):
            lexeme = _with_value(lexeme, diagnostics)
        yield lexeme
        previous = lexeme.type
        index += 1


def _with_value(lexeme: Lexeme, diagnostics: list[Diagnostic]) -> Lexeme:
    read: Callable[[str], Value] = (
        literals.read_integer if lexeme.type == "INT" else literals.read_fraction
    )
    try:
        return replace(lexeme, value=read(lexeme.text))
    except literals.LiteralError as error:
        diagnostics.append(Diagnostic("C0103", error.message, lexeme.span, error.note))
        return replace(lexeme, type="INT", value=0)


def _mark_is(lexemes: list[Lexeme]) -> Iterator[Lexeme]:
    """Distinguish the operator of `x is y` from names: it follows an operand, and names do not.

    Only a clause may follow a declaration's bracket: `is(1).` at the start of a line is a name.
    """
    previous = ""
    for lexeme, following in zip_longest(lexemes, lexemes[1:]):
        is_call = following is not None and following.type == "LPAR" and following.is_adjacent
        is_name = previous not in _OPERAND_ENDS or (lexeme.starts_line and is_call)
        marked = replace(lexeme, type="IS") if lexeme.text == "is" and not is_name else lexeme
        yield marked
        previous = marked.type


class _CallMarker:
    """Tells calls of functions whose names are not reserved from relations of the same name.

    A word before a bracket is a call wherever a term must stand: inside the brackets of an atom or
    a call, beside an operator or a comparison. Anywhere else it is an atom.
    """

    def __init__(self, lexemes: list[Lexeme], is_body: bool) -> None:
        self._lexemes = lexemes
        self._is_goal = self._is_body = is_body
        self._holds_terms: list[bool] = []  # of each open bracket
        self._closing: dict[int, int] = {}
        opened: list[int] = []
        for index, lexeme in enumerate(lexemes):
            if lexeme.type in _OPENING:
                opened.append(index)
            elif lexeme.type in _CLOSING and opened:
                self._closing[opened.pop()] = index

    def marked(self) -> list[Lexeme]:
        """Return the lexemes, the names of such calls as functions."""
        for index, lexeme in enumerate(self._lexemes):
            self._follow(index, lexeme)
            is_named = lexeme.type == "IDENT" and _is_open(lexeme)
            if is_named and self._type(index + 1) == "LPAR" and self._is_call(index):
                name = _ALIASES.get(lexeme.text, lexeme.text)
                self._lexemes[index] = replace(lexeme, type="FUNCTION", text=name, value=name)
            elif self._is_holistic(index, lexeme):
                self._lexemes[index] = replace(lexeme, type="HOLISTIC")
        return self._lexemes

    def _is_holistic(self, index: int, lexeme: Lexeme) -> bool:
        """Whether a word is that of an aggregate, as in `v = var_pop(x) : { p(x) }`."""
        if lexeme.type != "IDENT" or lexeme.text not in HOLISTIC:
            return False
        closing = self._closing.get(index + 1)
        return closing is not None and self._type(closing + 1) == "_COLON"

    def _type(self, index: int) -> str:
        return self._lexemes[index].type if 0 <= index < len(self._lexemes) else ""

    def _follow(self, index: int, lexeme: Lexeme) -> None:
        """Note where in an item the lexeme is."""
        if lexeme.type == "IF":
            self._is_body = True
        elif lexeme.type == "DOT" or lexeme.type in DIRECTIVES.values():
            self._is_body, self._holds_terms = self._is_goal, []
        elif lexeme.type == "LPAR":
            is_inside = bool(self._holds_terms) and self._holds_terms[-1]
            self._holds_terms.append(is_inside or self._type(index - 1) in _BEFORE_TERMS)
        elif lexeme.type in ("LBRACE", "LBRACKET"):
            self._holds_terms.append(lexeme.type == "LBRACKET")
        elif lexeme.type in _CLOSING and self._holds_terms:
            self._holds_terms.pop()

    def _is_call(self, index: int) -> bool:
        if self._holds_terms and self._holds_terms[-1]:
            return True
        before = self._type(index - 1)
        if not (self._is_body or self._holds_terms) or before == "_COLON":
            return False
        if before in _OPERATORS:
            return True
        if before in ("PLUS", "MINUS") and self._type(index - 2) in _OPERAND_ENDS:
            return True
        first, last = index, self._closing.get(index + 1, len(self._lexemes))
        while self._type(last + 1) == "RPAR" and self._type(first - 1) == "LPAR":
            first, last = first - 1, last + 1
        return self._type(last + 1) in _OPERATORS | {"PLUS", "MINUS"}


def _mark_brackets(lexemes: list[Lexeme]) -> Iterator[Lexeme]:
    """Distinguish the brackets of `Graph<Node>` in components from comparisons."""
    is_component = False
    for lexeme in lexemes:
        if lexeme.type in ("COMP", "INIT"):
            is_component = True
        elif lexeme.type in ("LPAR", "LBRACE", "IF", "DOT") or lexeme.text in DIRECTIVES:
            is_component = False
        if is_component and lexeme.text in _BRACKETS:
            yield replace(lexeme, type=_BRACKETS[lexeme.text])
        else:
            yield lexeme


def _mark_stateful(lexemes: list[Lexeme]) -> Iterator[Lexeme]:
    """Distinguish the last word of `.functor f(x: number): number stateful` from a name."""
    is_functor = False
    previous = ""
    for lexeme, following in zip_longest(lexemes, lexemes[1:]):
        if lexeme.text in DIRECTIVES or lexeme.type == "DOT":
            is_functor = lexeme.type == "FUNCTOR"
        is_name = previous in ("FUNCTOR", "LPAR", "_COMMA", "_COLON") or (
            following is not None and following.type == "LPAR"
        )
        if is_functor and lexeme.text == "stateful" and not is_name:
            yield replace(lexeme, type="STATEFUL")
        else:
            yield lexeme
        previous = lexeme.type


def _mark_qualifiers(lexemes: list[Lexeme]) -> Iterator[Lexeme]:
    """Distinguish the qualifiers of a declaration from the relation names that begin a clause.

    `stored` and `key` are not reserved, and a declaration has no full stop at its end.
    """
    depth = 0
    is_declaration = False
    for index, lexeme in enumerate(lexemes):
        if lexeme.type == "DECL":
            is_declaration, depth = True, 0
        elif is_declaration and lexeme.type in ("LPAR", "RPAR"):
            depth += 1 if lexeme.type == "LPAR" else -1
        elif is_declaration and depth == 0 and index and lexemes[index - 1].type != "DECL":
            following = lexemes[index + 1].type if index + 1 < len(lexemes) else ""
            if lexeme.type == "IDENT" and lexeme.text == "key" and _is_key(lexemes, index):
                yield replace(lexeme, type="KEY")
                continue
            if _is_choice(lexemes, index):
                yield replace(lexeme, type="CHOICE")
                is_declaration = False
                continue
            if lexeme.type == "IDENT" and lexeme.text in QUALIFIERS and following != "LPAR":
                yield replace(lexeme, type="QUALIFIER")
                continue
            is_declaration = lexeme.type == "_COMMA" or lexemes[index - 1].type == "_COMMA"
        yield lexeme


def _is_choice(lexemes: list[Lexeme], index: int) -> bool:
    """Whether `choice-domain` begins here."""
    texts = [lexeme.text for lexeme in lexemes[index : index + 3]]
    return texts == ["choice", "-", "domain"]


def _is_key(lexemes: list[Lexeme], index: int) -> bool:
    """Whether `key(…)` is a qualifier: not the start of a clause or of a list of heads."""
    if index + 1 >= len(lexemes) or lexemes[index + 1].type != "LPAR":
        return False
    close = next((i for i in range(index, len(lexemes)) if lexemes[i].type == "RPAR"), len(lexemes))
    following = lexemes[close + 1].type if close + 1 < len(lexemes) else ""
    return following not in ("DOT", "IF", "_COMMA")
