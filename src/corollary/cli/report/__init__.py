"""What several commands print: tables, changes and traces."""
