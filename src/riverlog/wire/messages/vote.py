"""Vote: ask a voter of the metadata log for its vote, or whether it would give it (KIP-595, 853, 996)."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.endpoints import NodeEndpoint
from riverlog.wire.types import array, boolean, int16, int32, int64, message, string, struct, uuid


@struct
class VotePartition:
    """Who stands for election, in which epoch, and where its log ends."""

    partition_index: int = int32()
    replica_epoch: int = int32()
    replica_id: int = int32()
    replica_directory_id: UUID = uuid(since=1)
    voter_directory_id: UUID = uuid(since=1)
    last_offset_epoch: int = int32()
    last_offset: int = int64()
    pre_vote: bool = boolean(since=2)


@struct
class VoteTopic:
    """The log that is voted on."""

    topic_name: str = string()
    partitions: list[VotePartition] = array(VotePartition)


@message(ApiKey.VOTE)
class VoteRequest:
    """Ask one voter."""

    cluster_id: str | None = string(nullable_since=0)
    voter_id: int = int32(since=1, default=-1)
    topics: list[VoteTopic] = array(VoteTopic)


@struct
class VotePartitionResult:
    """The vote, with the leader and the epoch that the voter knows."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    vote_granted: bool = boolean()


@struct
class VoteTopicResult:
    """The votes on one log."""

    topic_name: str = string()
    partitions: list[VotePartitionResult] = array(VotePartitionResult)


@message(ApiKey.VOTE)
class VoteResponse:
    """The answer, and where the leader listens."""

    error_code: int = int16()
    topics: list[VoteTopicResult] = array(VoteTopicResult)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)
