"""The local engine: relations in one process, and plans that run on them."""
