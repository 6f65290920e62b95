"""What a functor is: one frozen `FunctorSpec`, from which everything else about it follows.

The row of a functor has its signature in the notation of a declaration, and what differs from the
usual. Engines attach the code that computes it by its name; parsers, type inference, rewritings,
the SQL front end, the SQL compilers and the tables of docs/ read the row.

>>> spec = define("repeat(s: symbol, n: number) -> symbol", "the text n times", is_fallible=True)
>>> spec.name, spec.arguments, str(spec.result), spec.accepts(2)
('repeat', ('s', 'n'), 'symbol', True)
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from functools import cache
from typing import Any

from corollary.core.types import NUMERIC, Kind
from corollary.data_class import dataclass

Kinds = frozenset[Kind]

ANY: Kinds = frozenset(Kind)
INTEGRAL: Kinds = frozenset({Kind.NUMBER, Kind.UNSIGNED})
ORDERED: Kinds = ANY - {Kind.RECORD, Kind.MAP}
"""The kinds whose values have an order."""
TEXT: Kinds = frozenset({Kind.SYMBOL})
WHOLE: Kinds = frozenset({Kind.NUMBER})
DOUBLE: Kinds = frozenset({Kind.FLOAT})
TRUTH: Kinds = frozenset({Kind.BOOL})
DAY: Kinds = frozenset({Kind.DATE})
MOMENT: Kinds = frozenset({Kind.TIMESTAMP})
TIME: Kinds = DAY | MOMENT
BYTES: Kinds = frozenset({Kind.BINARY})
ARRAYS: Kinds = frozenset({Kind.ARRAY})
STRUCTS: Kinds = frozenset({Kind.STRUCT})
MAPS: Kinds = frozenset({Kind.MAP})

LETTERS = ("T", "U", "V", "K")
"""The words for types that are the same in the whole of a signature."""

_KINDS: Mapping[str, Kinds] = {
    **{str(kind): frozenset({kind}) for kind in Kind},
    "any": ANY,
    "ordered": ORDERED,
    "numeric": NUMERIC,
    "integral": INTEGRAL,
    "countable": INTEGRAL | DOUBLE,
    "convertible": NUMERIC | TEXT | {Kind.BOOL},
    "time": TIME,
    **dict.fromkeys(LETTERS, ANY),
}
"""The words for kinds in signatures; a letter is any type, the same one in the whole of it.

