"""Bounds of a load and its history: how much, how long or how often, and what happens beyond."""

from typing import Final

VERIFIED_RECORDS_MAX: Final = 500_000
"""Records whose history `verify` keeps in memory; a load that gets there ends early."""

VERIFIED_RECORDS_UNDER_WAY_MAX: Final = 1_000
"""Records of one producer of `verify` whose outcome is open; beyond it the producer waits."""
