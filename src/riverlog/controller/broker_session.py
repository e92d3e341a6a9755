"""A broker's session with the active controller: it registers, beats, and asks to be let go when it stops.

It is fenced until it has the metadata that its registration stands in. Whoever leads later hears the same from it.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
from riverlog.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from riverlog.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from riverlog.wire.messages.endpoints import RegisteredListener, SupportedFeature

_REGISTER_AGAIN_SECONDS: Final = 0.25
_EARLY_BEAT_SECONDS: Final = 0.02
_HEARTBEAT_SECONDS: Final = 2.0
_LEAVE_SECONDS: Final = 10.0
_PLAINTEXT: Final = 0
_WILL_NOT_PASS: Final = (
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.INVALID_REGISTRATION,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)


_REASONS: Final = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: "the controllers belong to another cluster",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "another process is registered as broker {node_id} and lives; stop it, or "
    "give this one another node.id and folder",
    ErrorCode.INVALID_REGISTRATION: "the controller does not take its log directories or listeners; one of the "
    "directories may be registered for another broker, as a copied disk would be (riverlog storage info)",
    ErrorCode.UNSUPPORTED_VERSION: "the cluster uses features at levels that this version of riverlog does not have; "
    "riverlog cluster status lists them",
}
"""What to do about a refusal; only codes come over the wire."""


class NotRegistered(Exception):
    """The broker cannot join the cluster; the message is one sentence for the person who starts the node."""


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """What a broker says of itself when it registers."""

    node_id: NodeId
    cluster_id: str
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    features: Mapping[str, Levels]
    previous_epoch: int
    """The epoch in which it stopped, if it stopped cleanly; -1 otherwise."""


class BrokerSession:
    """Keeps a broker registered."""

    def __init__(
        self,
        identity: BrokerIdentity,
        channel: ControllerChannel,
        controller: Controller,
        log_dirs: Callable[[], tuple[UUID, ...]],
        lost_dirs: Callable[[], tuple[UUID, ...]],
        *,
        heartbeat_seconds: float,
        registration_seconds: float,
        replaced: Callable[[Exception], None],
    ) -> None:
        """Build a session; the log directories that are online, and those that failed, are asked for each time.

        `replaced` is called when the cluster knows another process as this broker, or none.
        """
        self._replaced = replaced
        self.epoch = -1
        self.is_fenced = True
        self._identity = identity
        self._channel = channel
        self._controller = controller
        self._log_dirs = log_dirs
        self._lost_dirs = lost_dirs
        self._heartbeat_seconds = heartbeat_seconds
        self._registration_seconds = registration_seconds
        self._is_caught_up = False
        self._leaving = False
        self._may_stop = False
        self._is_unheard = False
        """Whether no controller has heard that this broker leaves, in the time of a heartbeat."""
        self._changed = asyncio.Event()
        self._beat_now = asyncio.Event()
        self._logger = get_logger("riverlog.broker")

    async def register(self) -> None:
        """Register, and try again for a while where nobody leads, or the session of an earlier process still lives."""
        loop, who = asyncio.get_running_loop(), self._identity
        ends_at, reason = loop.time() + self._registration_seconds, "nobody is known to lead"
        request = BrokerRegistrationRequest(
            broker_id=who.node_id,
            cluster_id=who.cluster_id,
            incarnation_id=who.incarnation_id,
            listeners=[RegisteredListener(each.listener, each.host, each.port, _PLAINTEXT) for each in who.endpoints],
            features=[SupportedFeature(name, *levels) for name, levels in who.features.items()],
            rack=who.rack,
            log_dirs=list(self._log_dirs()),
            previous_broker_epoch=who.previous_epoch,
        )
        while (left := ends_at - loop.time()) > 0:
            try:
                response: BrokerRegistrationResponse = await self._channel.ask(
                    request, Lane.CONTROL, repeatable=True, seconds=left
                )
            except Refusal as refusal:
                reason = refusal.message
                continue
            code = ErrorCode(response.error_code)
            if code is ErrorCode.NONE:
                self.epoch = response.broker_epoch
                self._logger.info("broker registered", node_id=who.node_id, epoch=self.epoch)
                return
            reason = _REASONS.get(code, f"the controller says {code.title}").format(node_id=who.node_id)
            if code in _WILL_NOT_PASS:
                break
            await asyncio.sleep(_REGISTER_AGAIN_SECONDS)
        raise NotRegistered(f"broker {who.node_id} could not join the cluster {who.cluster_id}: {reason.rstrip('.')}")

    async def run(self) -> None:
        """Beat: often until the broker has caught up, and while it waits to be let go; else now and then."""
        while not self._may_stop:
            await self._beat()
            is_settled = self._is_caught_up and not self._leaving
            self._beat_now.clear()
            try:
                async with asyncio.timeout(self._heartbeat_seconds if is_settled else _EARLY_BEAT_SECONDS):
                    await self._beat_now.wait()
            except TimeoutError:
                pass

    async def unfenced(self) -> None:
        """Wait until the controller lets this broker lead."""
        while self.is_fenced and not self._may_stop:
            self._changed.clear()
            await self._changed.wait()

    async def leave(self) -> None:
        """Ask to be let go, and wait until others lead what this broker led; not for ever."""
        self._leaving = True
        self._beat_now.set()
        try:
            async with asyncio.timeout(_LEAVE_SECONDS):
                while not (self._may_stop or self._is_unheard):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        if not self._may_stop:
            self._logger.warning("the controller did not let this broker go; it stops all the same")

    async def _beat(self) -> None:
        request = BrokerHeartbeatRequest(
            broker_id=self._identity.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._controller.loaded_offset - 1,
            want_shut_down=self._leaving,
            offline_log_dirs=list(self._lost_dirs()),
            cordoned_log_dirs=[] if self._is_caught_up else None,
        )
        try:
            response: BrokerHeartbeatResponse = await self._channel.ask(
                request, Lane.HEARTBEAT, repeatable=True, seconds=_HEARTBEAT_SECONDS
            )
        except Refusal as refusal:
            self._logger.warning("no heartbeat", detail=refusal.message)
            self._is_unheard = request.want_shut_down
            self._changed.set()
            return
        if response.error_code == ErrorCode.STALE_BROKER_EPOCH:
            who, self._may_stop = self._identity, True
            self._changed.set()
            if not self._leaving:
                what = f"another process has registered as broker {who.node_id} of the cluster {who.cluster_id}"
                self._replaced(NotRegistered(f"{what}, or it was unregistered; this one must not serve its partitions"))
            return
        if response.error_code != ErrorCode.NONE:
            self._logger.warning("heartbeat refused", error=ErrorCode(response.error_code).title)
            return
        if response.is_fenced != self.is_fenced:
            self._logger.info("broker fenced" if response.is_fenced else "broker unfenced", epoch=self.epoch)
        self.is_fenced, self._is_caught_up = response.is_fenced, response.is_caught_up
        self._may_stop = self._leaving and response.should_shut_down
        self._changed.set()
