"""From sqlglot's syntax trees to `query_tree`: names, types and functions are resolved."""
