"""Who is about to join: whoever asks for a group's coordinator is likely to be a member a moment later.

A client may ask more than once and over several connections while it connects, so only those are counted who asked at
about the same time: as many as that are on their way together.
"""

from collections import Counter, deque
from typing import NamedTuple

from riverlog.groups.limits import ASKED_TOGETHER_MS, ASKS_REMEMBERED_MAX, ASKS_REMEMBERED_MS
from riverlog.model.machine import Instant


class _Ask(NamedTuple):
    at: Instant
    group_id: str
    connection: str


class ExpectedMembers:
    """Counts the members that are about to join, by the connections that looked up the coordinator."""

    def __init__(self) -> None:
        self._asks: deque[_Ask] = deque(maxlen=ASKS_REMEMBERED_MAX)  # in the order of time; too many: the oldest go

    def note_lookup(self, group_id: str, connection: str, now: Instant) -> None:
        """Note that somebody asked for the coordinator of a group."""
        self._asks.append(_Ask(now, group_id, connection))

    def count(self, group_id: str, now: Instant) -> int:
        """Return the most connections that asked for the group within any short stretch of the last moments."""
        while self._asks and self._asks[0].at < now - ASKS_REMEMBERED_MS / 1000:
            self._asks.popleft()
        together: deque[_Ask] = deque()
        asks_by_connection: Counter[str] = Counter()
        most = 0
        for ask in self._asks:
            if ask.group_id != group_id:
                continue
            together.append(ask)
            asks_by_connection[ask.connection] += 1
            while together[0].at < ask.at - ASKED_TOGETHER_MS / 1000:
                gone = together.popleft()
                asks_by_connection[gone.connection] -= 1
                if not asks_by_connection[gone.connection]:
                    del asks_by_connection[gone.connection]
            most = max(most, len(asks_by_connection))
        return most
