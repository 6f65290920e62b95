"""The page: what a browser sees of a warehouse, rendered here, with every question by `Service`."""
