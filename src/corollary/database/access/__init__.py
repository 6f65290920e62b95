"""Who may do and see what: principals, and grants to readers."""
