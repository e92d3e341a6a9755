"""SaslHandshake: agree on the way in which a client says who it is."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import STRING, array, int16, message, string


@message(ApiKey.SASL_HANDSHAKE)
class SaslHandshakeRequest:
    """Name a mechanism."""

    mechanism: str = string()


@message(ApiKey.SASL_HANDSHAKE)
class SaslHandshakeResponse:
    """Whether the broker has it, and which it has."""

    error_code: int = int16()
    mechanisms: list[str] = array(STRING)
