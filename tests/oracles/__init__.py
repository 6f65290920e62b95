"""Second, naive implementations of what is tested; they share no code with the package."""
