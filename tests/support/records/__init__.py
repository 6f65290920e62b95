"""Random programs over records and algebraic data types."""
