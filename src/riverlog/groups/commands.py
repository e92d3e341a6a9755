"""What a group coordinator can be asked, and what it answers. Plain data on both sides: no wire version, no future.

Every command is answered exactly once, by its ticket: most at once, a Join or Sync perhaps by the decision about
another member's command. Commands that nobody waits for (Announce, Woken, TopicsChanged, TopicsDeleted) are answered
with None. Where a reply holds codes for several things, they stand in the order of the command.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from riverlog.groups.consumer.assignors.subscriber import Partitions
from riverlog.groups.limits import MEMBER_NAME_CHARACTERS_MAX
from riverlog.groups.records import GroupFact
from riverlog.groups.topics import Topics
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import (
    NO_EPOCH,
    NO_OFFSET,
    NO_TOPIC_ID,
    LeaderEpoch,
    Offset,
    TopicId,
    TopicPartition,
)
from riverlog.model.machine import Command
from riverlog.model.transactions import ProducerIdentity

NO_MEMBER: Final = ""
"""The member id of one who has none yet."""

NO_GENERATION: Final = -1
"""The generation that simple consumers and tools send: they belong to no generation."""


class GroupType(StrEnum):
    """How a group's members find their assignment, in Kafka's words."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class MemberClient:
    """Who sent a command: its client id, and its host as Kafka writes it, `/127.0.0.1`."""

    id: str
    host: str


# ---- membership of classic groups


@dataclass(frozen=True, slots=True)
class Protocol:
    """A way of assigning that a member offers; the metadata is the members' business."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Announce(Command[GroupFact, None]):
    """Note that somebody asked for the group's coordinator, as one does who is about to join."""

    group_id: str
    connection: str


@dataclass(frozen=True, slots=True)
class Join(Command[GroupFact, "JoinReply"]):
    """Become a member, or come back for the next generation; answered when that generation begins."""

    group_id: str
    client: MemberClient
    new_id: UUID
    """Chance, handed in: what makes the member's id unique if it needs a new one."""
    member_id: str = NO_MEMBER
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: tuple[Protocol, ...] = ()
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    needs_known_id: bool = True
    """From version 4 on: a newcomer is sent back once to join with the id that it was given."""
    may_skip_assignment: bool = True
    """From version 9 on: a leader that came back can be told that nothing needs to be assigned."""

    @property
    def new_member_id(self) -> str:
        """Return the id that the member gets if it needs a new one: a name that people know, and chance."""
        name = self.client.id if self.group_instance_id is None else self.group_instance_id
        return f"{name[:MEMBER_NAME_CHARACTERS_MAX]}-{self.new_id}"


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member as the leader sees it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinReply:
    """The generation that begins; only its leader is told who the members are."""

    code: ErrorCode = ErrorCode.NONE
    member_id: str = NO_MEMBER
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class Sync(Command[GroupFact, "SyncReply"]):
    """Ask for this member's assignment; the leader's brings everybody's."""

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SyncReply:
    """The member's assignment, as its leader wrote it."""

    code: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class Heartbeat(Command[GroupFact, ErrorCode]):
    """Report that a member is alive."""

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Leaver:
    """A member that leaves, by its id, or, removed by an operator, by its instance id alone."""

    member_id: str
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Leave(Command[GroupFact, "CodesReply"]):
    """Take members out of a group."""

    group_id: str
    members: tuple[Leaver, ...]


@dataclass(frozen=True, slots=True)
class CodesReply:
    """The code of the whole, and one code for each thing that was named unless the whole failed."""

    code: ErrorCode = ErrorCode.NONE
    codes: tuple[ErrorCode, ...] = ()


# ---- membership of consumer groups (KIP-848)


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeat(Command[GroupFact, "ConsumerHeartbeatReply"]):
    """Join with epoch 0, stay, or leave with epoch -1 (-2: for a while); None and -1 say that nothing has changed."""

    group_id: str
    client: MemberClient
    new_id: UUID
    """Chance, handed in: the id of a member that brings none."""
    member_id: str = NO_MEMBER
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: Partitions | None = None
    """What the member has."""
    brings_its_id: bool = True
    """From version 1 on: members choose their ids."""


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeatReply:
    """The member's epoch and when to come again; all its partitions if they have changed, or if it asked for all."""

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None


