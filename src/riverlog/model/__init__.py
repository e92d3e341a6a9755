"""Shared nouns and the ports: what every room may name, and what the world must offer. Imports nothing of ours."""
