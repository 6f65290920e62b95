"""What functors are: one specification for each (`spec`), all of them (`catalog`)."""
