"""Envelope: a broker hands a client's request to the controller, and the response back (KIP-590)."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import binary, int16, message


@message(ApiKey.ENVELOPE)
class EnvelopeRequest:
    """The request with its header, who asks, and from where."""

    request_data: bytes = binary()
    request_principal: bytes | None = binary(nullable_since=0)
    client_host_address: bytes = binary()


@message(ApiKey.ENVELOPE)
class EnvelopeResponse:
    """The response with its header; none where the request was not looked at."""

    response_data: bytes | None = binary(nullable_since=0)
    error_code: int = int16()
