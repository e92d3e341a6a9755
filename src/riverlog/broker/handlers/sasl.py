"""SaslHandshake, SaslAuthenticate: on a listener that asks nobody who is there, nobody is to say it.

Kafka lists both on every listener, and answers so on those without SASL.
"""

from typing import Final

from riverlog.broker.context import Context
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from riverlog.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

_CODE: Final = ErrorCode.ILLEGAL_SASL_STATE
_WHY: Final = "This listener asks nobody who is there; connect with security.protocol=PLAINTEXT."


def sasl_handshake(request: SaslHandshakeRequest, context: Context) -> SaslHandshakeResponse:
    """Refuse any mechanism."""
    context.stats.failed(_CODE)
    return SaslHandshakeResponse(error_code=_CODE)


def sasl_authenticate(request: SaslAuthenticateRequest, context: Context) -> SaslAuthenticateResponse:
    """Refuse to listen."""
    context.stats.failed(_CODE)
    return SaslAuthenticateResponse(error_code=_CODE, error_message=_WHY)
