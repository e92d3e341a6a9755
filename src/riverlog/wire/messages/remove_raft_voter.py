"""RemoveRaftVoter: let a controller vote on the metadata log no longer (KIP-853)."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import int16, int32, message, string, uuid


@message(ApiKey.REMOVE_RAFT_VOTER)
class RemoveRaftVoterRequest:
    """Name the controller and its disk."""

    cluster_id: str | None = string(nullable_since=0)
    voter_id: int = int32()
    voter_directory_id: UUID = uuid()


@message(ApiKey.REMOVE_RAFT_VOTER)
class RemoveRaftVoterResponse:
    """Whether it is removed."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