A lambda is `(T,number?)->U`; what its body gives counts as its kind.
"""

NESTED_SHAPES = {"[": Kind.ARRAY, "{": Kind.MAP, "(": Kind.STRUCT}
"""What nested types begin with in signatures: `[T]`, `{K,V}`, and `(K,V)` for an entry."""


class Nullness(StrEnum):
    """When the result of a functor is null."""

    STRICT = "strict"
    """Where an argument is null."""

    LOGIC = "logic"
    """Where no argument decides, and one is null."""

    CHOICE = "choice"
    """Where the argument that is chosen is null."""

    ALL = "all"
    """Where all arguments are null."""

    NEVER = "never"

    ALWAYS = "always"
    """It may be null even where no argument is."""


class Word(StrEnum):
    """What becomes of a result in 32-bit arithmetic, if all arguments are words of 32 bits."""

    CHECKED = "checked"
    """It fails where it is none."""

    WRAPPED = "wrapped"
    """Its low 32 bits count; a float is rounded to single precision."""

    CLOSED = "closed"
    """It is one."""


class Monotone(StrEnum):
    """With which arguments the result of a functor grows."""

    NONE = "none"
    FIRST = "first"
    """With the first one, if that is a number."""
    ALL = "all"


class Digits(StrEnum):
    """How many digits before the point a decimal can have that a functor computes."""

    WIDEST = "widest"
    """As many as the argument that has most of them."""
    FIRST = "first"
    """As many as the first argument."""
    CARRY = "carry"
    """One more than the widest."""
    PRODUCT = "product"
    """As many as the first two together."""
    QUOTIENT = "quotient"
    """Those of the first, and those after the point of the second."""
    ROUNDED = "rounded"
    """One more than the first: 9.99 becomes 10.00."""
    RESCALED = "rescaled"
    """One more than the first, where it loses digits after the point."""


@dataclass(frozen=True, slots=True)
class FunctorSpec:
    """The parameters and the result of a functor, and all else that is known of it.

    Attributes:
        name: the operator's sign or the function's name.
        parameters: the kinds that each argument may have.
        arguments: the names of the arguments.
        doc: what it gives, a line of docs/language.md.
        section: the table of docs/language.md that it is in.
        optional: the number of parameters at the end that may be left out.
        is_variadic: whether the last parameter may be repeated.
        result: the kind of the result; None where all operands and the result have one kind, or
            where it is that of the first operand.
        is_like_first: whether the result has the kind of the first operand, and others their own.
        operands: the number of arguments that have one kind and give their digits to the result.
        is_fallible: whether it can fail at run time (overflow, division by zero, conversion).
        is_expanding: whether applying it repeatedly can make new values without end.
        nullness: when its result is null.
        is_lazy: whether an argument without a value does not matter where others decide.
        is_paired: whether arguments are pairs of a test and a value, and one more value.
        is_choice: whether its result is one of its arguments.
        is_mixing: whether it takes an integer beside a decimal.
        comparison: the operator of the comparison that it is.
        is_comparing: whether it compares its two arguments, whose digits may differ.
        is_conversion: whether it is the usual conversion to the kind of its result.
        scale_at: the argument that says how many digits the result has after the point.
        literals: the values of the arguments that must be literals, by position.
        patterns: the arguments that are regular expressions, literals.
        time_letters: the letters that may follow `%` in the second argument, a format.
        word: what becomes of its result in 32-bit arithmetic.
        monotone: with which arguments it grows.
        digits: how many digits a decimal result can have.
        precedence: that of an infix operator, 0 for others.
        prefix: the sign or word of a prefix operator.
        is_reserved: whether its name cannot be one of a variable or relation.
        aliases: other names in programs.
        shape: for functors of arrays and maps, the types of parameters and result as written.
        sql_names: the functions of SQL that are this functor, argument by argument.
        readable: SQL for people, where values have their usual types: `show --as sql`.
        exact: SQL that computes the same for all values, in the types of an engine's tables; null
            where there is no value.

    Templates of SQL name the arguments; `arguments` stands for all, `RESULT` for the type of the
    result. A key of a template has the names of dialects and of kinds of the first argument that it
    holds for, all of them where it has none: `duckdb number unsigned`.
    """

    name: str
    parameters: tuple[Kinds, ...]
    arguments: tuple[str, ...] = ()
    doc: str = ""
    section: str = ""
    optional: int = 0
    is_variadic: bool = False
    result: Kind | None = None
    is_like_first: bool = False
    operands: int | None = None
    is_fallible: bool = False
    is_expanding: bool = False
    nullness: Nullness = Nullness.STRICT
    is_lazy: bool = False
    is_paired: bool = False
    is_choice: bool = False
    is_mixing: bool = False
    comparison: str = ""
    is_comparing: bool = False
    is_conversion: bool = False
    scale_at: int | None = None
    literals: Mapping[int, Sequence[int | str]] = field(default_factory=dict)
    patterns: tuple[int, ...] = ()
    time_letters: str = ""
    word: Word = Word.CHECKED
    monotone: Monotone = Monotone.NONE
    digits: Digits = Digits.WIDEST
    precedence: int = 0
    prefix: str = ""
    is_reserved: bool = False
    aliases: tuple[str, ...] = ()
    shape: tuple[str, ...] = ()
    sql_names: tuple[str, ...] = ()
    readable: Mapping[str, str] = field(default_factory=dict)
    exact: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether it is a function whose name is not reserved: relations may be called so."""
        is_word = self.is_reserved or self.precedence or self.prefix
        return self.name.isidentifier() and not is_word

    @property
    def min_arguments(self) -> int:
        """The smallest number of arguments."""
        return len(self.parameters) - self.optional

    @property
    def max_arguments(self) -> int | None:
        """The largest number of arguments; None without a bound."""
        return None if self.is_variadic else len(self.parameters)

    def accepts(self, count: int) -> bool:
        """Whether it can be applied to `count` arguments."""
        is_enough = self.min_arguments <= count and (
            self.max_arguments is None or count <= self.max_arguments
        )
        return is_enough and (count % 2 == 1 or not self.is_paired)

    def kinds(self, position: int, count: int = 1) -> Kinds:
        """Return the kinds that the argument at a position of `count` may have."""
        if self.is_paired:
            return self.parameters[position % 2 if position < count - 1 else -1]
        return self.parameters[min(position, len(self.parameters) - 1)]

    def shape_at(self, position: int) -> str:
        """Return the type of an argument as written."""
        return self.shape[min(position, len(self.parameters) - 1)]

    def lambda_at(self, position: int) -> tuple[str, ...]:
        """Return the types that the parameters of a lambda have as written; none for others.

        >>> define("f(a: [T], f: (T,number?)->U) -> [U]").lambda_at(1)
        ('T', 'number?')
        """
        taken, arrow, _ = self.shape_at(position).rpartition("->") if self.shape else ("", "", "")
        return tuple(taken.strip("()").split(",")) if arrow else ()

    def alike(self, count: int) -> Sequence[int]:
        """Return which of `count` arguments have one kind, and give their digits to the result."""
        if self.is_paired:
            return (*range(1, count, 2), count - 1)
        return range(count if self.operands is None else min(count, self.operands))

    def may_be_null(self, arguments: Sequence[bool]) -> bool:
        """Whether the result may be null, given which of the arguments may be."""
        match self.nullness:
            case Nullness.STRICT | Nullness.LOGIC:
                return any(arguments)
            case Nullness.CHOICE:
                return any(arguments[at] for at in self.alike(len(arguments)))
            case Nullness.ALL:
                return all(arguments)
            case Nullness.NEVER:
                return False
            case Nullness.ALWAYS:
                return True


