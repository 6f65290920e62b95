"""Records, algebraic types, arrays, structs: their texts, and how Python and JSON have them."""
