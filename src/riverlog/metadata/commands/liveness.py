"""What the active controller hears of brokers, or does not hear."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from riverlog.metadata.features import FIRST_LEVELS
from riverlog.metadata.limits import BROKER_SESSION_SECONDS, PARTITIONS_PER_WAKE_MAX
from riverlog.metadata.records import MetadataRecord
from riverlog.model.ids import NodeId
from riverlog.model.machine import Command


@dataclass(frozen=True, slots=True)
class BecomeActive(Command[MetadataRecord, None]):
    """This controller leads from now on: brokers have been heard of by another one.

    A cluster without metadata begins with these levels of features.
    """

    levels: Mapping[str, int] = field(default_factory=lambda: FIRST_LEVELS)
    session_seconds: float = BROKER_SESSION_SECONDS
    """How long a broker may be silent."""


@dataclass(frozen=True, slots=True)
class BrokerHeartbeat(Command[MetadataRecord, "HeartbeatReply"]):
    """A broker lives, has come so far with the metadata, and wants something."""

    node_id: NodeId
    epoch: int
    current_metadata_offset: int
    next_offset: int
    """The offset that the first record of this decision gets."""
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    """The directories that are to get no new replicas; None where the broker does not say."""
    is_ours: bool = False
    """Whether the broker is riverlog's, and beats often."""


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The reply to BrokerHeartbeat: what the broker is from now on."""

    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool


@dataclass(frozen=True, slots=True)
class BrokerUnreachable(Command[MetadataRecord, None]):
    """A broker's connection broke, and a new one was refused: its process is gone."""

    node_id: NodeId
    epoch: int


@dataclass(frozen=True, slots=True)
class ExcuseSilence(Command[MetadataRecord, None]):
    """This process stood still for so long: it could not have heard of anybody."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Woken(Command[MetadataRecord, None]):
    """A deadline has come."""

    partitions_max: int = PARTITIONS_PER_WAKE_MAX
    """How many partitions are looked at before others get their turn."""
