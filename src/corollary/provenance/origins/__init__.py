"""Where base tuples are from: who asserts them, in which file and line, since which commit."""
