"""AddRaftVoter: make a controller one of those that vote on the metadata log (KIP-853)."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.endpoints import ListenerEndpoint
from riverlog.wire.types import array, boolean, int16, int32, message, string, uuid


@message(ApiKey.ADD_RAFT_VOTER)
class AddRaftVoterRequest:
    """Name the controller, its disk, and where it listens."""

    cluster_id: str | None = string(nullable_since=0)
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: UUID = uuid()
    listeners: list[ListenerEndpoint] = array(ListenerEndpoint)
    ack_when_committed: bool = boolean(since=1, default=True)


@message(ApiKey.ADD_RAFT_VOTER)
class AddRaftVoterResponse:
    """Whether it votes now."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
