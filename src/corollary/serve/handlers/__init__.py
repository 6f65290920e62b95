"""What answers each request, on an open database."""
