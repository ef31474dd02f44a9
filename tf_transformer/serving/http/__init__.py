"""The REST interface and the page."""
