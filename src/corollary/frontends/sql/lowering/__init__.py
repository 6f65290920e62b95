"""From queries to rules: each module lowers one construct (the tree is `query_tree`)."""
