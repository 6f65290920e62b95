"""Front ends: from text to programs."""
