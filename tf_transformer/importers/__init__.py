"""Pretrained models of others as run directories; read without TensorFlow."""
