"""Pipelines whose checkpoints lie here: the decision about each batch, and how their queries go."""
