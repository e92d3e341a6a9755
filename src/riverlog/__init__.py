"""riverlog: an event streaming platform that any Kafka client can use."""

__version__ = "0.1.0"
