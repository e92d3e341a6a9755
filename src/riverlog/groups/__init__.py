"""Consumer groups and committed offsets: a replicated machine per partition of `__consumer_offsets`."""
