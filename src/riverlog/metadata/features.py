"""Features: what the cluster as a whole has switched on, by level.

A client takes a feature's level from ApiVersions and may use new behaviour from that level on; so a feature is
listed here when it is built, not before. Tools take the cluster's version from metadata.version.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Levels(NamedTuple):
    """The levels of a feature that this version of riverlog can run with."""

    lowest: int
    highest: int


METADATA_VERSION: Final = "metadata.version"
ELIGIBLE_LEADERS: Final = "eligible.leader.replicas.version"
KRAFT_VERSION: Final = "kraft.version"

MIN_IN_SYNC: Final = "min.insync.replicas"
"""The setting on which eligible leaders rest."""

UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"

SUPPORTED_FEATURES: Final[Mapping[str, Levels]] = MappingProxyType(
    {
        METADATA_VERSION: Levels(30, 30),  # 4.3-IV0: the records of metadata/records.py
        "group.version": Levels(1, 1),  # consumer groups, KIP-848
        "transaction.version": Levels(0, 2),  # an epoch per transaction, KIP-890
    }
)

NODE_FEATURES: Final[Mapping[str, Levels]] = MappingProxyType(
    {
        **SUPPORTED_FEATURES,
        "group.version": Levels(0, 1),
        ELIGIBLE_LEADERS: Levels(0, 1),
        KRAFT_VERSION: Levels(0, 1),
        "share.version": Levels(0, 0),
        "streams.version": Levels(0, 0),
    }
)
"""What a node of a cluster says of itself to the others: each feature that Apache Kafka 4.3 has, also those that are
not built, at level 0."""

FIRST_LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {METADATA_VERSION: 30, "group.version": 1, "transaction.version": 2, ELIGIBLE_LEADERS: 1}
)
"""The levels with which a new cluster begins, as one of Apache Kafka 4.3 does; what is not named is off."""
