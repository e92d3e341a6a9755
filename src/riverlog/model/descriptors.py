"""Who may have how many of a process's descriptors. Files come first: who has no connection comes back later, and a
log without a file can keep nothing."""

from dataclasses import dataclass
from typing import Self

from riverlog.model.limits import (
    CHECKPOINT_CONNECTIONS_MAX,
    DESCRIPTORS_ASSUMED,
    DESCRIPTORS_RESERVED_MAX,
    DESCRIPTORS_RESERVED_MIN,
)


@dataclass(frozen=True, slots=True)
class DescriptorShares:
    """The parts of one node. What is left is the reserve, for listeners, metrics, and files that are open shortly."""

    connections: int
    checkpoint_connections: int
    segment_files: int

    @classmethod
    def of(cls, limit: int = DESCRIPTORS_ASSUMED) -> Self:
        """Divide the descriptors of a process that may have so many."""
        reserve = min(DESCRIPTORS_RESERVED_MIN + limit // 8, DESCRIPTORS_RESERVED_MAX)
        left = max(limit - reserve, 0)
        checkpoint_connections = max(min(left // 8, CHECKPOINT_CONNECTIONS_MAX), 1)
        segment_files = max(left // 3, 1)
        return cls(max(left - segment_files - checkpoint_connections, 1), checkpoint_connections, segment_files)
