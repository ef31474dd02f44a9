"""Run directories, and the checkpoints in them."""
