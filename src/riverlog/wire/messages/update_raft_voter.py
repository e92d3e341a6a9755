"""UpdateRaftVoter: a voter tells the leader where it listens now, and which levels of kraft.version it knows."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.endpoints import ListenerEndpoint
from riverlog.wire.types import array, int16, int32, message, nested, string, struct, uuid


@struct
class KRaftVersions:
    """The levels of kraft.version that a voter knows."""

    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message(ApiKey.UPDATE_RAFT_VOTER)
class UpdateRaftVoterRequest:
    """Describe the voter that asks."""

    cluster_id: str | None = string(nullable_since=0)
    current_leader_epoch: int = int32()
    voter_id: int = int32()
    voter_directory_id: UUID = uuid()
    listeners: list[ListenerEndpoint] = array(ListenerEndpoint)
    k_raft_version_feature: KRaftVersions = nested(KRaftVersions)


@struct
class LeaderEndpoint:
    """Who leads, and where it listens."""

    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)
    host: str = string()
    port: int = int32()


@message(ApiKey.UPDATE_RAFT_VOTER)
class UpdateRaftVoterResponse:
    """Whether the entry is written."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    current_leader: LeaderEndpoint | None = nested(LeaderEndpoint, tag=0)
