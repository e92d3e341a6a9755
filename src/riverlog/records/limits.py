"""Bounds of record batches: how much, how long or how often, and what happens beyond."""

from typing import Final

UNFOLDED_BATCHES_MAX: Final = 32
"""How many times `max.message.bytes` a produced batch may unfold to where the broker must look at its records."""

RECORD_ERRORS_MAX: Final = 1_000
"""Records of a refused batch that the answer names one by one."""
