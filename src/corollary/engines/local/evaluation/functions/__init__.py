"""The functors of the language on arrays: logic and choice, numbers, text, casts."""
