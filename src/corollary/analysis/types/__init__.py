"""Type inference: constraints, unification, scales, nulls; then the types are written in."""
