"""Latencies counted in buckets: any number of them in bounded memory, added up over processes.

A bucket is at most 1/128 of its value wide, so a percentile is right to within a hundredth; the largest is exact.
"""

from collections.abc import Mapping
from typing import Final

SIGNIFICANT_BITS: Final = 8
HALF: Final = 1 << (SIGNIFICANT_BITS - 1)
PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


class Latencies:
    """How often each latency was seen. The unit is the microsecond."""

    def __init__(self, counts: Mapping[int, int] | None = None, largest: int = 0) -> None:
        self.counts = dict(counts or {})
        self.largest = largest

    def add(self, microseconds: int) -> None:
        """Count one; a clock that went backwards counts as no time at all."""
        microseconds = max(microseconds, 0)
        bucket = bucket_of(microseconds)
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self.largest = max(self.largest, microseconds)

    def merge(self, other: "Latencies") -> None:
        """Take over what another process counted."""
        for bucket, count in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.largest = max(self.largest, other.largest)

    def at(self, share: float) -> int:
        """Return the smallest latency that this share of all does not exceed, rounded up to the end of its bucket."""
        wanted = share * sum(self.counts.values())
        seen = 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= wanted:
                return min(last_of(bucket), self.largest)
        return self.largest

    def milliseconds(self) -> dict[str, float]:
        """Return the percentiles that are shown, and the largest."""
        found = {name: self.at(share) for name, share in PERCENTILES.items()} | {"max": self.largest}
        return {name: microseconds / 1000 for name, microseconds in found.items()}


def bucket_of(microseconds: int) -> int:
    """Number the bucket of a latency: one per microsecond at first, then by the leading bits alone."""
    shift = max(0, microseconds.bit_length() - SIGNIFICANT_BITS)
    return shift * HALF + (microseconds >> shift)


def last_of(bucket: int) -> int:
    """Return the largest latency of a bucket."""
    shift = max(0, bucket // HALF - 1)
    return ((bucket - shift * HALF + 1) << shift) - 1
