"""Every functor, in one table."""

from corollary.core.functors.conversions import casts, conversions, internal
from corollary.core.functors.logic import choices, logic
from corollary.core.functors.numbers import arithmetic, more_of_numbers
from corollary.core.functors.spec import FunctorSpec, Nullness
from corollary.core.functors.texts import more_texts, texts
from corollary.core.functors.times import times
from corollary.core.logic import NEGATED_OPERATORS

FUNCTORS: dict[str, FunctorSpec] = {
    spec.name: spec
    for family in (
        arithmetic,
        texts,
        conversions,
        times,
        logic,
        choices,
        more_of_numbers,
        more_texts,
        casts,
        internal,
    )
    for spec in family()
}
"""Every functor by its name (unary minus is `neg`)."""

COMPARISON_OPERATORS = {spec.name: spec.comparison for spec in FUNCTORS.values() if spec.comparison}
"""The functors that compare as operators do; their result is null where an argument is."""


_BY_OPERATOR = {operator: name for name, operator in COMPARISON_OPERATORS.items()}
OPPOSITES = {
    name: _BY_OPERATOR[NEGATED_OPERATORS[operator]]
    for name, operator in COMPARISON_OPERATORS.items()
}
"""For each of them the one that holds where it does not, nulls apart."""


def is_strict(name: str) -> bool:
    """Whether a functor is null where an argument is, and never for another reason."""
    return name not in FUNCTORS or FUNCTORS[name].nullness is Nullness.STRICT


def functor_of_sql(name: str) -> FunctorSpec | None:
    """Return the functor that a function of SQL is, argument by argument; None if it is more."""
    return next((spec for spec in FUNCTORS.values() if name in spec.sql_names), None)
