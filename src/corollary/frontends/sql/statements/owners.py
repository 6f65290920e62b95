"""Which statement has made which relation: it has the name of the statement, or begins with it."""

from corollary.core.program import Program, owner_of, sql_texts
from corollary.frontends.sql.catalog import SqlCatalog, catalog_of


def visible_catalog(program: Program) -> SqlCatalog:
    """Return the relations that statements may name: not those that statements have made beside."""
    catalog, texts = catalog_of(program), sql_texts(program)
    for name in catalog.names():
        if owner_of(name, texts) not in (None, name):
            catalog.remove(name)
    return catalog
