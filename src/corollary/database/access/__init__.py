"""Who may read what: read access to a database, grants, and readers limited to them."""
