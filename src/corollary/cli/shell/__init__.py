"""`corollary shell`: what is typed, what is done with it, what is shown."""
