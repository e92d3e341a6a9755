"""The topic of Spark's checkpoints: what it must be so that nothing of it is lost, and who may write to it.

A node keeps it for its own checkpoint store. On a cluster that is not ours the store sees to the settings itself.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CHECKPOINTS_TOPIC: Final = "__checkpoints"
CHECKPOINTS_PARTITIONS: Final = 2
CHECKPOINTS_TRANSACTIONAL_ID: Final = "riverlog-checkpoints"
"""Whoever takes it over locks the store out."""
CHECKPOINTS_PRINCIPAL: Final = "riverlog-checkpoints"
"""The node's own store, as its connections are known once they have shown the node's secret."""
OWN_MECHANISM: Final = "RIVERLOG-NODE"
"""How a part of a node authenticates with the node: by the secret that was drawn when the node was built."""

CLEANUP_POLICY: Final = "cleanup.policy"
MAX_MESSAGE_BYTES: Final = "max.message.bytes"
CHECKPOINTS_MESSAGE_BYTES_MIN: Final = 1024 * 1024
"""A chunk of a file, and small files that are written together, must fit into a batch."""
CHECKPOINTS_CONFIGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        CLEANUP_POLICY: "compact",
        "segment.bytes": str(64 * 1024 * 1024),
        "delete.retention.ms": str(
            10 * 60_000
        ),  # the store reads for less long when it is opened, and nothing else reads
    }
)


def unfit_settings(configs: Mapping[str, str]) -> dict[str, str]:
    """Name the settings with which checkpoints are lost or cannot be written, each with a value that does."""
    fit: dict[str, str] = {}
    if configs.get(CLEANUP_POLICY, "").strip() != CHECKPOINTS_CONFIGS[CLEANUP_POLICY]:
        fit[CLEANUP_POLICY] = CHECKPOINTS_CONFIGS[CLEANUP_POLICY]
    if MAX_MESSAGE_BYTES in configs and int(configs[MAX_MESSAGE_BYTES]) < CHECKPOINTS_MESSAGE_BYTES_MIN:
        fit[MAX_MESSAGE_BYTES] = str(CHECKPOINTS_MESSAGE_BYTES_MIN)
    return fit
