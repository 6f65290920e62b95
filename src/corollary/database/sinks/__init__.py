"""Where alerts go after a commit: one module for each kind of sink."""
