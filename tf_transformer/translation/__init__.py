"""From strings to strings: tokenizers, model and search together, and what opens them."""
