"""The commands, one file each; `cli.main` has their table."""
