"""The commands that a server runs for the command line."""

READING_COMMANDS = (
    "query",
    "sql",
    "why",
    "why-not",
    "why-added",
    "why-removed",
    "log",
    "changes",
    "status",
)
WRITING_COMMANDS = ("apply", "what-if")
OWNER_COMMANDS = ("status", *WRITING_COMMANDS)
"""Those that show, or need, more than what is granted to a reader."""
