"""How a replica fetches: one request under way at a time, from the leader, or from anybody who may know the leader."""

from riverlog.model.ids import Address, NodeId
from riverlog.model.machine import Instant
from riverlog.raft.limits import FETCH_BYTES_MAX
from riverlog.raft.messages import FetchRequest, Request
from riverlog.raft.replica import Replica


class MetadataFetcher:
    """Sends one request at a time, and waits a little after each that did not help."""

    def __init__(self, replica: Replica, now: Instant, *, knows_leader: bool) -> None:
        self._replica = replica
        self._asks_somebody = knows_leader or bool(replica.controllers)
        self._number: int | None = None
        self._not_before = now
        self._asks_elsewhere = False
        self._asked_leader = False

    @property
    def deadline(self) -> Instant | None:
        """Return when to ask; None while a request is under way."""
        return None if self._number is not None or not self._asks_somebody else self._not_before

    def is_under_way(self, number: int) -> bool:
        return self._number == number

    def asks_leader(self, number: int) -> bool:
        """Return whether this is the request under way, and the leader is asked."""
        return self._number == number and self._asked_leader

    def fetch(self, address: Address, leader: NodeId, now: Instant, request: Request | None = None) -> None:
        """Ask the leader; after a failure first anybody else, who may know another one."""
        if self._number is not None or now < self._not_before:
            return
        if self._asks_elsewhere and self._replica.controllers:
            self.ask_anybody(now)
            return
        self._asked_leader = True
        self._number = self._replica.call(address, leader, request or fetch_request(self._replica))

    def ask_anybody(self, now: Instant) -> None:
        """Ask one of the controllers that the settings name, or that vote."""
        others = self._replica.controllers
        if self._number is not None or now < self._not_before or not others:
            return
        self._asked_leader = False
        address = others[self._replica.random.randrange(0, len(others))]
        self._number = self._replica.call(address, None, fetch_request(self._replica))

    def succeeded(self) -> None:
        """Ask again as soon as there is something to ask for."""
        self._number = None
        self._asks_elsewhere = False

    def ended(self, number: int, now: Instant, *, elsewhere: bool = False) -> None:
        """Ask again after a while, if this was the request under way: elsewhere, if the leader has not helped."""
        if self._number == number:
            self._number = None
            self._asks_elsewhere = elsewhere and self._asked_leader
            self._not_before = Instant(now + self._replica.timing.retry_backoff)


def fetch_request(replica: Replica) -> FetchRequest:
    """Ask for what is behind the log."""
    return FetchRequest(
        replica.key,
        replica.epoch,
        replica.log.end,
        replica.log.last_epoch,
        replica.high_watermark,
        replica.timing.fetch_wait,
        FETCH_BYTES_MAX,
    )
