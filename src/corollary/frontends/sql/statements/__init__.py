"""SQL statements: from the text of files and calls to declarations, rules and directives."""
