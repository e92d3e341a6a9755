"""Which brokers were heard of, and until when that is enough: soft state, which a fail-over loses.

A new active controller gives every broker a fresh session. A broker that registers has one from then on.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from riverlog.metadata.limits import BROKER_SESSION_SECONDS, OWN_SESSION_SECONDS
from riverlog.model.ids import NodeId
from riverlog.model.machine import Instant
from riverlog.model.timers import Timers


@dataclass(slots=True)
class Session:
    """What a broker has said, beyond that it lives."""

    is_ours: bool = False
    """Whether it beats often, so that a shorter silence is enough."""
    metadata_offset: int = -1
    """How far it has come with the metadata."""
    shutdown_offset: int | None = None
    """Where the metadata say that others lead what it led; None as long as they do not."""


class LiveBrokers:
    """The sessions of brokers."""

    def __init__(self) -> None:
        self.session_seconds = BROKER_SESSION_SECONDS
        """How long a broker may be silent; one of ours, which beats often, not longer than OWN_SESSION_SECONDS."""
        self._sessions: dict[NodeId, Session] = {}
        self._ends: Timers[NodeId] = Timers()

    def session(self, node_id: NodeId) -> Session | None:
        """Return the session of a broker, if it has one."""
        return self._sessions.get(node_id)

    def touch(self, node_id: NodeId, now: Instant, *, is_ours: bool | None = None) -> Session:
        """Note that a broker was heard of; return its session."""
        session = self._sessions.setdefault(node_id, Session())
        if is_ours is not None:
            session.is_ours = is_ours
        seconds = min(self.session_seconds, OWN_SESSION_SECONDS) if session.is_ours else self.session_seconds
        self._ends.set(node_id, Instant(now + seconds))
        return session

    def is_live(self, node_id: NodeId, now: Instant) -> bool:
        """Return whether a broker was heard of not long ago."""
        end = self._ends.get(node_id)
        return end is not None and end > now

    def forget(self, node_id: NodeId) -> None:
        """End a session; one that is not there is fine."""
        self._sessions.pop(node_id, None)
        self._ends.cancel(node_id)

    def excuse(self, seconds: float) -> None:
        """Prolong all sessions: nobody could be heard of for so long."""
        for node_id in self._sessions:
            end = self._ends.get(node_id)
            assert end is not None
            self._ends.set(node_id, Instant(end + seconds))

    def pop_ended(self, now: Instant) -> NodeId | None:
        """Forget one broker whose session has ended, and name it."""
        node_id = self._ends.pop(now)
        if node_id is not None:
            del self._sessions[node_id]
        return node_id

    def next_end(self) -> Instant | None:
        """Return when a session may end, if there is one."""
        return self._ends.next()

    def lowest_offset(self, node_ids: Iterable[NodeId]) -> int | None:
        """Return how far the slowest of these has come with the metadata; None where none of them has a session."""
        offsets = [self._sessions[each].metadata_offset for each in node_ids if each in self._sessions]
        return min(offsets, default=None)
