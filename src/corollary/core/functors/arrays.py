"""Functors of arrays and structs, which are null as a whole; any of their members may be null."""

from collections.abc import Iterable
from functools import partial

from corollary.core.functors.spec import FunctorSpec, Nullness, Word, define

STRUCT, FIELD, FIELDS, ZIP = "struct", "field", "array_field", "arrays_zip"
"""The functors of structs, in which names of fields are literals."""

_define = partial(define, section="arrays")
_nullable = partial(_define, nullness=Nullness.ALWAYS)


def arrays() -> Iterable[FunctorSpec]:
    """Yield the functions of arrays as in Spark SQL."""
    for signature, doc, is_sql in (
        ("array_distinct(a: [T]) -> [T]", "each element once, where it is first", True),
        ("array_union(a: [T], b: [T]) -> [T]", "the elements of both, each once", True),
        ("array_intersect(a: [T], b: [T]) -> [T]", "those of a that b has, each once", True),
        ("array_except(a: [T], b: [T]) -> [T]", "those of a that b has not, each once", True),
        ("array_remove(a: [T], x: T) -> [T]", "the elements that are not x", True),
        ("array_compact(a: [T]) -> [T]", "the elements that are not null", True),
        ("array_reverse(a: [T]) -> [T]", "the elements from the last to the first", False),
        ("array_sort(a: [T]) -> [T]", "the elements in their order, null last", True),
        (
            "sort_array(a: [T], ascending: bool) -> [T]",
            "the elements in their order or the opposite one, in which null is the least",
            False,
        ),
        ("array_position(a: [T], x: T) -> number", "where x is first, from 1; else 0", True),
    ):
        name = signature.partition("(")[0]
        yield _define(signature, doc, sql_names=name if is_sql else "")
    yield _define(
        "size(a: [T]) -> number",
        "the number of elements",
        word=Word.CLOSED,
        sql_names="size cardinality array_size",
    )
    yield _define(
        "array_join(a: [symbol], between: symbol, nulls?: symbol) -> symbol",
        "the texts with something between them, without nulls, or with a text for each",
        sql_names="array_join",
    )
    growing = partial(_define, is_expanding=True)
    yield growing(
        "array(x?: T, …) -> [T]", "the array of values", nullness=Nullness.NEVER, sql_names="array"
    )
    yield growing("array_concat(a: [T], b: [T], …) -> [T]", "the elements of all arrays")
    for signature, doc in (
        ("array_append(a: [T], x: T) -> [T]", "the elements, then x"),
        ("array_prepend(a: [T], x: T) -> [T]", "x, then the elements"),
    ):
        yield growing(
            signature, doc, nullness=Nullness.ALWAYS, sql_names=signature.partition("(")[0]
        )
    fallible = partial(growing, is_fallible=True)
    yield fallible(
        "array_insert(a: [T], n: number, x: T) -> [T]",
        "the elements with x as element n, from 1, or from the end if n is negative",
        nullness=Nullness.ALWAYS,
        sql_names="array_insert",
    )
    yield fallible(
        "array_repeat(x: T, n: number) -> [T]",
        "x, n times",
        nullness=Nullness.ALWAYS,
        sql_names="array_repeat",
    )
    yield fallible(
        "sequence(first: number, last: number, step: number) -> [number]",
        "first, first + step, … up to last",
    )
    yield fallible(
        "split(s: symbol, pattern: symbol, limit: number) -> [symbol]",
        "the parts of a text between what matches a pattern of RE2, a literal; at most so many if"
        " the limit is above 0",
        patterns=(1,),
    )
    yield _define(
        "slice(a: [T], start: number, length: number) -> [T]",
        "so many elements from one on, from 1, or from the end if the start is negative",
        is_fallible=True,
        sql_names="slice",
    )
    yield _nullable(
        "flatten(a: [[T]]) -> [T]", "the elements of all; null if one is null", sql_names="flatten"
    )
    yield _nullable(
        "array_contains(a: [T], x: T) -> bool",
        "whether x is an element; null if it is not and an element is null",
        sql_names="array_contains",
    )
    yield _nullable(
        "arrays_overlap(a: [T], b: [T]) -> bool",
        "whether both have an element that is not null; null if one has null instead",
        sql_names="arrays_overlap",
    )
    yield _nullable("array_min(a: [T]) -> T", "the least element", sql_names="array_min")
    yield _nullable("array_max(a: [T]) -> T", "the greatest element", sql_names="array_max")
    yield _nullable(
        "get(a: [T], n: number) -> T", "element n, from 0; null if there is none", sql_names="get"
    )
    yield _nullable("element(a: [T], n: number) -> T", "element n, from 0", is_fallible=True)
    for name, doc in (("element_at", ""), ("try_element_at", "; null if there is none")):
        yield _nullable(
            f"{name}(a: [T], n: number) -> T",
            f"element n, from 1, or from the end if n is negative{doc}",
            is_fallible=True,
            sql_names=name,
        )


