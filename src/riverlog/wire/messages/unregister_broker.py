"""UnregisterBroker: a broker is gone for good, and its registration with it."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import int16, int32, message, string


@message(ApiKey.UNREGISTER_BROKER)
class UnregisterBrokerRequest:
    """Name the broker."""

    broker_id: int = int32()


@message(ApiKey.UNREGISTER_BROKER)
class UnregisterBrokerResponse:
    """Whether it is gone."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
