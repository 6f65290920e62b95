"""Records, algebraic data types and arrays: their texts, and how Python and JSON have them."""
