"""Hypothesis profiles: `dev` explores; `ci` takes the same examples in every run."""

from hypothesis import settings

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("dev")
