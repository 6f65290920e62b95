"""What plans cost: exponents of N, and estimates from real sizes."""
