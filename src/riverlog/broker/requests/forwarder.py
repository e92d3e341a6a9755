"""The way of clients' requests to the active controller: each in an Envelope, and its response back as it is."""

import asyncio
from typing import Final

from riverlog.broker.requests.context import Hangup
from riverlog.broker.requests.forwarded import is_reading
from riverlog.broker.requests.principal import encode_principal
from riverlog.controller.channel import ControllerChannel
from riverlog.controller.controller import Controller
from riverlog.controller.peers import Lane
from riverlog.model.access import Principal
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset
from riverlog.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

_FOLLOW_SECONDS: Final = 0.05


class EnvelopeForwarder:
    """Hands requests on."""

    def __init__(self, channel: ControllerChannel, controller: Controller) -> None:
        self._channel = channel
        self._controller = controller

    async def __call__(self, frame: memoryview, principal: Principal) -> bytes:
        """Return the controller's response, when what it says is known here too, if that does not take long.

        Hangup where there is none: whether the request was carried out is not known then, and a closed connection is
        what says so to every client.
        """
        known = self._controller.loaded_offset
        who, address = encode_principal(principal)
        request = EnvelopeRequest(bytes(frame), who, address)
        try:
            response: EnvelopeResponse = await self._channel.ask(request, Lane.FORWARD, repeatable=False)
        except Refusal as refusal:
            raise Hangup(refusal.message) from refusal
        if response.error_code != ErrorCode.NONE or response.response_data is None:
            raise Hangup(f"the controller has refused the request: {ErrorCode(response.error_code).title}")
        if not is_reading(frame):
            await self._follow(known)
        return bytes(response.response_data)

    async def _follow(self, known: Offset) -> None:
        """Wait for the records that the response may rest on: they are on their way when it is."""
        try:
            async with asyncio.timeout(_FOLLOW_SECONDS):
                while self._controller.loaded_offset <= known:
                    await self._controller.changed()
        except TimeoutError:
            pass  # nothing was changed, or this broker is slow; it will know soon
