"""What the commands do, one function each; they import TensorFlow when they are called."""
