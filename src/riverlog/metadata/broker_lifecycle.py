"""The life of brokers in a cluster: registered, caught up, heard of, fenced, stopped in good order, gone (KIP-631).

    registered (fenced) --caught up--> active --silent, unreachable, asked--> fenced --beats again--> active
                                         |
                                         +--wants to stop--> in controlled shutdown --others lead--> fenced

Who is active may lead and be in sync; who is not is in sync nowhere, as far as others are. Walks over many partitions
are taken in slices (`sweep.py`).
"""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Final
from uuid import UUID

from riverlog.metadata.bootstrap import bootstrap_records
from riverlog.metadata.broker_index import BrokerIndex
from riverlog.metadata.commands.brokers import (
    RegisterBroker,
    UnregisterBroker,
    check_registration,
    registration_record,
)
from riverlog.metadata.commands.liveness import (
    BecomeActive,
    BrokerHeartbeat,
    BrokerUnreachable,
    ExcuseSilence,
    HeartbeatReply,
    Woken,
)
from riverlog.metadata.commands.only_broker import BrokerRegistered
from riverlog.metadata.election import Election
from riverlog.metadata.image import BrokerImage, MetadataImage
from riverlog.metadata.limits import LEADERS_SOUGHT_SECONDS, PARTITIONS_PER_WAKE_MAX
from riverlog.metadata.live import LiveBrokers, Session
from riverlog.metadata.records import BrokerRegistrationChangeRecord, MetadataRecord, UnregisterBrokerRecord
from riverlog.metadata.sweep import Sweep, Sweeps, all_of
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.model.machine import Instant
from riverlog.model.settings import SettingLayers

_AT_ONCE: Final = Instant(0.0)
_FENCE, _UNFENCE, _STOPS = 1, -1, 1
_FOR_GOOD: Final = UUID(int=0)
"""In the place of an incarnation: none is to come."""


