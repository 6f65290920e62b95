"""The oracle's own parser of `.dl` text: a tokenizer and a recursive descent, no grammar tool.

It shares no code with the package, so that a slip in one parser does not hide in the other.
`parse` gives a `Program` of declarations, rules, alerts and constraints; directives that do not
change what is true (`.input`, `.output`, `.printsize`, `.plan`, `.fd`, ...) are read and dropped.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

from oracles import scalars


def opposite(value: Any) -> Any:
    """The number with the other sign, all digits kept: the minus of decimals rounds them."""
    return value.copy_negate() if isinstance(value, Decimal) and value else -value


class OracleRejected(ValueError):  # noqa: N818 (a verdict, as OracleLimit is)
    """The program is not a valid one (syntax, types, safety, strata) for the oracle."""


@dataclass(frozen=True, slots=True)
class Var:
    """A variable; each `_` is its own variable, named `_#n`."""

    name: str

    @property
    def is_wild(self) -> bool:
        return self.name.startswith("_#")


@dataclass(frozen=True, slots=True)
class Lit:
    """A literal: kind is int, uint, frac, symbol, bool, date, timestamp or null."""

    kind: str
    value: object


@dataclass(frozen=True, slots=True)
class Fn:
    """A functor applied to arguments: `+`, `neg`, `cat`, `range`, ..."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Agg:
    """An aggregate `op target : { body }`."""

    op: str
    target: Expr | None
    body: Formula


@dataclass(frozen=True, slots=True)
class Atom:
    """`relation(args)`; mark is `+`, `-`, `old`, `new` or empty."""

    relation: str
    args: tuple[Expr, ...]
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Cmp:
    """A comparison or `match`/`contains` (and `!match`, `!contains` once negated)."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Not:
    inner: Formula


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool


Expr: TypeAlias = Var | Lit | Fn | Agg
Formula: TypeAlias = Atom | Cmp | Not | And | Or | Truth


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as written: a name, the arguments of `decimal(p,s)`, and whether `?` follows."""

    name: str
    args: tuple[int, ...] = ()
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Decl:
    name: str
    columns: tuple[TypeName, ...]
    is_eqrel: bool
    names: tuple[str, ...] = ()
    domains: tuple[tuple[int, ...], ...] = ()
    """The columns of each choice domain."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`heads :- body.`, or null-safe, `heads := body.`: null joins null."""

    heads: tuple[Atom, ...]
    body: Formula
    is_null_safe: bool = False


@dataclass(frozen=True, slots=True)
class Subsumption:
    """`head <= dominating :- body.`: the head goes if another tuple, the dominating, is there."""

    head: Atom
    dominating: Atom
    body: Formula
    is_null_safe: bool = False


@dataclass(frozen=True, slots=True)
class Reaction:
    """`.alert e "message"` or `.abort e "message"`."""

    kind: str
    relation: str
    message: str


@dataclass(slots=True)
class Program:
    types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    records: dict[str, dict[str, tuple[TypeName, ...]]] = field(default_factory=dict)
    """Of each type of records the branches, `[]` or `$Name`, and the types of their fields."""
    decls: dict[str, Decl] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    subsumptions: list[Subsumption] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    bags: dict[str, list[tuple[Expr, ...]]] = field(default_factory=dict)
    """The facts of relations with copies: each is one copy."""
    bits: int = 64
    has_rounds: bool = False
    """Whether subsumption is evaluated in rounds."""


COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
OF_TIMES = frozenset((
    "year", "quarter", "month", "day", "week_year", "week", "weekday", "day_of_year", "hour",
    "minute", "second", "microsecond", "days_between", "seconds_between", "microseconds_between",
    "add_days", "add_months", "add_seconds", "add_microseconds",
    "start_of_year", "start_of_quarter", "start_of_month",
    "start_of_week", "start_of_day", "start_of_hour", "start_of_minute", "start_of_second",
    "format_time", "parse_date", "parse_time",
))  # fmt: skip
OPEN = OF_TIMES | scalars.NAMES | {"window"}
"""Functors that are not reserved: what begins a literal is a relation unless a sign follows."""
FUNCTORS = OPEN | frozenset((
    "band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru", "land", "lor", "lxor", "lnot", "min",
    "max", "cat", "strlen", "substr", "ord", "range", "to_number", "to_string", "to_float",
    "to_unsigned", "to_decimal", "to_date", "to_timestamp",
))  # fmt: skip
AGGREGATES = frozenset(("count", "sum", "min", "max", "mean"))
QUALIFIERS = frozenset((
    "inline", "brie", "btree", "btree_delete", "eqrel", "virtual", "stored", "magic", "no_magic",
    "no_inline", "input", "output", "printsize", "bag",
))  # fmt: skip
# From loosest to tightest; unary operators and then `^` bind tighter still.
LEVELS = (
    ("lor",), ("lxor",), ("land",), ("bor",), ("bxor",), ("band",),
    ("bshl", "bshr", "bshru"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<literal>[dt]?"(?:[^"\\]|\\.)*")
      | (?P<number>0[xX][0-9a-fA-F]+u?|0[bB][01]+u?|[0-9]+\.[0-9]+|[0-9]+u?)
      | (?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)+(?=[(@,]|[ ]*(?:\n|\Z))|(?:[^\W\d]|\?)[\w?]*)
      | (?P<op>:-|:=|<:|!=|<=|>=|->|[-+*/%^=<>!.,;:(){}|@?\[\]$])""",
    re.VERBOSE | re.DOTALL,
)
ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "r": "\r"}
STAMP = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)


def read_date(text: str) -> date:
    """Read `2026-11-15`; anything else is a ValueError."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError(f"not a date: {text!r}")
    return date.fromisoformat(text)


def read_timestamp(text: str) -> datetime:
    """Read `2026-11-15T08:00:00Z`, with a fraction or an offset if wanted, as UTC."""
    found = STAMP.fullmatch(text)
    if not found:
        raise ValueError(f"not a timestamp: {text!r}")
    day, time, fraction, zone = found.groups()
    micros = (fraction or ".0")[1:].ljust(6, "0")
    zone = "+00:00" if zone == "Z" else zone
    return datetime.fromisoformat(f"{day}T{time}.{micros}{zone}").astimezone(UTC)


def tokenize(text: str) -> list[tuple[str, str]]:
    """Cut the text into (kind, text) pairs; the last one is ("end", "")."""
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        found = TOKEN.match(text, position)
        if not found:
            line = text.count("\n", 0, position) + 1
            raise OracleRejected(f"line {line}: cannot read {text[position : position + 10]!r}")
        kind = str(found.lastgroup)
        if kind != "skip":
            tokens.append((kind, found.group()))
        position = found.end()
    return [*tokens, ("end", "")]


