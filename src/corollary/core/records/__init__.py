"""Records and values of algebraic data types: their text, and how Python and JSON have them."""
