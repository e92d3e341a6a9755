"""Bounds of the cluster's metadata: how much, how long or how often, and what happens beyond."""

from typing import Final

TOPIC_NAME_CHARACTERS_MAX: Final = 249
"""The longest topic name: with the partition number it must fit a file name."""

TOPICS_OPEN_MAX: Final = 4_096
"""Topics of a draft that are kept in pieces; beyond it those that changed are put together, and their pieces go."""
