"""What the coordinator of a transaction and the partitions it touches ask of each other.

Both questions travel through a port, also where both sides live on one node: an answer may be late, lost or given
twice. So either may be asked again for ever, and asking again changes nothing.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple, Protocol

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition

PRODUCER_EPOCH_MAX: Final = ProducerEpoch(32_767)
"""No producer writes with it: it is left for fencing the one that wrote with the epoch before."""


class ProducerIdentity(NamedTuple):
    """The writer of a transaction: with each epoch it is another one to those who check."""

    id: ProducerId
    epoch: ProducerEpoch


class TransactionVersion(IntEnum):
    """The rules that a transaction was written by: the levels of the feature `transaction.version`."""

    CLASSIC = 0
    FLEXIBLE_RECORDS = 1
    EPOCH_PER_TRANSACTION = 2
    """KIP-890 part 2: every end of a transaction bumps the epoch, and its markers carry the new one."""


NOTHING_FOLLOWS: Final = b"riverlog:nothing-follows"
"""What an owner leaves with the last batch that it will ever commit under its transactional id."""


class TransactionOutcome(StrEnum):
    """How a transaction ended, and at whose wish."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    TIMED_OUT = "timed_out"
    FENCED = "fenced"
    """A new producer took over while it was open, and had it aborted."""


@dataclass(frozen=True, slots=True)
class TransactionMarkers:
    """How a producer's transaction ended, for partitions that it wrote to."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    coordinator_epoch: int
    committed: bool
    partitions: tuple[TopicPartition, ...]
    version: TransactionVersion


class MarkerPort(Protocol):
    """The way to the logs in which transactions end."""

    def write(self, markers: TransactionMarkers) -> Awaitable[Mapping[TopicPartition, ErrorCode]]:
        """Write a marker to each partition, and report how it went once it is committed there; perhaps at once.

        A partition that is missing in the answer is asked again.
        """


class VerifyTransaction(Protocol):
    """The way to the coordinator for a partition that is to begin a producer's transaction."""

    def verify(
        self,
        transactional_id: str,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        partition: TopicPartition,
        *,
        adds: bool,
    ) -> Awaitable[ErrorCode]:
        """Return whether the partition belongs to the producer's open transaction; with `adds`, add it first."""
