"""Connections of clients: let in, read, and answered in order."""
