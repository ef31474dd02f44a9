"""A run, written in the form that a runtime reads: one module a format."""
