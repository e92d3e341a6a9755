"""A worker of Spark: what it knows about its task, what it keeps for the next, and when nobody listens any more."""
