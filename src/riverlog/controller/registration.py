"""A controller's registration with the active one: where it listens, and which levels of features it knows.

It holds for one process. It is sent again as long as the metadata name another one, or none.
"""

import asyncio
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from riverlog.controller.channel import ControllerChannel
from riverlog.controller.controller import Controller
from riverlog.controller.peers import Lane
from riverlog.metadata.features import Levels
from riverlog.model.endpoints import Endpoint
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.observe.logging import get_logger
from riverlog.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from riverlog.wire.messages.endpoints import RegisteredListener, SupportedFeature

_FIRST_PAUSE_SECONDS: Final = 0.1
_PAUSE_SECONDS_MAX: Final = 10.0
_SEEN_WITHIN_SECONDS: Final = 2.0
"""How long a registration that was acknowledged may take to come back in the metadata, before it is sent again."""
_PLAINTEXT: Final = 0


class ControllerRegistration:
    """Keeps a controller registered."""

    def __init__(
        self,
        node_id: NodeId,
        incarnation_id: UUID,
        endpoints: tuple[Endpoint, ...],
        features: Mapping[str, Levels],
        channel: ControllerChannel,
        controller: Controller,
    ) -> None:
        self._request = ControllerRegistrationRequest(
            controller_id=node_id,
            incarnation_id=incarnation_id,
            listeners=[RegisteredListener(each.listener, each.host, each.port, _PLAINTEXT) for each in endpoints],
            features=[SupportedFeature(name, *levels) for name, levels in features.items()],
        )
        self._channel = channel
        self._controller = controller
        self._log = get_logger("riverlog.controller")

    async def run(self) -> None:
        """Register whenever the metadata do not say what this process is, for ever."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            if self._is_registered or self._controller.quorum.leader_id is None:
                await self._controller.changed()
            elif await self._register():
                pause = _FIRST_PAUSE_SECONDS
                await self._seen()
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _PAUSE_SECONDS_MAX)

    @property
    def _is_registered(self) -> bool:
        known = self._controller.image.controllers.get(NodeId(self._request.controller_id))
        return known is not None and known.incarnation_id == self._request.incarnation_id

    async def _register(self) -> bool:
        """Ask the active controller; return whether it has taken the registration."""
        try:
            response: ControllerRegistrationResponse = await self._channel.ask(
                self._request, Lane.CONTROL, repeatable=True
            )
        except Refusal as refusal:
            self._log.warning("controller not registered", detail=refusal.message)
            return False
        if response.error_code != ErrorCode.NONE:
            code = ErrorCode(response.error_code).title
            self._log.warning("controller not registered", error=code, detail=response.error_message or "")
            return False
        self._log.info("controller registered", node_id=self._request.controller_id)
        return True

    async def _seen(self) -> None:
        """Wait until the metadata say so too; not for ever."""
        try:
            async with asyncio.timeout(_SEEN_WITHIN_SECONDS):
                while not self._is_registered:
                    await self._controller.changed()
        except TimeoutError:
            pass
