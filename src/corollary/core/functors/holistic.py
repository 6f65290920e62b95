"""Holistic aggregates, whose value is computed of all values of a group at once.

No state of fixed size says what they are: they are computed anew for each group that changes, of
its bag of values.
"""

from corollary.data_class import dataclass

ARGUMENTS = "•arguments"
"""The functor of what a holistic aggregate is of: columns, one that says how often a row counts if
that is not once, constants."""


@dataclass(frozen=True, slots=True)
class Holistic:
    """An aggregate whose value is computed of the bag of a group's values.

    Attributes:
        columns: how many columns it is of.
        typed_by: which of them has the type of the result; None for a float.
        parameters: how many constants it needs.
        is_array: whether the result is an array of values of that type.
        is_open: whether any number of columns follows, by which rows are ordered.
    """

    columns: int = 1
    typed_by: int | None = None
    parameters: int = 0
    is_array: bool = False
    is_open: bool = False


HOLISTIC: dict[str, Holistic] = {
    **dict.fromkeys(("var_pop", "var_samp", "stddev_pop", "stddev_samp"), Holistic()),
    **dict.fromkeys(("skewness", "kurtosis"), Holistic()),
    **dict.fromkeys(("percentile_cont", "percentile_disc"), Holistic(1, None, 2)),
    **dict.fromkeys(("covar_pop", "covar_samp", "corr", "regr_slope"), Holistic(2)),
    **dict.fromkeys(("regr_intercept", "regr_r2"), Holistic(2)),
    **dict.fromkeys(("regr_sxx", "regr_sxy", "regr_syy"), Holistic(2)),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), Holistic(1, 0)),
    "mode": Holistic(1, 0, 1),
    **dict.fromkeys(("max_by", "min_by"), Holistic(2, 1)),
    "listagg": Holistic(2, 0, 2),
    **dict.fromkeys(("first", "last"), Holistic(2, 1, 1, is_open=True)),
    **dict.fromkeys(("collect_list", "collect_set"), Holistic(1, 0, 0, is_array=True)),
}
"""Holistic aggregates; those that choose by a column have it first, `listagg` has it last.

`first` and `last` are of rows whose first column is not null, and have the second one's value.
"""
