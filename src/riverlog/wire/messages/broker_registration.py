"""BrokerRegistration: a broker tells the controller that it is there (KIP-631)."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.endpoints import RegisteredListener, SupportedFeature
from riverlog.wire.types import UUID_, array, boolean, int16, int32, int64, message, string, uuid


@message(ApiKey.BROKER_REGISTRATION)
class BrokerRegistrationRequest:
    """Describe the broker; `incarnation_id` is new with each start of its process."""

    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: UUID = uuid()
    listeners: list[RegisteredListener] = array(RegisteredListener)
    features: list[SupportedFeature] = array(SupportedFeature)
    rack: str | None = string(nullable_since=0)
    is_migrating_zk_broker: bool = boolean(since=1)
    log_dirs: list[UUID] = array(UUID_, since=2)
    previous_broker_epoch: int = int64(since=3, default=-1)


@message(ApiKey.BROKER_REGISTRATION)
class BrokerRegistrationResponse:
    """The epoch under which the broker is known from now on."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)
