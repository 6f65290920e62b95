"""Functors of truths, and those that choose among values."""

from collections.abc import Iterable
from functools import partial

from corollary.core.functors.spec import FunctorSpec, Monotone, Nullness, Word, define

_define = partial(define, section="logic")
_choice = partial(_define, is_choice=True, word=Word.CLOSED)


def logic() -> Iterable[FunctorSpec]:
    """Yield the functors whose result is a truth."""
    for name, sign, kinds in (
        ("eq", "=", "any"),
        ("ne", "!=", "any"),
        ("lt", "<", "ordered"),
        ("le", "<=", "ordered"),
        ("gt", ">", "ordered"),
        ("ge", ">=", "ordered"),
    ):
        yield _define(
            f"{name}(a: {kinds}, b: {kinds}) -> bool",
            f"whether `a {sign} b`; null where a side is null",
            comparison=sign,
            is_comparing=True,
            readable=f"a {sign} b",
        )
    yield _define(
        "same(a: any, b: any) -> bool",
        "whether both are equal or both null; never null",
        nullness=Nullness.NEVER,
        is_comparing=True,
        readable="a IS NOT DISTINCT FROM b",
    )
    yield _define(
        "is_null(x: any) -> bool",
        "whether it is null; never null",
        nullness=Nullness.NEVER,
        readable="x IS NULL",
    )
    for name, decisive, other in (("and", "false", "true"), ("or", "true", "false")):
        yield _define(
            f"{name}(a: bool, b: bool, …) -> bool",
            f"{decisive} where one is {decisive}, else null where one is null, else {other}",
            nullness=Nullness.LOGIC,
            is_lazy=True,
            monotone=Monotone.ALL,
            readable=f"a {name} b",
        )
    yield _define("not(a: bool) -> bool", "the opposite", readable="NOT a")
    yield _define(
        "like(text: symbol, pattern: symbol) -> bool",
        "whether the whole text is like a pattern: `%` is any text, `_` one character, and a"
        " character after `\\` itself",
        sql_names="like",
        readable={"spark": "text LIKE pattern", "duckdb": "text LIKE pattern ESCAPE '\\'"},
    )
    yield _define(
        "rlike(text: symbol, pattern: symbol) -> bool",
        "whether an [RE2](https://github.com/google/re2/wiki/Syntax) pattern, a literal, is found"
        " somewhere",
        patterns=(1,),
        exact={"duckdb": "CAST(REGEXP_MATCHES(text, pattern) AS BIGINT)"},
    )
    for name, doc, spark, duckdb in (
        ("starts_with", "whether the part is at the start", "startswith", "starts_with"),
        ("ends_with", "whether the part is at the end", "endswith", "ends_with"),
        ("has_text", "whether the part is anywhere", "contains", "contains"),
    ):
        yield _define(
            f"{name}(text: symbol, part: symbol) -> bool",
            doc,
            sql_names=spark,
            readable={"spark": f"{spark}(text, part)", "duckdb": f"{duckdb}(text, part)"},
            exact={"duckdb": f"CAST({duckdb}(text, part) AS BIGINT)"},
        )


def choices() -> Iterable[FunctorSpec]:
    """Yield the functors whose result is one of their arguments."""
    yield _choice(
        "if(test: bool, a: any, b: any, …)",
        "`a` where the test is true, else `b`; more pairs, as in `if(t1, a, t2, b, c)`, are tried"
        " in order",
        nullness=Nullness.CHOICE,
        is_lazy=True,
        is_paired=True,
    )
    yield _choice(
        "coalesce(a: any, b: any, …)",
        "the first that is not null",
        nullness=Nullness.ALL,
        is_lazy=True,
        readable="coalesce(arguments)",
    )
    yield _choice(
        "null_if(a: any, b: any)",
        "`a`, but null where both are equal",
        operands=1,
        nullness=Nullness.ALWAYS,
        is_comparing=True,
        readable="nullif(a, b)",
    )
    for name, word, strict in (("greatest", "largest", "max"), ("least", "smallest", "min")):
        yield _choice(
            f"{name}(a: ordered, b: ordered, …)",
            f"the {word} that is not null; null where all are (`{strict}` is null where one is)",
            nullness=Nullness.ALL,
            monotone=Monotone.ALL,
            readable=f"{name}(arguments)",
        )
    yield _define(
        "try(x: any) -> first",
        "`x`, but null where it has no value: an overflow, a division by zero, a failed conversion",
        nullness=Nullness.ALWAYS,
        is_lazy=True,
        word=Word.CLOSED,
    )
