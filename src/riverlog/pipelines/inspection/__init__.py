"""A look inside: the picture of a pipeline, one batch once more, and the state that is kept."""
