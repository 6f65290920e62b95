"""Brings the catalog of a warehouse from an earlier format to the present one, in one transaction.

A change of the format adds its step here, and a warehouse of the format before it to
`tests/warehouse/formats`. A step may change tables and rows. Data files stay as they are: what an
engine cannot read any more and can compute again (payload, indexes) is forgotten, by its rows.
"""

from collections.abc import Callable, Mapping

from corollary.errors import WarehouseError
from corollary.warehouse.catalog import schema
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.connections import CatalogConnection

Step = Callable[[CatalogConnection], None]


def _keep(_: CatalogConnection) -> None:
    """Change nothing: relations that rewriting makes in another way now are computed anew."""


STEPS: dict[int, Step] = {5: _keep}
"""What makes format n + 1 of format n, by n; there is one for each from 5 on."""


def upgrade(
    catalog: Catalog, steps: Mapping[int, Step] = STEPS, latest: int = schema.FORMAT
) -> tuple[int, int]:
    """Bring a catalog to the latest format; return the format it had, and the one it has.

    Raises:
        WarehouseError: `C0931`, it has a format that no step begins from.
    """
    with catalog.write_transaction() as connection:
        found = str(catalog.find_meta(connection, "format"))
        known = {str(number): number for number in (*steps, latest)}
        if found not in known:
            raise WarehouseError.other_format(found, schema.OLDEST_FORMAT, latest)
        for number in range(known[found], latest):
            steps[number](connection)
        if known[found] != latest:
            catalog.replace_meta(connection, "format", str(latest))
    return known[found], latest
