"""Exports of a run in the formats of other runtimes, one module per format."""
