"""Who votes: replicas by node id and log directory, and how the set of them changed along the log (KIP-853).

A node whose disk was wiped or replaced has another directory id, so it is not the voter that its id names: what that
one voted for and had flushed is gone. Without reconfiguration (kraft.version 0) the directories are not known, and the
id alone decides.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import Address, NodeId, Offset
from riverlog.model.uuids import encode_uuid

KRAFT_VERSIONS: Final = (0, 1)
"""The levels of the feature kraft.version that we know: with 1 the voters are in the log."""
RECONFIGURABLE: Final = 1

Value = TypeVar("Value")


class ReplicaKey(NamedTuple):
    """A replica of the metadata log: a node, and the log directory that its copy lies in."""

    id: NodeId
    directory_id: UUID | None = None

    def __str__(self) -> str:
        return f"{self.id}" if self.directory_id is None else f"{self.id} ({encode_uuid(self.directory_id)})"

    def is_met_by(self, other: "ReplicaKey") -> bool:
        """Return whether the other is this replica, as far as is known of this one's directory."""
        return self.id == other.id and self.directory_id in (None, other.directory_id)


class Voter(NamedTuple):
    """A voter, where it listens for controllers, and which levels of kraft.version it knows."""

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    kraft_versions: tuple[int, int] = KRAFT_VERSIONS


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The voters at one point of the log."""

    by_id: Mapping[NodeId, Voter] = field(default_factory=dict)

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> "VoterSet":
        return cls({voter.key.id: voter for voter in sorted(voters, key=lambda voter: voter.key.id)})

    def __iter__(self) -> Iterator[Voter]:
        return iter(self.by_id.values())

    def __len__(self) -> int:
        return len(self.by_id)

    @property
    def ids(self) -> tuple[NodeId, ...]:
        return tuple(self.by_id)

    @property
    def majority(self) -> int:
        """Return how many voters decide."""
        return len(self.by_id) // 2 + 1

    def includes(self, replica: ReplicaKey) -> bool:
        """Return whether this replica votes."""
        voter = self.by_id.get(replica.id)
        return voter is not None and voter.key.is_met_by(replica)

    def address(self, node: NodeId, listener: str) -> Address | None:
        """Return where a voter listens."""
        voter = self.by_id.get(node)
        return None if voter is None else address_on(voter.endpoints, listener)

    def with_voter(self, voter: Voter) -> "VoterSet":
        """Return the set with this voter added, or in place of the one with its id."""
        return VoterSet.of([*(each for each in self if each.key.id != voter.key.id), voter])

    def without(self, replica: ReplicaKey) -> "VoterSet":
        """Return the set without this voter, which is in it."""
        assert self.includes(replica)
        return VoterSet.of(each for each in self if each.key.id != replica.id)


class LogHistory(Generic[Value]):
    """A value that records of the log change, with the offset of each change: what the log loses is taken back."""

    def __init__(self, initial: Value, entries: Iterable[tuple[Offset, Value]] = ()) -> None:
        self._initial = initial
        self._entries: list[tuple[Offset, Value]] = []
        for offset, value in entries:
            self.append(offset, value)

    @property
    def latest(self) -> Value:
        return self._entries[-1][1] if self._entries else self._initial

    @property
    def latest_offset(self) -> Offset | None:
        """Return the offset of the newest record; None where the value stands in no record."""
        return self._entries[-1][0] if self._entries else None

    def append(self, offset: Offset, value: Value) -> None:
        """Note what the record at this offset says."""
        assert not self._entries or offset > self._entries[-1][0], "records of the log are read in order"
        self._entries.append((offset, value))

    def truncate(self, end_offset: Offset) -> None:
        """Forget the records at and behind this offset."""
        while self._entries and self._entries[-1][0] >= end_offset:
            self._entries.pop()

    def at(self, end_offset: Offset) -> Value:
        """Return the value that the records below this offset come to."""
        return next((value for offset, value in reversed(self._entries) if offset < end_offset), self._initial)

    def restart(self, initial: Value, offset: Offset | None) -> None:
        """Begin with what a snapshot says that stands for all records up to `offset`."""
        self._entries = [] if offset is None else [(offset, initial)]
        self._initial = initial

    def forget_below(self, start_offset: Offset) -> None:
        """Keep one record below the log's start: the one that holds there."""
        while len(self._entries) > 1 and self._entries[1][0] < start_offset:
            self._entries.pop(0)


def address_on(endpoints: Iterable[Endpoint], listener: str) -> Address | None:
    """Return the address of a listener."""
    return next((endpoint.address for endpoint in endpoints if endpoint.listener == listener), None)
