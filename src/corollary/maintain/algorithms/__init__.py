"""Maintenance algorithms, one file each; `maintenance` calls them, `choose` chooses among them."""
