"""Tables of packed tuples: layouts, sorted runs, states, and index files."""
