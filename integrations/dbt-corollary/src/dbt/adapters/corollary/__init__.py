"""The adapter of dbt for Corollary, on that for PostgreSQL: `corollary serve --pg-port`."""

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.corollary.connections import CorollaryCredentials
from dbt.adapters.corollary.impl import CorollaryAdapter
from dbt.include import corollary

Plugin = AdapterPlugin(
    adapter=CorollaryAdapter,
    credentials=CorollaryCredentials,
    include_path=corollary.PACKAGE_PATH,
    dependencies=["postgres"],
)
