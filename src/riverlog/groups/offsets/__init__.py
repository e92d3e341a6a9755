"""Committed offsets of groups, and those that wait for a transaction to end."""
