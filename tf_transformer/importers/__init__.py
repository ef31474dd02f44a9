"""Importing pretrained models of other projects as run directories, without TensorFlow."""
