"""Programs in Soufflé's dialect of Datalog, with our additions for views and active rules."""

from corollary.frontends.datalog.parser import (
    parse,
    parse_clause,
    parse_file,
    parse_goal,
    parse_rule,
)

__all__ = ["parse", "parse_clause", "parse_file", "parse_goal", "parse_rule"]
