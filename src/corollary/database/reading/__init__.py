"""Reading a database: relations, goals, questions in SQL, what changes; as a reader sees it."""
