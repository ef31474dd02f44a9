"""A server of SavedModels that speaks as TensorFlow Serving does; it knows no model code."""
