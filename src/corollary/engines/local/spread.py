"""Estimates of how many values the columns of a relation have."""

import numpy as np

from corollary.engines.local.layout import Codes, Layout, Words

SAMPLE = 1 << 15
"""Distinct values are estimated from about so many tuples."""


def spread(words: Words, layout: Layout) -> tuple[int, ...]:
    """Return estimates of the distinct values of every column."""
    if not len(words):
        return (0,) * len(layout.widths)
    size = len(words)
    sample = words[:: 1 + size // SAMPLE]
    return tuple(_distinct_values(column, size) for column in layout.columns(sample))


def _distinct_values(sample: Codes, size: int) -> int:
    """Estimate the distinct values of a column from a sample (Charikar et al., PODS 2000)."""
    _, counts = np.unique(sample, return_counts=True)
    once = int(np.count_nonzero(counts == 1))
    scale = (size / len(sample)) ** 0.5
    return int(scale * once) + len(counts) - once