def maps() -> Iterable[FunctorSpec]:
    """Yield the functions of maps as in Spark SQL."""
    _of_maps = partial(define, section="maps")
    growing = partial(_of_maps, is_expanding=True, is_fallible=True)
    for signature, doc in (
        (
            "map_from_arrays(k: [K], v: [V]) -> {K,V}",
            "the map from keys to values; no key is null, or there twice",
        ),
        ("map_concat(m: {K,V}, n: {K,V}, …) -> {K,V}", "the entries of all maps"),
        (
            "str_to_map(s: symbol, between: symbol, inside: symbol) -> {symbol,symbol}",
            "the map of the parts of a text, each with a key and a value, by patterns of RE2",
        ),
    ):
        yield growing(signature, doc, patterns=(1, 2) if "symbol" in signature else ())
    for signature, doc in (
        ("map_keys(m: {K,V}) -> [K]", "the keys in their order"),
        ("map_values(m: {K,V}) -> [V]", "the values in the order of the keys"),
        ("map_entries(m: {K,V}) -> [(K,V)]", "structs of a `key` and a `value`, by key"),
        ("map_contains_key(m: {K,V}, k: K) -> bool", "whether it is a key"),
        ("map_size(m: {K,V}) -> number", "the number of entries"),
    ):
        yield _of_maps(signature, doc)
    yield _of_maps(
        "map_value(m: {K,V}, k: K) -> V", "the value of a key, if any", nullness=Nullness.ALWAYS
    )


def structs() -> Iterable[FunctorSpec]:
    """Yield the functors of structs."""
    _of_structs = partial(define, section="structs")
    yield _of_structs(
        f"{STRUCT}(name: symbol, x: any, …) -> struct",
        'the struct of values with names: `struct("a", x, "b", y)`',
        nullness=Nullness.NEVER,
        is_expanding=True,
    )
    yield _of_structs(
        f"{ZIP}(name: symbol, a: any, …) -> [T]",
        "structs of an element of each array, null where one is shorter",
        is_expanding=True,
    )
    yield _of_structs(f"{FIELD}(s: struct, name: symbol) -> T", "a field", nullness=Nullness.ALWAYS)
    yield _of_structs(
        f"{FIELDS}(a: [T], name: symbol) -> [T]",
        "a field of each of the structs in an array",
    )


def higher_order() -> Iterable[FunctorSpec]:
    """Yield the functors that apply a lambda to the elements of arrays."""
    base = partial(define, section="lambdas", is_lazy=True)
    like_first = partial(base, nullness=Nullness.CHOICE, operands=1)
    truth = partial(base, nullness=Nullness.ALWAYS)
    yield like_first(
        "transform(a: [T], f: (T,number?)->U) -> [U]",
        "what f gives for each element, and its number from 0 if f takes two",
        sql_names="transform",
        readable={"spark": "transform(a, f)"},
    )
    yield like_first(
        "filter(a: [T], f: (T,number?)->bool) -> [T]",
        "the elements of which f is true; f may take the number of an element, too",
        sql_names="filter",
        readable={"spark": "filter(a, f)"},
    )
    yield truth(
        "exists(a: [T], f: (T)->bool) -> bool",
        "whether f is true of an element; null if it is not, and is null of one",
        sql_names="exists",
        readable={"spark": "exists(a, f)"},
    )
    yield truth(
        "forall(a: [T], f: (T)->bool) -> bool",
        "whether f is true of all elements; null if it is false of none, and is null of one",
        sql_names="forall",
        readable={"spark": "forall(a, f)"},
    )
    yield truth(
        "reduce(a: [T], start: U, f: (U,T)->U) -> U",
        "f of the start and the first element, then f of that and the next element, …",
        sql_names="aggregate reduce",
        readable={"spark": "reduce(a, start, f)"},
    )
    yield base(
        "zip_with(a: [T], b: [U], f: (T,U)->V) -> [V]",
        "what f gives for each pair of elements; null is there where an array has no more",
        nullness=Nullness.CHOICE,
        operands=2,
        sql_names="zip_with",
        readable={"spark": "zip_with(a, b, f)"},
    )
    yield like_first(
        "sort_with(a: [T], f: (T,T)->number) -> [T]",
        "the elements in the order of f: below 0 where the first of two is before the second, and"
        " 0 where they keep their order; an error where that is no order",
        is_fallible=True,
        readable={"spark": "array_sort(a, f)"},
    )
