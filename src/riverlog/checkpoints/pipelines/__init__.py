"""Pipelines whose checkpoints lie here: the decision about each batch, and the progress of their queries."""
