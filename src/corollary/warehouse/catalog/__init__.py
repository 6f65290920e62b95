"""The catalog: the database that says what a warehouse holds; its transactions are the commits."""
