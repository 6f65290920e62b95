"""Where requests are answered: in this process, or in a writer and readers beside it."""
