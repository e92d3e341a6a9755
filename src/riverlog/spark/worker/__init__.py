"""A worker of Spark: what it is told about its task, what it keeps for the next, and when nobody listens any more."""
