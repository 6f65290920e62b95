"""Values and their codes: native arrays, code domains, and the dictionary of all domains."""
