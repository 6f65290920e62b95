"""Every scalar function of SQL has the values and the errors that real Spark has.

A function that says the kinds of its parameters is tested with columns of these kinds by itself;
`CALLS` has forms that need a literal. Rows are drawn from values at the edges of the types.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary.core.types import Kind
from corollary.frontends.sql.binder.functions.json_schema import infer_schema
from corollary.frontends.sql.binder.functions.table import (
    INTERNAL,
    find_function,
    function_names,
)
from support.selection import examples, seed_of_run
from support.sql.json_documents import random_document, random_path, random_record
from support.sql.named_differences import name_of
from support.sql.spark_values import COLUMNS, DIFFERENT, OF_KIND, edge_rows, edge_session
from support.sql.tried_calls import add_tried, differences

ZONES = ("Europe/Berlin", "America/New_York", "+05:30", "UTC")
UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "HOUR", "MILLISECOND", "MICROSECOND")
CALLS = [
    *("trim(BOTH 'ab' FROM s)", "btrim(s, t)", "ltrim(s, t)", "rtrim(s, t)", "trim(s)"),
    *("elt(i, s, t)", "elt(2, s, t)"),
    *(f"{name}(s, '[a-z]+')" for name in ("regexp_count", "regexp_instr", "regexp_substr")),
    *("regexp_instr(s, '[b,]')", "regexp_count(s, 'a')", "regexp_substr(s, '')"),
    *(f"format_number({x}, {digits})" for x in "xlip" for digits in (0, 2, 5, -1)),
    *("repeat(s, 3)", "repeat(s, -1)", "space(2)", "space(-1)"),
    *(f"{name}(l)" for name in ("hex", "bin", "bit_count", "timestamp_millis")),
    *(f"{name}(l)" for name in ("bitmap_bit_position", "bitmap_bucket_number")),
    *(f"shift{name}(l, i)" for name in ("left", "right", "rightunsigned")),
    *(f"shift{name}(CAST(i AS INT), j)" for name in ("left", "right", "rightunsigned")),
    *(f"{name}({x}, {n})" for name in ("bround", "round") for x in "xlp" for n in (0, 1, -1)),
    *(f"{name}(p, {digits})" for name in ("ceil", "floor") for digits in (0, 1, 5, -1)),
    *(
        "bit_get(l, 5)",
        "bit_get(l, j)",
        "ceil(i, -1)",
        "isnan(x)",
        "width_bucket(x, 0, 10, 5)",
        "log(x)",
        "log(2, x)",
    ),
    *(
        "factorial(i)",
        "from_unixtime(i)",
        "from_unixtime(i, 'yyyy/MM/dd')",
        "unix_timestamp(v)",
        "to_unix_timestamp(d)",
    ),
    *("unix_timestamp(s)", "try_to_date(s, 'yyyy')", "to_char(d, 'yyyy-MM-dd')"),
    *("make_timestamp(2024, i, j, k, 5, p)", "try_make_timestamp(2024, j, k, 5, 6, p)"),
    *(f"{way}_utc_timestamp(v, '{zone}')" for way in ("from", "to") for zone in ZONES),
    *("to_binary(s)", "to_binary(s, 'utf-8')", "try_to_binary(s)", "to_timestamp_ntz(d)"),
    *("make_timestamp_ntz(2024, i, j, k, 5, p)", "try_make_timestamp_ntz(2024, j, k, 5, 6, p)"),
    *("months_between(v, w, false)", "position(s, t, i)"),
    *(
        f"{name}({values})"
        for name in ("hash", "xxhash64")
        for values in ("i", "l", "s", "x", "p", "a", "d", "v", "s, t, NULL, u", "l, x, i, s, v, p")
    ),
    *(f"{name}(CAST(p AS DECIMAL(30, 2)) * l)" for name in ("hash", "xxhash64")),
    *("hash(CAST(s AS BINARY), CAST(j AS SMALLINT))", "typeof(i)", "typeof(p * l)"),
    *("hmac(s, t)", "hmac(s, t, 'SHA-1')", "from_base32(s)", "bitmap_count(CAST(s AS BINARY))"),
    *("mask(s, 'Q', NULL, '#')", "mask(s, NULL, 'q', NULL, '*')", "mask(s)"),
    *(
        f"{name}(concat({begin}, s, {end}), {part})"
        for name, begin, end in (
            ("try_parse_url", "''", "''"),
            ("try_parse_url", "'http://'", "'/b?c=d'"),
            ("parse_url", "'//u@h:1/'", "'?c=d&e=f#g'"),
        )
        for part in ("'HOST'", "'PATH'", "'FILE'", "'AUTHORITY'", "'QUERY'", "'QUERY', 'c'")
    ),
    *(
        f"{name}to_number(s, '{each}')"
        for name in ("", "try_")
        for each in ("S99.99", "99,999,999,999PR", "000", "9G999D00MI")
    ),
    *(f"to_char({x}, '{each}')" for x in "ilxphs" for each in ("S999,999.99", "$09D9PR", ".9MI")),
    *("to_json(array(i, NULL, j))", "to_json(array(array(p, q)))"),
    "to_json(named_struct('a', s, 'b', i, 'c', p, 'd', a, 'e', d, 'f', v, 'g', array(t, u)))",
    *(f"regexp_extract_all(s, '{each})" for each in ("([a-z])(.)?', 2", "[a-z]+', 0", "(b)'")),
    *(f"time_bucket(INTERVAL {size}, v)" for size in ("7 HOURS", "5 MONTHS", "90 DAYS", "1 YEAR")),
    "time_bucket(INTERVAL 11 MINUTES, v, TIMESTAMP '2000-01-01 00:00:07')",
    *(f"convert_timezone('{zone}', 'Asia/Tokyo', v)" for zone in ZONES),
    "convert_timezone('Europe/Berlin', d)",
    *(f"get_json_object(s, '{path}')" for path in ("$", "$.a", "$.a[*]", "$[*].a")),
    *(f"CAST(h AS {each})" for each in ("STRING", "DOUBLE", "DECIMAL(20,5)", "INT", "BOOLEAN")),
    *(f"CAST({each} AS FLOAT)" for each in "slxpah"),
    *("round(h, 2)", "round(h, -2)", "nanvl(h, x)", "abs(h)", "floor(h, 1)", "ceil(h)", "h / 3"),
    *("coalesce(h, i)", "nanvl(h, h)", "mod(h, 0.7F)", "array(h, 1F)", "array_max(array(h, 0.5F))"),
    *(f"CAST(o AS {each})" for each in ("STRING", "INT", "SMALLINT", "DECIMAL(10,2)")),
    *(f"CAST({each} AS TIME)" for each in ("s", "v", "substr(CAST(v AS STRING), 12)")),
    *("make_time(i, j, p)", "make_time(i % 30, j % 70, p % 70)", "time_from_seconds(p)"),
    *(f"extract({part} FROM o)" for part in ("HOUR", "MINUTE", "SECOND")),
    *("hour(o)", "second(o)", "o - TIME'08:05'", "o + make_dt_interval(0, i % 20)", "o < '12:00'"),
    *(f"time_trunc('{unit}', o)" for unit in ("HOUR", "minute", "MILLISECOND")),
    *(f"time_diff('{unit}', o, TIME'12:34:56.7')" for unit in ("HOUR", "second", "MICROSECOND")),
    *("make_timestamp(d, o)", "make_timestamp_ntz(d, o)", "make_timestamp(d, o, 'Europe/Berlin')"),
    *("to_time(s)", "try_to_time(s)", "to_time(s, 'HH:mm')", "time_to_seconds(o)"),
    *(
        f"date_format(v, '{each}')"
        for each in (
            *("y yy yyy M MMM d D DDD E EEEE", "H h hh k kk K KK m s", "S SS SSS SSSSSSSSS a"),
            *("q QQ QQQ G GGGG", "VV z zzzz X XXX x xx Z ZZZZ O"),
        )
    ),
    *(
        f"try_to_{name}(date_format(v, '{written}'), '{read}')"
        for name in ("timestamp", "date")
        for written, read in (
            *(("d/M/yyyy h:m a", "d/M/yyyy h:m a"), ("d/M/yy", "dd/MM/yy")),
            *(("yyyyMMdd HH:mm", "yyyyMMdd kk:mm"), ("y-D", "y-DDD"), ("M d", "MM d")),
            *(("yyyy-MM-dd HH:mm:ss.SSS", "yyyy-MM-dd HH:mm:ss.SSSSSS"),),
            *(("yyyy-MM-dd HHXXX", "yyyy-MM-dd HHX"),),
        )
    ),
    *(f"timestampdiff({unit}, v, w)" for unit in UNITS),
    *(f"timestampadd({unit}, i % 50, v)" for unit in UNITS),
    *(
        f"format_string('%{flags}{each}', {x})"
        for x, forms, letters in (
            ("x", ("", "(,.2", "+025.0", "-12.1", " 09", "#.0"), "f"),
            ("x", ("", "(.2", "+025.10", "-12.1", "#.0"), "eE"),
            ("x", ("", "(,.2", "+025.0", "-12.10"), "gG"),
            ("h", ("", ".12"), "feg"),
            ("l", ("", "(,", "+025", "-12", " 09"), "d"),
            *(("CAST(i AS INT)", ("", "#", "012", "-#4"), letters) for letters in ("x", "X", "o")),
            *((value, ("", "8", "-8.3"), "sSbB") for value in ("s", "l", "i = j")),
            *((value, ("", "25", "-8.3"), "s") for value in ("p", "h")),
        )
        for flags in forms
        for each in letters
    ),
    *("format_string('%c', CAST(i AS INT))", "printf('%2$s%%%1$-5s%<s %s%n', s, i)"),
    *("concat_ws('-', s, t)", "replace(s, t)", "lpad(s, 5, t)", "rpad(s, 5, t)"),
]
LAMBDAS = (
    *(f"transform({array}, v -> v)" for array in ("array(i, NULL)", "array(s, t)", "array(p)")),
    *("transform(array(i, NULL, j), v -> v + k)", "transform(array(i, j), (v, at) -> v + at)"),
    *("transform(array(s, t), v -> concat(v, u))", "transform(array(x, y), v -> v * z)"),
    *("transform(array(p, q), v -> v + p)", "transform(array(i, j), v -> try_divide(l, v))"),
    *("filter(array(i, NULL, j), v -> v > k)", "filter(array(s, t), (v, at) -> at > 0 OR v = u)"),
    *("exists(array(i, j, NULL), v -> v > k)", "exists(array(s, t), v -> v = u OR v IS NULL)"),
    *("forall(array(i, j, NULL), v -> v > k)", "forall(array(x, y), v -> v <= z)"),
    *("zip_with(array(i, j), array(s, NULL, t), (v, w) -> concat(w, coalesce(v, k)))",),
    *("zip_with(array(i, j), array(k), (v, w) -> v = w)",),
    *("aggregate(array(i, NULL, j), k, (acc, v) -> acc + coalesce(v, 1))",),
    *("aggregate(array(s, t), '', (acc, v) -> concat(acc, v, u), acc -> length(acc))",),
    *("reduce(array(x, y), 0D, (acc, v) -> acc + v * z, acc -> acc / 2)",),
    *("aggregate(array(p, q), CAST(0 AS DECIMAL(38, 2)), (acc, v) -> acc + v)",),
    *("aggregate(array(i, j), array(k), (acc, v) -> array_append(acc, v))",),
    *("array_sort(array(i, j), (v, w) -> CASE WHEN v < w THEN 1 WHEN v > w THEN -1 ELSE 0 END)",),
    *("array_sort(array(s, t, u, s), (v, w) -> length(v) - length(w))",),
    *("transform(array(array(i, j), array(k)), v -> filter(v, w -> w > i AND size(v) > 1))",),
    *("transform(array(i, j), v -> aggregate(array(v, k), 0L, (acc, w) -> acc + v * w))",),
    "CAST(transform(array(struct(i AS a, s)), v -> struct(v.s, v.a AS c, v.a = k)) AS STRING)",
    "CAST(array_sort(transform(array(i, j), v -> (v, 1)), (v, w) -> IF(v < w, -1, 1)) AS STRING)",
    *("transform(array(i, j), v -> CASE WHEN v > 0 THEN k DIV v END)", "transform(array(s), i)"),
)
ARRAYS = ("array(i, j, NULL, i)", "array(s, t, u, s)", "array(x, y, z)", "array(p, q)")
ARRAY_CALLS = [
    *(
        f"{name}({array})"
        for name in ("size", "array_distinct", "array_compact", "reverse", "array_sort")
        for array in ARRAYS
    ),
    *(f"{name}({array})" for name in ("array_min", "array_max") for array in ARRAYS),
    *(f"sort_array({array}, {word})" for array in ARRAYS for word in ("true", "false")),
    *(
        f"array_{name}(array(i, NULL, j, {last}), array(k, i{more}))"
        for name in ("union", "intersect", "except")
        for last in ("i", "1")
        for more in ("", ", NULL")
    ),
    *(
        f"{name}(array(i % 3, {last}), array(k % 3{more}))"
        for name in ("arrays_overlap", "concat")
        for last in ("j", "NULL")
        for more in ("", ", NULL", ", 2")
    ),
    *(
        f"array_{name}(array(i % 3, NULL, j % 3), k % 3)"
        for name in ("contains", "position", "remove", "append", "prepend")
    ),
    *("array_contains(array(s, t), u)", "array_contains(array(x, y), z)"),
    *("array_insert(array(i, j, k), k % 7, l)", "array_insert(array(s, NULL), i % 5, t)"),
    *("slice(array(i, j, k), i % 6, j % 4)", "array_repeat(s, i % 4)", "array(i, j, k)[k % 4]"),
    *(f"{name}(array(i, NULL, k), k % 6)" for name in ("element_at", "try_element_at", "get")),
    *("sequence(i % 9, j % 9)", "sequence(i % 9, j % 9, k % 4)", "sequence(l, l)"),
    *(f"split(s, '{pattern}')" for pattern in (",", "a|b", "", "[a-z]+", "X")),
    *("split(s, ',', 2)", "split(s, '', 2)", "split(s, 'a', 1)", "split(s, 'a', 0)"),
    *("array_join(array(s, NULL, t), u)", "array_join(array(s, NULL, t), ',', u)"),
    *("flatten(array(array(i, NULL), array(j)))", "flatten(array(array(i), NULL))"),
    *(
        f"CAST({array} AS STRING)"
        for array in (*ARRAYS[:2], "array(p, q)", "array(d, e)", "array(a, b)")
    ),
    *(f"array(i % 3, j % 3) {sign} array(k % 3, 1, 2)" for sign in ("<", ">=", "=", "<=>")),
    *("array(i % 3, NULL) < array(k % 3, 1)", "array(i % 3, NULL) = array(k % 3, NULL)"),
    *("array(i, l)[1]", "array(i, x)[0]", "array(array(i), array(j, k))[1][0]"),
]
STRUCTS = ("named_struct('a', i, 'b', s)", "struct(q, array(i, NULL) AS y)", "(p, (d, u))")
STRUCT_CALLS = [
    "typeof(struct(i, named_struct('X y', array(s)) AS q))",
    *(f"CAST({struct} AS STRING)" for struct in STRUCTS),
    *(f"struct(i % 3, s) {sign} struct(j % 3, t)" for sign in ("<", ">=", "=", "<>", "<=>")),
    *(f"(i % 2, k % 2) {sign} (j % 2, NULL)" for sign in ("<", ">=", "=", "<>", "<=>")),
    *("(i % 2, k % 2) IN ((1, NULL), (NULL, 0))", "struct(z) = struct(y AS q)", "struct(i).i"),
    *(
        "struct(i, s)['S']",
        "array(struct(i, s), NULL, struct(j AS i, t AS s))[k % 3].i",
        "struct(i) IS NULL",
    ),
    *(f"CAST(array(struct(i), NULL, {x}).i AS STRING)" for x in ("struct(j AS i)", "NULL")),
    *("CAST(arrays_zip(array(i, j), array(s), array(k, NULL)) AS STRING)", "(s, t).t"),
    *(
        f"CAST({name}(array((i % 3, hex(s)), (j % 3, hex(t)), NULL, (i % 3, hex(u)))) AS STRING)"
        for name in ("array_sort", "array_distinct", "sort_array", "reverse")
    ),
    "CAST(array_max(array((i % 3, hex(s)), (j % 3, hex(t)))) AS STRING)",
    "CAST(CAST(struct(i, s) AS STRUCT<x: STRING, y: STRING>) AS STRING)",
    "CAST(struct(i, k) AS STRUCT<x: TINYINT, y: DECIMAL(25, 2)>).x",
    "CAST(struct(s) AS STRUCT<x: DOUBLE>).x",
    "coalesce(nullif(struct(i % 2 AS i), struct(1L AS i)), struct(k AS i)).i",
    "greatest((x, y), struct(z AS x, x AS y)).x",
    "CAST(IF(i > 0, struct(i, q), named_struct('i', k, 'q', NULL)) AS STRING)",
    "array_position(array((i % 3, j % 3), (k % 3, j % 2)), (1L, NULL))",
]
MAPS = ("map('a', i, 'b', NULL)", "map(1, s, 2, t)", "map_from_arrays(array(d, e), array(p, q))")
MAP_CALLS = [
    *(
        f"CAST({m} AS STRING)"
        for m in ("map('a', i)", "map(i, s)", "map_concat(map(1, s), map(2, t))")
    ),
    *(f"size({m})" for m in MAPS),
    *(
        f"CAST(array_sort(map_{part}({m})) AS STRING)"
        for part in ("keys", "values", "entries")
        for m in MAPS
    ),
    *(
        "map(i % 3, s)[j % 3]",
        "element_at(map(i % 3, s, NULL, t), 1)",
        "map('a', i).a",
        "map('a', i).b",
    ),
    *(
        "map_contains_key(map(i % 3, s), j % 3)",
        "map(s, i)[t]",
        "map(x, s, y, t)[z]",
        "map(p, 1)[q]",
    ),
    *("map(i % 3, s, j % 3, t)[k % 3]", "map_concat(map(i % 3, s), map(j % 3, t))[k % 3]"),
    *(
        f"CAST(array_sort(map_entries(str_to_map({s}))) AS STRING)"
        for s in ("s", "hex(s)", "s, 'a'", "s, '[a-c]', 'b'", "NULL")
    ),
    "map_from_entries(array(struct(i, s), IF(j > 0, NULL, struct(j AS i, t AS s))))[i]",
    "CAST(CAST(map(s, i) AS MAP<STRING, STRING>) AS STRING)",
    "CAST(map_from_arrays(array(i, j), array(k)) AS STRING)",
    "CAST(coalesce(map('a', i), map('b', p)) AS STRING)",
]


def automatic_calls() -> list[str]:
    """Return a call of each function that says its parameters, of each kind."""
    calls = []
    for name in sorted({*function_names()} - INTERNAL - DIFFERENT.keys()):
        function = find_function(name)
        assert function is not None
        if not function.parameters:
            continue
        for kind in sorted(function.parameters[0]):
            if kind not in OF_KIND:
                continue
            for count in {function.least, len(function.parameters)}:
                taken = dict.fromkeys(COLUMNS, 0)
                names = []
                for kinds in function.parameters[:count]:
                    of = OF_KIND[kind if kind in kinds else min(kinds, key=list(Kind).index)]
                    names.append(COLUMNS[of][3][taken[of] % len(COLUMNS[of][3])])
                    taken[of] += 1
                calls.append(f"{name}({', '.join(names)})")
    return list(dict.fromkeys(calls))


BATCH = 16
"""How many calls one query of Spark computes."""

CASES = [*automatic_calls(), *CALLS, *ARRAY_CALLS, *STRUCT_CALLS, *MAP_CALLS, *LAMBDAS]


@pytest.mark.parametrize("at", range(0, len(CASES), BATCH), ids=lambda at: CASES[at])
def test_values_are_those_of_spark(spark: Any, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    add_tried(monkeypatch)
    rows = edge_rows()
    found = differences(edge_session(spark, rows), rows, CASES[at : at + BATCH])
    assert [str(each) for each in found if name_of(each) is None] == []


def answers_of_both(spark: Any, rows: pa.Table, query: str) -> tuple[list[Any], list[Any]]:
    """Return what a question about texts of JSON has here, and in Spark."""
    session = edge_session(spark)
    session.createDataFrame(rows).createOrReplaceTempView("texts")
    with corollary.open(None, engine="local") as db:
        columns = ", ".join(f"{each} STRING" for each in rows.column_names[1:])
        db.sql(f"CREATE TABLE texts (id BIGINT, {columns})")
        with db.transaction() as transaction:
            transaction.insert("texts", rows)
        here = db.sql(query).rows()
    there = [tuple(row.values()) for row in session.sql(query).toArrow().to_pylist()]
    return here, [frozen(each) for each in there]


def test_texts_of_json(spark: Any) -> None:
    dice = random.Random(seed_of_run())
    texts = [(at, random_document(dice), random_path(dice)) for at in range(examples(1000, 20_000))]
    calls = "get_json_object(j, p), json_array_length(j), json_object_keys(j), x, y, z"
    view = "LATERAL VIEW json_tuple(j, 'a', 'b', 'a') AS x, y, z"
    rows = pa.table(list(zip(*texts, strict=True)), ["id", "j", "p"])
    query = f"SELECT {calls} FROM texts {view} ORDER BY id"
    here, there = answers_of_both(spark, rows, query)
    different = [
        (*text[1:], one, other)
        for text, one, other in zip(texts, here, there, strict=True)
        if one != other
    ]
    assert different == []


SCHEMAS = (
    *("a INT, b STRING, c DOUBLE, d DATE, e TIMESTAMP", "a TINYINT, b DECIMAL(5, 2), c FLOAT"),
    *("a BIGINT, b BOOLEAN, d TIMESTAMP_NTZ, e TIME", "a STRUCT<a: INT, b: STRING>"),
    *("a ARRAY<INT>, b ARRAY<STRUCT<a: STRING>>, _corrupt_record STRING", "ARRAY<STRUCT<a: INT>>"),
    *("d DECIMAL(38, 18), e STRUCT<a: DOUBLE>", "ARRAY<STRING>", "z INT, _corrupt_record STRING"),
)


def test_values_from_json(spark: Any) -> None:
    """What is no JSON has no value here; Spark may keep fields around the error."""
    dice = random.Random(seed_of_run())
    texts = [random_record(dice) for _ in range(examples(1000, 20_000))]
    calls = [f"CAST(from_json(j, '{each}') AS STRING)" for each in SCHEMAS]
    calls.append("CAST(from_json(j, 'a DATE', map('dateFormat', 'yyyy-MM-dd')) AS STRING)")
    named = ", ".join(f"{each} AS c{at}" for at, each in enumerate(calls))
    query = f"SELECT {named} FROM texts ORDER BY id"
    rows = pa.table([range(len(texts)), texts], ["id", "j"])
    here, there = answers_of_both(spark, rows, query)
    wrong = []
    for text, ones, others in zip(texts, here, there, strict=True):
        is_json = others[len(SCHEMAS) - 1] == "{null, null}"
        pairs = zip(ones, others, strict=True) if is_json else ()
        plain = [(str(one), str(other).replace("-0.0", "0.0")) for one, other in pairs]
        wrong += [(text, *pair) for pair in plain if pair[0].replace("-0.0", "0.0") != pair[1]]
    assert wrong == []


def random_number_format(dice: random.Random) -> str:
    groups = [
        "".join(dice.choices("099", k=dice.randint(1, 3))) for _ in range(dice.choice((1, 1, 2, 3)))
    ]
    whole = dice.choice((",", "G")).join(groups)
    fraction = dice.choice((".", "D", "")) and "." + "0" * dice.randint(0, 4)
    sign, end = dice.choice(
        [(one, other) for one in SIGNS[:3] for other in SIGNS if not one or one != other]
    )
    return f"{sign}{dice.choice(('', '', '$'))}{whole}{fraction}{end}"


SIGNS = ("", "S", "MI", "PR")


def test_formats_of_numbers(spark: Any) -> None:
    dice = random.Random(seed_of_run())
    forms = [random_number_format(dice) for _ in range(examples(30, 300))]
    texts = [
        "".join(dice.choices(*zip(*PARTS.items(), strict=True), k=dice.randint(1, 9)))
        for _ in range(200)
    ]
    numbers = [str(round(dice.gauss(0, 10 ** dice.randint(-3, 6)), 4)) for _ in texts]
    numbers[:5] = ["0", "-0.01", "1000", "-1", "0.5"]
    kinds = ("n", "CAST(n AS DECIMAL(14, 4))", "CAST(n AS DOUBLE)", "CAST(n AS FLOAT) / 1024")
    points = [
        f"{sign}.{'0' * digits}{end}"
        for sign in ("", "S$", "MI")
        for digits in (1, 3)
        for end in SIGNS
        if not sign or end not in sign
    ]
    calls = [
        *(f"to_char({kind}, '{each}')" for each in forms + points for kind in kinds),
        *(f"to_varchar(CAST(CAST(n AS DOUBLE) AS INT), '{each}')" for each in forms),
        *(f"CAST(try_to_number(t, '{each}') AS STRING)" for each in forms),
        *(f"CAST(try_to_number(to_char(n, '{each}'), '{each}') AS STRING)" for each in forms),
    ]
    rows = pa.table([range(len(texts)), texts, numbers], ["id", "t", "n"])
    named = ", ".join(f"{each} AS c{at}" for at, each in enumerate(calls))
    here, there = answers_of_both(spark, rows, f"SELECT {named} FROM texts ORDER BY id")
    assert [
        (call, text, number, one, other)
        for text, number, ones, others in zip(texts, numbers, here, there, strict=True)
        for call, one, other in zip(calls, ones, others, strict=True)
        if one != other
    ] == []


PARTS = {"1": 9, "20": 3, "345": 2, ",": 4, ".": 3, " ": 2} | dict.fromkeys("-+$<>", 1)


def test_schemas_of_json(spark: Any) -> None:
    dice = random.Random(seed_of_run())
    makers = (
        random_document,
        random_record,
        lambda dice: f"[{random_record(dice)},{random_record(dice)}]",
    )
    texts = [dice.choice(makers)(dice) for _ in range(examples(300, 5000))]
    schemas, refused = dict[str, str](), list[str]()
    for each in texts:
        try:
            schemas[each] = infer_schema(each, {})
        except ValueError:
            refused.append(each)
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    session = edge_session(spark)
    there = dict[str, str]()
    for each in batched(schemas, 100):
        calls = ", ".join(
            f"schema_of_json({literal(text)}) AS c{at}" for at, text in enumerate(each)
        )
        there.update(zip(each, session.sql(f"SELECT {calls}").collect()[0], strict=True))
    assert {
        text: (schemas[text], there[text]) for text in there if schemas[text] != there[text]
    } == {}
    for each in refused[:30]:
        with pytest.raises((Py4JJavaError, PySparkException)):
            session.sql(f"SELECT schema_of_json({literal(each)})").collect()


def literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def batched(values: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    rest = iter(values)
    while each := tuple(islice(rest, size)):
        yield each


def frozen(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with tuples as arrays."""
    return tuple(tuple(each) if isinstance(each, list) else each for each in row)
