"""Bounds of the cluster's metadata: how much, how long or how often, and what happens beyond."""

from typing import Final

TOPIC_NAME_CHARACTERS_MAX: Final = 249
"""The longest topic name: with the partition number it must fit a file name."""

KEYS_PLACED_MAX: Final = 10_000
"""Keys of the metadata's maps whose place is remembered; that of others is reckoned again."""
