"""The server of a warehouse: requests, the processes that answer them, and how clients connect."""
