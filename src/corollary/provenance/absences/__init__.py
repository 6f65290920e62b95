"""Why a tuple does not hold: how near each rule comes to it, and what would make it true.

`nearest` finds the instances of a rule in which the fewest parts fail, `insertions` the base tuples
that would have to be there; `rule_parts` and `known_values` say what both try.
"""
