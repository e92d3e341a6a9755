"""The consumer group protocol (KIP-848): heartbeats, targets, reconciliation, and the way to and from classic."""
