"""One module for each kind of picture that `tf-transformer plot` draws."""