class BrokerLifecycle:
    """Decides what becomes of brokers. What it holds is soft state: `image` and `index` are the machine's."""

    def __init__(
        self, image: Callable[[], MetadataImage], index: Callable[[], BrokerIndex], layers: SettingLayers
    ) -> None:
        self.live = LiveBrokers()
        self.sweeps = Sweeps(layers)
        self._image = image
        self._index = index
        self._layers = layers
        self._left_for: dict[NodeId, UUID] = {}
        """Processes that leave many partitions, or have left them, and the incarnation that is to come instead."""
        self._next_search: Instant | None = None
        """When partitions look for leaders next; None as long as this controller is not active."""

    def become_active(self, command: BecomeActive, now: Instant) -> list[MetadataRecord]:
        """Begin with fresh sessions, and with the first facts of a cluster that has none."""
        self.live.session_seconds = command.session_seconds
        self.begin_anew(now)
        return bootstrap_records(self._image(), command.levels, self._layers)

    def begin_anew(self, now: Instant) -> None:
        """Begin a fresh session for every broker that is not fenced; what was under way begins anew."""
        self._index()
        self.sweeps = Sweeps(self._layers)
        self._left_for.clear()
        self._next_search = Instant(now + LEADERS_SOUGHT_SECONDS)
        for broker in self._image().brokers.values():
            if not broker.fenced:
                self.live.touch(broker.id, now)

    def register(self, command: RegisterBroker, now: Instant) -> tuple[list[MetadataRecord], BrokerRegistered]:
        """Take a broker in, behind what its former process leaves."""
        image, node_id = self._image(), command.node_id
        before = image.brokers.get(node_id)
        is_new = before is None or before.incarnation_id != command.incarnation_id
        if is_new and before is not None and self.live.is_live(node_id, now):
            raise Refusal(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                f"Another process is registered as broker {node_id}, and was heard of a moment ago; stop it, give this "
                f"one another node.id, or wait until the other's session has ended.",
            )
        check_registration(image, command)
        records: list[MetadataRecord] = []
        if is_new and before is not None:
            is_forgetful = image.keeps_eligible and before.epoch != command.previous_epoch
            records += self._left(before, command.incarnation_id, is_forgetful=is_forgetful)
            self.forget(node_id)
        registration = registration_record(command, before)
        self.live.touch(node_id, now)
        return [*records, registration], BrokerRegistered(registration.broker_epoch)

    def unregister(self, command: UnregisterBroker) -> list[MetadataRecord]:
        """Take a broker out; replicas that it has stay its own, and are in sync nowhere."""
        broker = self._image().brokers.get(command.node_id)
        if broker is None:
            raise Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"There is no broker {command.node_id}.")
        records = self._left(broker, _FOR_GOOD, is_forgetful=True)
        self.forget(broker.id)
        return [*records, UnregisterBrokerRecord(broker.id, broker.epoch)]

    def heartbeat(self, command: BrokerHeartbeat, now: Instant) -> tuple[list[MetadataRecord], HeartbeatReply]:
        """Note that a broker lives, and decide what it is from now on."""
        broker = self._current(command.node_id, command.epoch)
        if broker is None:
            raise Refusal(
                ErrorCode.STALE_BROKER_EPOCH,
                f"Broker {command.node_id} is not registered with the epoch {command.epoch}; another process has "
                f"registered in its place, or it was unregistered.",
            )
        session = self.live.touch(broker.id, now, is_ours=command.is_ours)
        session.metadata_offset = command.current_metadata_offset
        self._left_for.pop(broker.id, None)
        was_idle, is_caught_up = not self.sweeps, command.current_metadata_offset >= broker.epoch
        records, arriving = self._cordoned(broker, command), list[NodeId]()
        self._leave_directories(broker, command)
        is_fenced, stops = broker.fenced, False
        if self.sweeps.leaves(broker.id) and not broker.in_controlled_shutdown:
            is_fenced = True
        elif broker.fenced:
            stops = command.want_shut_down
            if is_caught_up and not command.want_fence and not stops:
                records.append(BrokerRegistrationChangeRecord(broker.id, broker.epoch, fenced=_UNFENCE))
                arriving, is_fenced = [broker.id], False
                self.seek_leaders()
        elif command.want_fence:
            self._fence(broker)
            is_fenced, stops = True, command.want_shut_down
        elif command.want_shut_down:
            stops = self._may_stop(broker, session, command)
            is_fenced = stops
            records += self._leave_all(broker, stops=stops)
        if stops:
            self.live.forget(broker.id)
        records += self._step(PARTITIONS_PER_WAKE_MAX, arriving=arriving) if was_idle else []
        return records, HeartbeatReply(is_caught_up, is_fenced, stops)

    def unreachable(self, command: BrokerUnreachable) -> list[MetadataRecord]:
        """Fence a broker whose process is gone, before its session ends."""
        broker = self._current(command.node_id, command.epoch)
        if broker is None or broker.fenced or self.sweeps.leaves(broker.id):
            return []
        was_idle = not self.sweeps
        self.live.forget(broker.id)
        self._fence(broker)
        return self._step(PARTITIONS_PER_WAKE_MAX) if was_idle else []

    def excuse(self, command: ExcuseSilence) -> None:
        """Forget everybody's silence while nobody could be heard."""
        self.live.excuse(command.seconds)

    def woken(self, command: Woken, now: Instant) -> list[MetadataRecord]:
        """Fence the brokers whose sessions have ended, go on with what is under way, and look for leaders."""
        while (node_id := self.live.pop_ended(now)) is not None:
            broker = self._image().brokers.get(node_id)
            if broker is not None and not broker.fenced:
                self._fence(broker)
        if not self.sweeps and self._next_search is not None and self._next_search <= now:
            self._next_search = Instant(now + LEADERS_SOUGHT_SECONDS)
            self.seek_leaders()
            self.sweeps.add(Sweep(all_of(self._index().unpreferred), election=Election.PREFERRED))
        return self._step(command.partitions_max)

    def seek_leaders(self) -> None:
        """Seek leaders for partitions that nobody leads, where this controller is active."""
        if self.is_active and self._index().leaderless:
            self.sweeps.add(Sweep(all_of(self._index().leaderless)))

    def forget(self, node_id: NodeId) -> None:
        """End a broker's session, and what it was to leave."""
        self.live.forget(node_id)
        self._left_for.pop(node_id, None)
        self.sweeps.drop(node_id)

    @property
    def is_active(self) -> bool:
        """Return whether this controller has become active."""
        return self._next_search is not None

    def next_deadline(self) -> Instant | None:
        """Return when to be woken: at once as long as a walk is under way."""
        if self.sweeps:
            return _AT_ONCE
        deadlines = [each for each in (self.live.next_end(), self._next_search) if each is not None]
        return min(deadlines, default=None)

    # -- what becomes of one broker

    def _fence(self, broker: BrokerImage) -> None:
        self.sweeps.drop(broker.id)
        self._left_for.pop(broker.id, None)
        end = BrokerRegistrationChangeRecord(broker.id, broker.epoch, fenced=_FENCE)
        self.sweeps.add(Sweep(all_of(self._index().in_sync.get(broker.id)), leaving=broker.id, end=end))

    def _may_stop(self, broker: BrokerImage, session: Session, command: BrokerHeartbeat) -> bool:
        """Return whether a broker that wants to stop leads nothing any more, and all that are active know who does."""
        if self.sweeps.leaves(broker.id) or self._index().leads(broker.id):
            return False
        if not broker.in_controlled_shutdown:
            return True  # it has led nothing
        if session.shutdown_offset is None:
            session.shutdown_offset = command.next_offset - 1
        others = (each.id for each in self._image().brokers.values() if each.is_active)
        lowest = self.live.lowest_offset(others)
        return lowest is None or lowest >= session.shutdown_offset

    def _leave_all(self, broker: BrokerImage, *, stops: bool) -> list[MetadataRecord]:
        """Hand on what a broker leads that wants to stop, and fence it once it may."""
        if stops:
            self._fence(broker)
            return []
        if self.sweeps.leaves(broker.id) or not self._index().leads(broker.id):
            return []
        self.sweeps.add(Sweep(all_of(self._index().in_sync.get(broker.id)), leaving=broker.id))
        if broker.in_controlled_shutdown:
            return []  # another controller has begun with it
        return [BrokerRegistrationChangeRecord(broker.id, broker.epoch, in_controlled_shutdown=_STOPS)]

    def _cordoned(self, broker: BrokerImage, command: BrokerHeartbeat) -> list[MetadataRecord]:
        if command.cordoned_log_dirs is None or command.cordoned_log_dirs == broker.cordoned_log_dirs:
            return []
        return [BrokerRegistrationChangeRecord(broker.id, broker.epoch, cordoned_log_dirs=command.cordoned_log_dirs)]

    def _leave_directories(self, broker: BrokerImage, command: BrokerHeartbeat) -> None:
        """Take a broker out of what lies in directories that have failed; those are taken from it behind that."""
        lost = frozenset(broker.log_dirs).intersection(command.offline_log_dirs)
        under_way = any(each.leaving == broker.id for each in self.sweeps.waiting)
        left = tuple(each for each in broker.log_dirs if each not in lost)
        if not lost or under_way or not left:
            return
        end = BrokerRegistrationChangeRecord(broker.id, broker.epoch, log_dirs=left)
        partitions = all_of(self._index().in_sync.get(broker.id))
        self.sweeps.add(Sweep(partitions, leaving=broker.id, directories=lost, end=end))

    def _left(self, broker: BrokerImage, reason: UUID, *, is_forgetful: bool) -> list[MetadataRecord]:
        """Return how a process that is gone leaves its partitions: in one decision, where they are few.

        It was fenced before, mostly; what is left are those where nobody else was in sync. Where they are many, whoever
        wants it gone is to ask again, when it has left them in slices.
        """
        node_id, index, image = broker.id, self._index(), self._image()
        own = [index.in_sync.get(node_id, {}), index.eligible.get(node_id, {}) if is_forgetful else {}]
        has_left = self._left_for.get(node_id) == reason
        if has_left and not self.sweeps.concerns(node_id):
            del self._left_for[node_id]
            return []
        partitions = chain(*(all_of(each) for each in own))
        sweep = Sweep(partitions, leaving=node_id, is_forgetful=is_forgetful)
        count = sum(bits.bit_count() for each in own for bits in each.values())
        if count <= PARTITIONS_PER_WAKE_MAX:
            self.sweeps.drop(node_id)
            present = self.sweeps.present(image, gone=(node_id,))
            return self.sweeps.walked(sweep, image, PARTITIONS_PER_WAKE_MAX + 1, present)[0]
        if not has_left:
            self.forget(node_id)
            sweep.end = None if broker.fenced else BrokerRegistrationChangeRecord(node_id, broker.epoch, fenced=_FENCE)
            self._left_for[node_id] = reason
            self.sweeps.add(sweep)
        raise Refusal(
            ErrorCode.REQUEST_TIMED_OUT, f"Broker {node_id} must leave {count} partitions first; try again in a moment."
        )

    def _current(self, node_id: NodeId, epoch: int) -> BrokerImage | None:
        broker = self._image().brokers.get(node_id)
        return broker if broker is not None and broker.epoch == epoch else None

    def _step(self, partitions_max: int, *, arriving: Iterable[NodeId] = ()) -> list[MetadataRecord]:
        return self.sweeps.step(self._image(), partitions_max, arriving=tuple(arriving))
