"""From text to programs."""
