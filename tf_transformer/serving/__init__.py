"""A server of exported models with the APIs of TensorFlow Serving, independent of the code of the model."""
