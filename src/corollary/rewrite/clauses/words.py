"""32-bit arithmetic: every result becomes a word that wraps around, as in Soufflé's usual build.

With `.pragma "arithmetic" "32"`, a `number` is a word of 32 bits with a sign, an `unsigned` one
without, a `float` has single precision. All are values of the wider types, in which operators
are exact, so that a result only has to be brought back:

| result     | becomes                       | which is                                        |
|------------|-------------------------------|-------------------------------------------------|
| `number`   | `(e bshl 32) bshr 32`         | the low 32 bits of e, the highest as its sign   |
| `unsigned` | `e band 0xffffffff`           | the low 32 bits of e                            |
| `float`    | `•single(e)`                  | e rounded to single precision                   |

Sums, products and differences of words fit into 64 bits (|x · y| ≤ 2⁶²), and the sum of a float
operation in double precision, rounded once more, is the one of single precision. `x - y` of
unsigned words is `(x + 2³²) - y`, and shifts count modulo 32. What converts from other types fails
where the value does not fit. Example: `p(x * x) :- q(x).` becomes

    p(y) :- q(x), y = (x * x) bshl 32 bshr 32.
"""

from dataclasses import replace

from corollary.analysis.traverse import replace_terms
from corollary.core import logic
from corollary.core.functors.catalog import signature_of
from corollary.core.functors.conversions import BITS_OF_SINGLE, SAME_BITS, SINGLE, SINGLE_OF_BITS
from corollary.core.functors.spec import Word
from corollary.core.types import NUMBER, Kind, Type
from corollary.errors import InputError
from corollary.rewrite.translation_unit import Conjunction, TranslationUnit

WORD_BITS = 32
_MASK = 2**WORD_BITS - 1

_SHIFTS = ("bshl", "bshr", "bshru")
_WORDS = (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT)


def words(unit: TranslationUnit) -> None:
    """Bring the results of all expressions back into 32 bits, if the program asks for it."""
    if unit.has_words:
        unit.conjunctions = [_conjunction(each) for each in unit.conjunctions]


def checked_word(term: logic.Variable, variable: logic.Variable) -> logic.Condition | None:
    """Return the condition that gives a variable the word of a value that was read.

    A number that does not fit is an error; a float is rounded. None if the type has no words.
    """
    type_ = term.type
    if type_ is None or type_.kind not in _WORDS:
        return None
    made = _checked(term, type_)
    assert isinstance(made, logic.Functor)
    return logic.Condition("is", variable, made)


def _conjunction(conjunction: Conjunction) -> Conjunction:
    head = replace_terms(conjunction.head, _term)
    return replace(conjunction, head=head, items=_items(conjunction.items))


def _items(items: tuple[logic.BodyItem, ...]) -> tuple[logic.BodyItem, ...]:
    return tuple(replace_terms(item, _term) for item in items)


def _term(term: logic.Term) -> logic.Term:
    return logic.fold_term(term, _word)


def _word(term: logic.Term, arguments: tuple[logic.Term, ...]) -> logic.Term:
    """Return the word of a term whose arguments are words."""
    match term:
        case logic.AggregateTerm(operator=operator, target=target, body=body, type=type_):
            aim = None if target is None else _term(target)
            made = replace(term, target=aim, body=_items(body))
            if type_ is None or operator not in ("sum", "mean"):
                return made
            return _wrapped(made, type_)
        case logic.Functor(type=type_) if type_ is not None:
            return _functor(replace(term, arguments=arguments), type_)
        case _:
            return term


def _functor(term: logic.Functor, type_: Type) -> logic.Term:
    if type_.kind not in _WORDS:
        return term
    left = term.arguments[0] if term.arguments else term
    source = None if isinstance(left, logic.Wildcard) else left.type
    if term.name in _SHIFTS:
        return _shift(term, type_)
    match term.name, type_.kind:
        case "range", Kind.FLOAT:
            raise InputError.of(
                "C0246",
                "Arithmetic in 32 bits does not go with a `range` of floats.",
                term.span,
                "make the range of numbers, and compute the floats from them",
            )
        case "-", Kind.UNSIGNED:
            carried = logic.Functor("+", (left, logic.Constant(_MASK + 1, type_)), type_)
            return _wrapped(replace(term, arguments=(carried, term.arguments[1])), type_)
        case "neg", Kind.UNSIGNED:
            whole = logic.Constant(_MASK + 1, type_)
            return _wrapped(logic.Functor("-", (whole, left), type_), type_)
        case name, _ if name in SAME_BITS.values() and source is not None:
            return _same_bits(left, source, type_)
        case "to_number", _ if source is not None and source.is_unsigned:
            return _wrapped(term, type_)
        case "to_unsigned", _ if source is not None and source.is_number:
            low = logic.Functor("band", (left, logic.Constant(_MASK, NUMBER)), source)
            return replace(term, arguments=(low,))
        case name, _:
            signature = signature_of(term)
            word = Word.CHECKED if signature is None else signature.word
            if word is Word.CLOSED:
                return term
            return (_wrapped if word is Word.WRAPPED else _checked)(term, type_)


def _same_bits(term: logic.Term, source: Type, type_: Type) -> logic.Term:
    """Return the word of another type that has the same 32 bits, by way of a `number`."""
    number = NUMBER.with_null(type_.nullable)
    if source.is_unsigned:
        term = _wrapped(logic.Functor("to_number", (term,), number), number)
    elif source.is_float:
        term = logic.Functor(BITS_OF_SINGLE, (term,), number)
    if type_.is_unsigned:
        low = logic.Functor("band", (term, logic.Constant(_MASK, NUMBER)), number)
        return logic.Functor("to_unsigned", (low,), type_)
    return logic.Functor(SINGLE_OF_BITS, (term,), type_) if type_.is_float else term


def _shift(term: logic.Functor, type_: Type) -> logic.Term:
    value, count = term.arguments
    bits = logic.Functor("band", (count, logic.Constant(WORD_BITS - 1, type_)), type_)
    if term.name == "bshru":
        value = logic.Functor("band", (value, logic.Constant(_MASK, type_)), type_)
    made = replace(term, arguments=(value, bits))
    return made if term.name == "bshr" else _wrapped(made, type_)


def _wrapped(term: logic.Term, type_: Type) -> logic.Term:
    """Return the low 32 bits of an integer, or a float in single precision."""
    match type_.kind:
        case Kind.NUMBER:
            bits = logic.Constant(WORD_BITS, NUMBER)
            raised = logic.Functor("bshl", (term, bits), type_)
            return logic.Functor("bshr", (raised, bits), type_)
        case Kind.UNSIGNED:
            return logic.Functor("band", (term, logic.Constant(_MASK, type_)), type_)
        case _:
            return logic.Functor(SINGLE, (term,), type_)


def _checked(term: logic.Term, type_: Type) -> logic.Term:
    """Return a term that has no value where it does not fit into a word."""
    match type_.kind:
        case Kind.NUMBER:
            return logic.Functor("to_integer", (term, logic.Constant(WORD_BITS, NUMBER)), type_)
        case Kind.UNSIGNED:
            # Only words can be multiplied by 2³² without an overflow.
            whole = logic.Constant(_MASK + 1, type_.with_null(False))
            return logic.Functor("/", (logic.Functor("*", (term, whole), type_), whole), type_)
        case _:
            return logic.Functor(SINGLE, (term,), type_)
