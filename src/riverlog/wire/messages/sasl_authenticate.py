"""SaslAuthenticate: one step of saying who one is."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import binary, int16, int64, message, string


@message(ApiKey.SASL_AUTHENTICATE)
class SaslAuthenticateRequest:
    """What the mechanism has to say."""

    auth_bytes: bytes = binary()


@message(ApiKey.SASL_AUTHENTICATE)
class SaslAuthenticateResponse:
    """What it answers; from version 1 on with the time after which it wants to be told again, 0 if never."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    auth_bytes: bytes = binary()
    session_lifetime_ms: int = int64(since=1)
