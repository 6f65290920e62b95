"""Random expressions of SQL over columns of all types.

A form is a text with holes, `({BIGINT} + {BIGINT})`, that stand for expressions of a type. What
type a form gives, and whether there is such an expression, the binder says.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import corollary
from corollary.core.types import Kind, Type
from corollary.errors import InputError
from corollary.frontends.sql.binder.functions.table import find_function
from corollary.frontends.sql.catalog import SqlCatalog, catalog_of
from corollary.frontends.sql.query_tree import output_columns
from support.query_text import bind_text
from support.sql.spark_values import ALL_COLUMNS

COMPARISONS = (
    *(f"({{0}} {sign} {{0}})" for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>")),
    *("({0} IS NULL)", "({0} IN ({0}, {0}))", "({0} BETWEEN {0} AND {0})"),
    *("array_contains(array({0}, NULL, {0}), {0})", "exists(array({0}, {0}), each -> each = {0})"),
)
Forms = dict[str, dict[str, list[str]]]
"""Forms by the type that they give, and by their function."""

_HOLE = re.compile(r"\{(\w+)\}")


@cache
def _catalog() -> SqlCatalog:
    """Return the catalog of the table with all columns."""
    with corollary.open(None, engine="local") as db:
        db.sql(f"CREATE TABLE edge (id BIGINT NOT NULL, {declared(ALL_COLUMNS)})")
        return catalog_of(db.program)


def declared(columns: Mapping[str, Any]) -> str:
    """Return the columns of a table as `CREATE TABLE` has them."""
    return ", ".join(f"{name} {type_}" for type_, _, _, names in columns.values() for name in names)


def type_of(expression: str) -> Type | None:
    """Return the type of an expression over the columns; None if it is refused."""
    try:
        query = bind_text(f"SELECT {expression} FROM edge", catalog=_catalog())
    except InputError:
        return None
    return output_columns(query)[0].type


def hole_of(type_: Type) -> str | None:
    """Return the name of the holes that a type fits into; numbers and intervals fit into others."""
    if type_.is_interval:
        return "MONTHS" if type_.logical is Kind.MONTHS else "SPAN"
    names = {(column[0], f"{of}(6)"): of for of, column in ALL_COLUMNS.items()}
    return next((of for known, of in names.items() if type_.spark_name in known), None)


def of_types(forms: Iterable[str], types: Iterable[str]) -> list[str]:
    """Return forms of any type for each of some types."""
    return [form.replace("{0}", f"{{{of}}}") for of in types for form in forms]


def forms_of(dice: random.Random, forms: Iterable[str]) -> Forms:
    """Return forms that the binder takes, by the type that they give and by their function."""
    found: Forms = {}
    for form in dict.fromkeys(forms):
        type_ = type_of(filled(form, lambda of: dice.choice(ALL_COLUMNS[of][3])))
        hole = None if type_ is None else hole_of(type_)
        if hole is not None:
            function = form.partition("(")[0]
            found.setdefault(hole, {}).setdefault(function, []).append(form)
    return found


def filled(form: str, fill: Callable[[str], str]) -> str:
    """Return a form with an expression in each hole."""
    return _HOLE.sub(lambda found: fill(found[1]), form)


def random_expression(dice: random.Random, forms: Forms, of: str, depth: int) -> str:
    """Return an expression of a type, as deep as told at most."""
    if not depth or (of not in forms):
        return dice.choice(ALL_COLUMNS[of][3])
    form = dice.choice(dice.choice(list(forms[of].values())))
    return filled(form, lambda hole: random_expression(dice, forms, hole, dice.randrange(depth)))


def random_calls(dice: random.Random, forms: Forms, count: int) -> list[str]:
    """Return expressions that the binder takes; those with months as texts."""
    found: dict[str, None] = {}
    while len(found) < count:
        call = random_expression(dice, forms, dice.choice(list(forms)), dice.randint(1, 3))
        type_ = type_of(call)
        if type_ is not None:
            is_months = re.search("YEAR|MONTH", type_.spark_name)
            found[f"CAST({call} AS STRING)" if is_months else call] = None
    return list(found)


def signature_forms(dice: random.Random, functions: Iterable[str]) -> list[str]:
    """Return calls of functions with arguments of each type; of those after the first, of some."""
    forms = []
    for name in functions:
        function = find_function(name)
        assert function is not None
        for count in range(function.least, min(function.most, function.least + 2, 4) + 1):
            for of in ALL_COLUMNS if count else ("",):
                for rest in (["INT"], ["STRING"], [of], list(ALL_COLUMNS)):
                    drawn = [of, *dice.choices(rest, k=count - 1)] if count else []
                    forms.append(f"{name}({', '.join(f'{{{each}}}' for each in drawn)})")
    return forms
