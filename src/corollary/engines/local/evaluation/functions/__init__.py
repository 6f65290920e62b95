"""The functors of the language on arrays: logic and choice, numbers, text, casts."""

from collections.abc import Callable, Mapping
from typing import Any

from corollary.engines.local.evaluation import arithmetic, text_functions, times
from corollary.engines.local.evaluation.functions import (
    arrays,
    by_duckdb,
    casts,
    choices,
    doubles,
    hashes,
    json_texts,
    json_values,
    logic_functions,
    maps,
    numbers,
    records,
    text_parts,
)

COMBINATIONS: Mapping[str, Callable[..., Any]] = {
    **choices.COMBINATIONS,
    **records.RECORD_COMBINATIONS,
    **arrays.ARRAY_COMBINATIONS,
    **maps.MAP_COMBINATIONS,
    **hashes.HASH_COMBINATIONS,
}
"""The functors that decide themselves about null and missing arguments."""

STRICT_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **by_duckdb.TEMPLATE_FUNCTIONS,
    **arithmetic.ARITHMETIC_FUNCTIONS,
    **text_functions.TEXT_FUNCTIONS,
    **times.TIME_FUNCTIONS,
    **times.ZONE_FUNCTIONS,
    **logic_functions.LOGIC_FUNCTIONS,
    **numbers.NUMBER_FUNCTIONS,
    **doubles.DOUBLE_FUNCTIONS,
    **text_parts.TEXT_PART_FUNCTIONS,
    **casts.CAST_FUNCTIONS,
    **records.RECORD_FUNCTIONS,
    **arrays.ARRAY_FUNCTIONS,
    **maps.MAP_FUNCTIONS,
    **json_texts.JSON_FUNCTIONS,
    **json_values.JSON_VALUE_FUNCTIONS,
}
"""The functors that are null where an argument is, and have no value where one has none."""
