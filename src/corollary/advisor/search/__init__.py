"""The two stages: candidates from disjuncts, folding and clusters; the choice of views to store."""