def find_template(templates: Mapping[str, str], dialect: str, kind: Kind) -> str | None:
    """Return the template for a dialect and the kind of the first argument, the first that fits.

    >>> find_template({"spark": "1", "number": "2", "": "3"}, "duckdb", Kind.FLOAT)
    '3'
    """
    for key, text in templates.items():
        words = set(key.split())
        kinds = words & _KINDS.keys()
        if (not kinds or kind in kinds) and (words == kinds or dialect in words):
            return text
    return None


@cache
def _read_kinds(text: str) -> Kinds:
    text = text.rpartition("->")[2]
    if text[0] in NESTED_SHAPES:
        return frozenset({NESTED_SHAPES[text[0]]})
    return Kinds().union(*(_KINDS[word] for word in text.split("|")))


_SIGNATURE = re.compile(r"([^(]+)\((.*)\)(?: -> (\S+))?")


def define(signature: str, doc: str = "", **fields: Any) -> FunctorSpec:
    """Return the specification of a functor.

    Args:
        signature: as in `name(a: symbol|number, b?: number) -> bool`. The last parameter may be
            repeated where `…` follows; without a result it is that of all operands, and `-> first`
            is that of the first one.
        doc: what it gives.
        fields: what differs from the usual; a template that always holds is a mere text, names are
            a text with blanks between them.
    """
    found = _SIGNATURE.fullmatch(signature)
    assert found is not None, signature
    name, written, result = found.groups()
    parameters = [each.split(": ") for each in written.split(", ") if each not in ("", "…")]
    kinds_of = [kinds for _, kinds in parameters]
    if result is not None and any(
        each in LETTERS or each[0] in NESTED_SHAPES for each in (*kinds_of, result)
    ):
        fields = {"operands": 0, **fields, "shape": (*kinds_of, result)}
        result = NESTED_SHAPES.get(result[0]) or (None if result in LETTERS else result)
    for key in ("readable", "exact"):
        if isinstance(fields.get(key), str):
            fields[key] = {"": fields[key]}
    for key in ("aliases", "sql_names"):
        fields[key] = tuple(fields.get(key, "").split())
    return FunctorSpec(
        name,
        tuple(_read_kinds(kinds) for _, kinds in parameters),
        tuple(argument.rstrip("?") for argument, _ in parameters),
        doc,
        optional=sum(argument.endswith("?") for argument, _ in parameters),
        is_variadic=written.endswith("…"),
        result=None if result in (None, "first") else Kind(result),
        is_like_first=result == "first",
        **fields,
    )


def computed(signature: str, doc: str, template: str, **fields: Any) -> FunctorSpec:
    """Return the specification of a functor that DuckDB computes; SQL has it by the same name."""
    fields.setdefault("sql_names", signature.partition("(")[0])
    return define(signature, doc, exact={"duckdb": template}, **fields)
