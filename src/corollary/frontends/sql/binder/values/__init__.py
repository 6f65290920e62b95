"""Values: literals, types of several values together, conversions, operators."""
