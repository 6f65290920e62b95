"""Where alerts go behind a commit: one file for each kind of sink."""
