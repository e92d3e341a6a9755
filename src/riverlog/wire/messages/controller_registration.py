"""ControllerRegistration: a controller tells the active one where it listens and what it knows (KIP-919)."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.endpoints import RegisteredListener, SupportedFeature
from riverlog.wire.types import array, boolean, int16, int32, message, string, uuid


@message(ApiKey.CONTROLLER_REGISTRATION)
class ControllerRegistrationRequest:
    """Describe the controller; `incarnation_id` is new with each start of its process."""

    controller_id: int = int32()
    incarnation_id: UUID = uuid()
    zk_migration_ready: bool = boolean()
    listeners: list[RegisteredListener] = array(RegisteredListener)
    features: list[SupportedFeature] = array(SupportedFeature)


@message(ApiKey.CONTROLLER_REGISTRATION)
class ControllerRegistrationResponse:
    """Whether it is written."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
