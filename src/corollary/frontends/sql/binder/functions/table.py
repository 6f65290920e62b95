"""Every function by its name, and those that are refused, with the reason and a cure."""

from collections.abc import Iterator
from difflib import get_close_matches

from corollary.core.functors.catalog import FUNCTORS, functor_of_sql
from corollary.frontends.sql.binder.functions.arguments import SqlFunction, function_of
from corollary.frontends.sql.binder.functions.array_functions import (
    ARRAY_FUNCTIONS,
    LIST_FUNCTIONS,
)
from corollary.frontends.sql.binder.functions.json_functions import JSON_FUNCTIONS
from corollary.frontends.sql.binder.functions.map_functions import (
    FUNCTIONS_OF_MAPS,
    MAP_FUNCTIONS,
)
from corollary.frontends.sql.binder.functions.number_functions import NUMBER_FUNCTIONS
from corollary.frontends.sql.binder.functions.text_functions import (
    BINARY_FUNCTIONS,
    CODING_FUNCTIONS,
    TEXT_FUNCTIONS,
)
from corollary.frontends.sql.binder.functions.time_functions import TIME_FUNCTIONS
from corollary.frontends.sql.binder.functions.time_of_day_functions import (
    CLOCK_FUNCTIONS,
    TIME_OF_DAY_FUNCTIONS,
)
from corollary.frontends.sql.binder.values.common_types import sized
from corollary.frontends.sql.binder.values.operators import Site
from corollary.frontends.sql.query_tree import Expression

FUNCTIONS: dict[str, SqlFunction] = {
    **NUMBER_FUNCTIONS,
    **TEXT_FUNCTIONS,
    **CODING_FUNCTIONS,
    **TIME_FUNCTIONS,
    **CLOCK_FUNCTIONS,
    **LIST_FUNCTIONS,
    **MAP_FUNCTIONS,
    **JSON_FUNCTIONS,
}
"""The functions of SQL that are more than a functor."""

_RANDOM = ("has another value each time", "compute it outside, and insert it")
_CLOCK = ("changes while nothing else does", "use `current_date`, the day that `--today` sets")
_LIST = ("would be a value that no column can hold", "keep an array, or one row for each part")
_STATE = ("tells about the session, not about the data", "leave it out")
_MIXED = (
    "would have months and days together, which cannot be compared",
    "use `make_ym_interval` and `make_dt_interval`",
)
_CODE = ("depends on keys and chance", "encrypt the data outside, and insert it")
_FORMAT = ("reads or writes a format of its own", "load files of that format, or keep columns")
_FAILING = (
    "fails in the middle of a query",
    "use `CHECK` or `CREATE ASSERTION`, which refuse a transaction",
)
_BITMAPS = ("makes a map of 4096 bytes for each group", "use `count(DISTINCT x)`")
_VARIANT = ("would be a VARIANT, which cannot be compared", "keep a column for each part")
_APPROXIMATE = ("is approximate", "use `count(DISTINCT x)`")
_QUANTILE = ("is approximate", "use `percentile(x, 0.5)`")
_SKETCH = ("is an approximation", "use `count(DISTINCT x)`, `percentile(x, p)` or `GROUP BY x`")

REFUSED: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("rand", "random", "randn", "uuid", "shuffle", "randstr", "uniform"), _RANDOM),
    **dict.fromkeys(("monotonically_increasing_id", "spark_partition_id"), _RANDOM),
    **dict.fromkeys(
        ("now", "current_timestamp", "localtimestamp", "current_time", "localtime"), _CLOCK
    ),
    "approx_count_distinct": _APPROXIMATE,
    **dict.fromkeys(("approx_percentile", "percentile_approx"), _QUANTILE),
    **dict.fromkeys(("approx_top_k", "count_min_sketch", "histogram_numeric"), _SKETCH),
    **dict.fromkeys(("hll_sketch_agg", "hll_union_agg", "theta_sketch_agg"), _SKETCH),
    **dict.fromkeys((f"kll_sketch_agg_{kind}" for kind in ("bigint", "double", "float")), _SKETCH),
    **dict.fromkeys(
        ("current_user", "user", "session_user", "current_database", "current_schema"), _STATE
    ),
    **dict.fromkeys(("current_catalog", "version", "input_file_name", "current_timezone"), _STATE),
    **dict.fromkeys(
        ("java_method", "reflect", "try_reflect"), ("runs other programs", "leave it out")
    ),
    **dict.fromkeys(("current_path", "input_file_block_length", "input_file_block_start"), _STATE),
    **dict.fromkeys(("collations", "sql_keywords", "python_worker_logs"), _STATE),
    **dict.fromkeys(("aes_encrypt", "aes_decrypt", "try_aes_decrypt"), _CODE),
    **dict.fromkeys(("from_csv", "to_csv", "schema_of_csv", "from_xml", "to_xml"), _FORMAT),
    **dict.fromkeys(("schema_of_xml", "from_avro", "to_avro", "schema_of_avro"), _FORMAT),
    **dict.fromkeys(("from_protobuf", "to_protobuf"), _FORMAT),
    **dict.fromkeys(("parse_json", "try_parse_json", "to_variant_object"), _VARIANT),
    **dict.fromkeys(("is_variant_null", "is_valid_variant"), _VARIANT),
    **dict.fromkeys(("schema_of_variant", "schema_of_variant_agg"), _VARIANT),
    **dict.fromkeys(("make_interval", "try_make_interval"), _MIXED),
    **dict.fromkeys(("assert_true", "raise_error"), _FAILING),
    **dict.fromkeys(("bitmap_construct_agg", "bitmap_or_agg", "bitmap_and_agg"), _BITMAPS),
    "collate": ("compares texts as a language does", "compare `lower(x)`, or keep a sort key"),
    "collect_union": ("would be a set of elements", "use `collect_set` of an `explode`"),
    "counter_diff": ("is a difference to the row before", "use `x - lag(x) OVER (…)`"),
    "measure": ("is of metric views, which are not known here", "write the aggregate"),
    "sentences": ("depends on a language", "use `split`"),
    "window_time": ("names a window by its end", "use `window.end - INTERVAL 0.000001 SECONDS`"),
    "timestamp_nanos": ("has parts that no timestamp here has", "use `timestamp_micros`"),
    "unix_nanos": ("counts parts that no timestamp here has", "use `unix_micros`"),
}
"""Functions of Spark that are refused: the reason, and what to do."""