class Parser:
    """One method per construct; `self.at` is the index of the next token."""

    def __init__(self, text: str) -> None:
        self.tokens = tokenize(text)
        self.at = 0
        self.wilds = 0
        self.program = Program()

    # tokens

    def peek(self, ahead: int = 0) -> str:
        """The text of a coming token; a string literal keeps its quotes, so it equals no word."""
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][1]

    def kind(self) -> str:
        return self.tokens[self.at][0]

    def fail(self, wanted: str) -> NoReturn:
        near = " ".join(text for _, text in self.tokens[max(0, self.at - 5) : self.at + 3])
        raise OracleRejected(f"expected {wanted}, found {self.peek()!r} near: {near}")

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, text: str) -> bool:
        if self.peek() == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(repr(text))

    def name(self) -> str:
        if self.kind() != "name":
            self.fail("a name")
        return self.take()

    def integer(self) -> int:
        if self.kind() != "number":
            self.fail("an integer")
        return int(self.take(), 0)

    def skip_group(self) -> None:
        """Skip `( ... )` if it comes next."""
        if self.accept("("):
            depth = 1
            while depth:
                if self.kind() == "end":
                    self.fail("')'")
                depth += {"(": 1, ")": -1}.get(self.take(), 0)

    # statements

    def parse(self) -> Program:
        while self.kind() != "end":
            if self.accept("."):
                self.directive(self.name())
            else:
                self.rule()
        for name in self.program.bags:
            self.expand_bag(name)
        return self.program

    def expand_bag(self, name: str) -> None:
        """Declare the counts of a bag; the bag is their projection, its facts are copies."""
        bag = self.program.decls[name]
        columns = (*bag.columns, TypeName("number"))
        self.program.decls[f"{name}.rows"] = Decl(f"{name}.rows", columns, False)
        rules, copies = [], self.program.bags[name]
        for rule in self.program.rules:
            is_fact = rule.body == Truth(True) and not rule.heads[0].mark
            if is_fact and rule.heads[0].relation == name:
                copies += [head.args for head in rule.heads]
            elif any(head.relation == name and not head.mark for head in rule.heads):
                raise OracleRejected(f"a rule of the bag {name}")
            else:
                rules.append(rule)
        row = tuple(Var(f"v{at}") for at in range(len(bag.columns)))
        counts = Atom(f"{name}.rows", (*row, Var("_")))
        self.program.rules = [*rules, Rule((Atom(name, row),), counts, True)]

    def directive(self, word: str) -> None:
        match word:
            case "type":
                self.type_definition()
            case "decl":
                self.declaration()
            case "input" | "output" | "printsize" | "limitsize" | "fd":
                self.name()
                self.skip_group()
                while self.accept(","):
                    self.name()
                    self.skip_group()
            case "alert" | "abort":
                relation = self.name()
                message = quoted_literal(self.take())
                if message.kind != "symbol":
                    raise OracleRejected(f"a message of .{word} is no {message.kind}")
                self.program.reactions.append(Reaction(word, relation, str(message.value)))
                self.skip_group()
            case "pragma":
                texts = []
                while self.kind() == "literal":
                    texts.append(quoted_literal(self.take()).value)
                if texts[:1] == ["arithmetic"]:
                    self.program.bits = 32 if texts[1:] == ["32"] else 64
                if texts == ["subsumption", "rounds"]:
                    self.program.has_rounds = True
            case "plan":
                while True:
                    self.integer()
                    self.expect(":")
                    self.skip_group()
                    if not self.accept(","):
                        break
            case _:
                raise OracleRejected(f".{word} is not supported")

    def type_definition(self) -> None:
        name = self.name()
        if not (self.accept("<:") or self.accept("=")):
            self.fail("'<:' or '='")
        if self.peek() == "[":
            self.program.records[name] = {"[]": self.fields("[", "]")}
            return
        if self.peek(1) == "{":
            branches: dict[str, tuple[TypeName, ...]] = {}
            while not branches or self.accept("|"):
                branch = self.name()
                branches[f"${branch}"] = self.fields("{", "}")
            self.program.records[name] = branches
            return
        members = [self.name()]
        while self.accept("|"):
            members.append(self.name())
        self.program.types[name] = tuple(members)

    def fields(self, opening: str, closing: str) -> tuple[TypeName, ...]:
        self.expect(opening)
        found: list[TypeName] = []
        while not self.accept(closing):
            self.name()
            self.expect(":")
            found.append(self.type_name())
            self.accept(",")
        return tuple(found)

    def declaration(self) -> None:
        names = [self.name()]
        while self.accept(","):
            names.append(self.name())
        self.expect("(")
        columns: list[TypeName] = []
        labels: list[str] = []
        while self.peek() != ")":
            labels.append(self.name())
            self.expect(":")
            columns.append(self.type_name())
            if not self.accept(","):
                break
        self.expect(")")
        words = set()
        while self.peek() in QUALIFIERS or (self.peek() == "key" and self.peek(1) == "("):
            words.add(self.take())
            self.skip_group()
        domains = []
        if (self.peek(), self.peek(1), self.peek(2)) == ("choice", "-", "domain"):
            for _ in range(3):
                self.take()
            domains.append(self.domain(labels))
            while self.accept(","):
                domains.append(self.domain(labels))
        for name in names:
            if name in self.program.decls:
                raise OracleRejected(f"{name} is declared twice")
            self.program.decls[name] = Decl(
                name, tuple(columns), "eqrel" in words, tuple(labels), tuple(domains)
            )
            if "bag" in words:
                self.program.bags[name] = []

    def domain(self, labels: list[str]) -> tuple[int, ...]:
        """A column, or several in brackets."""
        if not self.accept("("):
            return (labels.index(self.name()),)
        found = [labels.index(self.name())]
        while self.accept(","):
            found.append(labels.index(self.name()))
        self.expect(")")
        return tuple(found)

    def type_name(self) -> TypeName:
        name = self.name()
        nullable = name.endswith("?")
        name = name.rstrip("?")
        args: list[int] = []
        if name == "decimal":
            self.expect("(")
            args = [self.integer()]
            self.expect(",")
            args.append(self.integer())
            self.expect(")")
            nullable = self.accept("?")
        return TypeName(name, tuple(args), nullable)

    def rule(self) -> None:
        heads = [self.atom()]
        dominating = self.atom() if self.accept("<=") else None
        while self.accept(","):
            heads.append(self.atom())
        body: Formula = Truth(True)
        is_null_safe = self.peek() == ":="
        if self.accept(":-") or self.accept(":="):
            body = self.formula()
        self.expect(".")
        if dominating is not None:
            clause = Subsumption(heads[0], dominating, body, is_null_safe)
            self.program.subsumptions.append(clause)
            return
        self.program.rules.append(Rule(tuple(heads), body, is_null_safe))

    # formulas

    def atom(self) -> Atom:
        """A head or body atom, with `+`/`-` before or `@old`/`@new` after its name."""
        mark = self.take() if self.peek() in ("+", "-") else ""
        relation = self.name()
        if self.accept("@"):
            mark = self.name()
        return Atom(relation, self.arguments(), mark)

    def arguments(self) -> tuple[Expr, ...]:
        self.expect("(")
        args: list[Expr] = []
        if self.peek() != ")":
            args.append(self.expression())
            while self.accept(","):
                args.append(self.expression())
        self.expect(")")
        return tuple(args)

    def formula(self) -> Formula:
        parts = [self.conjunction()]
        while self.accept(";"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def conjunction(self) -> Formula:
        parts = [self.literal()]
        while self.accept(","):
            parts.append(self.literal())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def literal(self) -> Formula:
        if self.accept("!"):
            return Not(self.literal())
        if self.peek() in ("match", "contains") and self.peek(1) == "(":
            op, args = self.take(), self.arguments()
            if len(args) != 2:
                raise OracleRejected(f"{op} takes two arguments")
            return Cmp(op, *args)
        if self.starts_atom():
            return self.atom()
        start = self.at
        try:
            left = self.expression()
            if self.peek() not in (*COMPARISONS, "is"):
                self.fail("a comparison")
            return Cmp(self.take(), left, self.expression())
        except OracleRejected:
            failed, self.at = self.at, start
            if self.accept("("):
                inner = self.formula()
                self.expect(")")
                return inner
            if self.peek() in ("true", "false"):
                return Truth(self.take() == "true")
            self.at = failed
            raise

    def starts_atom(self) -> bool:
        ahead = 1 if self.peek() in ("+", "-") else 0
        word = self.peek(ahead)
        if not re.match(r"[^\W\d]|\?", word) or word.endswith('"'):
            return False
        if self.peek(ahead + 1) == "@":
            return True
        reserved = word in FUNCTORS or word in AGGREGATES
        if word in OPEN:
            reserved = self.is_term(ahead + 1)
        return self.peek(ahead + 1) == "(" and not reserved

    def is_term(self, ahead: int) -> bool:
        """Whether an operator follows the brackets that open at a coming token."""
        depth = 0
        while self.peek(ahead):
            depth += {"(": 1, ")": -1}.get(self.peek(ahead), 0)
            ahead += 1
            if depth == 0:
                break
        return self.peek(ahead) in (*COMPARISONS, *itertools.chain(*LEVELS), "^", "is")

    # expressions

    def expression(self, level: int = 0) -> Expr:
        if level == len(LEVELS):
            return self.unary()
        left = self.expression(level + 1)
        while self.peek() in LEVELS[level]:
            op = self.take()
            left = Fn(op, (left, self.expression(level + 1)))
        return left

    def unary(self) -> Expr:
        if self.accept("-"):
            inner = self.unary()
            if isinstance(inner, Lit) and inner.kind in ("int", "frac"):
                return Lit(inner.kind, opposite(inner.value))
            return Fn("neg", (inner,))
        if self.peek() in ("bnot", "lnot") and self.peek(1) != "(":
            return Fn(self.take(), (self.unary(),))
        base = self.primary()
        return Fn("^", (base, self.unary())) if self.accept("^") else base

    def primary(self) -> Expr:
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            return inner
        if self.accept("["):
            items: list[Expr] = []
            while not self.accept("]"):
                items.append(self.expression())
                self.accept(",")
            return Fn("[]", tuple(items))
        if self.accept("$"):
            return Fn(f"${self.name()}", self.arguments() if self.peek() == "(" else ())
        if self.kind() == "number":
            return number_literal(self.take())
        if self.kind() == "literal":
            return quoted_literal(self.take())
        word = self.name()
        if word in ("true", "false"):
            return Lit("bool", word == "true")
        if word == "nil":
            return Fn("nil", ())
        if word == "null":
            return Lit("null", None)
        if word == "_":
            self.wilds += 1
            return Var(f"_#{self.wilds}")
        if word in AGGREGATES:
            return self.aggregate_or_functor(word)
        if self.peek() == "(":
            if word not in FUNCTORS:
                self.fail("a functor")
            return Fn(word, self.arguments())
        return Var(word)

    def aggregate_or_functor(self, word: str) -> Expr:
        """`min e : { ... }` or, when that does not parse, `min(a, b)`; a variable otherwise."""
        start = self.at
        try:
            target = None if word == "count" else self.expression()
            self.expect(":")
        except OracleRejected:
            self.at = start
            if word in FUNCTORS and self.peek() == "(":
                return Fn(word, self.arguments())
            raise
        if self.accept("{"):
            body = self.formula()
            self.expect("}")
        else:
            body = self.atom()
        return Agg(word, target, body)


def number_literal(text: str) -> Lit:
    if "." in text:
        return Lit("frac", Decimal(text))
    if text.endswith("u"):
        return Lit("uint", int_of(text[:-1]))
    return Lit("int", int_of(text))


def int_of(text: str) -> int:
    return int(text, 0) if text[:2].lower() in ("0x", "0b") else int(text, 10)


def quoted_literal(text: str) -> Lit:
    if text[0] in "dt":
        body = text[2:-1]
        try:
            if text[0] == "d":
                return Lit("date", read_date(body))
            return Lit("timestamp", read_timestamp(body))
        except ValueError as error:
            raise OracleRejected(str(error)) from None

    def unescape(found: re.Match[str]) -> str:
        if found.group(1) not in ESCAPES:
            raise OracleRejected(f"unknown escape {found.group()}")
        return ESCAPES[found.group(1)]

    return Lit("symbol", re.sub(r"\\(.)", unescape, text[1:-1]))


def parse(text: str) -> Program:
    """Parse a whole program.

    >>> parse(".decl p(x: number) p(1). p(x + 1) :- p(x), x < 3.").rules[1].heads[0].relation
    'p'
    """
    return Parser(text).parse()
