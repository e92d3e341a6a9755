"""SaslHandshake, SaslAuthenticate: on a listener that asks nobody who is there, nobody is to say it.

Kafka lists both on every listener, and answers so on those without SASL. The node's own parts say it all the same, each
by the secret that was drawn when the node was made: what the node keeps for itself is for them alone.
"""

import hmac
from dataclasses import replace
from typing import Final

from riverlog.broker.requests.context import Context
from riverlog.broker.requests.routes import Routes
from riverlog.model.checkpoint_topic import CHECKPOINTS_PRINCIPAL, OWN_MECHANISM
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from riverlog.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

_CODE: Final = ErrorCode.ILLEGAL_SASL_STATE
_WHY: Final = "This listener asks nobody who is there; connect with security.protocol=PLAINTEXT."


def sasl_handshake(request: SaslHandshakeRequest, context: Context) -> SaslHandshakeResponse:
    """Refuse any mechanism but that of the node's own parts."""
    if request.mechanism == OWN_MECHANISM:
        return SaslHandshakeResponse(mechanisms=[OWN_MECHANISM])
    context.stats.failed(_CODE)
    return SaslHandshakeResponse(error_code=_CODE)


def sasl_authenticate(request: SaslAuthenticateRequest, context: Context) -> SaslAuthenticateResponse:
    """Listen to those who know the node's secret, and to nobody else."""
    expected = f"\0{CHECKPOINTS_PRINCIPAL}\0{context.services.secret}".encode()
    if hmac.compare_digest(bytes(request.auth_bytes), expected):
        context.client.principal = replace(context.client.principal, name=CHECKPOINTS_PRINCIPAL)
        context.client.routes = Routes()  # they were learnt for somebody else
        return SaslAuthenticateResponse()
    context.stats.failed(_CODE)
    return SaslAuthenticateResponse(error_code=_CODE, error_message=_WHY)
