"""Comparisons of rules as nodes of SQL."""

from collections.abc import Mapping

from sqlglot import exp

COMPARISONS: Mapping[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "is": exp.NullSafeEQ,
}
