"""BrokerHeartbeat: a broker tells the controller that it lives, how far it has come, and what it wants (KIP-631)."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import UUID_, array, boolean, int16, int32, int64, message


@message(ApiKey.BROKER_HEARTBEAT)
class BrokerHeartbeatRequest:
    """One beat; `cordoned_log_dirs` is null until the broker has caught up."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[UUID] = array(UUID_, since=1, tag=0)
    cordoned_log_dirs: list[UUID] | None = array(UUID_, since=2, nullable_since=2, tag=1)


@message(ApiKey.BROKER_HEARTBEAT)
class BrokerHeartbeatResponse:
    """What the broker is now."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean()
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()
