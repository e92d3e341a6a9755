"""Bounds of upkeep: how much, how long or how often, and what happens beyond."""

from typing import Final

SWAP_TRIES_MAX: Final = 100
"""How often a step of a segment's swap is tried again, each tenth of a second, before the directory goes offline."""

SEGMENTS_PER_SCRUB_MAX: Final = 1_000
"""Closed segments that one process of the scrubber is given; then another one begins with those behind them."""
