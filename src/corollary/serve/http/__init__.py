"""The HTTP interface: paths, who may use them, limits, and the server that runs them."""
