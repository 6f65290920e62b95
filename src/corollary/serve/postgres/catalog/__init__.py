"""What `pg_catalog` and `information_schema` say: tables in a DuckDB of their own, without data.

Tools ask them which relations and columns there are. The tables have the columns of PostgreSQL's,
the rows are made of the relations that the client may see, and queries are run as they are asked.
"""
