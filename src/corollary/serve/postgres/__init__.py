"""Connections of PostgreSQL clients: the wire protocol, statements, and what `pg_catalog` says."""
