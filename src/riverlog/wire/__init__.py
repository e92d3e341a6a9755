"""Bytes to messages and back: frames, Kafka's declared messages, one table of APIs. Pure."""
