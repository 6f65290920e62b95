"""What can be known of a program without running it.

`check` runs all checks and infers types; `strata`, `orders`, `pivots` and `relevance` are what
planners ask of a program in normal form.
"""
