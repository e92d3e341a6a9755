"""The way of clients' requests to the active controller: each in an Envelope, and its response back as it is."""

from riverlog.broker.requests.context import Hangup
from riverlog.broker.requests.principal import encode_principal
from riverlog.controller.channel import ControllerChannel
from riverlog.controller.peers import Lane
from riverlog.model.access import Principal
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse


class EnvelopeForwarder:
    """Hands requests on."""

    def __init__(self, channel: ControllerChannel) -> None:
        self._channel = channel

    async def __call__(self, frame: memoryview, principal: Principal) -> bytes:
        """Return the controller's response.

        Hangup where there is none: whether the request was carried out is not known then, and a closed connection is
        what says so to every client.
        """
        who, address = encode_principal(principal)
        request = EnvelopeRequest(bytes(frame), who, address)
        try:
            response: EnvelopeResponse = await self._channel.ask(request, Lane.FORWARD, repeatable=False)
        except Refusal as refusal:
            raise Hangup(refusal.message) from refusal
        if response.error_code != ErrorCode.NONE or response.response_data is None:
            raise Hangup(f"the controller has refused the request: {ErrorCode(response.error_code).title}")
        return bytes(response.response_data)
