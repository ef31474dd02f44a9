"""Plain strings around a translation, without TensorFlow: batches, documents, markup, glossaries, word alignments."""
