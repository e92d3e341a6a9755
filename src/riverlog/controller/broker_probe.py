"""Looks whether a broker is still there when the connection has broken on which its heartbeats came.

The machine of a process that was killed refuses connections from that moment on. So one that is refused says what
silence would say only when the session has ended; one that is not answered says nothing, and no more does one that is.
"""

import asyncio
from typing import Final

from riverlog.controller.controller import Controller
from riverlog.metadata.commands.liveness import BrokerUnreachable
from riverlog.metadata.image import BrokerImage, RegisteredEndpoint
from riverlog.model.errors import Refusal
from riverlog.model.ids import NodeId
from riverlog.model.ports import Connecting
from riverlog.observe.logging import get_logger
from riverlog.runner import Stopped

_TRIES_AFTER_SECONDS: Final = (0.0, 0.05, 0.2, 0.5)
"""A process that ends closes one socket after the other: the one that listens may be the last."""
_CONNECT_SECONDS: Final = 1.0
_ENDPOINTS_MAX: Final = 4
"""How many of a broker's listeners are tried."""
_BROKERS_MAX: Final = 64
"""How many brokers are looked for at a time; the sessions of others end as they do without this."""


class BrokerProbe:
    """Tells the controller of brokers that are gone."""

    def __init__(self, controller: Controller, network: Connecting) -> None:
        self._controller = controller
        self._network = network
        self._looking: dict[tuple[NodeId, int], asyncio.Task[None]] = {}
        self._closed = False
        self._log = get_logger("riverlog.controller")

    def look(self, node_id: NodeId, epoch: int) -> None:
        """Look for a broker, if this node decides about it."""
        key = (node_id, epoch)
        if self._closed or key in self._looking or len(self._looking) >= _BROKERS_MAX or not self._is_awaited(*key):
            return
        task = self._looking[key] = asyncio.get_running_loop().create_task(self._look(node_id, epoch))
        task.add_done_callback(lambda _done: self._looking.pop(key, None))

    def close(self) -> None:
        """Look no more."""
        self._closed = True
        for task in tuple(self._looking.values()):
            task.cancel()

    def _is_awaited(self, node_id: NodeId, epoch: int) -> bool:
        """Return whether this node decides, and counts on this broker."""
        broker = self._controller.image.brokers.get(node_id)
        return self._controller.is_active and broker is not None and broker.epoch == epoch and not broker.fenced

    async def _look(self, node_id: NodeId, epoch: int) -> None:
        for seconds in _TRIES_AFTER_SECONDS:
            await asyncio.sleep(seconds)
            if not self._is_awaited(node_id, epoch):
                return
            if await self._refuses(self._controller.image.brokers[node_id]):
                break
        else:
            return
        try:
            await self._controller.submit(BrokerUnreachable(node_id, epoch))
        except (Refusal, Stopped):  # another controller decides, and its sessions end in time
            return
        self._log.warning("broker unreachable: its connection broke, and another one was refused", broker=node_id)

    async def _refuses(self, broker: BrokerImage) -> bool:
        """Return whether a listener of a broker refuses connections, and no other takes one."""
        said = await asyncio.gather(*(self._connect(each) for each in broker.endpoints[:_ENDPOINTS_MAX]))
        return True in said and False not in said

    async def _connect(self, endpoint: RegisteredEndpoint) -> bool | None:
        """Return whether a connection is refused; None where that cannot be told."""
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                stream = await self._network.connect(endpoint.host, endpoint.port)
        except ConnectionRefusedError:
            return True
        except OSError:  # a time-out is one, too
            return None
        stream.close()
        return False
