"""Trees: forests, the nodes of a document, and the formats that they are read from."""