REFUSED_FAMILIES: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("approx_top_k", "hll_", "kll_", "theta_", "tuple_"), _SKETCH),
    **dict.fromkeys(("variant_", "try_variant_"), _VARIANT),
    "xpath": _FORMAT,
    "st_": ("is of geometry, which no column can hold", "keep coordinates as numbers"),
    "vector_": ("sums floats of 32 bits in an order of its own", "use `sum` of products"),
}
"""The same for all functions whose names begin so."""

INTERNAL = frozenset(
    {
        *("band", "bor", "bxor", "bnot", "weekday_iso", "yearofweek", "seconds_with_fraction"),
        "whole_months",
    }
)
"""Entries of the table that are written as operators or parts, and not as functions."""


_INT = (
    "ascii bit_count bit_length char_length character_length date_diff datediff day dayofmonth "
    "array_size cardinality dayofweek dayofyear find_in_set hash hour instr json_array_length len "
    "length levenshtein locate minute month octet_length position quarter regexp_count "
    "regexp_instr second size unix_date week weekday weekday_iso weekofyear year yearofweek"
)
RESULT_BITS = {
    **dict.fromkeys(_INT.split(), 32),
    **dict.fromkeys(("bit_get", "getbit"), 8),
    **dict.fromkeys(("bitmap_bit_position", "bitmap_bucket_number"), 64),
}
"""The bits of the integers that functions give, where their arguments do not say them."""


def refusal_of(name: str) -> tuple[str, str] | None:
    """Return why a function cannot be had, and what to write instead; None for others."""
    families = (why for prefix, why in REFUSED_FAMILIES.items() if name.startswith(prefix))
    return REFUSED.get(name) or next(families, None)


def check_accepted(name: str, site: Site) -> None:
    """Refuse a function that is known and cannot be had, whatever its arguments are."""
    found = refusal_of(name)
    if found is not None:
        reason, cure = found
        raise site.error("C1311", f"`{name}` is refused: it {reason}.", cure)


def function_names() -> Iterator[str]:
    """Yield the names of all functions."""
    yield from FUNCTIONS
    for spec in FUNCTORS.values():
        yield from spec.sql_names


def find_function(name: str) -> SqlFunction | None:
    """Return a function; operators such as `&` have the names of their functors."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    spec = functor_of_sql(name)
    return None if spec is None else function_of(spec)


def function_call(name: str, arguments: list[Expression], site: Site) -> Expression:
    """Return a function applied to its arguments."""
    is_written = site.name == name
    is_binary = any(each.type.is_binary for each in arguments)
    is_array = any(each.type.is_array for each in arguments)
    is_time_of_day = any(each.type.is_time_of_day for each in arguments)
    is_map = any(each.type.is_map for each in arguments[:1])
    overloads = FUNCTIONS_OF_MAPS if is_map else ARRAY_FUNCTIONS if is_array else {}
    overloads = TIME_OF_DAY_FUNCTIONS if is_time_of_day else overloads
    found = (BINARY_FUNCTIONS if is_binary else overloads).get(name) or find_function(name)
    check_accepted(name, site)
    if found is None or (is_written and name in INTERNAL):
        known = [each for each in function_names() if each not in INTERNAL]
        near = get_close_matches(name, known, n=1)
        note = (
            f"did you mean `{near[0]}`?"
            if near
            else "functions are those of docs/sql.md; others can be computed before, as a column"
        )
        raise site.error("C1305", f"There is no function `{name}` here.", note)
    if not found.least <= len(arguments) <= found.most:
        wanted = "one argument" if found.most == 1 else f"{found.least} arguments"
        if found.most > found.least:
            wanted = (
                f"{found.least} {'or more' if found.most > 9 else f'to {found.most}'} arguments"
            )
        message = f"`{name}` takes {wanted}, but has {len(arguments)} here."
        raise site.error("C1306", message, "see docs/sql.md for its arguments")
    made = found.build(arguments, site)
    return sized(made, RESULT_BITS[name]) if name in RESULT_BITS else made
