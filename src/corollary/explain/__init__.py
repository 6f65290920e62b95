"""Plans and programs, printed."""
