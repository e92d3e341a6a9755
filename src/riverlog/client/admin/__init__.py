"""Administration: topics, settings, groups and transactions, asked of any Kafka-compatible cluster."""
