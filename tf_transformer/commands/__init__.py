"""The command `tf-transformer`: a module a command; each imports TensorFlow when it needs it."""