@dataclass(frozen=True, slots=True)
class DescribeConsumerGroups(Command[GroupFact, "tuple[DescribedConsumerGroup, ...]"]):
    """Describe consumer groups."""

    group_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DescribedConsumer:
    """A member of a consumer group: what it wants, what it has, and what it is to have."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client: MemberClient
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assignment: Partitions
    target_assignment: Partitions
    is_classic: bool
    """Whether the member speaks the classic protocol."""


@dataclass(frozen=True, slots=True)
class DescribedConsumerGroup:
    """A consumer group; topics that are gone are left out of what members have."""

    group_id: str
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[DescribedConsumer, ...] = ()
    code: ErrorCode = ErrorCode.NONE
    message: str | None = None


# ---- offsets


class OffsetToCommit(NamedTuple):
    """How far a partition has been read; a tuple, since a commit names many and they are quicker to make."""

    topic: str
    partition: int
    offset: Offset
    leader_epoch: LeaderEpoch = NO_EPOCH
    metadata: str | None = None
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class CommitOffsets(Command[GroupFact, CodesReply]):
    """Remember offsets for a group; with a producer, once its transaction is committed."""

    group_id: str
    offsets: tuple[OffsetToCommit, ...]
    member_id: str = NO_MEMBER
    generation_id: int = NO_GENERATION
    """The generation of a classic member, or the epoch of a consumer member."""
    group_instance_id: str | None = None
    retention_ms: int = -1
    """Versions 2 to 4 may say how long these offsets are kept; -1 leaves that to the node."""
    knows_missing_groups: bool = True
    """From version 9 on: a group that does not exist is GROUP_ID_NOT_FOUND, before it was ILLEGAL_GENERATION."""
    producer: ProducerIdentity | None = None
    needs_empty_group: bool = False
    """Whether the offsets of a group with members are its members' alone, though the commit is in a transaction."""


@dataclass(frozen=True, slots=True)
class OffsetsOfTopic:
    """Partitions of a topic whose offsets are wanted; with a topic id, only what was committed for that topic."""

    topic: str
    partitions: tuple[int, ...]
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class FetchOffsets(Command[GroupFact, "FetchOffsetsReply"]):
    """Ask for committed offsets of one group: of the named topics, or of all."""

    group_id: str
    topics: tuple[OffsetsOfTopic, ...] | None
    require_stable: bool = False
    member_id: str | None = None
    member_epoch: int = -1


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """What is known about one partition; NO_OFFSET where nothing was committed."""

    topic: str
    partition: int
    offset: Offset = NO_OFFSET
    leader_epoch: LeaderEpoch = NO_EPOCH
    metadata: str = ""
    topic_id: TopicId = NO_TOPIC_ID
    code: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class FetchOffsetsReply:
    """The offsets, in the order of the command, or the reason why the whole group is refused."""

    code: ErrorCode = ErrorCode.NONE
    offsets: tuple[CommittedOffset, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteOffsets(Command[GroupFact, CodesReply]):
    """Forget offsets of partitions that the group does not read any more."""

    group_id: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class TransactionEnded(Command[GroupFact, None]):
    """A transaction that committed offsets has ended; its marker is written with the answer."""

    producer: ProducerIdentity
    committed: bool
    coordinator_epoch: int = 0
    """Of the transaction's coordinator."""


# ---- groups as a whole


@dataclass(frozen=True, slots=True)
class DeleteGroups(Command[GroupFact, CodesReply]):
    """Forget groups without members, and their offsets."""

    group_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListGroups(Command[GroupFact, "tuple[ListedGroup, ...]"]):
    """Name the groups; empty filters let everything pass, others have what they want in lower case."""

    states: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group at a glance."""

    group_id: str
    protocol_type: str
    state: str
    type: GroupType


@dataclass(frozen=True, slots=True)
class DescribeGroups(Command[GroupFact, "tuple[DescribedGroup, ...]"]):
    """Describe classic groups."""

    group_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member of a classic group; metadata and assignment as far as they hold for the group as it is."""

    member_id: str
    group_instance_id: str | None
    client: MemberClient
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A classic group. One that does not exist is Dead, with GROUP_ID_NOT_FOUND for versions that have a message."""

    group_id: str
    state: str
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()
    code: ErrorCode = ErrorCode.NONE
    message: str | None = None


# ---- what happens around the groups; answered with None


@dataclass(frozen=True, slots=True)
class Woken(Command[GroupFact, None]):
    """The deadline that the machine named has come."""


@dataclass(frozen=True, slots=True)
class TopicsDeleted(Command[GroupFact, None]):
    """Topics are gone, and what was committed for them with them."""

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class TopicsChanged(Command[GroupFact, None]):
    """Topics were created, got more partitions or are gone; members of consumer groups may get others to read."""

    topics: Topics
    """All topics, as they are now."""
    changed: frozenset[str]
    """The names of those that are not as they were."""


ClassicCommand = Announce | Join | Sync | Heartbeat | Leave
ConsumerCommand = ConsumerHeartbeat | DescribeConsumerGroups | TopicsChanged
OffsetsCommand = CommitOffsets | FetchOffsets | DeleteOffsets | TopicsDeleted | TransactionEnded
GroupsCommand = ClassicCommand | ConsumerCommand | OffsetsCommand | DeleteGroups | ListGroups | DescribeGroups | Woken
