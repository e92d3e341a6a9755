"""Reading: a subscription, a place in a group, fetches ahead of the reader, and committed offsets."""
