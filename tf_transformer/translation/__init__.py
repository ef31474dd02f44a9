"""Translation from strings to strings: tokenizers, model and search together, and functions that open them."""
